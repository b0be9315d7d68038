/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Guests whose machine is saved and loaded under them, before each of their accesses in turn; and states that
 * nobody saved.
 */
#include <string.h>

#include "tests/qtest/state-rig.h"
#include "util/bytes.h"

#define DATA 0x800000u

/* A parallel channel. */

static uint8_t in(StateGuest *g, unsigned reg)
{
    uint8_t value;

    state_guest_step(g);
    value = ide_in(g->m->disk.ide, reg);
    state_guest_saw(g, &value, 1);
    return value;
}

static void out(StateGuest *g, unsigned reg, uint8_t value)
{
    state_guest_step(g);
    ide_out(g->m->disk.ide, reg, value);
}

/* Polls count as one access; what is seen is the end. */
static void wait_for(StateGuest *g, uint8_t bits)
{
    uint8_t status;

    state_guest_step(g);
    while (((status = ide_alt(g->m->disk.ide)) & (ATA_STATUS_BSY | bits)) != bits &&
           !(status & ATA_STATUS_ERR && !(status & ATA_STATUS_BSY))) {
        fake_host_drain(g->m->disk.ide->host);
        g_main_context_iteration(NULL, false);
    }
    state_guest_saw(g, &status, 1);
    state_guest_saw(g, &g->m->disk.ide->irq[0], 1);
}

static void take(StateGuest *g, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += 2) {
        uint16_t word;

        state_guest_step(g);
        word = ide_in_data(g->m->disk.ide);
        state_guest_saw(g, &word, 2);
    }
}

static void give(StateGuest *g, unsigned bytes, const uint8_t *data)
{
    for (unsigned i = 0; i < bytes; i += 2) {
        state_guest_step(g);
        ide_out_data(g->m->disk.ide, data ? load_le16(data + i) : (uint16_t)(i * 257 + bytes));
    }
}

static void command(StateGuest *g, uint8_t code, uint32_t lba, uint8_t count)
{
    out(g, TASKFILE_DEVICE, 0xe0);
    out(g, TASKFILE_COUNT, count);
    for (unsigned i = 0; i < 3; i++) {
        out(g, TASKFILE_LBA_LOW + i, (uint8_t)(lba >> (8 * i)));
    }
    out(g, TASKFILE_COMMAND, code);
}

static void look(StateGuest *g)
{
    for (unsigned reg = TASKFILE_FEATURES; reg <= TASKFILE_COMMAND; reg++) {
        in(g, reg);
    }
}

static void script_pio_read(StateGuest *g)
{
    command(g, ATA_CMD_READ_SECTORS, 100, 2);
    for (unsigned i = 0; i < 2; i++) {
        wait_for(g, ATA_STATUS_DRQ);
        in(g, TASKFILE_COMMAND);
        take(g, 512);
    }
    wait_for(g, 0);
    look(g);
}

static void script_pio_write_multiple(StateGuest *g)
{
    command(g, ATA_CMD_SET_MULTIPLE, 0, 2);
    wait_for(g, 0);
    command(g, ATA_CMD_WRITE_MULTIPLE, 33, 3);
    wait_for(g, ATA_STATUS_DRQ);
    give(g, 1024, NULL);
    wait_for(g, ATA_STATUS_DRQ);
    in(g, TASKFILE_COMMAND);
    give(g, 512, NULL);
    wait_for(g, 0);
    look(g);
}

static void script_identify(StateGuest *g)
{
    command(g, ATA_CMD_IDENTIFY, 0, 0);
    wait_for(g, ATA_STATUS_DRQ);
    take(g, 512);
    wait_for(g, 0);
    out(g, TASKFILE_DEVICE, 0xf0);
    out(g, TASKFILE_COMMAND, ATA_CMD_IDENTIFY_PACKET);
    wait_for(g, ATA_STATUS_DRQ);
    take(g, 512);
    wait_for(g, 0);
    look(g);
}

