/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/state-rig.h"

#include <string.h>

#include "block/block.h"
#include "tests/qtest/cd-rig.h"

#define DISC_BYTES (STATE_DISC_SECTORS * 2048u)
#define DISK_BYTES (1u << 20)
#define RUNS       20u

static BlockNode *open_node(const char *text)
{
    g_autoptr(Options) options = options_parse(text, "driver", NULL);
    g_autoptr(GError) error = NULL;
    BlockNode *node = block_open(options, &error);

    g_assert_no_error(error);
    return node;
}

static BlockNode *make_disc(bool slow)
{
    BlockNode *node =
        open_node(slow ? "fault,delay-ns=300000,file.driver=mem,file.size=128k" : "mem,size=128k");
    g_autofree uint8_t *data = g_malloc(DISC_BYTES);

    for (uint64_t i = 0; i < DISC_BYTES; i++) {
        data[i] = cd_rig_byte(i);
    }
    g_assert_cmpint(block_pwrite(node, 0, data, DISC_BYTES, 0), ==, 0);
    return node;
}

static void fill_disk(BlockNode *node)
{
    g_autofree uint8_t *data = g_malloc(DISK_BYTES);

    for (uint64_t i = 0; i < DISK_BYTES; i++) {
        data[i] = cd_rig_byte(i + 77);
    }
    g_assert_cmpint(block_pwrite(node, 0, data, DISK_BYTES, 0), ==, 0);
}

StateMachine *state_machine_new(bool ahci, bool slow)
{
    StateMachine *m = g_new0(StateMachine, 1);
    MmcDriveConfig config = {.id = "cd0", .serial = "CD0001"};
    AtaDiskConfig ata = {.identity = {.serial = "testdisk"}};
    IdeIdentity identity = {0};

    m->ahci = ahci;
    disk_rig_make(&m->disk, slow ? "fault,delay-ns=300000,file.driver=mem,file.size=1M" : "mem,size=1M", &ata,
                  ON_ERROR_REPORT);
    fill_disk(m->disk.node);
    m->disc = make_disc(slow);
    m->mmc = mmc_drive_new(&config);
    g_assert_true(mmc_drive_insert(m->mmc, m->disc, false, NULL));
    m->cd = atapi_new(m->mmc, &identity);
    disk_rig_connect(&m->disk, ahci ? AHCI_MMAP : IDE_MMAP);
    g_assert_true(ahci ? ahci_attach(m->disk.ahci->ahci, 1, m->cd)
                       : pci_ide_attach(m->disk.ide->ide, 0, 1, m->cd));
    return m;
}

void state_machine_free(StateMachine *m)
{
    if (m->ahci) {
        ahci_detach(m->disk.ahci->ahci, 1);
    } else {
        pci_ide_detach(m->disk.ide->ide, 0, 1);
    }
    ide_device_free(m->cd);
    mmc_drive_free(m->mmc);
    block_unref(m->disc);
    disk_rig_free(&m->disk);
    g_free(m);
}

PciDevice *state_machine_pci(const StateMachine *m)
{
    return m->ahci ? m->disk.ahci->pci : m->disk.ide->pci;
}

FakeHost *state_machine_host(const StateMachine *m)
{
    return m->ahci ? m->disk.ahci->host : m->disk.ide->host;
}

GBytes *state_machine_save(StateMachine *m)
{
    PciDevice *pci = state_machine_pci(m);
    StateIo *io = state_writer_new();
    GBytes *bytes;

    g_assert_true(pci->ops->settled(pci));
    state_save(io, pci->ops->state, pci);
    bytes = state_writer_finish(io, NULL);
    g_assert_nonnull(bytes);
    return bytes;
}

bool state_machine_load(StateMachine *m, GBytes *bytes, GError **error)
{
    PciDevice *pci = state_machine_pci(m);
    StateIo *io = state_reader_new(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), error);
    void *image = io ? state_load(io, pci->ops->state, pci) : NULL;

    if (!io) {
        return false;
    }
    if (!state_reader_finish(io, error)) {
        if (image) {
            state_discard(pci->ops->state, image);
        }
        return false;
    }
    pci->ops->park(pci, true);
    state_commit(pci->ops->state, pci, image);
    return true;
}

