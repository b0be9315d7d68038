/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: VERSION, DMA_MAP and DMA_UNMAP messages that no honest client sends, and messages before
 * VERSION. As in test-vfu-malformed.c each is answered with an error or ends the connection, and the next
 * client is served.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hw/remote/vfu-int.h"
#include "tests/lib/vfu-fixture.h"

#define RAM UINT64_C(0x100000)

/* DMA_MAP */

static const struct {
    const char *name;
    VfuDmaMapMsg map;
    VfuFixtureFile file;
    int error;
} maps[] = {
#define MAP(address_, size_, offset_, flags_)                                                                \
    {                                                                                                        \
        .argsz = sizeof(VfuDmaMapMsg), .flags = flags_, .offset = offset_, .address = address_,              \
        .size = size_                                                                                        \
    }
    {"argsz-short", {.argsz = 31, .flags = 3, .address = 0, .size = 4096}, VFU_FILE_NONE, -EINVAL},
    {"no-permission", MAP(0, 4096, 0, 0), VFU_FILE_NONE, -EINVAL},
    {"unknown-flag", MAP(0, 4096, 0, 0x13), VFU_FILE_NONE, -EINVAL},
    {"mmap-without-fd", MAP(0, 4096, 0, 7), VFU_FILE_NONE, -EINVAL},
    {"file-without-fd", MAP(0, 4096, 0, 11), VFU_FILE_NONE, -EINVAL},
    {"size-0", MAP(0, 0, 0, 3), VFU_FILE_NONE, -EINVAL},
    {"size-unaligned", MAP(0, 4095, 0, 3), VFU_FILE_NONE, -EINVAL},
    {"address-unaligned", MAP(1, 4096, 0, 3), VFU_FILE_NONE, -EINVAL},
    {"offset-unaligned", MAP(0, 4096, 512, 3), VFU_FILE_MEMFD, -EINVAL},
    {"address-wraps", MAP(UINT64_MAX - 4095, 8192, 0, 3), VFU_FILE_NONE, -EINVAL},
    {"everything", MAP(4096, UINT64_MAX - 4095, 0, 3), VFU_FILE_NONE, -EEXIST},
    {"same", MAP(RAM, 0x4000, 0, 3), VFU_FILE_NONE, -EEXIST},
    {"inside", MAP(RAM + 0x1000, 0x1000, 0, 3), VFU_FILE_NONE, -EEXIST},
    {"around", MAP(RAM - 0x1000, 0x6000, 0, 3), VFU_FILE_MEMFD, -EEXIST},
    {"first-page", MAP(RAM - 0x1000, 0x2000, 0, 3), VFU_FILE_NONE, -EEXIST},
    {"last-page", MAP(RAM + 0x3000, 0x2000, 0, 3), VFU_FILE_NONE, -EEXIST},
    {"beyond-the-file", MAP(0x800000, 0x101000, 0, 3), VFU_FILE_MEMFD, -EINVAL},
    {"offset-beyond-the-file", MAP(0x800000, 0x1000, 0x100000, 3), VFU_FILE_MEMFD, -EINVAL},
    {"offset-wraps", MAP(0x800000, 0x2000, UINT64_MAX - 4095, 3), VFU_FILE_MEMFD, -EINVAL},
    {"size-huge", MAP(0x800000, UINT64_C(1) << 62, 0, 3), VFU_FILE_MEMFD, -EINVAL},
    {"read-only-file", MAP(0x800000, 0x1000, 0, 3), VFU_FILE_MEMFD_READ_ONLY, -EACCES},
    {"eventfd", MAP(0x800000, 0x1000, 0, 3), VFU_FILE_EVENTFD, -EINVAL},
    {"directory", MAP(0x800000, 0x1000, 0, 3), VFU_FILE_DIRECTORY, -EINVAL},
    {"device-node", MAP(0x800000, 0x1000, 0, 3), VFU_FILE_NULL, -EINVAL},
    {"two-fds", MAP(0x800000, 0x1000, 0, 3), VFU_FILE_TWO, -EINVAL},
    {"fine", MAP(0x800000, 0x100000, 0, 3), VFU_FILE_MEMFD, 0},
    {"read-only-map-of-read-only-file", MAP(0x800000, 0x1000, 0, 1), VFU_FILE_MEMFD_READ_ONLY, 0},
    {"write-only", MAP(0x800000, 0x1000, 0, 2), VFU_FILE_MEMFD, 0},
    {"just-before", MAP(RAM - 0x1000, 0x1000, 0, 3), VFU_FILE_NONE, 0},
    {"just-behind", MAP(RAM + 0x4000, 0x1000, 0, 3), VFU_FILE_NONE, 0},
    {"last-pages-of-all", MAP(UINT64_MAX - 8191, 8192, 0, 3), VFU_FILE_NONE, 0},
    {"huge-without-fd", MAP(UINT64_C(1) << 40, UINT64_C(1) << 62, 0, 3), VFU_FILE_NONE, 0},
};

