/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/main.h"
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "block/throttle.h"
#include "system/pidfile.h"
#include "system/qtest/migration.h"
#include "system/qtest/options.h"
#include "util/log.h"

#define CLOSE_TIMEOUT_MS 1000 /* for nodes whose source hangs, at the end */

static gboolean on_signal(gpointer data)
{
    g_main_loop_quit(data);
    return G_SOURCE_CONTINUE;
}

static void catch_signals(GMainLoop *loop)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        g_unix_signal_add_full(G_PRIORITY_HIGH, signals[i], on_signal, loop, NULL);
    }
}

/* The test program's connection first, then the monitors': programs wait for them in this order. */
static bool run(QtestMachine *machine, QtestSettings *settings, PidFile **ret_pidfile, GError **error)
{
    QtestServer *server = NULL;
    bool ok = true;

    catch_signals(machine->loop);
    if (settings->qtest_chardev) {
        server = qtest_server_new(machine->pc, g_steal_pointer(&settings->qtest_chardev), settings->qtest_log,
                                  error);
        ok = server && qtest_server_open(server, error);
    }
    ok = ok && monitor_open(machine->monitor, error) &&
         (!settings->pidfile || (*ret_pidfile = pidfile_new(settings->pidfile, error)));
    if (ok && settings->incoming) {
        ok = migration_expect(machine->migration,
                              strcmp(settings->incoming, "defer") ? settings->incoming : NULL,
                              settings->paused, error);
    }
    if (ok) {
        g_main_loop_run(machine->loop);
    }
    qtest_server_free(server);
    return ok;
}

int qtest_main(int argc, char **argv)
{
    QtestSettings settings;
    GError *error = NULL;
    PidFile *pidfile = NULL;

    QtestMachine *machine = qtest_options_build((const char *const *)argv + 1, &settings, &error);
    bool ok = machine != NULL;
    secret_object_hide_argv(argc, argv);
    if (ok) {
        throttle_clock_set(pc_clock(machine->pc)); /* behind the command line's limits, see there */
        machine->status = settings.paused ? "prelaunch" : "running";
        ok = run(machine, &settings, &pidfile, &error) && !machine->failed;
        qtest_settings_clear(&settings);
    }
    if (error) {
        log_gerror(error, NULL);
    }
    pidfile_free(pidfile);
    if (machine) {
        pc_drain(machine->pc);
    }
    qtest_machine_free(machine);
    if (!block_shutdown(CLOSE_TIMEOUT_MS)) {
        _exit(ok ? 0 : 1);
    }
    return ok ? 0 : 1;
}
