/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: messages that no honest client sends. Each is answered with an error, and the connection goes
 * on; or the connection is closed, and the next client is served. No descriptor is left open either way.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hw/remote/vfu-int.h"
#include "tests/lib/vfu-fixture.h"

#define RAM UINT64_C(0x100000)

/* Headers: the stream cannot be trusted any more. */

static const struct {
    const char *name;
    VfuHeader header;
    unsigned bytes; /* sent behind it */
} headers[] = {
    {"size-0", {.command = VFU_DEVICE_RESET, .size = 0}, 0},
    {"size-15", {.command = VFU_DEVICE_RESET, .size = 15}, 0},
    {"size-huge", {.command = VFU_REGION_WRITE, .size = UINT32_MAX}, 0},
    {"size-over-the-limit", {.command = VFU_REGION_WRITE, .size = VFU_MAX_MESSAGE + 1}, 0},
    {"type-2", {.command = VFU_DEVICE_RESET, .size = 16, .flags = 2}, 0},
    {"type-15", {.command = VFU_DEVICE_RESET, .size = 16, .flags = 15}, 0},
    {"reply-to-nothing", {.command = VFU_DMA_READ, .size = 16, .flags = VFU_TYPE_REPLY}, 0},
    {"reply-to-no-write", {.command = VFU_DMA_WRITE, .size = 16, .flags = VFU_TYPE_REPLY}, 0},
    {"reply-of-a-command", {.command = VFU_REGION_READ, .size = 64, .flags = VFU_TYPE_REPLY}, 48},
    {"error-reply-to-no-read", {.command = VFU_DMA_READ, .size = 16, .flags = VFU_TYPE_REPLY | VFU_ERROR}, 0},
};

static void test_header(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    uint8_t message[64] = {0};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    memcpy(message, &headers[i].header, sizeof headers[i].header);
    vfu_client_send_raw(f.client, message, sizeof(VfuHeader) + headers[i].bytes, NULL, 0);
    g_assert_true(vfu_client_is_closed(f.client, true));
    vfu_fixture_reconnect(&f);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

/* The refusal of a posted write is the one reply that may come unasked. */
static void test_unasked_write_error(void)
{
    VfuHeader header = {.id = 999, .command = VFU_DMA_WRITE, .size = 16, .flags = VFU_TYPE_REPLY | VFU_ERROR};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_send_raw(f.client, &header, sizeof header, NULL, 0);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

/* Payloads: each command one byte short, one long, empty, and with descriptors it has no use for. */

static const struct {
    unsigned command;
    unsigned size;
    bool longer; /* may be longer than that */
} payloads[] = {
    {VFU_DMA_MAP, sizeof(VfuDmaMapMsg), false},
    {VFU_DMA_UNMAP, sizeof(VfuDmaUnmapMsg), false},
    {VFU_DEVICE_GET_INFO, sizeof(VfuDeviceInfoMsg), false},
    {VFU_DEVICE_GET_REGION_INFO, sizeof(VfuRegionInfoMsg), false},
    {VFU_DEVICE_GET_REGION_IO_FDS, sizeof(VfuRegionIoFdsMsg), false},
    {VFU_DEVICE_GET_IRQ_INFO, sizeof(VfuIrqInfoMsg), false},
    {VFU_DEVICE_SET_IRQS, sizeof(VfuIrqSetMsg), true},
    {VFU_REGION_READ, sizeof(VfuRegionAccessMsg), false},
    {VFU_REGION_WRITE, sizeof(VfuRegionAccessMsg), true},
    {VFU_DEVICE_RESET, 0, false},
    {VFU_REGION_WRITE_MULTI, sizeof(VfuWriteMultiMsg), true},
};

static int call_with_fds(VfuFixture *f, unsigned command, const void *payload, size_t size, unsigned n_fds)
{
    int fds[32] = {0};

    for (unsigned i = 0; i < n_fds; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
    }
    uint16_t id = vfu_client_send(f->client, command, 0, payload, size, fds, n_fds);
    for (unsigned i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
    return vfu_client_await(f->client, id, NULL, 0);
}

static void test_payload_sizes(void)
{
    VfuFixture f;
    uint8_t zeros[4096] = {0}, ones[4096];

    memset(ones, 0xff, sizeof ones);
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(payloads); i++) {
        unsigned size = payloads[i].size, command = payloads[i].command;
        for (unsigned bytes = 0; bytes < size; bytes++) {
            g_assert_cmpint(call_with_fds(&f, command, zeros, bytes, 0), ==, -EINVAL);
            g_assert_cmpint(call_with_fds(&f, command, ones, bytes, 0), ==, -EINVAL);
        }
        g_assert_cmpint(call_with_fds(&f, command, zeros, size + 1, 0), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, command, ones, sizeof ones, 0), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, command, zeros, sizeof zeros, 0), ==, -EINVAL);
        if (size &&
            command != VFU_DEVICE_GET_INFO) { /* which has no field that could be wrong by being large */
            g_assert_cmpint(call_with_fds(&f, command, ones, size, 0), ==, -EINVAL);
        }
        g_assert_cmpint(call_with_fds(&f, command, zeros, size, 1), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, command, zeros, size, 16), ==, -EINVAL);
        vfu_fixture_check_alive(&f);
    }
    g_assert_cmpuint(f.fake->resets, ==, 0);
    vfu_fixture_teardown(&f);
}