/* What commands set and what others show of it. */
static void script_settings(StateGuest *g)
{
    out(g, TASKFILE_FEATURES, ATA_FEATURE_DISABLE_WRITE_CACHE);
    command(g, ATA_CMD_SET_FEATURES, 0, 0);
    wait_for(g, 0);
    out(g, TASKFILE_FEATURES, ATA_FEATURE_SET_TRANSFER_MODE);
    command(g, ATA_CMD_SET_FEATURES, 0, 0x21);
    wait_for(g, 0);
    out(g, TASKFILE_FEATURES, ATA_FEATURE_DISABLE_READ_AHEAD);
    command(g, ATA_CMD_SET_FEATURES, 0, 0);
    wait_for(g, 0);
    command(g, ATA_CMD_SET_MULTIPLE, 0, 4);
    wait_for(g, 0);
    out(g, TASKFILE_COUNT, 40);
    out(g, TASKFILE_DEVICE, 0xa7);
    out(g, TASKFILE_COMMAND, ATA_CMD_INITIALIZE_PARAMETERS);
    wait_for(g, 0);
    command(g, ATA_CMD_IDENTIFY, 0, 0);
    wait_for(g, ATA_STATUS_DRQ);
    take(g, 512);
    command(g, ATA_CMD_FLUSH_CACHE, 0, 0);
    wait_for(g, 0);
    look(g);
    command(g, ATA_CMD_STANDBY_IMMEDIATE, 0, 0);
    wait_for(g, 0);
    command(g, ATA_CMD_CHECK_POWER_MODE, 0, 0);
    wait_for(g, 0);
    look(g);
}

static void bus_master(StateGuest *g, uint8_t value)
{
    state_guest_step(g);
    bm_out(g->m->disk.ide, 0, value);
}

static void bus_master_end(StateGuest *g)
{
    uint8_t status;

    bus_master(g, 0);
    state_guest_step(g);
    status = bm_in(g->m->disk.ide, 2);
    state_guest_saw(g, &status, 1);
    state_guest_saw(g, disk_rig_ram(&g->m->disk, DATA), 16384);
}

/* The bus master is started before the command, and after it. */
static void script_dma(StateGuest *g)
{
    static const IdePrd prds[] = {{DATA, 1024}, {DATA + 6000, 3072}, {0}};

    for (unsigned round = 0; round < 4; round++) {
        bool write = round & 1, early = round & 2;

        bm_table(g->m->disk.ide, prds);
        if (early) {
            bus_master(g, write ? 1 : 9);
        }
        command(g, write ? ATA_CMD_WRITE_DMA : ATA_CMD_READ_DMA, 200 + 64 * round, 8);
        if (!early) {
            bus_master(g, write ? 1 : 9);
        }
        wait_for(g, 0);
        look(g);
        bus_master_end(g);
    }
}

static void script_trim(StateGuest *g)
{
    static const IdePrd prds[] = {{DATA, 512}, {0}};

    memset(disk_rig_ram(&g->m->disk, DATA), 0, 512);
    for (unsigned i = 0; i < 3; i++) {
        store_le64(disk_rig_ram(&g->m->disk, DATA + 8 * i), (uint64_t)8 << 48 | (400 + 100 * i));
    }
    bm_table(g->m->disk.ide, prds);
    out(g, TASKFILE_FEATURES, 1);
    command(g, ATA_CMD_DATA_SET_MANAGEMENT, 0, 1);
    bus_master(g, 1);
    wait_for(g, 0);
    look(g);
}

static void script_reset(StateGuest *g)
{
    command(g, ATA_CMD_READ_SECTORS, 10, 1);
    wait_for(g, ATA_STATUS_DRQ);
    take(g, 100);
    state_guest_step(g);
    ide_control(g->m->disk.ide, ATA_CONTROL_SRST);
    state_guest_step(g);
    ide_control(g->m->disk.ide, ATA_CONTROL_NIEN);
    wait_for(g, 0);
    look(g);
    command(g, ATA_CMD_READ_VERIFY, 10, 1);
    wait_for(g, 0);
    look(g);
}