static void test_map(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    int fds[2] = {vfu_fixture_file(maps[i].file), vfu_fixture_file(VFU_FILE_MEMFD)};
    unsigned n_fds = maps[i].file == VFU_FILE_NONE ? 0 : maps[i].file == VFU_FILE_TWO ? 2 : 1;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
    vfu_client_add_ram(f.client, RAM, 0x4000, VFU_CLIENT_RAM_SEALED);
    uint16_t id = vfu_client_send(f.client, VFU_DMA_MAP, 0, &maps[i].map, sizeof maps[i].map, fds, n_fds);
    g_assert_cmpint(vfu_client_await(f.client, id, NULL, 0), ==, maps[i].error);
    if (maps[i].error == 0) {
        VfuDmaUnmapMsg unmap = {
            .argsz = sizeof unmap, .address = maps[i].map.address, .size = maps[i].map.size};
        g_assert_cmpint(vfu_client_call(f.client, VFU_DMA_UNMAP, &unmap, sizeof unmap, NULL, 0), ==,
                        sizeof unmap);
    }
    g_assert_cmpint(vfu_client_remove_ram(f.client, RAM), ==, 0);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
    close(fds[0]);
    close(fds[1]);
}

static const struct {
    const char *name;
    uint64_t address, size;
    uint32_t flags;
    int error;
} unmaps[] = {
    {"not-mapped", 0x800000, 0x1000, 0, -ENOENT},
    {"part", RAM, 0x1000, 0, -ENOENT},
    {"more", RAM, 0x5000, 0, -ENOENT},
    {"inside", RAM + 0x1000, 0x3000, 0, -ENOENT},
    {"size-0", RAM, 0, 0, -ENOENT},
    {"beyond-all", UINT64_MAX, 1, 0, -ENOENT},
    {"unknown-flag", RAM, 0x4000, 1, -EINVAL},
    {"all-with-size", RAM, 0x4000, VFU_DMA_UNMAP_ALL, -EINVAL},
    {"all-with-address", RAM, 0, VFU_DMA_UNMAP_ALL, -EINVAL},
    {"all", 0, 0, VFU_DMA_UNMAP_ALL, sizeof(VfuDmaUnmapMsg)},
    {"exact", RAM, 0x4000, 0, sizeof(VfuDmaUnmapMsg)},
};

static void test_unmap(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuDmaUnmapMsg unmap = {.argsz = sizeof unmap + 4,
                            .flags = unmaps[i].flags,
                            .address = unmaps[i].address,
                            .size = unmaps[i].size};
    VfuDmaUnmapMsg answer = {0};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
    vfu_client_add_ram(f.client, RAM, 0x4000, VFU_CLIENT_RAM_SEALED);
    g_assert_cmpint(vfu_client_call(f.client, VFU_DMA_UNMAP, &unmap, sizeof unmap, &answer, sizeof answer),
                    ==, unmaps[i].error);
    if (unmaps[i].error > 0) {
        unmap.argsz = sizeof unmap;
        g_assert_cmpmem(&answer, sizeof answer, &unmap, sizeof unmap);
    }
    g_assert_cmpint(vfu_client_remove_ram(f.client, RAM), ==, unmaps[i].error > 0 ? -ENOENT : 0);
    vfu_fixture_teardown(&f);
}

static void test_too_many_maps(void)
{
    VfuFixture f;
    VfuDmaMapMsg map = {.argsz = sizeof map, .flags = 3, .size = 4096};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i <= VFU_MAX_MAPS; i++) {
        map.address = (uint64_t)(i * 7919 % (VFU_MAX_MAPS + 1)) * 8192;
        g_assert_cmpint(vfu_client_call(f.client, VFU_DMA_MAP, &map, sizeof map, NULL, 0), ==,
                        i < VFU_MAX_MAPS ? 0 : -ENOSPC);
    }
    vfu_fixture_teardown(&f);
}

/* VERSION */