static void test_unknown_commands(void)
{
    static const struct {
        unsigned command;
        int error;
    } rows[] = {{0, -ENOTSUP},
                {VFU_VERSION, -EINVAL}, /* a second one */
                {VFU_DMA_READ, -ENOTSUP},
                {VFU_DMA_WRITE, -ENOTSUP},
                {14, -ENOTSUP},
                {VFU_DEVICE_FEATURE, -ENOTSUP},
                {VFU_MIG_DATA_READ, -ENOTSUP},
                {VFU_MIG_DATA_WRITE, -ENOTSUP},
                {19, -ENOTSUP},
                {0xffff, -ENOTSUP}};
    VfuFixture f;
    uint8_t payload[64] = {0};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(call_with_fds(&f, rows[i].command, payload, sizeof payload, i % 2), ==,
                        rows[i].error);
    }
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

static void test_command_flags(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (uint32_t flag = VFU_ERROR; flag; flag <<= 1) {
        uint16_t id = vfu_client_send(f.client, VFU_DEVICE_RESET, flag, NULL, 0, NULL, 0);
        g_assert_cmpint(vfu_client_await(f.client, id, NULL, 0), ==, -EINVAL);
    }
    g_assert_cmpuint(f.fake->resets, ==, 0);
    vfu_fixture_teardown(&f);
}

/* A posted command is never answered, not even if it is wrong. */
static void test_posted_and_wrong(void)
{
    VfuFixture f;
    VfuRegionAccessMsg access = {.offset = UINT64_MAX, .region = 99, .count = 4};
    uint8_t message[sizeof access + 4] = {0};
    uint8_t nothing;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    memcpy(message, &access, sizeof access);
    for (unsigned command = 0; command < 40; command++) {
        vfu_client_send(f.client, command, VFU_NO_REPLY, message, sizeof message, NULL, 0);
    }
    vfu_fixture_check_alive(&f);
    vfu_client_settle(f.client);
    /* ids 1 to 40 were those; their replies would be waiting */
    for (uint16_t id = 1; id <= 40; id++) {
        uint16_t probe = vfu_client_send(f.client, VFU_DEVICE_RESET, 0, NULL, 0, NULL, 0);
        g_assert_cmpint(vfu_client_await(f.client, probe, &nothing, 0), ==, 0);
    }
    vfu_fixture_teardown(&f);
}

static const struct {
    const char *name;
    uint32_t region, count;
    uint64_t offset;
} accesses[] = {
    {"region-9", 9, 4, 0},
    {"region-huge", UINT32_MAX, 4, 0},
    {"region-absent", 0, 4, 0},
    {"rom-absent", VFU_REGION_ROM, 4, 0},
    {"vga-absent", VFU_REGION_VGA, 4, 0},
    {"count-0", FAKE_PCI_MEM_BAR, 0, 0},
    {"offset-at-the-end", FAKE_PCI_MEM_BAR, 1, FAKE_PCI_MEM_SIZE},
    {"over-the-end", FAKE_PCI_MEM_BAR, 8, FAKE_PCI_MEM_SIZE - 4},
    {"offset-wraps", FAKE_PCI_MEM_BAR, 8, UINT64_MAX - 3},
    {"offset-huge", FAKE_PCI_MEM_BAR, 4, UINT64_C(1) << 63},
    {"count-beyond-the-region", FAKE_PCI_MEM_BAR, FAKE_PCI_MEM_SIZE + 1, 0},
    {"count-huge", FAKE_PCI_MEM_BAR, UINT32_MAX, 0},
    {"config-over-the-end", VFU_REGION_CONFIG, 4, 253},
    {"config-beyond", VFU_REGION_CONFIG, 4, 256},
    {"io-over-the-end", FAKE_PCI_IO_BAR, 4, FAKE_PCI_IO_SIZE - 2},
};

