/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drive process: start, run, end.
 */
#include "system/programs.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "system/daemon.h"
#include "system/descriptors.h"
#include "system/device-help.h"
#include "system/drive-options.h"
#include "system/lifeline.h"
#include "system/machine.h"
#include "system/pidfile.h"
#include "system/run-as.h"
#include "system/sandbox.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"
#include "util/trace.h"

#define DRIVE_TIMEOUT_MS 30   /* for a drive of the host that hangs, at the end */
#define CLOSE_TIMEOUT_MS 3000 /* for other nodes whose source hangs */
#define MACHINE_TIMEOUT  10   /* seconds that the emulator has to end when it is asked to */

typedef struct Daemon {
    GArray *options;
    GMainLoop *loop;
    Machine *machine;
    Lifeline *lifeline; /* NULL: started by hand */
    const char *pidfile_path;
    PidFile *pidfile; /* NULL: none yet */
    RunAs *run_as;    /* NULL: as whoever started it */
    bool daemonize;
    bool sandbox;
    bool incoming;
    Daemonizer daemonizer;
    bool ending;
} Daemon;

typedef bool MachineAdd(Machine *machine, Options *options, GError **error);

/* The order in which things are made, whatever their order on the command line. */
static const struct {
    DriveOptionKind kind;
    const char *implied_key;
    MachineAdd *add;
} steps[] = {
    {DRIVE_OPTION_OBJECT, "qom-type", machine_add_object},
    {DRIVE_OPTION_BLOCKDEV, "driver", machine_add_node},
    {DRIVE_OPTION_VFIO_USER, "path", machine_add_controller},
    {DRIVE_OPTION_DEVICE, "driver", machine_add_device},
    {DRIVE_OPTION_CHARDEV, "backend", machine_add_chardev},
    {DRIVE_OPTION_MONITOR, "chardev", machine_add_monitor},
};

/* Tells whoever started the process what is wrong with which option. */
static void report(Daemon *daemon, const DriveOption *option, GError *error)
{
    if (daemon->lifeline) {
        lifeline_send_error(daemon->lifeline, option ? option->index : 0, error->message);
        g_error_free(error);
    } else if (!option) {
        log_gerror(error, NULL);
    } else if (option->word[1] == '-' && strchr(option->word, '=')) {
        log_gerror(error, "%s: ", option->word);
    } else {
        log_gerror(error, "%s %s: ", option->word, option->arg ? option->arg : "");
    }
}

static bool read_switch(Daemon *daemon, const DriveOption *option, GError **error)
{
    bool help = false;

    switch (option->kind) {
    case DRIVE_OPTION_DAEMONIZE:
        daemon->daemonize = true;
        return true;
    case DRIVE_OPTION_INCOMING:
        daemon->incoming = true;
        return true;
    case DRIVE_OPTION_PIDFILE:
        daemon->pidfile_path = option->arg;
        return true;
    case DRIVE_OPTION_TRACE:
        return trace_parse(option->arg, error);
    case DRIVE_OPTION_DEBUG:
        if (!trace_parse_debug(option->arg, &help, error)) {
            return false;
        }
        if (help) {
            exit(0);
        }
        return true;
    case DRIVE_OPTION_DEBUG_FILE:
        return log_set_file(option->arg, error);
    case DRIVE_OPTION_RUN_WITH:
        g_clear_pointer(&daemon->run_as, run_as_free);
        daemon->run_as = run_as_new(option->arg, error);
        return daemon->run_as != NULL;
    case DRIVE_OPTION_SANDBOX:
        return sandbox_parse(option->arg, &daemon->sandbox, error);
    case DRIVE_OPTION_DEVICE:
        if (device_help_wanted(option->arg)) {
            if (!device_help_print(option->arg, error)) {
                return false;
            }
            exit(0);
        }
        return true;
    case DRIVE_OPTION_LIFELINE:
        daemon->lifeline = lifeline_new(option->arg, error);
        return daemon->lifeline != NULL;
    default:
        return true;
    }
}

static bool read_switches(Daemon *daemon)
{
    for (guint i = 0; i < daemon->options->len; i++) {
        const DriveOption *option = &g_array_index(daemon->options, DriveOption, i);
        GError *error = NULL;
        if (option->kind == DRIVE_OPTION_HELP) {
            fputs(drive_options_help(), stdout);
            exit(0);
        }
        if (option->kind == DRIVE_OPTION_VERSION) {
            puts("spindled version " SPINDLE_VERSION);
            exit(0);
        }
        if (!read_switch(daemon, option, &error)) {
            report(daemon, option, error);
            return false;
        }
    }
    return true;
}

static bool add_one(Daemon *daemon, const DriveOption *option, size_t step)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(option->arg, steps[step].implied_key, &error);

    if (!options || !steps[step].add(daemon->machine, options, &error)) {
        report(daemon, option, error);
        return false;
    }
    return true;
}

static bool build_machine(Daemon *daemon)
{
    if (daemon->incoming) {
        machine_expect_state(daemon->machine);
    }
    for (size_t step = 0; step < G_N_ELEMENTS(steps); step++) {
        for (guint i = 0; i < daemon->options->len; i++) {
            const DriveOption *option = &g_array_index(daemon->options, DriveOption, i);
            if (option->kind == steps[step].kind && !add_one(daemon, option, step)) {
                return false;
            }
        }
    }
    return true;
}

