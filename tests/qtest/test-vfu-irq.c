/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: INTx and MSI, by event descriptor and by message; all forms of SET_IRQS, right and wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/lib/vfu-fixture.h"

#define RAM      UINT64_C(0x100000)
#define MSI_ADDR UINT64_C(0xfee01000)
#define MSI_DATA 0x4041

static const PciHostOps *ops(VfuFixture *f)
{
    return f->fake->pci.host->ops;
}

static PciHost *host(VfuFixture *f)
{
    return f->fake->pci.host;
}

static void intx(VfuFixture *f, bool level)
{
    ops(f)->intx(host(f), level);
}

static uint64_t take_intx(VfuFixture *f)
{
    return vfu_client_take_irqs(f->client, VFU_IRQ_INTX);
}

/* INTx masks itself; UNMASK fires it again only while it is still up. */
static void test_intx(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    intx(&f, true);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    intx(&f, false);
    intx(&f, true); /* up again, but masked */
    g_assert_cmpuint(take_intx(&f), ==, 0);
    g_assert_cmpint(vfu_client_irq_action(f.client, VFU_IRQ_INTX, VFU_IRQ_ACTION_UNMASK), ==, 0);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    intx(&f, false);
    g_assert_cmpint(vfu_client_irq_action(f.client, VFU_IRQ_INTX, VFU_IRQ_ACTION_UNMASK), ==, 0);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
}

static void test_intx_masked_by_client(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    g_assert_cmpint(vfu_client_irq_action(f.client, VFU_IRQ_INTX, VFU_IRQ_ACTION_MASK), ==, 0);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    g_assert_cmpint(vfu_client_irq_action(f.client, VFU_IRQ_INTX, VFU_IRQ_ACTION_UNMASK), ==, 0);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
}

static void test_intx_up_before_enabled(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    intx(&f, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
}

/* Command register bit 10. */
static void test_intx_disabled_in_config(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 4, 2, 0x0406);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 4, 2, 0x0006);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
}

static void test_intx_reset(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    g_assert_cmpint(vfu_client_call(f.client, VFU_DEVICE_RESET, NULL, 0, NULL, 0), ==, 0);
    g_assert_cmpint(vfu_client_irq_action(f.client, VFU_IRQ_INTX, VFU_IRQ_ACTION_UNMASK), ==, 0);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
}

/* KVM's resampling: the client signals a descriptor instead of sending UNMASK. */
static void test_intx_unmask_by_event(void)
{
    VfuFixture f;
    uint64_t one = 1;
    int unmask = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), mask = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_UNMASK, VFU_IRQ_INTX,
                                        0, 1, NULL, 0, &unmask, 1),
                    ==, 0);
    g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_MASK, VFU_IRQ_INTX, 0,
                                        1, NULL, 0, &mask, 1),
                    ==, 0);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    g_assert_cmpint(write(unmask, &one, sizeof one), ==, sizeof one);
    vfu_client_settle(f.client);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    intx(&f, false);
    g_assert_cmpint(write(unmask, &one, sizeof one), ==, sizeof one);
    vfu_client_settle(f.client);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    g_assert_cmpint(write(mask, &one, sizeof one), ==, sizeof one);
    vfu_client_settle(f.client);
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    /* de-assigned: signalling has no effect any more */
    g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_UNMASK, VFU_IRQ_INTX,
                                        0, 1, NULL, 0, NULL, 0),
                    ==, 0);
    g_assert_cmpint(write(unmask, &one, sizeof one), ==, sizeof one);
    vfu_client_settle(f.client);
    g_assert_cmpuint(take_intx(&f), ==, 0);
    vfu_fixture_teardown(&f);
    close(unmask);
    close(mask);
}

