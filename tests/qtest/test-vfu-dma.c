/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: the DMA services, both ways: data, order, fences, refusals, what a client can do to them.
 */
#include <errno.h>
#include <string.h>
#include "tests/lib/vfu-fixture.h"

#define RAM  UINT64_C(0x100000)
#define SIZE UINT64_C(0x400000)

typedef struct Wait {
    PciFence fence;
    PciDmaRead read;
    unsigned fences, reads;
    int result;
    bool done;
} Wait;

static void wait_fence_done(PciFence *fence)
{
    Wait *w = (Wait *)fence;
    w->fences++;
    w->done = true;
}

static void wait_read_done(PciDmaRead *read, int result)
{
    Wait *w = (Wait *)((char *)read - offsetof(Wait, read));
    w->reads++;
    w->result = result;
    w->done = true;
}

static void wait_init(Wait *w)
{
    memset(w, 0, sizeof *w);
    w->fence.done = wait_fence_done;
    w->read.done = wait_read_done;
}

static const PciHostOps *ops(VfuFixture *f)
{
    return f->fake->pci.host->ops;
}

static PciHost *host(VfuFixture *f)
{
    return f->fake->pci.host;
}

static void fence(VfuFixture *f, Wait *w)
{
    w->done = false;
    ops(f)->fence(host(f), &w->fence);
}

static Buffer *pattern(size_t size, unsigned seed)
{
    Buffer *buffer = buffer_new(size, 4096);
    for (size_t i = 0; i < size; i++) {
        buffer->data[i] = (i * 2654435761u + seed) >> 11;
    }
    return buffer;
}

static void setup(VfuFixture *f, VfuDmaMode mode, VfuClientRam kind)
{
    vfu_fixture_setup(f, mode, true);
    vfu_fixture_enable_bus_master(f);
    vfu_client_add_ram(f->client, RAM, SIZE, kind);
}

static const struct {
    const char *name;
    VfuDmaMode mode;
    VfuClientRam kind;
    bool read_by_message, write_by_message, direct;
} ways[] = {
    {"mmap-sealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_SEALED, false, false, true},
    {"mmap-unsealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_UNSEALED, false, false, false},
    {"mmap-no-fd", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_NO_FD, true, true, false},
    {"message-sealed", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED, false, true, false},
    {"message-unsealed", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_UNSEALED, false, true, false},
    {"message-no-fd", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD, true, true, false},
};

/* Whatever is written has landed when the fence is done: one write, many, odd addresses, all sizes. */
static void test_write(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    static const size_t sizes[] = {1, 2, 511, 4096, 32768, 131072, 200001, 1048576};
    VfuFixture f;
    Wait w;
    unsigned n;

    setup(&f, ways[way].mode, ways[way].kind);
    wait_init(&w);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(Buffer) buffer = pattern(sizes[i] + 3, i);
        uint64_t address = RAM + 0x1001 * i;
        ops(&f)->dma_write(host(&f), address, buffer, 3, sizes[i]);
        ops(&f)->dma_write_small(host(&f), RAM + SIZE - 8, &i, sizeof i);
        fence(&f, &w);
        g_assert_cmpint(w.done, ==, !ways[way].write_by_message);
        vfu_client_wait_until(f.client, &w.done);
        g_assert_false(w.fence.fault);
        g_assert_cmpmem(vfu_client_ram(f.client, address), sizes[i], buffer->data + 3, sizes[i]);
        g_assert_cmpmem(vfu_client_ram(f.client, RAM + SIZE - 8), sizeof i, &i, sizeof i);
        g_assert_cmpint(buffer->refs, ==, 1);
    }
    g_assert_cmpuint(w.fences, ==, G_N_ELEMENTS(sizes));
    vfu_client_dma_log(f.client, &n);
    g_assert_cmpint(n > 0, ==, ways[way].write_by_message);
    vfu_fixture_teardown(&f);
}

static void test_read(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    static const uint32_t sizes[] = {1, 16, 4096, 65537, 1048576};
    VfuFixture f;
    Wait w;

    setup(&f, ways[way].mode, ways[way].kind);
    g_autoptr(Buffer) memory = pattern(SIZE, 9), got = buffer_new(1048576, 4096);
    memcpy(vfu_client_ram(f.client, RAM), memory->data, SIZE);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        wait_init(&w);
        w.read.addr = RAM + 5 + i * 0x1000;
        w.read.buf = got->data;
        w.read.len = sizes[i];
        int ret = ops(&f)->dma_read(host(&f), &w.read);
        g_assert_cmpint(ret, ==, ways[way].read_by_message ? -EINPROGRESS : 0);
        if (ret == -EINPROGRESS) {
            g_assert_false(w.done);
            vfu_client_wait_until(f.client, &w.done);
            g_assert_cmpint(w.result, ==, 0);
        }
        vfu_client_settle(f.client);
        g_assert_cmpuint(w.reads, ==, ways[way].read_by_message ? 1 : 0);
        g_assert_cmpmem(got->data, sizes[i], memory->data + 5 + i * 0x1000, sizes[i]);
    }
    vfu_fixture_teardown(&f);
}