static void test_region_access(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuRegionAccessMsg access = {
        .offset = accesses[i].offset, .region = accesses[i].region, .count = accesses[i].count};
    uint32_t bytes = MIN(access.count, 2 * FAKE_PCI_MEM_SIZE);
    g_autofree uint8_t *message = g_malloc0(sizeof access + bytes);
    uint8_t multi[sizeof(VfuWriteMultiMsg) + 2 * sizeof(VfuWriteOne)] = {2};
    VfuWriteOne good = {.offset = 16, .region = FAKE_PCI_MEM_BAR, .count = 1, .data = {0xee}};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_READ, &access, sizeof access, NULL, 0), ==, -EINVAL);
    memcpy(message, &access, sizeof access);
    g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE, message, sizeof access + bytes, NULL, 0), ==,
                    -EINVAL);
    /* the same as the second of two writes: the first is not done either */
    memcpy(multi + sizeof(VfuWriteMultiMsg), &good, sizeof good);
    memcpy(multi + sizeof(VfuWriteMultiMsg) + sizeof good, &access, sizeof access);
    g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE_MULTI, multi, sizeof multi, NULL, 0), ==,
                    -EINVAL);
    g_assert_cmpuint(f.fake->log->len, ==, 0);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
}

static void test_write_data_size(void)
{
    VfuRegionAccessMsg access = {.region = FAKE_PCI_MEM_BAR, .count = 4};
    uint8_t message[sizeof access + 8] = {0};
    VfuFixture f;

    memcpy(message, &access, sizeof access);
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned bytes = 0; bytes <= 8; bytes++) {
        g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE, message, sizeof access + bytes, NULL, 0),
                        ==, bytes == 4 ? (int)sizeof access : -EINVAL);
    }
    vfu_fixture_teardown(&f);
}

static void test_multi_count(void)
{
    static const uint64_t counts[] = {
        0, 2, 3, UINT32_MAX, UINT64_MAX, UINT64_MAX / 24 + 1, UINT64_C(1) << 61};
    uint8_t message[sizeof(VfuWriteMultiMsg) + sizeof(VfuWriteOne)] = {0};
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        memcpy(message, &counts[i], sizeof counts[i]);
        g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE_MULTI, message, sizeof message, NULL, 0),
                        ==, -EINVAL);
    }
    /* none at all is fine */
    g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE_MULTI, &counts[0], 8, NULL, 0), ==, 8);
    vfu_fixture_teardown(&f);
}

static void test_info_requests(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (uint32_t argsz = 0; argsz < 32; argsz++) {
        VfuRegionInfoMsg region = {.argsz = argsz};
        VfuDeviceInfoMsg device = {.argsz = argsz / 2};
        VfuIrqInfoMsg irq = {.argsz = argsz / 2};
        VfuDmaUnmapMsg unmap = {.argsz = MIN(argsz, 23), .flags = VFU_DMA_UNMAP_ALL};
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_REGION_INFO, &region, sizeof region, 0), ==,
                        -EINVAL);
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_INFO, &device, sizeof device, 0), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_IRQ_INFO, &irq, sizeof irq, 0), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, VFU_DMA_UNMAP, &unmap, sizeof unmap, 0), ==, -EINVAL);
    }
    for (uint32_t index = 9; index; index = index * 2 + 1) {
        VfuRegionInfoMsg region = {.argsz = sizeof region, .index = index};
        VfuRegionIoFdsMsg fds = {.argsz = sizeof fds, .index = index};
        VfuIrqInfoMsg irq = {.argsz = sizeof irq, .index = index};
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_REGION_INFO, &region, sizeof region, 0), ==,
                        -EINVAL);
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_REGION_IO_FDS, &fds, sizeof fds, 0), ==, -EINVAL);
        g_assert_cmpint(call_with_fds(&f, VFU_DEVICE_GET_IRQ_INFO, &irq, sizeof irq, 0), ==, -EINVAL);
        if (index == UINT32_MAX) {
            break;
        }
    }
    vfu_fixture_teardown(&f);
}

