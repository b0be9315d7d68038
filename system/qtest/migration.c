/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/migration.h"
#include <string.h>
#include "system/qtest/migrate-stream.h"
#include "system/qtest/migrate-uri.h"
#include "system/qtest/pc-state.h"
#include "util/error.h"
#include "util/log.h"

typedef enum { STAGE_OPEN, STAGE_SEND, STAGE_RECEIVE } Stage;

struct Migration {
    QtestMachine *machine;
    const char *status; /* NULL: never begun */
    char *failure;
    MonitorMigrateSettings settings;

    bool expected, autostart, exit_on_error; /* in */
    const char *before;                      /* out: the machine's status */
    bool released;                           /* the images are another's */
    bool parked;                             /* loaded, and not run yet */

    /* the thread's while there is one */
    Stage stage;
    MigrateUri *uri;
    int fd;
    DeviceSet *devices;
    GBytes *state;
    Ram ram;
    GError *error;
    GThread *thread;
    guint done; /* source id */
    GCancellable *cancellable;
    MigrateCount count;
    gint64 start, stopped, end;
};

/* The machine as a whole: what it was doing, and its parts. */

static const char *const saved_statuses[] = {"running", "paused", "io-error", "prelaunch", "postmigrate"};

typedef struct MachineImage {
    unsigned status;
    void *pc, *devices;
} MachineImage;

static void machine_capture(void *object, void *data)
{
    const Migration *migration = object;
    MachineImage *image = data;

    for (unsigned i = 0; i < G_N_ELEMENTS(saved_statuses); i++) {
        image->status = !strcmp(saved_statuses[i], migration->before) ? i : image->status;
    }
}

static void machine_visit(void *object, void *data, StateIo *io)
{
    Migration *migration = object;
    MachineImage *image = data;

    STATE_NUMBER(io, image->status, 0, G_N_ELEMENTS(saved_statuses) - 1);
    state_child(io, &pc_state, migration->machine->pc, &image->pc);
    state_child(io, &device_set_state, migration->devices, &image->devices);
}

static void machine_commit(void *object, void *data)
{
    Migration *migration = object;
    MachineImage *image = data;

    migration->before = saved_statuses[image->status];
    state_commit(&pc_state, migration->machine->pc, g_steal_pointer(&image->pc));
    state_commit(&device_set_state, migration->devices, g_steal_pointer(&image->devices));
}

static void machine_clear(void *data)
{
    MachineImage *image = data;

    state_discard(&pc_state, image->pc);
    if (image->devices) {
        state_discard(&device_set_state, image->devices);
    }
}

static const StateOps machine_state = {
    .name = "machine",
    .version = 1,
    .size = sizeof(MachineImage),
    .capture = machine_capture,
    .visit = machine_visit,
    .commit = machine_commit,
    .clear = machine_clear,
};

/* Progress. */

static void set_status(Migration *migration, const char *status)
{
    migration->status = status;
    if (migration->settings.events) {
        JsonObject *data = json_object_new();

        json_object_set_string_member(data, "status", status);
        monitor_event(migration->machine->monitor, "MIGRATION", data);
    }
}

static bool is_active(const Migration *migration)
{
    return migration->status &&
           (!strcmp(migration->status, "setup") || !strcmp(migration->status, "active") ||
            !strcmp(migration->status, "cancelling"));
}

static void begin(Migration *migration, MigrateUri *uri)
{
    migration->uri = uri;
    g_clear_pointer(&migration->failure, g_free);
    g_clear_object(&migration->cancellable);
    migration->cancellable = g_cancellable_new();
    migration->count = 0;
    migration->start = g_get_monotonic_time();
    migration->stopped = migration->end = 0;
    set_status(migration, "setup");
}

/* Everything but the result is let go of. */
static void clean_up(Migration *migration)
{
    if (migration->fd >= 0) {
        close(migration->fd);
        migration->fd = -1;
    }
    g_clear_pointer(&migration->uri, migrate_uri_free);
    g_clear_pointer(&migration->devices, device_set_free);
    g_clear_pointer(&migration->state, g_bytes_unref);
    ram_clear(&migration->ram);
    migration->end = g_get_monotonic_time();
}

