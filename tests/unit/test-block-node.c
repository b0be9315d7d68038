/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Opening, naming, sharing and closing of nodes, and the words of every refusal.
 */
#include "block/block-int.h"
#include "tests/unit/block-test.h"
#include <errno.h>
#include <string.h>

typedef struct Refusal {
    const char *name, *options, *message;
} Refusal;

static const Refusal refusals[] = {
    {"no-driver", "node-name=f,filename=a", "Parameter 'driver' is missing"},
    {"unknown-driver", "driver=blurb", "Unknown driver 'blurb'"},
    {"name-starts-with-digit", "driver=null-co,node-name=1f", "Invalid node-name: '1f'"},
    {"name-has-space", "driver=null-co,node-name=a b", "Invalid node-name: 'a b'"},
    {"name-is-empty", "driver=null-co,node-name=", "Invalid node-name: ''"},
    {"name-is-reserved", "driver=null-co,node-name=#block001", "Invalid node-name: '#block001'"},
    {"name-of-32", "driver=null-co,node-name=abcdefghijklmnopqrstuvwxyz012345", "Node name too long"},
    {"unknown-option", "driver=null-co,zork=1", "Parameter 'zork' is unexpected"},
    {"unknown-option-of-child", "driver=raw,file.driver=null-co,file.zork=1",
     "Parameter 'file.zork' is unexpected"},
    {"bad-read-only", "driver=null-co,read-only=zork", "Parameter 'read-only' expects 'on' or 'off'"},
    {"bad-cache-direct", "driver=null-co,cache.direct=zork",
     "Parameter 'cache.direct' expects 'on' or 'off'"},
    {"bad-discard", "driver=null-co,discard=zork", "Parameter 'discard' does not accept value 'zork'"},
    {"bad-detect-zeroes", "driver=null-co,detect-zeroes=zork",
     "Parameter 'detect-zeroes' does not accept value 'zork'"},
    {"detect-unmap-without-discard", "driver=null-co,detect-zeroes=unmap",
     "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap"},
    {"force-share-for-writing", "driver=null-co,force-share=on",
     "force-share=on can only be used with read-only images"},
    {"child-missing", "driver=raw", "Parameter 'file' is missing"},
    {"child-not-found", "driver=raw,file=zork", "Cannot find device='zork' nor node-name='zork'"},
    {"child-name-empty", "driver=raw,file=", "Cannot find device='' nor node-name=''"},
    {"child-driver-missing", "driver=raw,file.filename=x", "Parameter 'file.driver' is missing"},
    {"size-too-large", "driver=null-co,size=9223372036854775807",
     "Image size 9223372036854775807 of 'null-co://' is too large (the limit is 9223372036853727232)"},
    {"raw-offset-past-end", "driver=raw,file.driver=null-co,file.size=1M,offset=2M",
     "Offset (2097152) cannot be greater than size of the containing file (1048576)"},
    {"raw-size-past-end", "driver=raw,file.driver=null-co,file.size=1M,offset=512,size=1M",
     "The sum of offset (512) and size (1048576) has to be smaller or equal to the actual size of the "
     "containing "
     "file (1048576)"},
    {"raw-size-odd", "driver=raw,file.driver=null-co,size=1000", "Specified size is not multiple of 512"},
    {"mem-pattern", "driver=mem,pattern=256", "Parameter 'pattern' expects a byte (0 to 255) or 'offset'"},
    {"mem-too-large", "driver=mem,size=4611686018427387904",
     "Could not allocate 4611686018427387904 bytes for driver 'mem'"},
};

static void test_refusal(gconstpointer data)
{
    const Refusal *r = data;
    g_autofree char *message = open_message(r->options);
    g_assert_cmpstr(message, ==, r->message);
    g_autoptr(GList) nodes = block_list();
    g_assert_null(nodes);
}

static void test_open_null(void)
{
    BlockNode *node = open_node("driver=null-co,node-name=n");
    g_assert_true(block_find("n") == node);
    g_assert_cmpuint(block_info(node)->size, ==, 1ull << 30);
    g_assert_cmpstr(block_info(node)->driver, ==, "null-co");
    g_assert_cmpstr(block_info(node)->filename, ==, "null-co://");
    g_assert_false(block_info(node)->read_only);
    block_unref(node);
    g_assert_null(block_find("n"));
    g_assert_true(block_shutdown(5000));
}