static void test_map_write(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    VfuFixture f;

    setup(&f, ways[way].mode, ways[way].kind);
    uint8_t *p = ops(&f)->dma_map_write(host(&f), RAM + 100, 1000);
    g_assert_cmpint(p != NULL, ==, ways[way].direct);
    if (p) {
        memset(p, 0x77, 1000);
        g_assert_cmphex(*vfu_client_ram(f.client, RAM + 1099), ==, 0x77);
        g_assert_cmphex(*vfu_client_ram(f.client, RAM + 1100), ==, 0);
        g_assert_null(ops(&f)->dma_map_write(host(&f), RAM + SIZE - 10, 11));
        g_assert_null(ops(&f)->dma_map_write(host(&f), RAM - 1, 2));
        g_assert_null(ops(&f)->dma_map_write(host(&f), UINT64_MAX, 2));
    }
    vfu_fixture_teardown(&f);
}

/* Ranges that are not all memory are refused as a whole: nothing is written, the fence tells. */
static void test_refused(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    static const struct {
        uint64_t address;
        uint32_t bytes;
    } rows[] = {{RAM - 1, 1},       {RAM - 4, 8},        {RAM + SIZE, 4}, {RAM + SIZE - 4, 8},
                {UINT64_MAX, 1},    {UINT64_MAX - 1, 8}, {0, 4},          {UINT64_C(0xfee00000), 4},
                {RAM + SIZE / 2, 0}};
    VfuFixture f;
    g_autoptr(Buffer) buffer = pattern(4096, 1);
    uint8_t got[16];
    Wait w;
    unsigned n;

    setup(&f, ways[way].mode, ways[way].kind);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        wait_init(&w);
        w.read.addr = rows[i].address;
        w.read.len = rows[i].bytes;
        w.read.buf = got;
        g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EFAULT);
        ops(&f)->dma_write(host(&f), rows[i].address, buffer, 0, rows[i].bytes);
        fence(&f, &w);
        g_assert_true(w.done);
        g_assert_cmpint(w.fence.fault, ==, rows[i].bytes != 0);
        fence(&f, &w);
        g_assert_false(w.fence.fault); /* once only */
    }
    vfu_client_settle(f.client);
    vfu_client_dma_log(f.client, &n);
    g_assert_cmpuint(n, ==, 0);
    vfu_fixture_teardown(&f);
}

static void test_bus_master_off(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    uint32_t value = 1;
    Wait w;

    setup(&f, ways[way].mode, ways[way].kind);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 4, 2, 2);
    wait_init(&w);
    w.read.addr = RAM;
    w.read.len = 4;
    w.read.buf = &value;
    g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EFAULT);
    g_assert_null(ops(&f)->dma_map_write(host(&f), RAM, 4));
    ops(&f)->dma_write_small(host(&f), RAM, &value, 4);
    fence(&f, &w);
    g_assert_true(w.done && w.fence.fault);
    g_assert_cmpuint(*vfu_client_ram(f.client, RAM), ==, 0);
    vfu_fixture_teardown(&f);
}

/* LP1911075 and its kind: the controller pointed at its own registers. */
static void test_own_bar(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    uint32_t value = 1;
    Wait w;

    setup(&f, ways[way].mode, ways[way].kind);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 0x24, 4, RAM + 0x2000);
    for (uint64_t address = RAM + 0x2000 - 3; address <= RAM + 0x3000; address += 0xfff) {
        bool inside = address < RAM + 0x3000;
        wait_init(&w);
        w.read.addr = address;
        w.read.len = 4;
        w.read.buf = &value;
        int ret = ops(&f)->dma_read(host(&f), &w.read);
        g_assert_cmpint(ret == -EFAULT, ==, inside);
        ops(&f)->dma_write_small(host(&f), address, &value, 4);
        g_assert_true(!inside || ops(&f)->dma_map_write(host(&f), address, 4) == NULL);
        fence(&f, &w);
        vfu_client_settle(f.client);
        g_assert_cmpint(w.fence.fault, ==, inside);
    }
    g_assert_cmpuint(f.fake->log->len, ==, 0);
    vfu_fixture_teardown(&f);
}