static gboolean on_thread_done(gpointer data);

static bool close_channel(Migration *migration, GError **error)
{
    close(migration->fd);
    migration->fd = -1;
    return migrate_uri_finish(migration->uri, migration->cancellable, error);
}

static bool run_stage(Migration *migration, GError **error)
{
    int ret;

    switch (migration->stage) {
    case STAGE_OPEN:
        migration->fd = migrate_uri_open(migration->uri, false, migration->cancellable, error);
        return migration->fd >= 0;
    case STAGE_SEND:
        ret = device_set_flush(migration->devices);
        if (ret < 0) {
            return error_set_errno(error, ret, "Cannot flush the disks");
        }
        return migrate_stream_send(migration->fd, migration->state, pc_ram(migration->machine->pc),
                                   &migration->count, migration->cancellable, error) &&
               close_channel(migration, error);
    default:
        migration->fd = migrate_uri_open(migration->uri, true, migration->cancellable, error);
        return migration->fd >= 0 &&
               migrate_stream_receive(migration->fd, pc_ram(migration->machine->pc), &migration->ram,
                                      &migration->state, &migration->count, migration->cancellable, error) &&
               close_channel(migration, error);
    }
}

static gpointer thread_main(gpointer data)
{
    Migration *migration = data;

    if (!run_stage(migration, &migration->error)) {
        migrate_uri_abort(migration->uri);
    }
    migration->done = g_idle_add(on_thread_done, migration);
    return NULL;
}

static void run_thread(Migration *migration, Stage stage)
{
    migration->stage = stage;
    migration->thread = g_thread_new("migration", thread_main, migration);
}

/* Out. */

static void add_function(const char *place, PciDevice *device, void *opaque)
{
    device_set_add_function(opaque, place, device);
}

static DeviceSet *devices_of(QtestMachine *machine)
{
    DeviceSet *set = device_set_new();

    pci_bus_each(pc_pci_bus(machine->pc), add_function, set);
    for (guint i = 0; i < machine->drives->len; i++) {
        QtestDrive *drive = g_ptr_array_index(machine->drives, i);
        if (drive->disk) {
            device_set_add_disk(set, backend_title(drive->backend), drive->disk);
        } else {
            device_set_add_cd(set, drive->mmc);
        }
    }
    return set;
}

/* The machine goes on where it was. */
static void out_failed(Migration *migration, GError *error)
{
    QtestMachine *machine = migration->machine;
    bool cancelled = g_cancellable_is_cancelled(migration->cancellable);

    if (migration->released && device_set_hold_images(migration->devices, NULL)) {
        migration->released = false;
    }
    clean_up(migration);
    migration->failure = cancelled ? NULL : g_strdup(error->message);
    g_error_free(error);
    if (migration->before && !strcmp(machine->status, "finish-migrate")) {
        machine->status = migration->before;
        if (!strcmp(migration->before, "running")) {
            machine->status = "paused";
            qtest_machine_cont(machine, NULL);
        }
    }
    set_status(migration, cancelled ? "cancelled" : "failed");
}

static void on_settled(DeviceSet *devices, GError *error, void *opaque)
{
    Migration *migration = opaque;

    if (!error) {
        StateIo *io = state_writer_new();
        state_save(io, &machine_state, migration);
        migration->state = state_writer_finish(io, &error);
    }
    if (!error) {
        g_cancellable_set_error_if_cancelled(migration->cancellable, &error);
    }
    if (error) {
        out_failed(migration, error);
        return;
    }
    block_release_images();
    migration->released = true;
    run_thread(migration, STAGE_SEND);
}

static void out_opened(Migration *migration)
{
    QtestMachine *machine = migration->machine;

    set_status(migration, "active");
    migration->before = machine->status;
    migration->stopped = g_get_monotonic_time();
    qtest_machine_stop(machine, "finish-migrate");
    machine->status = "finish-migrate";
    pc_drain(machine->pc);
    migration->devices = devices_of(machine);
    device_set_settle(migration->devices, on_settled, migration);
}