/* A node that two others lie upon is one node, and lives as long as one of them. */
static void test_shared_child(void)
{
    BlockNode *base = open_node("driver=mem,node-name=base,size=4096,pattern=5");
    BlockNode *a = open_node("driver=raw,node-name=a,file=base"),
              *b = open_node("driver=raw,file=base,offset=1024");
    g_assert_true(block_child(a, "file") == base && block_child(b, "file") == base);
    g_assert_null(block_child(a, "backing"));
    g_assert_cmpuint(block_info(b)->size, ==, 3072);
    uint8_t byte = 9;
    g_assert_cmpint(block_pwrite(a, 1024, &byte, 1, 0), ==, 0);
    byte = 0;
    g_assert_cmpint(block_pread(b, 0, &byte, 1), ==, 0);
    g_assert_cmpint(byte, ==, 9);
    block_unref(base);
    g_assert_true(block_find("base") == base);
    block_unref(a);
    block_unref(b);
    g_assert_true(block_shutdown(5000));
    g_assert_null(block_find("base"));
}

static void test_duplicate_name(void)
{
    BlockNode *node = open_node("driver=mem,node-name=n");
    g_autofree char *message = open_message("driver=null-co,node-name=n");
    g_assert_cmpstr(message, ==, "Duplicate nodes with node-name='n'");
    g_autofree char *of_child = open_message("driver=raw,node-name=n,file.driver=mem,file.node-name=n");
    g_assert_cmpstr(of_child, ==, "Duplicate nodes with node-name='n'");
    g_autofree char *both = open_message("driver=raw,node-name=m,file.driver=mem,file.node-name=m");
    g_assert_cmpstr(both, ==, "Duplicate nodes with node-name='m'");
    block_unref(node);
    node = open_node("driver=mem,node-name=n"); /* the name is free at once */
    block_unref(node);
    g_assert_true(block_shutdown(5000));
}

static void test_list_in_order_of_creation(void)
{
    BlockNode *z = open_node("driver=mem,node-name=z"), *a = open_node("driver=raw,node-name=a,file=z");
    BlockNode *unnamed = open_node("driver=mem");
    g_autoptr(GList) list = block_list();
    g_assert_cmpuint(g_list_length(list), ==, 3);
    g_assert_true(list->data == z && list->next->data == a && list->next->next->data == unnamed);
    g_assert_true(g_str_has_prefix(block_name(unnamed), "#block"));
    g_assert_true(block_find(block_name(unnamed)) == unnamed);
    block_unref(z);
    block_unref(a);
    block_unref(unnamed);
    g_assert_true(block_shutdown(5000));
}

/* read-only and the cache's options go down to children given inline; discard reaches the file. */
static void test_inheritance(void)
{
    BlockNode *node = open_node("driver=raw,read-only=on,cache.direct=on,cache.no-flush=on,file.driver=mem");
    BlockNode *child = block_child(node, "file");
    g_assert_true(block_info(child)->read_only);
    g_assert_false(block_node_wants_write(child));
    g_assert_true(block_node_cache_direct(child));
    g_assert_true(block_node_cache_no_flush(child));
    g_assert_true(block_node_discard(child));
    g_assert_false(block_node_discard(node));
    block_unref(node);
    node = open_node("driver=raw,read-only=on,file.driver=mem,file.read-only=off");
    g_assert_false(block_info(block_child(node, "file"))->read_only);
    block_unref(node);
    g_assert_true(block_shutdown(5000));
}

typedef struct Opened {
    int calls;
    BlockNode *node;
    GError *error;
} Opened;

static void opened(BlockNode *node, GError *error, void *opaque)
{
    Opened *o = opaque;
    o->calls++;
    o->node = node;
    o->error = error;
}

static void open_async(const char *text, Opened *ret)
{
    g_autoptr(Options) options = options_parse(text, NULL, NULL);
    *ret = (Opened){0};
    block_open_async(options, opened, ret);
    g_assert_cmpint(ret->calls, ==, 0);
}

