/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: what a client is told and how registers are reached.
 */
#include <errno.h>
#include <string.h>
#include "tests/lib/vfu-fixture.h"

static int version_call(VfuFixture *f, uint16_t major, uint16_t minor, const char *json, char *ret_text,
                        size_t room)
{
    size_t bytes = json ? strlen(json) + 1 : 0;
    g_autofree uint8_t *message = g_malloc0(sizeof(VfuVersionMsg) + bytes);
    VfuVersionMsg version = {major, minor};
    uint8_t reply[512] = {0};

    memcpy(message, &version, sizeof version);
    if (bytes) {
        memcpy(message + sizeof version, json, bytes);
    }
    int ret = vfu_client_call(f->client, VFU_VERSION, message, sizeof version + bytes, reply, sizeof reply);
    if (ret >= 0) {
        memcpy(&version, reply, sizeof version);
        g_assert_cmpuint(version.major, ==, 0);
        g_assert_cmpuint(version.minor, ==, 0);
        g_assert_cmpint(ret, <=, sizeof reply);
        g_strlcpy(ret_text, (char *)reply + sizeof version, room);
    }
    return ret;
}

static const struct {
    const char *name;
    uint16_t minor;
    const char *offer, *answer;
} versions[] = {
    {"qemu", 0, VFU_CLIENT_QEMU_JSON,
     "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":1048576,\"max_dma_maps\":4096,"
     "\"pgsizes\":4096,\"write_multiple\":true}}"},
    {"no-json", 0, NULL, ""},
    {"empty-object", 0, "{}", "{\"capabilities\":{}}"},
    {"newer-minor", 7, "{\"capabilities\":{}}", "{\"capabilities\":{}}"},
    {"unknown-capabilities", 1,
     "{\"capabilities\":{\"twin_socket\":{\"supported\":true},\"x\":[1]},\"y\":null}",
     "{\"capabilities\":{}}"},
    {"no-write-multiple", 1, "{\"capabilities\":{\"write_multiple\":false,\"max_msg_fds\":8}}",
     "{\"capabilities\":{\"max_msg_fds\":16}}"},
};

static void test_version(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    char text[512];

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, false);
    int ret = version_call(&f, 0, versions[i].minor, versions[i].offer, text, sizeof text);
    g_assert_cmpint(ret, >, 0);
    g_assert_cmpstr(text, ==, versions[i].answer);
    /* QEMU reads the answer into its request's buffer. */
    g_assert_cmpint(ret, <=,
                    MAX(sizeof(VfuVersionMsg) + (versions[i].offer ? strlen(versions[i].offer) + 1 : 0),
                        sizeof(VfuVersionMsg) + strlen("{\"capabilities\":{}}") + 1));
    vfu_fixture_teardown(&f);
}

static void test_device_info(void)
{
    VfuFixture f;
    VfuDeviceInfoMsg info = {.argsz = sizeof info};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_assert_cmpint(vfu_client_call(f.client, VFU_DEVICE_GET_INFO, &info, sizeof info, &info, sizeof info),
                    ==, sizeof info);
    g_assert_cmpuint(info.argsz, ==, sizeof info);
    g_assert_cmphex(info.flags, ==, VFU_DEVICE_FLAG_PCI | VFU_DEVICE_FLAG_RESET);
    g_assert_cmpuint(info.num_regions, ==, 9);
    g_assert_cmpuint(info.num_irqs, ==, 5);
    vfu_fixture_teardown(&f);
}

static void test_region_info(void)
{
    static const uint64_t sizes[VFU_REGIONS] = {[FAKE_PCI_IO_BAR] = FAKE_PCI_IO_SIZE,
                                                [FAKE_PCI_MEM_BAR] = FAKE_PCI_MEM_SIZE,
                                                [VFU_REGION_CONFIG] = 256};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (uint32_t i = 0; i < VFU_REGIONS; i++) {
        VfuRegionInfoMsg info = {.argsz = 1000, .index = i};
        g_assert_cmpint(
            vfu_client_call(f.client, VFU_DEVICE_GET_REGION_INFO, &info, sizeof info, &info, sizeof info), ==,
            sizeof info);
        g_assert_cmpuint(info.argsz, ==, sizeof info);
        g_assert_cmpuint(info.index, ==, i);
        g_assert_cmpuint(info.size, ==, sizes[i]);
        g_assert_cmphex(info.flags, ==, sizes[i] ? 3 : 0);
        g_assert_cmpuint(info.cap_offset, ==, 0);
    }
    vfu_fixture_teardown(&f);
}