static void test_trigger_by_client(void)
{
    VfuFixture f;
    static const uint8_t yes = 1, no = 0;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (uint32_t index = VFU_IRQ_INTX; index <= VFU_IRQ_MSI; index++) {
        vfu_client_enable_irq(f.client, index);
        g_assert_cmpint(vfu_client_irq_action(f.client, index, VFU_IRQ_ACTION_TRIGGER), ==, 0);
        g_assert_cmpuint(vfu_client_take_irqs(f.client, index), ==, 1);
        g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, index, 0, 1,
                                            &no, 1, NULL, 0),
                        ==, 0);
        g_assert_cmpuint(vfu_client_take_irqs(f.client, index), ==, 0);
        g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, index, 0, 1,
                                            &yes, 1, NULL, 0),
                        ==, 0);
        g_assert_cmpuint(vfu_client_take_irqs(f.client, index), ==, 1);
    }
    vfu_fixture_teardown(&f);
}

static void test_disable(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_fixture_enable_bus_master(&f);
    for (unsigned way = 0; way < 2; way++) {
        vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
        vfu_client_enable_irq(f.client, VFU_IRQ_MSI);
        for (uint32_t index = VFU_IRQ_INTX; index <= VFU_IRQ_MSI; index++) {
            uint32_t data = way ? VFU_IRQ_DATA_EVENTFD : VFU_IRQ_DATA_NONE;
            g_assert_cmpint(
                vfu_client_set_irqs(f.client, data | VFU_IRQ_ACTION_TRIGGER, index, 0, way, NULL, 0, NULL, 0),
                ==, 0);
        }
        intx(&f, true);
        intx(&f, false);
        ops(&f)->msi(host(&f), 0, false);
        g_assert_cmpuint(take_intx(&f), ==, 0);
        g_assert_cmpuint(vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 0);
    }
    vfu_fixture_teardown(&f);
}

static void test_msi_by_event(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
    vfu_fixture_enable_bus_master(&f);
    vfu_fixture_enable_msi(&f, MSI_ADDR, MSI_DATA);
    g_assert_true(ops(&f)->msi(host(&f), 0, false));
    g_assert_cmpuint(vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 1);
    g_assert_true(ops(&f)->msi(host(&f), 0, true)); /* mapped writes have landed already */
    g_assert_cmpuint(vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 1);
    vfu_fixture_teardown(&f);
}

/* Behind data on its way the interrupt goes as a message, on the same stream. */
static void test_msi_ordered(void)
{
    VfuFixture f;
    uint32_t value = 0x600d;
    unsigned n;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_fixture_enable_bus_master(&f);
    vfu_fixture_enable_msi(&f, MSI_ADDR, MSI_DATA);
    vfu_client_add_ram(f.client, RAM, 0x1000, VFU_CLIENT_RAM_SEALED);
    ops(&f)->dma_write_small(host(&f), RAM, &value, 4);
    g_assert_true(ops(&f)->msi(host(&f), 0, true));
    vfu_client_settle(f.client);
    const VfuClientDma *log = vfu_client_dma_log(f.client, &n);
    g_assert_cmpuint(n, ==, 2);
    g_assert_false(log[0].msi);
    g_assert_true(log[1].msi && log[1].posted && log[1].write);
    g_assert_cmphex(log[1].address, ==, MSI_ADDR);
    g_assert_cmpuint(log[1].bytes, ==, 4);
    g_assert_cmphex(log[1].data, ==, MSI_DATA);
    g_assert_cmpuint(vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 0);
    vfu_fixture_teardown(&f);
}

static const struct {
    const char *name;
    uint64_t address;
    uint16_t command, control;
} unordered[] = {
    {"disabled", MSI_ADDR, 6, 0x80},
    {"outside-the-window", 0x1000, 6, 0x81},
    {"above-4g", UINT64_C(0x1fee01000), 6, 0x81},
    {"remapped", MSI_ADDR | 0x10, 6, 0x81},
};