/* Descriptors */

/* They belong to the last message of what one recvmsg returns: posted writes may precede it. */
static void test_fds_behind_other_messages(void)
{
    VfuFixture f;
    VfuDmaMapMsg map = {.argsz = sizeof map, .flags = 3, .address = RAM, .size = 0x1000};
    int fd = vfu_fixture_file(VFU_FILE_MEMFD);

    vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
    vfu_fixture_enable_bus_master(&f);
    vfu_client_settle(f.client);
    for (unsigned i = 0; i < 5; i++) {
        vfu_client_post(f.client, FAKE_PCI_MEM_BAR, 4 * i, 4, i);
    }
    uint16_t first = vfu_client_send(f.client, VFU_DMA_MAP, 0, &map, sizeof map, &fd, 1);
    map.address += 0x1000;
    uint16_t second = vfu_client_send(f.client, VFU_DMA_MAP, 0, &map, sizeof map, &fd, 1);
    map.address += 0x1000;
    uint16_t third = vfu_client_send(f.client, VFU_DMA_MAP, 0, &map, sizeof map, NULL, 0);
    g_assert_cmpint(vfu_client_await(f.client, first, NULL, 0), ==, 0);
    g_assert_cmpint(vfu_client_await(f.client, second, NULL, 0), ==, 0);
    g_assert_cmpint(vfu_client_await(f.client, third, NULL, 0), ==, 0);
    for (unsigned i = 0; i < 3; i++) {
        PciHost *host = f.fake->pci.host;
        g_assert_cmpint(host->ops->dma_map_write(host, RAM + i * 0x1000, 4) == NULL, ==,
                        true); /* not sealed, or no descriptor: never written directly */
        PciDmaRead read = {.addr = RAM + i * 0x1000, .len = 4, .buf = &read.seq};
        uint32_t value;
        read.buf = &value;
        g_assert_cmpint(host->ops->dma_read(host, &read), ==, i < 2 ? 0 : -EINPROGRESS);
        host->ops->dma_read_cancel(host, &read);
    }
    vfu_fixture_teardown(&f);
    close(fd);
}

/* A message cut in two with the descriptors on the first part, and another behind it. */
static void test_fds_on_a_cut_message(void)
{
    for (unsigned cut = 1; cut < sizeof(VfuHeader) + sizeof(VfuDmaMapMsg); cut++) {
        VfuFixture f;
        struct {
            VfuHeader header;
            VfuDmaMapMsg map;
            VfuHeader reset;
        } m = {.header = {.id = 500, .command = VFU_DMA_MAP, .size = sizeof m.header + sizeof m.map},
               .map = {.argsz = sizeof m.map, .flags = 7, .address = RAM, .size = 0x1000},
               .reset = {.id = 501, .command = VFU_DEVICE_RESET, .size = sizeof m.reset}};
        int fd = vfu_fixture_file(VFU_FILE_MEMFD);

        vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
        vfu_client_send_raw(f.client, &m, cut, &fd, 1);
        if (cut % 2) {
            vfu_client_settle(f.client);
        }
        vfu_client_send_raw(f.client, (char *)&m + cut, sizeof m - cut, NULL, 0);
        g_assert_cmpint(vfu_client_await(f.client, 500, NULL, 0), ==, 0);
        g_assert_cmpint(vfu_client_await(f.client, 501, NULL, 0), ==, 0);
        vfu_fixture_teardown(&f);
        close(fd);
    }
}