/* A packet; `len` bytes of data by PIO in blocks of `limit`, or by DMA. */
static void packet(StateGuest *g, const uint8_t *cdb, uint32_t limit, uint32_t len, int way)
{
    out(g, TASKFILE_DEVICE, 0xb0);
    out(g, TASKFILE_FEATURES, way == DMA_IN ? 1 : 0);
    out(g, TASKFILE_LBA_MID, (uint8_t)limit);
    out(g, TASKFILE_LBA_HIGH, (uint8_t)(limit >> 8));
    out(g, TASKFILE_COMMAND, ATA_CMD_PACKET);
    wait_for(g, ATA_STATUS_DRQ);
    give(g, ATAPI_PACKET_SIZE, cdb);
    for (uint32_t left = len; left && way != DMA_IN;) {
        wait_for(g, ATA_STATUS_DRQ);
        look(g);
        uint32_t n = MIN(left, limit);
        if (way == PIO_IN) {
            take(g, n);
        } else {
            /* A copy: the memory goes away with the machine that the guest leaves. */
            g_autofree uint8_t *data = g_memdup2(disk_rig_ram(&g->m->disk, DATA) + len - left, n);
            give(g, n, data);
        }
        left -= n;
    }
    if (way == DMA_IN) {
        bus_master(g, 9);
    }
    wait_for(g, 0);
    look(g);
    if (way == DMA_IN) {
        bus_master_end(g);
    }
}

static void sense(StateGuest *g)
{
    static const uint8_t cdb[ATAPI_PACKET_SIZE] = {0x03, 0, 0, 0, 18};

    packet(g, cdb, 18, 18, PIO_IN);
}

static void script_packet_read(StateGuest *g)
{
    static const uint8_t tur[ATAPI_PACKET_SIZE] = {0},
                         read[ATAPI_PACKET_SIZE] = {0x28, 0, 0, 0, 0, 5, 0, 0, 3};
    static const IdePrd prds[] = {{DATA, 6144}, {0}};

    packet(g, tur, 0, 0, PIO_IN); /* 29/00 */
    sense(g);
    packet(g, read, 2048, 6144, PIO_IN);
    bm_table(g->m->disk.ide, prds);
    packet(g, read, 0, 6144, DMA_IN);
}

static void script_mode_pages(StateGuest *g)
{
    static const uint8_t tur[ATAPI_PACKET_SIZE] = {0};
    static const uint8_t select[ATAPI_PACKET_SIZE] = {0x55, 0x10, 0, 0, 0, 0, 0, 0, 20};
    static const uint8_t mode[ATAPI_PACKET_SIZE] = {0x5a, 0, 1, 0, 0, 0, 0, 0, 20};
    static const uint8_t prevent[ATAPI_PACKET_SIZE] = {0x1e, 0, 0, 0, 1},
                         eject[ATAPI_PACKET_SIZE] = {0x1b, 0, 0, 0, 2};

    packet(g, tur, 0, 0, PIO_IN);
    memset(disk_rig_ram(&g->m->disk, DATA), 0, 20);
    memcpy(disk_rig_ram(&g->m->disk, DATA + 8), "\x01\x0a\x20\x07", 4);
    packet(g, select, 6, 20, PIO_OUT);
    packet(g, mode, 20, 20, PIO_IN);
    packet(g, prevent, 0, 0, PIO_IN);
    packet(g, eject, 0, 0, PIO_IN); /* locked: 05/53/02 */
    sense(g);
}

static void script_events(StateGuest *g)
{
    static const uint8_t tur[ATAPI_PACKET_SIZE] = {0}, eject[ATAPI_PACKET_SIZE] = {0x1b, 0, 0, 0, 2};
    static const uint8_t load[ATAPI_PACKET_SIZE] = {0x1b, 0, 0, 0, 3};
    static const uint8_t event[ATAPI_PACKET_SIZE] = {0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8};

    packet(g, tur, 0, 0, PIO_IN);
    packet(g, eject, 0, 0, PIO_IN);
    packet(g, load, 0, 0, PIO_IN);
    for (unsigned i = 0; i < 3; i++) {
        packet(g, event, 8, 8, PIO_IN);
        packet(g, tur, 0, 0, PIO_IN);
        sense(g);
    }
}

