/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The router's process. It ends with QEMU.
 */
#include "system/programs.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include "system/folder.h"
#include "system/router-int.h"
#include "system/run-as.h"
#include "system/sandbox.h"
#include "util/log.h"

#define GRACE_MS      50   /* for QEMU's end to be seen */
#define LAST_WORDS_MS 3000 /* for users to read what is left when QEMU has ended */

bool router_drives_alive(const Router *router)
{
    return router_peer_alive(router->drives);
}

bool router_has_drive(const Router *router, const char *name)
{
    static const char *const places[] = {"/machine/peripheral/", "peripheral/", ""};
    JsonArray *devices = router->config->devices;

    for (size_t k = 0; k < G_N_ELEMENTS(places); k++) {
        const char *rest = g_str_has_prefix(name, places[k]) ? name + strlen(places[k]) : NULL;
        for (guint i = 0; rest && i < json_array_get_length(devices); i++) {
            JsonObject *device = json_array_get_object_element(devices, i);
            const char *id = json_object_get_string_member(device, "id");
            const char *known = json_object_get_string_member_with_default(device, "name", "");
            const char *path = json_object_get_string_member_with_default(device, "path", "");
            if ((id[0] && !strcmp(id, rest)) || (path[0] && !strcmp(path, name)) ||
                (known[0] && !strcmp(known, name))) {
                return true;
            }
        }
    }
    return false;
}

static gboolean on_last_words(gpointer data)
{
    Router *router = data;

    g_main_loop_quit(router->loop);
    return G_SOURCE_REMOVE;
}

void router_port_done(Router *router)
{
    bool all = true;

    for (guint i = 0; i < router->ports->len; i++) {
        all &= router_port_finish(g_ptr_array_index(router->ports, i));
    }
    if (all) {
        g_main_loop_quit(router->loop);
    }
}

static void on_engine_closed(void *opaque)
{
    Router *router = opaque;

    router->ended = true;
    g_timeout_add(LAST_WORDS_MS, on_last_words, router);
    router_port_done(router);
}

/* They end together, in either order. */
static gboolean on_grace(gpointer data)
{
    Router *router = data;

    if (!router->ended) {
        router_drives_lost(router);
    }
    return G_SOURCE_REMOVE;
}

static void on_drives_closed(void *opaque)
{
    g_timeout_add(GRACE_MS, on_grace, opaque);
}

static const RouterPeerOps engine_ops = {.event = router_engine_event, .closed = on_engine_closed};
static const RouterPeerOps drives_ops = {.event = router_drive_event, .closed = on_drives_closed};

static void start(Router *router)
{
    router->loop = g_main_loop_new(NULL, false);
    router->ports = g_ptr_array_new_with_free_func((GDestroyNotify)router_port_free);
    router->consoles = g_ptr_array_new_with_free_func((GDestroyNotify)router_console_free);
    router->nodes = router_nodes_new(router->config->nodes);
    router->open_trays = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    router->engine = router_peer_new(router->config->engine, "QEMU", &engine_ops, router);
    router->drives = router_peer_new(router->config->drives, "The drive process", &drives_ops, router);
    router->state = router_state_new(router);
    for (guint i = 0; i < router->config->ports->len; i++) {
        const RouterConfigPort *config = g_ptr_array_index(router->config->ports, i);
        if (config->human) {
            g_ptr_array_add(router->consoles, router_console_new(router, config));
        } else {
            g_ptr_array_add(router->ports, router_port_new(router, config));
        }
    }
}

/* Whatever is under way gets its errors while all is still there. */
static void end(Router *router)
{
    router->ended = true;
    router_peer_close(router->engine);
    router_peer_close(router->drives);
    for (guint i = 0; i < router->ports->len; i++) {
        router_peer_close(((RouterPort *)g_ptr_array_index(router->ports, i))->drives);
    }
    g_ptr_array_unref(router->ports);
    g_ptr_array_unref(router->consoles);
    router_peer_free(router->engine);
    router_peer_free(router->drives);
    router_nodes_free(router->nodes);
    router_state_free(router->state);
    g_hash_table_unref(router->open_trays);
    g_main_loop_unref(router->loop);
    folder_remove(router->config->folder);
}

/* As QEMU does: what the command line names is open, and what is opened from now on is opened without the
 * rights of who started it. */
static bool give_up_rights(const RouterConfig *config, GError **error)
{
    if (config->user) {
        g_autoptr(Options) options = options_new();
        options_set(options, "user", config->user);
        g_autofree char *text = options_to_string(options);
        g_autoptr(RunAs) as = run_as_new(text, error);
        if (!as || !run_as_enter(as, error)) {
            return false;
        }
    }
    return !config->sandbox || sandbox_enter(error);
}

int router_main(int argc, char **argv)
{
    Router router = {0};
    GError *error = NULL;

    log_set_program(argv[0]);
    prctl(PR_SET_NAME, "spindle-router");
    /* It has no end but QEMU's. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    router.config = router_config_from_text(argc > 1 ? argv[1] : "", &error);
    if (!router.config) {
        log_gerror(error, NULL);
        return 1;
    }
    log_set_timestamp(router.config->timestamp);
    start(&router);
    bool ok = give_up_rights(router.config, &error);
    if (ok) {
        g_main_loop_run(router.loop);
    } else {
        log_gerror(error, NULL);
    }
    end(&router);
    router_config_free(router.config);
    return ok ? 0 : 1;
}
