/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What clients are told of a drive of the host, whose medium and button are moved by hand: by a node that
 * says what such a drive's would.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "block/block-int.h"
#include "monitor/backend.h"
#include "monitor/qmp.h"
#include "tests/unit/block-test.h"

static const char *status(void *opaque)
{
    return "running";
}

static bool is_running(void *opaque)
{
    return true;
}

static const MonitorMachine machine = {.status = status, .is_running = is_running};

typedef struct Fixture {
    Monitor *monitor;
    Backend *backend;
    BlockNode *node;
    int client;
    GString *text; /* that came */
} Fixture;

static void take_text(Fixture *f)
{
    char bytes[4096];
    ssize_t n;

    while ((n = recv(f->client, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        g_string_append_len(f->text, bytes, n);
    }
}

/* The next message that has `word` in it; those before it are dropped. */
static JsonObject *next_with(Fixture *f, const char *word)
{
    for (;;) {
        take_text(f);
        char *end = strstr(f->text->str, "\r\n");
        if (!end) {
            g_main_context_iteration(NULL, false);
            g_usleep(100);
            continue;
        }
        g_autofree char *line = g_strndup(f->text->str, end - f->text->str);
        g_string_erase(f->text, 0, end + 2 - f->text->str);
        if (strstr(line, word)) {
            g_autoptr(JsonNode) node = json_from_string(line, NULL);
            return json_object_ref(json_node_get_object(node));
        }
    }
}

static void setup(Fixture *f, gconstpointer unused)
{
    int pair[2];
    GError *error = NULL;

    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    g_autofree char *text = g_strdup_printf("backend=socket,fd=%d", pair[0]);
    g_autoptr(Options) options = options_parse(text, NULL, &error);
    Chardev *chardev = chardev_new(options, &error);
    g_assert_no_error(error);
    f->text = g_string_new(NULL);
    f->client = pair[1];
    f->monitor = monitor_new(&machine, f);
    monitor_add_server(f->monitor, chardev, MONITOR_QMP);
    g_assert_true(monitor_open(f->monitor, &error));
    static const char hello[] = "{\"execute\":\"qmp_capabilities\"}";
    g_assert_cmpint(write(f->client, hello, strlen(hello)), ==, (ssize_t)strlen(hello));
    json_object_unref(next_with(f, "return"));
    f->node = open_node("driver=null-co,size=4096,node-name=disc,read-only=on");
    f->backend = backend_new(f->monitor, NULL, NULL);
    backend_attach(f->backend, "ide-cd", "cd0", "/machine/peripheral/cd0");
    g_assert_true(backend_set_node(f->backend, f->node, &error));
}

static void teardown(Fixture *f, gconstpointer unused)
{
    monitor_free(f->monitor);
    close(f->client);
    g_string_free(f->text, true);
    finish(f->node);
}

static void set_present(BlockNode *node, void *data)
{
    block_node_set_medium(node, data != NULL);
}

static JsonObject *data_of(Fixture *f, const char *event)
{
    g_autoptr(JsonObject) message = next_with(f, event);

    return json_object_ref(json_object_get_object_member(message, "data"));
}

static void test_medium(Fixture *f, gconstpointer unused)
{
    block_node_post_event(f->node, BLOCK_EVENT_GONE, set_present, NULL, NULL);
    g_autoptr(JsonObject) gone = data_of(f, "SPINDLE_MEDIUM_CHANGED");
    g_assert_false(json_object_get_boolean_member(gone, "medium-present"));
    g_assert_false(json_object_has_member(gone, "node-name"));
    g_assert_cmpstr(json_object_get_string_member(gone, "id"), ==, "cd0");
    block_node_post_event(f->node, BLOCK_EVENT_MEDIUM, set_present, f, NULL);
    g_autoptr(JsonObject) back = data_of(f, "SPINDLE_MEDIUM_CHANGED");
    g_assert_true(json_object_get_boolean_member(back, "medium-present"));
    g_assert_cmpstr(json_object_get_string_member(back, "node-name"), ==, "disc");
    g_assert_cmpint(json_object_get_int_member(back, "size"), ==, 4096);
}

static void test_eject(Fixture *f, gconstpointer unused)
{
    block_node_post_event(f->node, BLOCK_EVENT_EJECT_REQUEST, NULL, NULL, NULL);
    g_autoptr(JsonObject) data = data_of(f, "SPINDLE_EJECT_REQUEST");
    g_assert_cmpstr(json_object_get_string_member(data, "id"), ==, "cd0");
}

/* A node that the drive has not any more, and limits, which are another node, tell nothing more and nothing
 * twice. */
static void test_once(Fixture *f, gconstpointer unused)
{
    ThrottleLimits limits;

    throttle_limits_init(&limits);
    limits.bucket[THROTTLE_BPS_TOTAL].average = 1 << 20;
    g_assert_true(backend_set_limits(f->backend, &limits, "group", NULL));
    block_node_post_event(f->node, BLOCK_EVENT_GONE, set_present, NULL, NULL);
    json_object_unref(data_of(f, "SPINDLE_MEDIUM_CHANGED"));
    g_assert_true(backend_set_node(f->backend, NULL, NULL));
    block_node_post_event(f->node, BLOCK_EVENT_MEDIUM, set_present, f, NULL);
    while (g_main_context_iteration(NULL, false)) {
    }
    static const char ask[] = "{\"execute\":\"query-name\",\"id\":7}";
    g_assert_cmpint(write(f->client, ask, strlen(ask)), ==, (ssize_t)strlen(ask));
    g_autoptr(JsonObject) next = next_with(f, "");
    g_assert_true(json_object_has_member(next, "return"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/monitor-events/medium", Fixture, NULL, setup, test_medium, teardown);
    g_test_add("/monitor-events/eject", Fixture, NULL, setup, test_eject, teardown);
    g_test_add("/monitor-events/once", Fixture, NULL, setup, test_once, teardown);
    return g_test_run();
}