static void out_sent(Migration *migration)
{
    clean_up(migration);
    migration->machine->status = "postmigrate";
    set_status(migration, "completed");
}

bool migration_start(Migration *migration, const char *text, GError **error)
{
    const char *status = migration->machine->status;

    if (is_active(migration)) {
        return error_set(error, "There's a migration process in progress");
    }
    if (!strcmp(status, "inmigrate")) {
        return error_set(error, "Guest is waiting for an incoming migration");
    }
    if (!strcmp(status, "postmigrate")) {
        return error_set(error, "Can't migrate the vm that was paused due to previous migration");
    }
    MigrateUri *uri = migrate_uri_new(text, false, migration->machine->monitor, error);
    if (uri) {
        migration->before = NULL;
        begin(migration, uri);
        run_thread(migration, STAGE_OPEN);
    }
    return uri != NULL;
}

void migration_cancel(Migration *migration)
{
    if (!is_active(migration) || migration->expected) {
        return;
    }
    set_status(migration, "cancelling");
    g_cancellable_cancel(migration->cancellable);
}

/* In. */

static void in_failed(Migration *migration, GError *error)
{
    clean_up(migration);
    migration->failure = g_strdup(error->message);
    set_status(migration, "failed");
    if (migration->exit_on_error) {
        log_error("load of migration failed: %s", error->message);
        migration->machine->failed = true;
        g_main_loop_quit(migration->machine->loop);
    }
    g_error_free(error);
}

/* Everything is checked before anything is taken; then only the images can be missing. */
static bool take_machine(Migration *migration, GError **error)
{
    QtestMachine *machine = migration->machine;
    gsize size;
    const void *bytes = g_bytes_get_data(migration->state, &size);
    StateIo *io = state_reader_new(bytes, size, error);

    if (!io) {
        return false;
    }
    migration->devices = devices_of(machine);
    void *image = state_load(io, &machine_state, migration);
    if (!state_reader_finish(io, error)) {
        if (image) {
            state_discard(&machine_state, image);
        }
        return false;
    }
    if (!device_set_hold_images(migration->devices, error)) {
        state_discard(&machine_state, image);
        return false;
    }
    migration->released = false;
    block_open_released(false);
    pc_take_memory(machine->pc, &migration->ram);
    device_set_park(migration->devices, true);
    migration->parked = true;
    state_commit(&machine_state, migration, image);
    return true;
}

static void in_received(Migration *migration)
{
    QtestMachine *machine = migration->machine;
    GError *error = NULL;

    set_status(migration, "active");
    if (!take_machine(migration, &error)) {
        in_failed(migration, error);
        return;
    }
    clean_up(migration);
    migration->expected = false;
    bool ran = !strcmp(migration->before, "running");
    machine->status = ran ? "paused" : migration->before;
    set_status(migration, "completed");
    if (ran && migration->autostart) {
        qtest_machine_cont(machine, NULL);
    }
}

bool migration_incoming(Migration *migration, const char *text, bool exit_on_error, GError **error)
{
    if (!migration->expected) {
        return error_set(error, "'-incoming' was not specified on the command line");
    }
    if (migration->uri || is_active(migration)) {
        return error_set(error, "The incoming migration has already been started");
    }
    MigrateUri *uri = migrate_uri_new(text, true, migration->machine->monitor, error);
    if (uri) {
        migration->exit_on_error = exit_on_error;
        begin(migration, uri);
        run_thread(migration, STAGE_RECEIVE);
    }
    return uri != NULL;
}

bool migration_expect(Migration *migration, const char *uri, bool paused, GError **error)
{
    migration->expected = true;
    migration->autostart = !paused;
    migration->released = true;
    migration->machine->status = "inmigrate";
    return !uri || migration_incoming(migration, uri, true, error);
}

bool migration_set_autostart(Migration *migration, bool on)
{
    if (migration->expected) {
        migration->autostart = on;
    }
    return migration->expected;
}