/* A range over two adjoining maps, as QEMU makes of RAM around its PAM regions. */
static void test_adjoining_maps(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    Wait w;
    g_autoptr(Buffer) buffer = pattern(0x3000, 4), got = buffer_new(0x3000, 4096);

    setup(&f, ways[way].mode, ways[way].kind);
    vfu_client_add_ram(f.client, RAM + SIZE + 0x1000, 0x1000, ways[way].kind);
    vfu_client_add_ram(f.client, RAM + SIZE, 0x1000, VFU_CLIENT_RAM_SEALED);
    wait_init(&w);
    for (unsigned i = 0; i < 3; i++) {
        ops(&f)->dma_write(host(&f), RAM + SIZE - 0x1000 + i * 0x1000, buffer, i * 0x1000, 0x1000);
    }
    fence(&f, &w);
    vfu_client_wait_until(f.client, &w.done);
    g_assert_false(w.fence.fault);
    w.done = false;
    w.read.addr = RAM + SIZE - 0x1000;
    w.read.len = 0x3000;
    w.read.buf = got->data;
    if (ops(&f)->dma_read(host(&f), &w.read) == -EINPROGRESS) {
        vfu_client_wait_until(f.client, &w.done);
        g_assert_cmpint(w.result, ==, 0);
    }
    g_assert_cmpmem(got->data, 0x3000, buffer->data, 0x3000);
    vfu_fixture_teardown(&f);
}

/* Only the write before a fence asks for a reply; the rest are posted, and all leave in few calls. */
static void test_one_reply_per_fence(void)
{
    enum { COUNT = 40 };
    VfuFixture f;
    g_autoptr(Buffer) buffer = pattern(COUNT * 512, 2);
    Wait w;
    unsigned n;
    VfuStats before, after;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
    wait_init(&w);
    vfu_server_get_stats(f.server, &before);
    for (unsigned i = 0; i < COUNT; i++) {
        ops(&f)->dma_write(host(&f), RAM + i * 0x1000, buffer, i * 512, 512);
    }
    fence(&f, &w);
    vfu_client_wait_until(f.client, &w.done);
    vfu_server_get_stats(f.server, &after);
    const VfuClientDma *log = vfu_client_dma_log(f.client, &n);
    g_assert_cmpuint(n, ==, COUNT);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmphex(log[i].address, ==, RAM + i * 0x1000);
        g_assert_cmpint(log[i].posted, ==, i + 1 < COUNT);
    }
    g_assert_cmpuint(after.sends - before.sends, ==, 1);
    vfu_fixture_teardown(&f);
}

/* A fence asked for when the writes are on the wire already still ends; so do several at a time, oldest
 * first. */
static void test_late_fences(void)
{
    VfuFixture f;
    Wait w[3];

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
    vfu_client_hold_dma(f.client, true);
    for (uint32_t i = 0; i < 3; i++) {
        wait_init(&w[i]);
        ops(&f)->dma_write_small(host(&f), RAM + 4 * i, &i, 4);
        vfu_client_settle(f.client);
        fence(&f, &w[i]);
        vfu_client_settle(f.client);
        g_assert_false(w[i].done);
    }
    ops(&f)->fence_cancel(host(&f), &w[1].fence);
    vfu_client_hold_dma(f.client, false);
    vfu_client_wait_until(f.client, &w[2].done);
    g_assert_true(w[0].done);
    vfu_client_settle(f.client);
    g_assert_cmpuint(w[1].fences, ==, 0);
    vfu_fixture_teardown(&f);
}

/* A write that the client fails, posted or not, marks the fence after it and no other. */
static void test_client_fails_write(void)
{
    VfuFixture f;
    Wait w;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
    for (unsigned failing = 0; failing < 4; failing++) {
        wait_init(&w);
        vfu_client_fail_dma_at(f.client, RAM + 4 * failing);
        for (uint32_t i = 0; i < 3; i++) {
            ops(&f)->dma_write_small(host(&f), RAM + 4 * i, &i, 4);
        }
        fence(&f, &w);
        vfu_client_wait_until(f.client, &w.done);
        g_assert_cmpint(w.fence.fault, ==, failing < 3);
    }
    g_assert_true(vfu_server_is_connected(f.server));
    vfu_fixture_teardown(&f);
}

