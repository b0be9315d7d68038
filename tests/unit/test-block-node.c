/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Opening, naming, sharing and closing of nodes, and the words of every refusal.
 */
#include "block/block-int.h"
#include "tests/unit/block-test.h"
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strconcat("/block/node/refuse/", refusals[i].name, NULL);
        g_test_add_data_func(path, &refusals[i], test_refusal);
    }
    g_test_add_func("/block/node/open-null", test_open_null);
    return g_test_run();
}
