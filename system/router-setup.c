/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/router.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "monitor/chardev.h"
#include "system/router-int.h"
#include "system/run-as.h"
#include "system/sandbox.h"
#include "system/spawn.h"
#include "util/cleanup.h"
#include "util/error.h"

#define BACKLOG       16
#define INHERITED_MAX 32

/* One monitor; descriptors are -1 when they are elsewhere. */
typedef struct Seat {
    const PlanMonitor *plan;
    ChardevEnds client;
    char *path;    /* of QEMU's socket */
    int listening; /* the same, for QEMU */
    int drives[2]; /* ours, theirs */
    int serial[2]; /* ours, QEMU's */
} Seat;

struct RouterSetup {
    const Plan *plan;
    char *folder;
    GArray *seats;     /* Seat */
    int engine[2];     /* the router's own session with QEMU: ours, QEMU's */
    int drives[2];     /* the same with the drive process */
    GArray *theirs;    /* int: the drive process's ends */
    GArray *inherited; /* int: from the caller, where a saved state may come through one of them */
    bool started;
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Of the router's side. */
static void close_ours(RouterSetup *setup)
{
    for (guint i = 0; i < setup->seats->len; i++) {
        Seat *seat = &g_array_index(setup->seats, Seat, i);
        if (seat->client.out == seat->client.in) {
            seat->client.out = -1;
        }
        close_fd(&seat->client.in);
        close_fd(&seat->client.out);
        close_fd(&seat->drives[0]);
        close_fd(&seat->drives[1]);
        close_fd(&seat->serial[0]);
    }
    close_fd(&setup->engine[0]);
    close_fd(&setup->drives[0]);
    close_fd(&setup->drives[1]);
}

void router_setup_free(RouterSetup *setup)
{
    if (!setup) {
        return;
    }
    close_ours(setup);
    close_fd(&setup->engine[1]);
    for (guint i = 0; i < setup->seats->len; i++) {
        Seat *seat = &g_array_index(setup->seats, Seat, i);
        close_fd(&seat->listening);
        close_fd(&seat->serial[1]);
        if (!setup->started && seat->path) {
            unlink(seat->path);
        }
        if (!setup->started && seat->client.remove) {
            unlink(seat->client.remove);
        }
        g_free(seat->path);
        g_free(seat->client.remove);
    }
    g_array_unref(setup->seats);
    g_array_unref(setup->theirs);
    g_array_unref(setup->inherited);
    g_free(setup->folder);
    g_free(setup);
}

static bool make_pair(int fds[2], GError **error)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0 ||
           error_set_errno(error, errno, "Could not make a socket pair");
}

/* The router connects to it as `as`. */
static bool make_engine_socket(Seat *seat, const RunAs *as, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(seat->path) >= sizeof address.sun_path) {
        return error_set(error, "UNIX socket path '%s' is too long", seat->path);
    }
    strcpy(address.sun_path, seat->path);
    seat->listening = socket(AF_UNIX, SOCK_STREAM, 0); /* stays open across exec */
    if (seat->listening < 0 || bind(seat->listening, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(seat->listening, BACKLOG) < 0) {
        return error_set_errno(error, errno, "Failed to bind socket to %s", seat->path);
    }
    return !as || chown(seat->path, as->uid, as->gid) == 0 ||
           error_set_errno(error, errno, "Could not give the socket '%s' to user %u", seat->path, as->uid);
}

static bool make_serial(Seat *seat, GError **error)
{
    return make_pair(seat->serial, error) && fcntl(seat->serial[1], F_SETFD, 0) == 0;
}

static bool open_seat(RouterSetup *setup, Seat *seat, unsigned index, GError **error)
{
    g_autoptr(Options) options = options_parse(seat->plan->chardev, "backend", error);
    Chardev *chardev = options ? chardev_new(options, error) : NULL;
    bool ok = chardev && chardev_detach(chardev, &seat->client, error);

    chardev_free(chardev);
    seat->path = g_strdup_printf("%s/monitor%u.sock", setup->folder, index);
    if (!ok) {
        g_prefix_error(error, "%s: ", seat->plan->origin);
        return false;
    }
    return make_engine_socket(seat, setup->plan->run_as, error) && make_pair(seat->drives, error) &&
           (!seat->plan->mux || make_serial(seat, error));
}