static const struct {
    const char *name;
    uint16_t major;
    const char *json; /* NULL: none */
    int bytes;        /* of it to send; 0: all with the NUL */
} versions[] = {
    {"major-1", 1, "{}", 0},
    {"major-65535", 65535, NULL, 0},
    {"no-nul", 0, "{}", 2},
    {"nul-inside", 0, "{}\0{}", 6},
    {"only-nul", 0, "", 0},
    {"no-json", 0, "hello", 0},
    {"cut-json", 0, "{\"capabilities\":{", 0},
    {"array", 0, "[]", 0},
    {"number", 0, "7", 0},
    {"null", 0, "null", 0},
    {"capabilities-array", 0, "{\"capabilities\":[]}", 0},
    {"capabilities-null", 0, "{\"capabilities\":null}", 0},
    {"xfer-string", 0, "{\"capabilities\":{\"max_data_xfer_size\":\"4096\"}}", 0},
    {"xfer-negative", 0, "{\"capabilities\":{\"max_data_xfer_size\":-1}}", 0},
    {"xfer-0", 0, "{\"capabilities\":{\"max_data_xfer_size\":0}}", 0},
    {"xfer-real", 0, "{\"capabilities\":{\"max_data_xfer_size\":1e30}}", 0},
    {"fds-null", 0, "{\"capabilities\":{\"max_msg_fds\":null}}", 0},
    {"fds-object", 0, "{\"capabilities\":{\"max_msg_fds\":{}}}", 0},
    {"multi-number", 0, "{\"capabilities\":{\"write_multiple\":1}}", 0},
    {"pages-of-8k", 0, "{\"capabilities\":{\"pgsizes\":8192}}", 0},
    {"not-utf8", 0, "{\"\xff\xfe\":1}", 0},
};

static void test_version(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    const char *json = versions[i].json;
    int bytes = !json ? 0 : versions[i].bytes ? versions[i].bytes : (int)strlen(json) + 1;
    uint8_t message[512] = {0};
    VfuVersionMsg version = {.major = versions[i].major};
    VfuFixture f;

    memcpy(message, &version, sizeof version);
    if (bytes) {
        memcpy(message + sizeof version, json, bytes);
    }
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, false);
    int ret = vfu_client_call(f.client, VFU_VERSION, message, sizeof version + bytes, NULL, 0);
    g_assert_cmpint(ret, ==, -EINVAL);
    g_assert_true(vfu_client_is_closed(f.client, true));
    vfu_fixture_reconnect(&f);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

/* A parser that recurses would run out of stack. */
static void test_version_nested(void)
{
    uint8_t message[sizeof(VfuVersionMsg) + 4000] = {0};
    VfuFixture f;

    for (unsigned way = 0; way < 2; way++) {
        memset(message + sizeof(VfuVersionMsg), way ? '[' : ' ', 3999);
        vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, false);
        g_assert_cmpint(vfu_client_call(f.client, VFU_VERSION, message, sizeof message, NULL, 0), ==,
                        -EINVAL);
        vfu_fixture_teardown(&f);
    }
}

static const struct {
    const char *name;
    unsigned command;
    uint32_t flags;
    unsigned size;
} early[] = {
    {"reset", VFU_DEVICE_RESET, 0, 0},
    {"read", VFU_REGION_READ, 0, 16},
    {"reply", VFU_VERSION, VFU_TYPE_REPLY, 4},
    {"version-without-payload", VFU_VERSION, 0, 0},
    {"version-too-long", VFU_VERSION, 0, VFU_MAX_VERSION},
};

static void test_before_version(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    uint8_t payload[VFU_MAX_VERSION] = {0};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, false);
    vfu_client_send(f.client, early[i].command, early[i].flags, payload, early[i].size, NULL, 0);
    if (early[i].size == 0 && early[i].command == VFU_VERSION) {
        vfu_client_settle(f.client); /* an error; the client may try again */
        vfu_client_negotiate(f.client);
    } else {
        g_assert_true(vfu_client_is_closed(f.client, true));
    }
    vfu_fixture_reconnect(&f);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed-setup", maps, "map", test_map);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed-setup", unmaps, "unmap", test_unmap);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed-setup", versions, "version", test_version);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed-setup", early, "before-version", test_before_version);
    g_test_add_func("/vfu-malformed-setup/too-many-maps", test_too_many_maps);
    g_test_add_func("/vfu-malformed-setup/version-nested", test_version_nested);
    return g_test_run();
}