static void test_open_async(void)
{
    Opened good, bad;
    open_async("driver=raw,node-name=good,file.driver=mem,file.node-name=below", &good);
    /* Its child is opened, and must go again; by way of the loop. */
    open_async("driver=raw,offset=2M,file.driver=mem,file.node-name=orphan", &bad);
    while (!good.calls || !bad.calls) {
        g_main_context_iteration(NULL, TRUE);
    }
    g_assert_no_error(good.error);
    g_assert_true(block_find("good") == good.node);
    g_assert_null(bad.node);
    g_assert_cmpstr(bad.error->message, ==,
                    "Offset (2097152) cannot be greater than size of the containing file (1048576)");
    g_error_free(bad.error);
    block_unref(good.node);
    g_assert_true(block_shutdown(5000));
    g_assert_null(block_find("orphan"));
    g_assert_cmpint(good.calls + bad.calls, ==, 2);
}

/* More than there are workers, half of them after the same name: one gets it. */
static void test_many_opens_at_once(void)
{
    Opened opens[40];
    for (guint i = 0; i < G_N_ELEMENTS(opens); i++) {
        open_async(i % 2 ? "driver=mem,node-name=same" : "driver=null-co", &opens[i]);
    }
    unsigned calls = 0, named = 0;
    while (calls < G_N_ELEMENTS(opens)) {
        g_main_context_iteration(NULL, TRUE);
        calls = 0;
        for (guint i = 0; i < G_N_ELEMENTS(opens); i++) {
            calls += opens[i].calls;
        }
    }
    for (guint i = 0; i < G_N_ELEMENTS(opens); i++) {
        named += i % 2 && opens[i].node;
        if (!opens[i].node) {
            g_assert_cmpstr(opens[i].error->message, ==, "Duplicate nodes with node-name='same'");
            g_error_free(opens[i].error);
        }
        block_unref(opens[i].node);
    }
    g_assert_cmpuint(named, ==, 1);
    g_assert_true(block_shutdown(5000));
}

typedef struct Heard {
    BlockNode *node;
    int resize, medium;
    uint64_t size; /* as the listener saw it */
    bool present, unlisten;
} Heard;

static void hear(BlockNode *node, BlockEvent event, void *opaque)
{
    Heard *heard = opaque;
    g_assert_true(node == heard->node);
    heard->resize += event == BLOCK_EVENT_RESIZE;
    heard->medium += event == BLOCK_EVENT_MEDIUM;
    heard->size = block_info(node)->size;
    heard->present = block_medium_present(node);
    if (heard->unlisten) {
        block_unlisten(node, hear, heard);
    }
}

static void run_pending(void)
{
    while (g_main_context_iteration(NULL, FALSE)) {
    }
}

/* A resize below is heard above, with the new size already in place. */
static void test_resize_event(void)
{
    char *path = make_file("0123456789", 10);
    g_autofree char *options = g_strdup_printf("driver=raw,file.driver=file,file.filename=%s", path);
    BlockNode *node = open_node(options), *file = block_child(node, "file");
    Heard above = {.node = node}, below = {.node = file}, once = {.node = file, .unlisten = true};
    block_listen(file, hear, &once);
    block_listen(file, hear, &below);
    block_listen(node, hear, &above);
    g_assert_cmpint(block_resize(file, 1000, NULL), ==, 0);
    g_assert_cmpint(below.resize, ==, 0); /* not inside the call */
    run_pending();
    g_assert_cmpint(below.resize, ==, 1);
    g_assert_cmpint(above.resize, ==, 1);
    g_assert_cmpuint(below.size, ==, 1000);
    g_assert_cmpuint(above.size, ==, 1000);
    block_unlisten(node, hear, &above);
    g_assert_cmpint(block_resize(file, 500, NULL), ==, 0);
    run_pending();
    g_assert_cmpint(below.resize, ==, 2);
    g_assert_cmpint(above.resize, ==, 1);
    g_assert_cmpint(once.resize, ==, 1);
    g_assert_cmpuint(block_info(node)->size, ==, 500);
    block_unlisten(file, hear, &below);
    block_listen(node, hear, &above);
    g_assert_cmpint(block_resize(node, 600, NULL), ==, 0); /* through both: heard once */
    g_assert_cmpuint(block_info(node)->size, ==, 600);
    run_pending();
    g_assert_cmpint(above.resize, ==, 2);
    block_unref(node);
    g_assert_true(block_shutdown(5000));
    remove_file(path);
}

static void take_medium(BlockNode *node, void *data)
{
    block_node_set_size(node, 0);
    block_node_set_medium(node, false);
}

static void give_medium(BlockNode *node, void *data)
{
    block_node_set_size(node, *(uint64_t *)data);
    block_node_set_medium(node, true);
}