/* Those above standard error that QEMU is going to have. Before any of our own is open. */
static GArray *find_inherited(void)
{
    GArray *fds = g_array_new(false, false, sizeof(int));
    GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir)) && fds->len < INHERITED_MAX) {
        int fd = (int)g_ascii_strtoll(name, NULL, 10), flags = fcntl(fd, F_GETFD);
        if (fd > STDERR_FILENO && flags >= 0 && !(flags & FD_CLOEXEC)) {
            g_array_append_val(fds, fd);
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
    return fds;
}

RouterSetup *router_setup_new(const Plan *plan, const char *folder, GError **error)
{
    static const Seat empty = {
        .client = {.in = -1, .out = -1}, .listening = -1, .drives = {-1, -1}, .serial = {-1, -1}};
    RouterSetup *setup = g_new0(RouterSetup, 1);

    setup->plan = plan;
    setup->folder = g_strdup(folder);
    setup->seats = g_array_new(false, true, sizeof(Seat));
    setup->theirs = g_array_new(false, true, sizeof(int));
    setup->inherited = plan->incoming ? find_inherited() : g_array_new(false, false, sizeof(int));
    setup->engine[0] = setup->engine[1] = setup->drives[0] = setup->drives[1] = -1;
    bool ok = make_pair(setup->engine, error) && make_pair(setup->drives, error);
    if (ok) {
        fcntl(setup->engine[1], F_SETFD, 0);
        g_array_append_val(setup->theirs, setup->drives[1]);
    }
    for (guint i = 0; ok && i < plan->monitors->len; i++) {
        g_array_append_val(setup->seats, empty);
        Seat *seat = &g_array_index(setup->seats, Seat, i);
        seat->plan = g_ptr_array_index(plan->monitors, i);
        ok = open_seat(setup, seat, i, error);
        if (ok) {
            g_array_append_val(setup->theirs, seat->drives[1]);
        }
    }
    if (!ok) {
        router_setup_free(setup);
        return NULL;
    }
    return setup;
}

const int *router_drive_fds(const RouterSetup *setup, size_t *ret_n)
{
    *ret_n = setup->theirs->len;
    return (const int *)(void *)setup->theirs->data;
}

void router_add_drive_options(const RouterSetup *setup, GPtrArray *argv, int first)
{
    for (guint i = 0; i < setup->theirs->len; i++) {
        g_ptr_array_add(argv, g_strdup("--chardev"));
        g_ptr_array_add(argv, g_strdup_printf("socket,id=router%u,fd=%d", i, first + (int)i));
        g_ptr_array_add(argv, g_strdup("--monitor"));
        g_ptr_array_add(argv, g_strdup_printf("router%u", i));
    }
}

void router_add_engine_options(const RouterSetup *setup, GPtrArray *argv)
{
    for (guint i = 0; i < setup->seats->len; i++) {
        const Seat *seat = &g_array_index(setup->seats, Seat, i);
        g_ptr_array_add(argv, g_strdup("-chardev"));
        g_ptr_array_add(argv, g_strdup_printf("%s,fd=%d", seat->plan->engine, seat->listening));
        if (seat->serial[1] >= 0) {
            g_ptr_array_add(argv, g_strdup("-chardev"));
            g_ptr_array_add(argv, g_strdup_printf("socket,id=" PLAN_SERIAL ",fd=%d", seat->serial[1]));
        }
    }
    g_ptr_array_add(argv, g_strdup("-chardev"));
    g_ptr_array_add(argv, g_strdup_printf("socket,id=" ROUTER_CHARDEV ",fd=%d", setup->engine[1]));
    g_ptr_array_add(argv, g_strdup("-qmp"));
    g_ptr_array_add(argv, g_strdup("chardev:" ROUTER_CHARDEV));
}

/* The number that the descriptor will have in the router. */
static int hand_over(GArray *fds, int fd)
{
    g_array_append_val(fds, fd);
    return SPAWN_FIRST_FD + (int)fds->len - 1;
}

static RouterConfig *make_config(RouterSetup *setup, GArray *fds)
{
    RouterConfig *config = router_config_new();

    config->folder = g_strdup(setup->folder);
    config->timestamp = setup->plan->timestamp;
    config->no_shutdown = setup->plan->no_shutdown;
    config->sandbox = setup->plan->no_spawn && sandbox_default();
    config->user = setup->plan->run_as ? run_as_text(setup->plan->run_as) : NULL;
    config->incoming = g_strdup(setup->plan->incoming);
    config->autostart = !setup->plan->paused;
    for (guint i = 0; i < setup->inherited->len; i++) {
        RouterConfigFd item = {.number = g_array_index(setup->inherited, int, i)};
        item.fd = hand_over(fds, item.number);
        g_array_append_val(config->inherited, item);
    }
    config->engine = hand_over(fds, setup->engine[0]);
    config->drives = hand_over(fds, setup->drives[0]);
    for (guint i = 0; i < setup->seats->len; i++) {
        const Seat *seat = &g_array_index(setup->seats, Seat, i);
        RouterConfigPort *port = router_config_add_port(config);
        port->label = g_strdup(seat->plan->label);
        port->socket = g_strdup(seat->path);
        port->remove = g_strdup(seat->client.remove);
        port->server = seat->client.server;
        port->pretty = seat->plan->pretty;
        port->human = seat->plan->human;
        port->wait = seat->plan->wait;
        port->serial = seat->serial[0] < 0 ? -1 : hand_over(fds, seat->serial[0]);
        port->drives = hand_over(fds, seat->drives[0]);
        port->in = seat->client.in < 0 ? -1 : hand_over(fds, seat->client.in);
        port->out = seat->client.out == seat->client.in ? port->in : hand_over(fds, seat->client.out);
    }
    router_config_add_plan(config, setup->plan);
    return config;
}

bool router_start(RouterSetup *setup, GError **error)
{
    g_autoptr(GArray) fds = g_array_new(false, false, sizeof(int));
    g_autoptr(RouterConfig) config = make_config(setup, fds);
    g_autofree char *text = router_config_to_text(config);
    char name[] = "spindle-router";
    char *argv[] = {name, text, NULL};

    if (fds->len > SPAWN_FDS_MAX) {
        return error_set(error, "Too many monitors");
    }
    if (spawn_self(argv, (const int *)(void *)fds->data, fds->len, setup->plan->daemonize) < 0) {
        return error_set_errno(error, errno, "Could not fork");
    }
    setup->started = true;
    close_ours(setup);
    return true;
}
