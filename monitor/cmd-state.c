/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands of the drive process that QEMU has not: the state of its devices, into a file, a descriptor or
 * the answer, and back. Files are read and written on a thread of their own, since they may hang.
 */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <unistd.h>
#include "monitor/qmp.h"
#include "util/bytes.h"
#include "util/error.h"
#include "util/state.h"

/* Where the bytes come from or go to. */
typedef struct Transfer {
    QmpCall *call;
    char *filename; /* NULL: `fd` */
    int fd;
    GBytes *bytes;
} Transfer;

static void transfer_free(gpointer data)
{
    Transfer *transfer = data;

    if (transfer->fd >= 0) {
        close(transfer->fd);
    }
    if (transfer->bytes) {
        g_bytes_unref(transfer->bytes);
    }
    g_free(transfer->filename);
    g_free(transfer);
}

/* The way that the arguments name; NULL and an error. A descriptor is one that the process inherited, and
 * stays its. */
static Transfer *transfer_new(QmpCall *call, GError **error)
{
    const char *filename = qmp_arg_string(call, "filename");
    int64_t number = qmp_arg_int(call, "fd", -1);
    int fd = filename ? -1 : fcntl((int)CLAMP(number, -1, INT_MAX), F_DUPFD_CLOEXEC, 3);

    if (!filename && fd < 0) {
        error_set_errno(error, errno, "Parameter 'fd' does not accept value '%" G_GINT64_FORMAT "'", number);
        return NULL;
    }
    Transfer *transfer = g_new0(Transfer, 1);
    transfer->call = call;
    transfer->filename = g_strdup(filename);
    transfer->fd = fd;
    return transfer;
}

static bool check_way(QmpCall *call, bool data, GError **error)
{
    unsigned ways = qmp_arg_given(call, "filename") + qmp_arg_given(call, "fd") + qmp_arg_given(call, "data");

    return ways <= 1 && (ways == 1 || data)
               ? true
               : error_set(error, "Need %s of 'filename', 'fd'%s", data ? "at most one" : "exactly one",
                           data ? "" : " and 'data'");
}

/* 0 or -errno, on the thread. */
static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

/* Bytes read, fewer at the end of the file, or -errno. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = read(fd, bytes + done, size - done);
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)done;
}

static int transfer_open(Transfer *transfer, int flags)
{
    if (transfer->filename) {
        transfer->fd = open(transfer->filename, flags | O_CLOEXEC, 0600);
    }
    return transfer->fd < 0 ? -errno : 0;
}

static const char *transfer_name(const Transfer *transfer)
{
    return transfer->filename ? transfer->filename : "the descriptor";
}

static void write_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    Transfer *transfer = data;
    gsize size;
    const uint8_t *bytes = g_bytes_get_data(transfer->bytes, &size);
    GError *error = NULL;
    int ret = transfer_open(transfer, O_WRONLY | O_CREAT | O_TRUNC);

    ret = ret < 0 ? ret : write_all(transfer->fd, bytes, size);
    if (ret < 0) {
        error_set_errno(&error, ret, "Could not write the state to '%s'", transfer_name(transfer));
        g_task_return_error(task, error);
    } else {
        g_task_return_boolean(task, true);
    }
}

/* No more than the state is read: something else may follow it. */
static GBytes *read_state(int fd, const char *name, GError **error)
{
    g_autofree uint8_t *bytes = g_malloc(STATE_HEADER_SIZE);
    ssize_t got = read_all(fd, bytes, STATE_HEADER_SIZE);
    size_t size = got == STATE_HEADER_SIZE ? state_size(bytes) : 0;

    if (got >= 0 && size) {
        bytes = g_realloc(bytes, size);
        ssize_t rest = read_all(fd, bytes + STATE_HEADER_SIZE, size - STATE_HEADER_SIZE);
        got = rest < 0 ? rest : got + rest;
    }
    if (got < 0) {
        error_set_errno(error, (int)got, "Could not read the state from '%s'", name);
        return NULL;
    }
    return g_bytes_new_take(g_steal_pointer(&bytes), (gsize)got);
}