/* AHCI. */

static uint32_t port_in(StateGuest *g, unsigned port, unsigned reg)
{
    uint32_t value;

    state_guest_step(g);
    value = rig_port_read(g->m->disk.ahci, port, reg);
    state_guest_saw(g, &value, 4);
    return value;
}

static void port_out(StateGuest *g, unsigned port, unsigned reg, uint32_t value)
{
    state_guest_step(g);
    rig_port_write(g->m->disk.ahci, port, reg, value);
}

static void port_wait(StateGuest *g, unsigned port)
{
    state_guest_step(g);
    while (rig_port_read(g->m->disk.ahci, port, AHCI_PX_CI) |
           rig_port_read(g->m->disk.ahci, port, AHCI_PX_SACT)) {
        if (rig_port_read(g->m->disk.ahci, port, AHCI_PX_IS) & AHCI_PX_IS_TFES) {
            break;
        }
        fake_host_drain(g->m->disk.ahci->host);
        g_main_context_iteration(NULL, false);
    }
}

/* `in_order`: there was one command, so that the last FISes are known too. */
static void port_end(StateGuest *g, unsigned port, bool in_order)
{
    port_wait(g, port);
    for (unsigned reg = AHCI_PX_IS; reg <= AHCI_PX_CI; reg++) {
        if (reg != AHCI_PX_CMD) { /* CCS */
            port_in(g, port, reg);
        }
    }
    port_out(g, port, AHCI_PX_IS, ~0u);
    state_guest_saw(g, disk_rig_ram(&g->m->disk, DATA), 65536);
    if (in_order) {
        state_guest_saw(g, disk_rig_ram(&g->m->disk, rig_fis(port)), 256);
    }
}

/* Eight queued commands, reads and writes, then a mix of others. */
static void script_queued(StateGuest *g)
{
    Taskfile tf;

    for (unsigned i = 0; i < 8; i++) {
        disk_rig_queued_tf(&tf, i & 1, 100 + 32 * i, 16, i);
        rig_slot(g->m->disk.ahci, 0, i, &tf, NULL, (RigPrd[]){{DATA + 8192 * i, 8192}, {0}});
    }
    for (unsigned i = 0; i < 8; i++) {
        port_out(g, 0, AHCI_PX_SACT, 1u << i);
        port_out(g, 0, AHCI_PX_CI, 1u << i);
    }
    port_end(g, 0, false);
    disk_rig_tf(&tf, ATA_CMD_READ_SECTORS, false, 7, 3);
    rig_slot(g->m->disk.ahci, 0, 4, &tf, NULL, (RigPrd[]){{DATA, 1536}, {0}});
    disk_rig_tf(&tf, ATA_CMD_WRITE_DMA_EXT, true, 1500, 4);
    rig_slot(g->m->disk.ahci, 0, 5, &tf, NULL, (RigPrd[]){{DATA, 2048}, {0}});
    disk_rig_tf(&tf, ATA_CMD_FLUSH_CACHE, false, 0, 0);
    rig_slot(g->m->disk.ahci, 0, 6, &tf, NULL, (RigPrd[]){{0}});
    port_out(g, 0, AHCI_PX_CI, 7u << 4);
    port_end(g, 0, false);
}

static void ahci_packet(StateGuest *g, const uint8_t *cdb, uint32_t len)
{
    rig_packet(g->m->disk.ahci, 1, 0, cdb, 1, 0, (RigPrd[]){{DATA, len}, {0}});
    state_guest_step(g);
    port_end(g, 1, true);
    if (rig_port_read(g->m->disk.ahci, 1, AHCI_PX_CI)) {
        state_guest_step(g);
        rig_recover(g->m->disk.ahci, 1);
    }
}