void state_machine_unpark(StateMachine *m)
{
    state_machine_pci(m)->ops->park(state_machine_pci(m), false);
}

static void copy_node(BlockNode *to, BlockNode *from, size_t size)
{
    g_autofree uint8_t *data = g_malloc(size);

    g_assert_cmpint(block_pread(from, 0, data, size), ==, 0);
    g_assert_cmpint(block_pwrite(to, 0, data, size, 0), ==, 0);
}

/* In the middle of whatever the media do: what they have not done is done again. (A real machine lets its
 * disks finish first, see device_set_settle(), except for what an error keeps.) */
static void guest_move(StateGuest *g)
{
    StateMachine *from = g->m, *to = state_machine_new(from->ahci, true);
    g_autoptr(GError) error = NULL;

    g_autoptr(GBytes) bytes = state_machine_save(from);
    g_assert_true(state_machine_load(to, bytes, &error));
    g_assert_no_error(error);
    g_autoptr(GBytes) again = state_machine_save(to);
    g_assert_true(g_bytes_equal(bytes, again));
    memcpy(state_machine_host(to)->ram, state_machine_host(from)->ram, FAKE_RAM_SIZE);
    copy_node(to->disk.node, from->disk.node, DISK_BYTES);
    if (!from->ahci) {
        g_assert_cmpint(to->disk.ide->irq[0], ==, from->disk.ide->irq[0]);
    }
    state_machine_free(from);
    state_machine_unpark(to);
    g->m = to;
    g->moved++;
}

void state_guest_step(StateGuest *g)
{
    if (g->ops++ == g->move_at) {
        if (g->save_only) {
            g->saved = state_machine_save(g->m);
        } else {
            guest_move(g);
        }
    }
}

void state_guest_saw(StateGuest *g, const void *data, size_t len)
{
    g_byte_array_append(g->seen, data, (guint)len);
}

/* What the guest saw, and what is on its disk in the end. */
static GByteArray *run_once(bool ahci, bool slow, void (*script)(StateGuest *g), unsigned move_at,
                            unsigned *ret_ops)
{
    StateGuest g = {.m = state_machine_new(ahci, slow), .move_at = move_at, .seen = g_byte_array_new()};
    g_autofree uint8_t *disk = g_malloc(DISK_BYTES);

    script(&g);
    g_assert_cmpuint(g.moved, ==, move_at < g.ops);
    g_assert_cmpint(block_pread(g.m->disk.node, 0, disk, DISK_BYTES), ==, 0);
    state_guest_saw(&g, disk, DISK_BYTES);
    state_machine_free(g.m);
    *ret_ops = g.ops;
    return g.seen;
}

/* At about RUNS of the accesses, chosen by the seed; SPINDLE_STRESS_SECONDS (whatever it says): at each. */
void state_run_everywhere(bool ahci, bool slow, void (*script)(StateGuest *g))
{
    unsigned ops, moved_ops;
    g_autoptr(GByteArray) plain = run_once(ahci, slow, script, UINT_MAX, &ops);

    for (unsigned at = 0; at < ops; at += g_getenv("SPINDLE_STRESS_SECONDS") || ops < RUNS
                                              ? 1
                                              : 1 + (unsigned)g_test_rand_int() % (2 * ops / RUNS)) {
        g_autoptr(GByteArray) moved = run_once(ahci, slow, script, at, &moved_ops);

        g_test_message("moved before access %u of %u", at, ops);
        g_assert_cmpuint(moved_ops, ==, ops);
        g_assert_cmpmem(moved->data, moved->len, plain->data, plain->len);
    }
}

GBytes *state_in_the_middle(bool ahci, void (*script)(StateGuest *g))
{
    StateGuest g = {.move_at = UINT_MAX, .save_only = true, .seen = g_byte_array_new()};

    for (unsigned round = 0; round < 2; round++) { /* the first one counts the accesses */
        g.m = state_machine_new(ahci, true);
        g.move_at = round ? (unsigned)g_test_rand_int() % g.ops : UINT_MAX;
        g.ops = 0;
        script(&g);
        state_machine_free(g.m);
    }
    g_byte_array_unref(g.seen);
    return g.saved;
}