static void read_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    Transfer *transfer = data;
    GError *error = NULL;
    int ret = transfer_open(transfer, O_RDONLY);
    GBytes *bytes = ret < 0 ? NULL : read_state(transfer->fd, transfer_name(transfer), &error);

    if (ret < 0) {
        error_set_errno(&error, ret, "Could not open '%s'", transfer_name(transfer));
    }
    if (bytes) {
        g_task_return_pointer(task, bytes, (GDestroyNotify)g_bytes_unref);
    } else {
        g_task_return_error(task, error);
    }
}

static void on_written(GObject *source, GAsyncResult *result, gpointer data)
{
    GError *error = NULL;

    g_task_propagate_boolean(G_TASK(result), &error);
    qmp_call_finish(data, NULL, error);
}

static void on_saved(GBytes *state, GError *error, void *opaque)
{
    Transfer *transfer = opaque;
    QmpCall *call = transfer->call;

    if (error || (!transfer->filename && transfer->fd < 0)) {
        JsonObject *object = error ? NULL : json_object_new();

        if (object) {
            g_autofree char *text = g_base64_encode(g_bytes_get_data(state, NULL), g_bytes_get_size(state));
            json_object_set_string_member(object, "data", text);
            g_bytes_unref(state);
        }
        transfer_free(transfer);
        qmp_call_finish(call, object ? qmp_object(object) : NULL, error);
        return;
    }
    g_autoptr(GTask) task = g_task_new(NULL, NULL, on_written, call);
    transfer->bytes = state;
    g_task_set_task_data(task, transfer, transfer_free);
    g_task_run_in_thread(task, write_thread);
}

static JsonNode *cmd_save_state(QmpCall *call, GError **error)
{
    bool answer = !qmp_arg_given(call, "filename") && !qmp_arg_given(call, "fd");
    Transfer *transfer;
    void *opaque;

    if (!check_way(call, true, error)) {
        return NULL;
    }
    if (answer) {
        transfer = g_new0(Transfer, 1);
        transfer->call = call;
        transfer->fd = -1;
    } else if (!(transfer = transfer_new(call, error))) {
        return NULL;
    }
    qmp_call_defer(call);
    monitor_machine(qmp_call_monitor(call), &opaque)->save_state(opaque, on_saved, transfer);
    return NULL;
}

static JsonNode *load(QmpCall *call, GBytes *state, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(qmp_call_monitor(call), &opaque);

    return machine ? machine->load_state(opaque, state, error) : NULL;
}

static void on_read(GObject *source, GAsyncResult *result, gpointer data)
{
    QmpCall *call = data;
    GError *error = NULL;
    g_autoptr(GBytes) state = g_task_propagate_pointer(G_TASK(result), &error);
    JsonNode *value = state ? load(call, state, &error) : NULL;

    qmp_call_finish(call, value, error);
}

static JsonNode *cmd_load_state(QmpCall *call, GError **error)
{
    const char *data = qmp_arg_string(call, "data");
    Transfer *transfer;

    if (!check_way(call, false, error)) {
        return NULL;
    }
    if (data) {
        gsize size;
        guchar *bytes = g_base64_decode(data, &size);
        g_autoptr(GBytes) state = g_bytes_new_take(bytes, size);
        return load(call, state, error);
    }
    if (!(transfer = transfer_new(call, error))) {
        return NULL;
    }
    qmp_call_defer(call);
    g_autoptr(GTask) task = g_task_new(NULL, NULL, on_read, call);
    g_task_set_task_data(task, transfer, transfer_free);
    g_task_run_in_thread(task, read_thread);
    return NULL;
}

const QmpCommand qmp_commands_state[] = {
    {.name = "load-state",
     .run = cmd_load_state,
     .needs = QMP_NEEDS(load_state),
     .args = {{"filename", QMP_STRING, true}, {"fd", QMP_INT, true}, {"data", QMP_STRING, true}}},
    {.name = "save-state",
     .run = cmd_save_state,
     .needs = QMP_NEEDS(save_state),
     .args = {{"filename", QMP_STRING, true}, {"fd", QMP_INT, true}}},
    {NULL},
};