/* More than one message may carry, or piled up on one that never ends. */
static void test_too_many_fds(void)
{
    for (unsigned way = 0; way < 2; way++) {
        VfuFixture f;
        VfuHeader header = {.command = VFU_REGION_WRITE, .size = 1000};
        int fds[17];
        uint8_t byte = 0;

        for (unsigned i = 0; i < 17; i++) {
            fds[i] = eventfd(0, EFD_CLOEXEC);
        }
        vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
        vfu_client_send_raw(f.client, &header, sizeof header, fds, way ? 1 : 17);
        for (unsigned i = 0; way && i < 20; i++) {
            vfu_client_send_raw(f.client, &byte, 1, fds, 1);
        }
        g_assert_true(vfu_client_is_closed(f.client, true));
        vfu_fixture_teardown(&f);
        for (unsigned i = 0; i < 17; i++) {
            close(fds[i]);
        }
    }
}

/* The client goes in the middle of a message that carries a descriptor. */
static void test_cut_and_gone(void)
{
    VfuFixture f;
    VfuHeader header = {.command = VFU_DMA_MAP, .size = sizeof header + sizeof(VfuDmaMapMsg)};
    int fd = vfu_fixture_file(VFU_FILE_MEMFD);

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_send_raw(f.client, &header, sizeof header, &fd, 1);
    vfu_client_settle(f.client);
    vfu_fixture_reconnect(&f);
    vfu_fixture_check_alive(&f);
    vfu_fixture_teardown(&f);
    close(fd);
}

/* The largest message there may be is taken whole (and refused: no region is that large). */
static void test_largest_message(void)
{
    VfuFixture f;
    size_t bytes = VFU_MAX_MESSAGE - sizeof(VfuHeader);
    g_autofree uint8_t *message = g_malloc0(bytes);
    VfuRegionAccessMsg access = {.region = FAKE_PCI_MEM_BAR, .count = bytes - sizeof access};

    memcpy(message, &access, sizeof access);
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(vfu_client_call(f.client, VFU_REGION_WRITE, message, bytes, NULL, 0), ==, -EINVAL);
        vfu_fixture_check_alive(&f);
    }
    vfu_fixture_teardown(&f);
}

/* Bytes without sense, many kinds; whatever happens, the next client is served. The seed is GLib's --seed. */
static void test_noise(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned n = 0; n < 20 && !vfu_client_is_closed(f.client, false); n++) {
            uint8_t message[256];
            unsigned size = g_test_rand_int_range(16, sizeof message);
            for (unsigned i = 0; i < size; i++) {
                message[i] =
                    g_test_rand_int_range(0, 4) ? g_test_rand_int_range(0, 8) : g_test_rand_int_range(0, 256);
            }
            VfuHeader header = {.id = n,
                                .command = g_test_rand_int_range(0, 20),
                                .size = g_test_rand_int_range(0, 50) ? size : size / 2,
                                .flags = g_test_rand_int_range(0, 50) ? 0 : 1};
            memcpy(message, &header, sizeof header);
            vfu_client_send_raw(f.client, message, size, NULL, 0);
        }
        vfu_fixture_reconnect(&f);
        vfu_fixture_check_alive(&f);
    }
    vfu_fixture_teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed", headers, "header", test_header);
    VFU_FIXTURE_ADD_ROWS("vfu-malformed", accesses, "region-access", test_region_access);
    g_test_add_func("/vfu-malformed/unasked-write-error", test_unasked_write_error);
    g_test_add_func("/vfu-malformed/payload-sizes", test_payload_sizes);
    g_test_add_func("/vfu-malformed/unknown-commands", test_unknown_commands);
    g_test_add_func("/vfu-malformed/command-flags", test_command_flags);
    g_test_add_func("/vfu-malformed/posted-and-wrong", test_posted_and_wrong);
    g_test_add_func("/vfu-malformed/write-data-size", test_write_data_size);
    g_test_add_func("/vfu-malformed/multi-count", test_multi_count);
    g_test_add_func("/vfu-malformed/info-requests", test_info_requests);
    g_test_add_func("/vfu-malformed/fds-behind-other-messages", test_fds_behind_other_messages);
    g_test_add_func("/vfu-malformed/fds-on-a-cut-message", test_fds_on_a_cut_message);
    g_test_add_func("/vfu-malformed/too-many-fds", test_too_many_fds);
    g_test_add_func("/vfu-malformed/cut-and-gone", test_cut_and_gone);
    g_test_add_func("/vfu-malformed/largest-message", test_largest_message);
    g_test_add_func("/vfu-malformed/noise", test_noise);
    return g_test_run();
}