/* The nth --vfio-user. */
static const DriveOption *controller_option(Daemon *daemon, unsigned n)
{
    for (guint i = 0; i < daemon->options->len; i++) {
        const DriveOption *option = &g_array_index(daemon->options, DriveOption, i);
        if (option->kind == DRIVE_OPTION_VFIO_USER && n-- == 0) {
            return option;
        }
    }
    return NULL;
}

static void quit(Daemon *daemon)
{
    g_main_loop_quit(daemon->loop);
}

static gboolean on_machine_timeout(gpointer data)
{
    quit(data);
    return G_SOURCE_REMOVE;
}

/* A machine whose drives vanish is of no use and may abort; so one that was started together with this
 * process is asked to end first, and served until it has. */
static void end(Daemon *daemon)
{
    pid_t client = daemon->lifeline ? machine_client_pid(daemon->machine) : 0;

    if (client > 0 && !daemon->ending && kill(client, SIGTERM) == 0) {
        g_timeout_add_seconds(MACHINE_TIMEOUT, on_machine_timeout, daemon);
    } else {
        quit(daemon);
    }
    daemon->ending = true;
}

static gboolean on_signal(gpointer data)
{
    Daemon *daemon = data;

    if (!daemon->ending) {
        machine_tell_shutdown(daemon->machine, "host-signal");
    }
    end(daemon);
    return G_SOURCE_CONTINUE;
}

static void on_quit_command(void *opaque)
{
    end(opaque);
}

static void on_lifeline_closed(void *opaque)
{
    quit(opaque);
}

/* Not earlier than this: while a node is being opened, which may hang, a signal just kills. Not later: from
 * here on there are files to remove. */
static void catch_signals(Daemon *daemon)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        g_unix_signal_add(signals[i], on_signal, daemon);
    }
}

static bool has_option(const Daemon *daemon, DriveOptionKind kind)
{
    for (guint i = 0; i < daemon->options->len; i++) {
        if (g_array_index(daemon->options, DriveOption, i).kind == kind) {
            return true;
        }
    }
    return false;
}

static bool open_up(Daemon *daemon)
{
    GError *error = NULL;
    unsigned failed = 0;

    /* Before signals are caught: a chardev may wait for its client, and a signal then just kills. */
    if (!machine_open_monitors(daemon->machine, &error)) {
        report(daemon, NULL, error);
        return false;
    }
    catch_signals(daemon);
    if (!machine_listen(daemon->machine, &failed, &error)) {
        report(daemon, controller_option(daemon, failed), error);
        return false;
    }
    if (daemon->pidfile_path) {
        daemon->pidfile = pidfile_new(daemon->pidfile_path, &error);
        if (!daemon->pidfile) {
            report(daemon, NULL, error);
            return false;
        }
    }
    block_before_sandbox(has_option(daemon, DRIVE_OPTION_MONITOR));
    if ((daemon->run_as && !run_as_enter(daemon->run_as, &error)) ||
        (daemon->sandbox && !sandbox_enter(&error))) {
        report(daemon, NULL, error);
        return false;
    }
    return true;
}

static void run(Daemon *daemon)
{
    if (daemon->lifeline) {
        lifeline_watch(daemon->lifeline, on_lifeline_closed, daemon);
        lifeline_send_ready(daemon->lifeline);
    }
    daemon_ready(&daemon->daemonizer);
    g_main_loop_run(daemon->loop);
}

static void clean_up(Daemon *daemon)
{
    g_clear_pointer(&daemon->machine, machine_free);
    g_clear_pointer(&daemon->pidfile, pidfile_free);
    g_clear_pointer(&daemon->lifeline, lifeline_free);
    if (!block_shutdown(DRIVE_TIMEOUT_MS) && (block_drives_hang() || !block_shutdown(CLOSE_TIMEOUT_MS))) {
        /* A source hangs in the kernel. What a guest was told to be written is the kernel's or the source's.
         */
        _exit(0);
    }
    run_as_free(daemon->run_as);
    g_main_loop_unref(daemon->loop);
    g_array_unref(daemon->options);
}

int spindled_main(int argc, char **argv)
{
    Daemon daemon = {.daemonizer = DAEMONIZER_NONE, .sandbox = sandbox_default()};
    GError *error = NULL;

    log_set_program(argv[0]);
    prctl(PR_SET_NAME, "spindled");
    signal(SIGPIPE, SIG_IGN);
    g_auto(GStrv) args = g_strdupv(argv);
    secret_object_hide_argv(argc, argv); /* starting may take a while */
    daemon.options = descriptors_ensure(&error) ? drive_options_parse(argc, args, &error) : NULL;
    if (!daemon.options) {
        log_gerror(error, NULL);
        return 1;
    }
    if (!read_switches(&daemon)) {
        return 1;
    }
    if (daemon.daemonize && !daemon_fork(&daemon.daemonizer, &error)) {
        report(&daemon, NULL, error);
        return 1;
    }
    daemon.loop = g_main_loop_new(NULL, false);
    daemon.machine = machine_new(on_quit_command, &daemon);
    bool ok = build_machine(&daemon) && open_up(&daemon);
    secret_object_hide_argv(argc, args);
    if (ok) {
        run(&daemon);
    }
    clean_up(&daemon);
    return ok ? 0 : 1;
}