static void test_irq_info(void)
{
    static const struct {
        int ret;
        uint32_t flags, count;
    } rows[VFU_IRQS] = {{sizeof(VfuIrqInfoMsg), 7, 1},
                        {sizeof(VfuIrqInfoMsg), 9, 1},
                        {sizeof(VfuIrqInfoMsg), 9, 0},
                        {-EINVAL, 0, 0}, /* as the kernel's VFIO for a device that is not PCI Express */
                        {sizeof(VfuIrqInfoMsg), 9, 0}};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (uint32_t i = 0; i < VFU_IRQS; i++) {
        VfuIrqInfoMsg info = {.argsz = sizeof info, .index = i};
        g_assert_cmpint(
            vfu_client_call(f.client, VFU_DEVICE_GET_IRQ_INFO, &info, sizeof info, &info, sizeof info), ==,
            rows[i].ret);
        if (rows[i].ret > 0) {
            g_assert_cmphex(info.flags, ==, rows[i].flags);
            g_assert_cmpuint(info.count, ==, rows[i].count);
        }
    }
    vfu_fixture_teardown(&f);
}

static void test_region_io_fds(void)
{
    VfuRegionIoFdsMsg request = {.argsz = sizeof request, .index = FAKE_PCI_MEM_BAR};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_assert_cmpint(
        vfu_client_call(f.client, VFU_DEVICE_GET_REGION_IO_FDS, &request, sizeof request, NULL, 0), ==,
        -ENOTSUP);
    vfu_fixture_teardown(&f);
}

static void test_register_access(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned size = 1, n = 0; size <= 8; size *= 2, n += 2) {
        uint64_t value = UINT64_C(0x8877665544332211) >> (8 * (8 - size));
        vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 0x101, size, value);
        g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0x101, size), ==, value);
        FakeAccess write = fake_pci_log(f.fake, n), read = fake_pci_log(f.fake, n + 1);
        g_assert_true(write.write && !read.write);
        g_assert_cmpuint(write.offset, ==, 0x101);
        g_assert_cmpuint(write.size, ==, size);
        g_assert_cmphex(write.value, ==, value);
        g_assert_cmpuint(read.size, ==, size);
    }
    vfu_client_write(f.client, FAKE_PCI_IO_BAR, 0x1f, 1, 0x5a);
    g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_IO_BAR, 0x1f, 1), ==, 0x5a);
    vfu_fixture_teardown(&f);
}

/* Accesses of other sizes become aligned ones that cover the same bytes. */
static void test_odd_sizes(void)
{
    VfuFixture f;
    uint8_t message[sizeof(VfuRegionAccessMsg) + 4096], reply[sizeof message];
    static const uint32_t counts[] = {3, 5, 6, 7, 9, 16, 100, 4095};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        VfuRegionAccessMsg access = {.offset = 1, .region = FAKE_PCI_MEM_BAR, .count = counts[i]};
        memcpy(message, &access, sizeof access);
        for (uint32_t k = 0; k < counts[i]; k++) {
            message[sizeof access + k] = k * 7 + i;
        }
        g_assert_cmpint(
            vfu_client_call(f.client, VFU_REGION_WRITE, message, sizeof access + counts[i], NULL, 0), ==,
            sizeof access);
        g_assert_cmpmem(f.fake->mem + 1, counts[i], message + sizeof access, counts[i]);
        g_assert_cmpint(
            vfu_client_call(f.client, VFU_REGION_READ, &access, sizeof access, reply, sizeof reply), ==,
            sizeof access + counts[i]);
        g_assert_cmpmem(reply, sizeof access + counts[i], message, sizeof access + counts[i]);
    }
    for (unsigned i = 0; i < f.fake->log->len; i++) {
        FakeAccess access = fake_pci_log(f.fake, i);
        g_assert_cmpuint(access.offset % access.size, ==, 0);
    }
    vfu_fixture_teardown(&f);
}