static void test_client_fails_read(void)
{
    VfuFixture f;
    Wait w;
    uint8_t got[64];

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD);
    for (unsigned shorter = 0; shorter < 2; shorter++) {
        wait_init(&w);
        w.read = (PciDmaRead){.addr = RAM, .buf = got, .len = sizeof got, .done = wait_read_done};
        vfu_client_fail_dma_at(f.client, shorter ? UINT64_MAX : RAM + 10);
        vfu_client_shorten_read(f.client, shorter ? 1 : 0);
        g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EINPROGRESS);
        vfu_client_wait_until(f.client, &w.done);
        g_assert_cmpint(w.result, ==, -EFAULT);
        g_assert_cmpuint(w.reads, ==, 1);
    }
    g_assert_true(vfu_server_is_connected(f.server));
    vfu_fixture_teardown(&f);
}

/* The answer to a cancelled read comes to nobody, and its buffer is not touched. */
static void test_read_cancelled(void)
{
    VfuFixture f;
    Wait w;
    uint32_t got = 0x12345678;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD);
    for (unsigned sent = 0; sent < 2; sent++) {
        wait_init(&w);
        w.read = (PciDmaRead){.addr = RAM, .buf = &got, .len = 4, .done = wait_read_done};
        vfu_client_hold_dma(f.client, true);
        g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EINPROGRESS);
        if (sent) {
            vfu_client_settle(f.client);
        }
        ops(&f)->dma_read_cancel(host(&f), &w.read);
        vfu_client_hold_dma(f.client, false);
        vfu_client_settle(f.client);
        g_assert_cmpuint(w.reads, ==, 0);
        g_assert_cmphex(got, ==, 0x12345678);
    }
    vfu_fixture_teardown(&f);
}

/* Registers are answered while the client sits on a DMA request, as QEMU does with its big lock taken. */
static void test_register_while_dma_waits(void)
{
    VfuFixture f;
    g_autoptr(Buffer) buffer = pattern(1048576, 3);
    Wait w;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
    wait_init(&w);
    vfu_client_hold_dma(f.client, true);
    ops(&f)->dma_write(host(&f), RAM, buffer, 0, 1048576);
    fence(&f, &w);
    for (unsigned i = 0; i < 100; i++) {
        vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 4, 4, i);
        g_assert_cmpuint(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 4, 4), ==, i);
    }
    g_assert_false(w.done);
    vfu_client_hold_dma(f.client, false);
    vfu_client_wait_until(f.client, &w.done);
    g_assert_cmpmem(vfu_client_ram(f.client, RAM), 1048576, buffer->data, 1048576);
    vfu_fixture_teardown(&f);
}

/* What is queued and not sent is dropped; a fence from before ends with a fault, later writes go on. */
static void test_drop(void)
{
    VfuFixture f;
    Wait before, after;
    uint32_t one = 1, two = 2;

    for (unsigned on_wire = 0; on_wire < 2; on_wire++) {
        setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
        wait_init(&before);
        wait_init(&after);
        if (on_wire) {
            ops(&f)->dma_write_small(host(&f), RAM + 8, &two, 4);
            vfu_client_settle(f.client);
        }
        ops(&f)->dma_write_small(host(&f), RAM, &one, 4);
        fence(&f, &before);
        ops(&f)->dma_drop(host(&f));
        ops(&f)->dma_write_small(host(&f), RAM + 4, &two, 4);
        fence(&f, &after);
        vfu_client_wait_until(f.client, &after.done);
        g_assert_true(before.done && before.fence.fault);
        g_assert_false(after.fence.fault);
        g_assert_cmpuint(*vfu_client_ram(f.client, RAM), ==, 0);
        g_assert_cmpuint(*vfu_client_ram(f.client, RAM + 4), ==, 2);
        vfu_fixture_teardown(&f);
    }
}

/* The client goes with everything in flight: reads fail, fences end, buffers come back. */
static void test_client_goes(void)
{
    VfuFixture f;
    g_autoptr(Buffer) buffer = pattern(1048576, 3);
    Wait w, r;
    uint32_t got;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD);
    wait_init(&w);
    wait_init(&r);
    vfu_client_hold_dma(f.client, true);
    r.read = (PciDmaRead){.addr = RAM, .buf = &got, .len = 4, .done = wait_read_done};
    g_assert_cmpint(ops(&f)->dma_read(host(&f), &r.read), ==, -EINPROGRESS);
    for (unsigned i = 0; i < 8; i++) {
        ops(&f)->dma_write(host(&f), RAM, buffer, 0, 1048576);
    }
    fence(&f, &w);
    vfu_fixture_reconnect(&f);
    g_assert_true(w.done && r.done);
    g_assert_cmpint(r.result, ==, -EFAULT);
    g_assert_cmpint(buffer->refs, ==, 1);
    g_assert_cmpuint(f.fake->resets, ==, 1);
    wait_init(&w);
    ops(&f)->dma_write(host(&f), RAM, buffer, 0, 4); /* the new client has shown no memory */
    fence(&f, &w);
    g_assert_true(w.done && w.fence.fault);
    vfu_fixture_teardown(&f);
}