static void script_ahci_packet(StateGuest *g)
{
    static const uint8_t tur[MMC_CDB_SIZE] = {0}, read[MMC_CDB_SIZE] = {0x28, 0, 0, 0, 0, 9, 0, 0, 8};
    static const uint8_t request[MMC_CDB_SIZE] = {0x03, 0, 0, 0, 18},
                         eject[MMC_CDB_SIZE] = {0x1b, 0, 0, 0, 2};

    state_guest_step(g);
    rig_port_up(g->m->disk.ahci, 1);
    port_in(g, 1, AHCI_PX_SIG);
    port_in(g, 1, AHCI_PX_SSTS);
    ahci_packet(g, tur, 0);
    ahci_packet(g, request, 18);
    ahci_packet(g, read, 16384);
    ahci_packet(g, eject, 0);
    ahci_packet(g, read, 16384);
    ahci_packet(g, request, 18);
}

static const struct {
    const char *name;
    bool ahci;
    void (*script)(StateGuest *g);
} scripts[] = {
    {"pio-read", false, script_pio_read},
    {"pio-write-multiple", false, script_pio_write_multiple},
    {"identify", false, script_identify},
    {"settings", false, script_settings},
    {"dma", false, script_dma},
    {"trim", false, script_trim},
    {"reset", false, script_reset},
    {"packet-read", false, script_packet_read},
    {"mode-pages", false, script_mode_pages},
    {"events", false, script_events},
    {"queued", true, script_queued},
    {"ahci-packet", true, script_ahci_packet},
};

static void test_script(gconstpointer data)
{
    unsigned i = GPOINTER_TO_UINT(data) / 2;
    bool slow = GPOINTER_TO_UINT(data) & 1;

    state_run_everywhere(scripts[i].ahci, slow, scripts[i].script);
}

/* States that nobody saved. */

#define HEADER STATE_HEADER_SIZE
#define SUM    32

/* With a checksum that is right. */
static GBytes *sealed(GByteArray *bytes)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize len = SUM;

    store_le64(bytes->data + HEADER - 8, bytes->len - HEADER - SUM);
    g_checksum_update(sum, bytes->data, (gssize)bytes->len - SUM);
    g_checksum_get_digest(sum, bytes->data + bytes->len - SUM, &len);
    return g_bytes_new(bytes->data, bytes->len);
}

static void mutate(GByteArray *bytes)
{
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 2, 32};
    unsigned changes = (unsigned)g_test_rand_int_range(1, 6);

    for (unsigned i = 0; i < changes; i++) {
        unsigned at = (unsigned)g_test_rand_int_range(HEADER, (int)bytes->len - SUM);
        uint32_t how = (uint32_t)g_test_rand_int();

        if (how % 16 == 0 && bytes->len > HEADER + SUM + 64) {
            g_byte_array_remove_range(bytes, at, MIN(how >> 8 & 15, bytes->len - SUM - at));
        } else {
            bytes->data[at] = how & 16
                                  ? extremes[how >> 8 & 7]
                                  : (uint8_t)(how & 32 ? how >> 8 : bytes->data[at] ^ 1u << (how >> 8 & 7));
        }
    }
}

/* A guest that pokes at whatever the state has made of the devices, and resets them in the end. */
static void use_machine(StateMachine *m)
{
    PciDevice *pci = state_machine_pci(m);

    state_machine_unpark(m);
    for (unsigned i = 0; i < 20; i++) {
        fake_host_drain(state_machine_host(m));
        g_main_context_iteration(NULL, false);
        if (m->ahci) {
            pci->ops->bar_read(pci, 5, AHCI_PORT_BASE + 4 * i, 4);
            continue;
        }
        for (unsigned reg = 0; reg < 8; reg++) {
            ide_in(m->disk.ide, reg);
            ide_in_data(m->disk.ide);
            ide_out_data(m->disk.ide, (uint16_t)i);
        }
        bm_out(m->disk.ide, 0, i & 1 ? 9 : 1);
    }
    pci->ops->reset(pci);
    fake_host_drain(state_machine_host(m));
}