static gpointer post_from_thread(gpointer opaque)
{
    uint64_t size = 2048;
    block_node_post_event(opaque, BLOCK_EVENT_MEDIUM, give_medium, g_memdup2(&size, sizeof size), g_free);
    return NULL;
}

/* A medium goes and another comes, told by a driver's thread: the node above follows, and reads say why not.
 */
static void test_medium_event(void)
{
    BlockNode *node = open_node("driver=raw,file.driver=mem,file.size=4096"),
              *below = block_child(node, "file");
    Heard above = {.node = node};
    uint8_t byte;
    block_listen(node, hear, &above);
    g_assert_true(block_medium_present(node));
    block_node_post_event(below, BLOCK_EVENT_MEDIUM, take_medium, NULL, NULL);
    run_pending();
    g_assert_cmpint(above.medium, ==, 1);
    g_assert_false(above.present);
    g_assert_cmpuint(above.size, ==, 0);
    g_assert_cmpint(block_pread(node, 0, &byte, 1), ==, -ENOMEDIUM);
    g_thread_join(g_thread_new("driver", post_from_thread, below));
    run_pending();
    g_assert_cmpint(above.medium, ==, 2);
    g_assert_true(above.present);
    g_assert_cmpuint(above.size, ==, 2048);
    g_assert_cmpint(block_pread(node, 2047, &byte, 1), ==, 0);
    g_assert_cmpint(block_pread(node, 2048, &byte, 1), ==, -EINVAL);
    block_unref(node);
    /* An event of a node on its way out is dropped, its data freed. */
    block_node_post_event(node, BLOCK_EVENT_MEDIUM, give_medium, g_memdup2(&(uint64_t){1}, 8), g_free);
    g_assert_true(block_shutdown(5000));
    g_assert_cmpint(above.medium, ==, 2);
}

static gint64 read_ms(BlockNode *node, unsigned count, unsigned bytes)
{
    g_autofree uint8_t *buf = g_malloc(bytes);
    gint64 start = g_get_monotonic_time();
    for (unsigned i = 0; i < count; i++) {
        g_assert_cmpint(block_pread(node, i * bytes, buf, bytes), ==, 0);
    }
    return (g_get_monotonic_time() - start) / 1000;
}

/* The fault layer's speed: never faster than told; slower only by what this machine is slow. */
static void test_speed(void)
{
    static const struct {
        const char *options;
        unsigned count, bytes, at_least_ms;
    } cases[] = {
        {"driver=fault,bps-read=10M,file.driver=mem", 16, 65536, 100},
        {"driver=fault,bps-read=10M,burst=512K,file.driver=mem", 16, 65536, 50},
        {"driver=fault,iops-read=100,file.driver=mem", 10, 512, 100},
        {"driver=fault,delay-ns=5000000,file.driver=mem", 10, 512, 50},
        {"driver=null-co,latency-ns=5000000", 10, 512, 50},
        {"driver=fault,bps-write=1K,file.driver=mem", 16, 65536, 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BlockNode *node = open_node(cases[i].options);
        g_assert_cmpint(block_info(node)->slow, ==, cases[i].at_least_ms > 0 && i < 4);
        gint64 ms = read_ms(node, cases[i].count, cases[i].bytes);
        g_assert_cmpint(ms, >=, cases[i].at_least_ms);
        g_assert_cmpint(ms, <, cases[i].at_least_ms + 2000);
        block_unref(node);
        g_assert_true(block_shutdown(5000));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strconcat("/block/node/refuse/", refusals[i].name, NULL);
        g_test_add_data_func(path, &refusals[i], test_refusal);
    }
    g_test_add_func("/block/node/open-null", test_open_null);
    g_test_add_func("/block/node/shared-child", test_shared_child);
    g_test_add_func("/block/node/duplicate-name", test_duplicate_name);
    g_test_add_func("/block/node/list-in-order-of-creation", test_list_in_order_of_creation);
    g_test_add_func("/block/node/inheritance", test_inheritance);
    g_test_add_func("/block/node/open-async", test_open_async);
    g_test_add_func("/block/node/many-opens-at-once", test_many_opens_at_once);
    g_test_add_func("/block/node/resize-event", test_resize_event);
    g_test_add_func("/block/node/medium-event", test_medium_event);
    g_test_add_func("/block/node/speed", test_speed);
    return g_test_run();
}