static void test_config_space(void)
{
    VfuFixture f;
    VfuRegionAccessMsg access = {.region = VFU_REGION_CONFIG, .count = 256};
    uint8_t reply[sizeof access + 256];

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_READ, &access, sizeof access, reply, sizeof reply),
                    ==, sizeof reply);
    g_assert_cmpmem(reply + sizeof access, 256, f.fake->pci.config, 256);
    g_assert_cmphex(vfu_client_read(f.client, VFU_REGION_CONFIG, 0, 4), ==, 0x00fa1b36);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 0x24, 4, 0xffffffff);
    g_assert_cmphex(vfu_client_read(f.client, VFU_REGION_CONFIG, 0x24, 4), ==, 0xfffff000);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 0x20, 8, UINT64_C(0xfebf1000ffffffff));
    g_assert_cmphex(vfu_client_read(f.client, VFU_REGION_CONFIG, 0x20, 8), ==, UINT64_C(0xfebf1000ffffffe1));
    vfu_fixture_teardown(&f);
}

/* Posted writes are done in order with each other and before a later read is answered. */
static void test_posted_writes(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < 1000; i++) {
        vfu_client_post(f.client, FAKE_PCI_MEM_BAR, 8, 4, i);
    }
    g_assert_cmpuint(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 8, 4), ==, 999);
    for (unsigned i = 0; i < 1000; i++) {
        g_assert_cmpuint(fake_pci_log(f.fake, i).value, ==, i);
    }
    vfu_fixture_teardown(&f);
}

static void test_write_multi(void)
{
    enum { COUNT = 20 };
    VfuFixture f;
    uint8_t message[sizeof(VfuWriteMultiMsg) + COUNT * sizeof(VfuWriteOne)];
    VfuWriteMultiMsg multi = {.count = COUNT};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    memcpy(message, &multi, sizeof multi);
    for (unsigned i = 0; i < COUNT; i++) {
        VfuWriteOne one = {.offset = 8 * i, .region = FAKE_PCI_MEM_BAR, .count = 1 + i % 8, .data = {i + 1}};
        memcpy(message + sizeof multi + i * sizeof one, &one, sizeof one);
    }
    multi.count = 0;
    g_assert_cmpint(
        vfu_client_call(f.client, VFU_REGION_WRITE_MULTI, message, sizeof message, &multi, sizeof multi), ==,
        sizeof multi);
    g_assert_cmpuint(multi.count, ==, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        g_assert_cmpuint(f.fake->mem[8 * i], ==, i + 1);
    }
    vfu_client_send(f.client, VFU_REGION_WRITE_MULTI, VFU_NO_REPLY, message, sizeof message, NULL, 0);
    g_assert_cmpuint(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 8, 1), ==, 2);
    vfu_fixture_teardown(&f);
}

static void test_reset(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_fixture_enable_bus_master(&f);
    vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 0, 4, 1);
    g_assert_cmpint(vfu_client_call(f.client, VFU_DEVICE_RESET, NULL, 0, NULL, 0), ==, 0);
    g_assert_cmpuint(f.fake->resets, ==, 1);
    g_assert_cmphex(vfu_client_read(f.client, VFU_REGION_CONFIG, 4, 2), ==, 0);
    g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0);
    vfu_fixture_teardown(&f);
}