/* Both. */

static gboolean on_thread_done(gpointer data)
{
    Migration *migration = data;
    GError *error = g_steal_pointer(&migration->error);

    g_thread_join(g_steal_pointer(&migration->thread));
    migration->done = 0;
    if (error && migration->stage == STAGE_RECEIVE) {
        in_failed(migration, error);
    } else if (error) {
        out_failed(migration, error);
    } else if (migration->stage == STAGE_OPEN) {
        out_opened(migration);
    } else if (migration->stage == STAGE_SEND) {
        out_sent(migration);
    } else {
        in_received(migration);
    }
    return G_SOURCE_REMOVE;
}

bool migration_before_run(Migration *migration, GError **error)
{
    if (migration->released) {
        g_autoptr(DeviceSet) devices = devices_of(migration->machine);
        if (!device_set_hold_images(devices, error)) {
            return false;
        }
        migration->released = false;
    }
    return true;
}

void migration_after_run(Migration *migration)
{
    if (migration->parked) {
        g_autoptr(DeviceSet) devices = devices_of(migration->machine);
        migration->parked = false;
        device_set_park(devices, false);
    }
}

MonitorMigrateSettings *migration_settings(Migration *migration)
{
    return &migration->settings;
}

static JsonObject *query_memory(const Migration *migration)
{
    static const char *const zeroes[] = {"remaining",
                                         "duplicate",
                                         "normal",
                                         "normal-bytes",
                                         "dirty-pages-rate",
                                         "postcopy-requests",
                                         "multifd-bytes",
                                         "downtime-bytes",
                                         "postcopy-bytes",
                                         "pages-per-second",
                                         "dirty-sync-missed-zero-copy"};
    JsonObject *ram = json_object_new();
    gint64 count = __atomic_load_n(&migration->count, __ATOMIC_RELAXED);

    json_object_set_int_member(ram, "total", (gint64)pc_ram(migration->machine->pc)->size);
    json_object_set_int_member(ram, "transferred", count);
    json_object_set_int_member(ram, "precopy-bytes", count);
    json_object_set_int_member(ram, "page-size", 4096);
    json_object_set_int_member(ram, "dirty-sync-count", 1);
    json_object_set_int_member(ram, "mbps", 0);
    for (size_t i = 0; i < G_N_ELEMENTS(zeroes); i++) {
        json_object_set_int_member(ram, zeroes[i], 0);
    }
    return ram;
}

JsonObject *migration_query(const Migration *migration)
{
    JsonObject *object = json_object_new();
    gint64 end = migration->end ? migration->end : g_get_monotonic_time();

    if (!migration->status) {
        return object;
    }
    json_object_set_string_member(object, "status", migration->status);
    if (migration->failure) {
        json_object_set_string_member(object, "error-desc", migration->failure);
    }
    if (migration->stopped) { /* out, and under way or over */
        json_object_set_int_member(object, "total-time", (end - migration->start) / 1000);
        json_object_set_int_member(object, "setup-time", (migration->stopped - migration->start) / 1000);
        json_object_set_int_member(object,
                                   !strcmp(migration->status, "completed") ? "downtime" : "expected-downtime",
                                   (end - migration->stopped) / 1000);
        json_object_set_object_member(object, "ram", query_memory(migration));
    }
    return object;
}

Migration *migration_new(QtestMachine *machine)
{
    Migration *migration = g_new0(Migration, 1);

    migration->machine = machine;
    migration->fd = -1;
    monitor_migrate_settings_init(&migration->settings);
    return migration;
}

void migration_free(Migration *migration)
{
    if (!migration) {
        return;
    }
    if (migration->thread) {
        g_cancellable_cancel(migration->cancellable);
        g_thread_join(migration->thread);
    }
    g_clear_handle_id(&migration->done, g_source_remove);
    clean_up(migration);
    g_clear_error(&migration->error);
    g_clear_object(&migration->cancellable);
    monitor_migrate_settings_clear(&migration->settings);
    g_free(migration->failure);
    g_free(migration);
}