/* Where a message would not do what an interrupt does, the caller is told to wait for a fence. */
static void test_msi_not_ordered(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    uint32_t value = 1;
    unsigned n;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_fixture_enable_msi(&f, unordered[i].address, MSI_DATA);
    vfu_client_write(f.client, VFU_REGION_CONFIG, FAKE_PCI_MSI + 2, 2, unordered[i].control);
    vfu_client_write(f.client, VFU_REGION_CONFIG, 4, 2, unordered[i].command);
    vfu_client_add_ram(f.client, RAM, 0x1000, VFU_CLIENT_RAM_SEALED);
    ops(&f)->dma_write_small(host(&f), RAM, &value, 4);
    g_assert_false(ops(&f)->msi(host(&f), 0, true));
    g_assert_true(ops(&f)->msi(host(&f), 0, false));
    g_assert_cmpuint(vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 1);
    vfu_client_settle(f.client);
    vfu_client_dma_log(f.client, &n);
    g_assert_cmpuint(n, ==, 1);
    vfu_fixture_teardown(&f);
}

static const struct {
    const char *name;
    uint32_t flags, index, start, count;
    int32_t argsz; /* against the right one */
    uint32_t bytes;
    unsigned fds;
} malformed[] = {
    {"no-data-type", VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 0, 0},
    {"no-action", VFU_IRQ_DATA_NONE, 0, 0, 1, 0, 0, 0},
    {"two-data-types", VFU_IRQ_DATA_NONE | VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 1, 0},
    {"two-actions", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_MASK | VFU_IRQ_ACTION_UNMASK, 0, 0, 1, 0, 0, 0},
    {"unknown-flag", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER | 0x40, 0, 0, 1, 0, 0, 0},
    {"index-5", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 5, 0, 1, 0, 0, 0},
    {"index-huge", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, UINT32_MAX, 0, 1, 0, 0, 0},
    {"absent-kind", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, VFU_IRQ_MSIX, 0, 1, 0, 0, 0},
    {"start-1", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 0, 1, 1, 0, 0, 0},
    {"count-2", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 1, 0, 2, 0, 0, 0},
    {"start-and-count-wrap", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 1, UINT32_MAX, 1, 0, 0, 0},
    {"count-huge", VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, 1, 0, UINT32_MAX, 0, 1, 0},
    {"count-0-start-1", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 1, 1, 0, 0, 0, 0},
    {"count-0-mask", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_MASK, 0, 0, 0, 0, 0, 0},
    {"count-0-bool", VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, 0, 0, 0, 0, 0, 0},
    {"bool-without-data", VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 0, 0},
    {"argsz-short", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, -1, 0, 0},
    {"argsz-0", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, -20, 0, 0},
    {"argsz-beyond-message", VFU_IRQ_DATA_BOOL | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 1, 0, 0},
    {"mask-msi", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_MASK, VFU_IRQ_MSI, 0, 1, 0, 0, 0},
    {"unmask-event-msi", VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_UNMASK, VFU_IRQ_MSI, 0, 1, 0, 0, 1},
    {"fd-with-none", VFU_IRQ_DATA_NONE | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 0, 1},
    {"two-fds", VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 0, 2},
    {"sixteen-fds", VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_TRIGGER, 0, 0, 1, 0, 0, 16},
};