/* The file behind guest memory is cut while it is mapped: no SIGBUS, an error. */
static void test_truncated(void)
{
    VfuFixture f;
    Wait w;
    uint8_t got[64] = {0};

    setup(&f, VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_UNSEALED);
    vfu_client_truncate_ram(f.client, RAM, 0x1000);
    wait_init(&w);
    w.read = (PciDmaRead){.addr = RAM + 0x2000, .buf = got, .len = sizeof got, .done = wait_read_done};
    g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EFAULT);
    ops(&f)->dma_write_small(host(&f), RAM + 0x2000, got, sizeof got);
    fence(&f, &w);
    g_assert_true(w.done && w.fence.fault);
    ops(&f)->dma_write_small(host(&f), RAM, got, sizeof got);
    fence(&f, &w);
    g_assert_false(w.fence.fault);
    vfu_fixture_teardown(&f);
}

static void test_unmapped(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    Wait w;
    uint32_t value = 7;

    setup(&f, ways[way].mode, ways[way].kind);
    g_assert_cmpint(vfu_client_remove_ram(f.client, RAM), ==, 0);
    wait_init(&w);
    w.read = (PciDmaRead){.addr = RAM, .buf = &value, .len = 4, .done = wait_read_done};
    g_assert_cmpint(ops(&f)->dma_read(host(&f), &w.read), ==, -EFAULT);
    ops(&f)->dma_write_small(host(&f), RAM, &value, 4);
    fence(&f, &w);
    g_assert_true(w.done && w.fence.fault);
    vfu_fixture_teardown(&f);
}

/* No sendmsg of several messages is longer than one kernel buffer, so that no reader sees a part of a header.
 */
static void test_batches_are_bounded(void)
{
    VfuFixture f;
    g_autoptr(Buffer) buffer = pattern(4096, 2);
    Wait w;
    VfuStats before, after;

    setup(&f, VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED);
    wait_init(&w);
    vfu_server_get_stats(f.server, &before);
    for (unsigned i = 0; i < 32; i++) {
        ops(&f)->dma_write(host(&f), RAM + i * 0x2000, buffer, 0, 4096);
    }
    fence(&f, &w);
    vfu_client_wait_until(f.client, &w.done);
    vfu_server_get_stats(f.server, &after);
    /* 7 messages of 4128 bytes fit in 32 KiB */
    g_assert_cmpuint(after.sends - before.sends, ==, 5);
    vfu_fixture_teardown(&f);
}

static void add_for_ways(const char *name, GTestDataFunc func)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *path = g_strdup_printf("/vfu-dma/%s/%s", name, ways[i].name);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), func);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_for_ways("write", test_write);
    add_for_ways("read", test_read);
    add_for_ways("map-write", test_map_write);
    add_for_ways("refused", test_refused);
    add_for_ways("bus-master-off", test_bus_master_off);
    add_for_ways("own-bar", test_own_bar);
    add_for_ways("adjoining-maps", test_adjoining_maps);
    add_for_ways("unmapped", test_unmapped);
    g_test_add_func("/vfu-dma/one-reply-per-fence", test_one_reply_per_fence);
    g_test_add_func("/vfu-dma/late-fences", test_late_fences);
    g_test_add_func("/vfu-dma/client-fails-write", test_client_fails_write);
    g_test_add_func("/vfu-dma/client-fails-read", test_client_fails_read);
    g_test_add_func("/vfu-dma/read-cancelled", test_read_cancelled);
    g_test_add_func("/vfu-dma/register-while-dma-waits", test_register_while_dma_waits);
    g_test_add_func("/vfu-dma/drop", test_drop);
    g_test_add_func("/vfu-dma/client-goes", test_client_goes);
    g_test_add_func("/vfu-dma/truncated", test_truncated);
    g_test_add_func("/vfu-dma/batches-are-bounded", test_batches_are_bounded);
    return g_test_run();
}
