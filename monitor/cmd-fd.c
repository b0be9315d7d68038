/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on file descriptors that clients hand over with SCM_RIGHTS.
 */
#include <unistd.h>
#include "monitor/qmp.h"
#include "util/error.h"
#include "util/fdset.h"

static int take_fd(QmpCall *call, GError **error)
{
    int fd = qmp_call_take_fd(call);

    if (fd < 0) {
        error_set(error, "No file descriptor supplied via SCM_RIGHTS");
    }
    return fd;
}

static JsonNode *cmd_getfd(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "fdname");
    int fd = take_fd(call, error);

    if (fd < 0) {
        return NULL;
    }
    if (g_ascii_isdigit(name[0])) {
        close(fd);
        error_set(error, "Parameter 'fdname' expects a name not starting with a digit");
        return NULL;
    }
    monitor_set_fd(qmp_call_monitor(call), name, fd);
    return NULL;
}

static JsonNode *cmd_closefd(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "fdname");

    if (!monitor_close_fd(qmp_call_monitor(call), name)) {
        error_set(error, "File descriptor named '%s' not found", name);
    }
    return NULL;
}

static JsonNode *cmd_add_fd(QmpCall *call, GError **error)
{
    int64_t wanted = qmp_arg_int(call, "fdset-id", -1), set;
    int fd = take_fd(call, error);

    if (fd < 0) {
        return NULL;
    }
    if (qmp_arg_given(call, "fdset-id") && wanted < 0) {
        wanted = -2; /* none: that is said by leaving it out */
    }
    if (!fdset_add(fd, wanted, qmp_arg_string(call, "opaque"), &set, error)) {
        return NULL;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "fdset-id", set);
    json_object_set_int_member(object, "fd", fd);
    return qmp_object(object);
}

static JsonNode *cmd_remove_fd(QmpCall *call, GError **error)
{
    bool one = qmp_arg_given(call, "fd");
    int64_t fd = qmp_arg_int(call, "fd", -1);

    fdset_remove(qmp_arg_int(call, "fdset-id", 0), one && (fd < 0 || fd > G_MAXINT) ? G_MAXINT : (int)fd,
                 error);
    return NULL;
}

static JsonArray *add_set(JsonArray *sets, int64_t number)
{
    JsonObject *set = json_object_new();
    JsonArray *fds = json_array_new();

    json_object_set_int_member(set, "fdset-id", number);
    json_object_set_array_member(set, "fds", fds);
    json_array_add_object_element(sets, set);
    return fds;
}

static JsonNode *cmd_query_fdsets(QmpCall *call, GError **error)
{
    g_autoptr(GArray) list = fdset_list();
    JsonArray *sets = json_array_new(), *fds = NULL;

    for (guint i = 0; i < list->len; i++) {
        const FdsetEntry *entry = &g_array_index(list, FdsetEntry, i);
        if (!fds || entry->set != g_array_index(list, FdsetEntry, i - 1).set) {
            fds = add_set(sets, entry->set);
        }
        JsonObject *object = json_object_new();
        json_object_set_int_member(object, "fd", entry->fd);
        if (entry->opaque) {
            json_object_set_string_member(object, "opaque", entry->opaque);
        }
        json_array_add_object_element(fds, object);
    }
    return qmp_array(sets);
}

const QmpCommand qmp_commands_fd[] = {
    {.name = "add-fd",
     .run = cmd_add_fd,
     .returns = QMP_OBJECT,
     .args = {{"fdset-id", QMP_INT, true}, {"opaque", QMP_STRING, true}}},
    {.name = "closefd", .run = cmd_closefd, .args = {{"fdname", QMP_STRING}}},
    {.name = "getfd", .run = cmd_getfd, .args = {{"fdname", QMP_STRING}}},
    {.name = "query-fdsets", .run = cmd_query_fdsets, .returns = QMP_ARRAY},
    {.name = "remove-fd", .run = cmd_remove_fd, .args = {{"fdset-id", QMP_INT}, {"fd", QMP_INT, true}}},
    {NULL},
};