/* All or nothing: a refused state changes nothing, one that is taken leads nowhere that a guest could not. */
static void test_mutations(void)
{
    unsigned rounds = g_getenv("SPINDLE_STRESS_SECONDS") ? 20000 : 300, refused = 0, taken = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(scripts); i++) {
        g_autoptr(GBytes) good = state_in_the_middle(scripts[i].ahci, scripts[i].script);
        StateMachine *m = state_machine_new(scripts[i].ahci, false);

        for (unsigned round = 0; round < rounds; round++) {
            g_autoptr(GByteArray) bytes = g_byte_array_new();
            g_autoptr(GBytes) before = state_machine_save(m);
            g_autoptr(GError) error = NULL;

            g_byte_array_append(bytes, g_bytes_get_data(good, NULL), (guint)g_bytes_get_size(good));
            mutate(bytes);
            g_autoptr(GBytes) bad = sealed(bytes);
            if (state_machine_load(m, bad, &error)) {
                taken++;
                use_machine(m);
            } else {
                g_autoptr(GBytes) after = state_machine_save(m);
                refused++;
                g_assert_nonnull(error);
                g_assert_true(g_bytes_equal(before, after));
            }
        }
        state_machine_free(m);
    }
    g_test_message("%u refused, %u taken", refused, taken);
    g_assert_cmpuint(refused, >, 100);
    g_assert_cmpuint(taken, >, 100);
}

/* Every length, with and without a checksum to it. */
static void test_cut_off(void)
{
    g_autoptr(GBytes) good = state_in_the_middle(false, script_packet_read);
    StateMachine *m = state_machine_new(false, false);
    gsize size = g_bytes_get_size(good);

    for (gsize len = 0; len < size; len += len < 200 ? 1 : 37) {
        g_autoptr(GError) error = NULL, again = NULL;
        g_autoptr(GBytes) cut = g_bytes_new_from_bytes(good, 0, len);
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        g_assert_false(state_machine_load(m, cut, &error));
        g_assert_nonnull(error);
        if (len >= HEADER + SUM) {
            g_byte_array_append(bytes, g_bytes_get_data(cut, NULL), (guint)len);
            g_autoptr(GBytes) whole = sealed(bytes);
            g_assert_false(state_machine_load(m, whole, &again));
            g_assert_nonnull(again);
        }
    }
    state_machine_free(m);
}

/* CVE-2013-4526: more ports in the state than there are. */
static void test_cve_2013_4526(void)
{
    static const uint8_t section[] = {4, 'a', 'h', 'c', 'i', 1, 0, 0, 0};
    static const uint64_t counts[] = {0, 7, 32, 0x80000000, UINT64_MAX};
    g_autoptr(GBytes) good = state_in_the_middle(true, script_queued);
    StateMachine *m = state_machine_new(true, false);
    g_autoptr(GBytes) before = state_machine_save(m);

    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autoptr(GError) error = NULL;

        g_byte_array_append(bytes, g_bytes_get_data(good, NULL), (guint)g_bytes_get_size(good));
        uint8_t *at = memmem(bytes->data, bytes->len, section, sizeof section);
        g_assert_nonnull(at);
        store_le64(at + sizeof section + 4, counts[i]);
        g_autoptr(GBytes) bad = sealed(bytes);
        g_assert_false(state_machine_load(m, bad, &error));
        g_assert_nonnull(strstr(error->message, "State of 'ahci': the number of ports is"));
        g_autoptr(GBytes) after = state_machine_save(m);
        g_assert_true(g_bytes_equal(before, after));
    }
    state_machine_free(m);
}

/* a71754e5b0, 9a41826f38: in the middle of a packet's DMA; the command starts again from its packet. */
static void test_atapi_dma(void)
{
    state_run_everywhere(true, true, script_ahci_packet);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(scripts); i++) {
        g_autofree char *path = g_strdup_printf("/state/%s/%s", scripts[i / 2].name, i & 1 ? "slow" : "fast");
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_script);
    }
    g_test_add_func("/state/bad/mutations", test_mutations);
    g_test_add_func("/state/bad/cut-off", test_cut_off);
    g_test_add_func("/state/bad/CVE-2013-4526", test_cve_2013_4526);
    g_test_add_func("/state/bad/a71754e5b0-atapi-dma", test_atapi_dma);
    return g_test_run();
}