static void test_malformed(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    VfuFixture f;
    uint8_t message[sizeof(VfuIrqSetMsg) + 8] = {0};
    VfuIrqSetMsg set = {.argsz = sizeof set + malformed[i].bytes + malformed[i].argsz,
                        .flags = malformed[i].flags,
                        .index = malformed[i].index,
                        .start = malformed[i].start,
                        .count = malformed[i].count};
    int fds[16];

    for (unsigned k = 0; k < 16; k++) {
        fds[k] = eventfd(0, EFD_CLOEXEC);
    }
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_enable_irq(f.client, VFU_IRQ_INTX);
    vfu_client_enable_irq(f.client, VFU_IRQ_MSI);
    memcpy(message, &set, sizeof set);
    memset(message + sizeof set, 1, 8);
    uint16_t id = vfu_client_send(f.client, VFU_DEVICE_SET_IRQS, 0, message, sizeof set + malformed[i].bytes,
                                  fds, malformed[i].fds);
    g_assert_cmpint(vfu_client_await(f.client, id, NULL, 0), ==, -EINVAL);
    g_assert_cmpuint(take_intx(&f) + vfu_client_take_irqs(f.client, VFU_IRQ_MSI), ==, 0);
    /* nothing changed */
    intx(&f, true);
    g_assert_cmpuint(take_intx(&f), ==, 1);
    vfu_fixture_teardown(&f);
    for (unsigned k = 0; k < 16; k++) {
        close(fds[k]);
    }
}

/* Descriptors that are no event descriptors could block the server or kill it by SIGPIPE. */
static void test_other_descriptors(void)
{
    VfuFixture f;
    int fds[5], pair[2], pipes[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    g_assert_cmpint(pipe2(pipes, O_CLOEXEC), ==, 0);
    fds[0] = pair[0];
    fds[1] = pipes[0];
    fds[2] = pipes[1];
    fds[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
    fds[4] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++) {
        for (uint32_t action = VFU_IRQ_ACTION_MASK; action <= VFU_IRQ_ACTION_TRIGGER; action *= 2) {
            g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_EVENTFD | action, VFU_IRQ_INTX, 0, 1,
                                                NULL, 0, &fds[i], 1),
                            ==, -EINVAL);
        }
    }
    vfu_fixture_teardown(&f);
    close(pair[0]);
    close(pair[1]);
    close(pipes[0]);
    close(pipes[1]);
    close(fds[3]);
    close(fds[4]);
}

/* A blocking event descriptor at its limit. */
static void test_full_event(void)
{
    VfuFixture f;
    uint64_t most = UINT64_MAX - 1;
    int fd = eventfd(0, EFD_CLOEXEC);

    g_assert_cmpint(write(fd, &most, sizeof most), ==, sizeof most);
    vfu_fixture_setup(&f, VFU_DMA_MODE_MMAP, true);
    g_assert_cmpint(vfu_client_set_irqs(f.client, VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_TRIGGER, VFU_IRQ_MSI,
                                        0, 1, NULL, 0, &fd, 1),
                    ==, 0);
    g_assert_true(ops(&f)->msi(host(&f), 0, false)); /* returns */
    vfu_fixture_teardown(&f);
    close(fd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vfu-irq/intx", test_intx);
    g_test_add_func("/vfu-irq/intx-masked-by-client", test_intx_masked_by_client);
    g_test_add_func("/vfu-irq/intx-up-before-enabled", test_intx_up_before_enabled);
    g_test_add_func("/vfu-irq/intx-disabled-in-config", test_intx_disabled_in_config);
    g_test_add_func("/vfu-irq/intx-reset", test_intx_reset);
    g_test_add_func("/vfu-irq/intx-unmask-by-event", test_intx_unmask_by_event);
    g_test_add_func("/vfu-irq/trigger-by-client", test_trigger_by_client);
    g_test_add_func("/vfu-irq/disable", test_disable);
    g_test_add_func("/vfu-irq/msi-by-event", test_msi_by_event);
    g_test_add_func("/vfu-irq/msi-ordered", test_msi_ordered);
    for (unsigned i = 0; i < G_N_ELEMENTS(unordered); i++) {
        g_autofree char *name = g_strdup_printf("/vfu-irq/msi-not-ordered/%s", unordered[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_msi_not_ordered);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(malformed); i++) {
        g_autofree char *name = g_strdup_printf("/vfu-irq/malformed/%s", malformed[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_malformed);
    }
    g_test_add_func("/vfu-irq/other-descriptors", test_other_descriptors);
    g_test_add_func("/vfu-irq/full-event", test_full_event);
    return g_test_run();
}