/* Commands sent in one piece, cut anywhere, are the same commands. */
static void test_any_framing(void)
{
    VfuFixture f;
    g_autoptr(GByteArray) stream = g_byte_array_new();

    for (unsigned i = 0; i < 8; i++) {
        VfuRegionAccessMsg access = {.offset = 4 * i, .region = FAKE_PCI_MEM_BAR, .count = 4};
        VfuHeader header = {.id = i,
                            .command = VFU_REGION_WRITE,
                            .size = sizeof header + sizeof access + 4,
                            .flags = VFU_NO_REPLY};
        uint32_t value = 0x1000 + i;
        g_byte_array_append(stream, (uint8_t *)&header, sizeof header);
        g_byte_array_append(stream, (uint8_t *)&access, sizeof access);
        g_byte_array_append(stream, (uint8_t *)&value, sizeof value);
    }
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned piece = 1; piece <= stream->len; piece += 1 + piece / 4) {
        memset(f.fake->mem, 0, sizeof f.fake->mem);
        for (unsigned at = 0; at < stream->len; at += piece) {
            vfu_client_send_raw(f.client, stream->data + at, MIN(piece, stream->len - at), NULL, 0);
            while (g_main_context_iteration(NULL, FALSE)) {
            }
        }
        for (unsigned i = 0; i < 8; i++) {
            g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 4 * i, 4), ==, 0x1000 + i);
        }
    }
    vfu_fixture_teardown(&f);
}

/* A client that does not read its answers is not read from for ever, loses none, and costs no endless memory.
 */
static void test_answers_unread(void)
{
    enum { COUNT = 20000 };
    VfuFixture f;
    VfuRegionAccessMsg access = {.region = FAKE_PCI_MEM_BAR, .count = 8};
    uint16_t last = 0;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < COUNT; i++) {
        access.offset = 8 * (i % 512);
        last = vfu_client_send(f.client, VFU_REGION_READ, 0, &access, sizeof access, NULL, 0);
        if (i % 16 == 0) {
            g_main_context_iteration(NULL, FALSE);
        }
    }
    g_assert_cmpint(vfu_client_await(f.client, last, NULL, 0), ==, sizeof access + 8);
    g_assert_cmpuint(f.fake->log->len, ==, COUNT);
    vfu_fixture_teardown(&f);
}

/* Everything that waits in the socket is answered in one turn with one sendmsg. */
static void test_answers_leave_together(void)
{
    enum { COUNT = 20 };
    VfuFixture f;
    VfuRegionAccessMsg access = {.region = FAKE_PCI_MEM_BAR, .count = 4};
    VfuStats before, after;
    uint16_t last = 0;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_settle(f.client);
    vfu_server_get_stats(f.server, &before);
    for (unsigned i = 0; i < COUNT; i++) {
        last = vfu_client_send(f.client, VFU_REGION_READ, 0, &access, sizeof access, NULL, 0);
    }
    vfu_client_await(f.client, last, NULL, 0);
    vfu_server_get_stats(f.server, &after);
    g_assert_cmpuint(after.commands - before.commands, ==, COUNT);
    g_assert_cmpuint(after.receives - before.receives, ==, 1);
    g_assert_cmpuint(after.sends - before.sends, ==, 1);
    vfu_fixture_teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *name = g_strdup_printf("/vfu-protocol/version/%s", versions[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_version);
    }
    g_test_add_func("/vfu-protocol/device-info", test_device_info);
    g_test_add_func("/vfu-protocol/region-info", test_region_info);
    g_test_add_func("/vfu-protocol/irq-info", test_irq_info);
    g_test_add_func("/vfu-protocol/region-io-fds-refused", test_region_io_fds);
    g_test_add_func("/vfu-protocol/register-access", test_register_access);
    g_test_add_func("/vfu-protocol/odd-sizes", test_odd_sizes);
    g_test_add_func("/vfu-protocol/config-space", test_config_space);
    g_test_add_func("/vfu-protocol/posted-writes", test_posted_writes);
    g_test_add_func("/vfu-protocol/write-multi", test_write_multi);
    g_test_add_func("/vfu-protocol/reset", test_reset);
    g_test_add_func("/vfu-protocol/any-framing", test_any_framing);
    g_test_add_func("/vfu-protocol/answers-unread", test_answers_unread);
    g_test_add_func("/vfu-protocol/answers-leave-together", test_answers_leave_together);
    return g_test_run();
}
