/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Hostile clients of the whole drive, by chance: messages that are right, nearly right or noise, cut
 * anywhere, with descriptors of every kind; memory that shrinks while it is mapped; commands, registers and
 * replies that no guest and no QEMU would send. Nothing may crash, hang or leak, and the next honest client
 * reads the disc. Short by default; SPINDLE_STRESS_SECONDS=600 for a long run. The seed is g_test's (--seed).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hw/block/mmc.h"
#include "tests/lib/vfu-cd.h"
#include "tests/lib/vfu-fixture.h"
#include "util/bytes.h"

#define SECTORS   700
#define MOST_FDS  18 /* two more than the server takes */
#define ABAR      5
#define STRANGERS UINT64_C(0x10000000) /* where memory is mapped that comes and goes */

static uint32_t any32(void)
{
    return (uint32_t)g_test_rand_int();
}

static uint32_t below(uint32_t n)
{
    return any32() % n;
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

/* Numbers at which code goes wrong, more often than others. */
static uint64_t any_number(void)
{
    static const uint64_t edges[] = {0,         1,           2,          4,           8,          0xfff,
                                     0x1000,    0x1001,      0xffff,     VFU_CD_RAM,  0x7fffffff, 0x80000000,
                                     STRANGERS, VFU_CD_ABAR, UINT32_MAX, VFU_CD_DATA, INT64_MAX,  UINT64_MAX};

    switch (below(4)) {
    case 0:
        return (uint64_t)any32() << 32 | any32();
    case 1:
        return edges[below(G_N_ELEMENTS(edges))] + below(3) - 1;
    case 2:
        return edges[below(G_N_ELEMENTS(edges))];
    default:
        return below(64);
    }
}

static int any_descriptor(void)
{
    int fd;

    switch (below(5)) {
    case 0:
        return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    case 1:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 2:
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    default:
        fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        g_assert_cmpint(ftruncate(fd, below(8) * 0x1000), ==, 0);
        if (one_in(3)) {
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
        }
        return fd;
    }
}

/* The payload as an honest client has it, or near it; returns its size. */
static size_t any_payload(unsigned command, uint8_t *out)
{
    uint32_t argsz = one_in(8) ? (uint32_t)any_number() : 32;
    VfuDmaMapMsg map = {argsz, 3, 0, STRANGERS + below(16) * 0x1000, (1 + below(8)) * 0x1000};
    VfuDmaUnmapMsg unmap = {argsz, one_in(16) ? 2 : 0, map.address, map.size};
    VfuRegionAccessMsg access = {below(0x200), one_in(4) ? VFU_REGION_CONFIG : ABAR, 1u << below(4)};
    VfuIrqSetMsg irqs = {20, 1u << below(3) | 8u << below(3), below(VFU_IRQS), below(2), below(3)};
    VfuWriteMultiMsg multi = {below(4)};

    for (size_t i = 0; i < 128; i += 8) {
        uint64_t number = any_number();
        memcpy(out + i, &number, 8);
    }
    switch (command) {
    case VFU_DMA_MAP:
        memcpy(out, &map, sizeof map);
        return sizeof map;
    case VFU_DMA_UNMAP:
        memcpy(out, &unmap, sizeof unmap);
        return sizeof unmap;
    case VFU_REGION_READ:
        memcpy(out, &access, sizeof access);
        return sizeof access;
    case VFU_REGION_WRITE:
        memcpy(out, &access, sizeof access);
        return sizeof access + access.count;
    case VFU_REGION_WRITE_MULTI:
        memcpy(out, &multi, sizeof multi);
        for (unsigned i = 0; i < multi.count; i++) {
            memcpy(out + sizeof multi + i * sizeof(VfuWriteOne), &access, sizeof access);
        }
        return sizeof multi + multi.count * sizeof(VfuWriteOne);
    case VFU_DEVICE_SET_IRQS:
        memcpy(out, &irqs, sizeof irqs);
        return sizeof irqs + (irqs.flags & VFU_IRQ_DATA_BOOL ? irqs.count : 0);
    case VFU_DEVICE_GET_INFO:
    case VFU_DEVICE_GET_IRQ_INFO:
    case VFU_DEVICE_GET_REGION_IO_FDS:
        store_le32(out, argsz);
        return 16;
    case VFU_DEVICE_GET_REGION_INFO:
        store_le32(out, argsz);
        return 32;
    case VFU_DEVICE_RESET:
        return 0;
    default:
        return below(120);
    }
}

static void spoil(uint8_t *bytes, size_t size)
{
    for (unsigned n = below(4); n && size; n--) {
        if (one_in(2)) {
            bytes[below(size)] ^= 1u << below(8);
        } else if (size >= 8) {
            uint64_t number = any_number();
            memcpy(bytes + below(size - 7), &number, 8);
        }
    }
}

static void random_message(VfuCd *cd)
{
    VfuHeader header = {.id = any32(), .command = below(one_in(8) ? 24 : 17), .flags = one_in(3) ? 0x10 : 0};
    uint8_t message[sizeof header + 128];
    size_t size = sizeof header + any_payload(header.command, message + sizeof header);
    int fds[MOST_FDS];
    unsigned n_fds = one_in(3) ? 1 : one_in(30) ? below(MOST_FDS) : 0;

    if (one_in(40)) {
        header.flags =
            VFU_TYPE_REPLY | (one_in(2) ? VFU_ERROR : 0); /* nobody asked for it, or somebody did */
    }
    if (one_in(3)) {
        spoil(message + sizeof header, size - sizeof header);
    }
    header.size = size;
    memcpy(message, &header, sizeof header);
    if (one_in(60)) {
        spoil(message, sizeof header);
    }
    for (unsigned i = 0; i < n_fds; i++) {
        fds[i] = any_descriptor();
        g_assert_cmpint(fds[i], >=, 0);
    }
    size_t first = one_in(6) ? 1 + below(size - 1) : size;
    vfu_client_send_raw(cd->client, message, first, fds, n_fds);
    if (first < size) {
        g_main_context_iteration(NULL, FALSE);
        vfu_client_send_raw(cd->client, message + first, size - first, NULL, 0);
    }
    for (unsigned i = 0; i < n_fds; i++) {
        if (one_in(2) && (fcntl(fds[i], F_GET_SEALS) == 0)) {
            g_assert_cmpint(ftruncate(fds[i], 0), ==, 0); /* it may be mapped by now */
        }
        close(fds[i]);
    }
}

static void random_command(VfuCd *cd)
{
    static const uint8_t likely[] = {0x00, 0x12, 0x1b, 0x1e, 0x25, 0x28, 0x43, 0x46, 0x4a, 0x51,
                                     0x52, 0x55, 0x5a, 0xa8, 0xad, 0xb9, 0xbe, 0x15, 0x1a, 0x42};
    VfuCdPrd prds[33] = {{0}};
    uint8_t packet[16] = {0},
            fis[20] = {0x27,    0x80, one_in(8) ? any32() : 0xa0, one_in(8) ? any32() : below(2), 0, any32(),
                       any32(), 0xa0};

    for (unsigned i = 0, n = below(one_in(4) ? 32 : 4); i < n; i++) {
        prds[i] = (VfuCdPrd){one_in(4) ? any_number() : VFU_CD_DATA + below(0x800000), 1 + below(70000)};
    }
    packet[0] = one_in(8) ? any32() : likely[below(sizeof likely)];
    store_be32(packet + 2, one_in(8) ? any_number() : below(SECTORS));
    store_be16(packet + 7, one_in(8) ? any_number() : below(100));
    spoil(packet + 1, one_in(3) ? 15 : 0);
    spoil(fis, one_in(16) ? sizeof fis : 0);
    vfu_cd_issue(cd, below(32), fis, one_in(16) ? NULL : packet, prds);
    if (one_in(16)) {
        spoil(vfu_client_ram(cd->client, 0x1000), 0x400); /* the list, while it may be read */
    }
}

static void random_register(VfuCd *cd)
{
    static const uint32_t places[] = {VFU_CD_GHC,   VFU_CD_IS,     VFU_CD_PX_CLB, VFU_CD_PX_FB,
                                      VFU_CD_PX_IS, VFU_CD_PX_CMD, VFU_CD_PX_CMD, VFU_CD_PX_SCTL,
                                      VFU_CD_PX_CI, VFU_CD_PX_SERR};
    static const uint32_t values[] = {0, 1, 6, 0x11, 0x17, 0x80000001, 0x80000002, 0x1000, 0xffffffff};

    if (one_in(4)) {
        vfu_client_post(cd->client, VFU_REGION_CONFIG, below(0xfc), 1u << below(3), any_number());
    } else {
        vfu_cd_write(cd, places[below(G_N_ELEMENTS(places))],
                     one_in(4) ? any32() : values[below(G_N_ELEMENTS(values))]);
    }
}

/* Puts the port back to work; posted, since a spoilt header may have left the server waiting for more. */
static void revive(VfuCd *cd)
{
    vfu_client_post(cd->client, VFU_REGION_CONFIG, 4, 2, one_in(8) ? 2 : 6);
    vfu_cd_write(cd, VFU_CD_GHC, 0x80000002);
    vfu_cd_write(cd, VFU_CD_PX_SCTL, 0);
    vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
    vfu_cd_write(cd, VFU_CD_PX_CLB, 0x1000);
    vfu_cd_write(cd, VFU_CD_PX_CLB + 4, 0);
    vfu_cd_write(cd, VFU_CD_PX_FB, 0x2000);
    vfu_cd_write(cd, VFU_CD_PX_FB + 4, 0);
    vfu_cd_write(cd, VFU_CD_PX_IS, UINT32_MAX);
    vfu_cd_write(cd, VFU_CD_PX_CMD, 0x17);
}

static void random_moves(VfuCd *cd)
{
    for (unsigned n = below(60); n && !vfu_client_is_closed(cd->client, false); n--) {
        uint32_t what = below(100);

        if (what < 40) {
            random_message(cd);
        } else if (what < 65) {
            random_command(cd);
        } else if (what < 75) {
            random_register(cd);
        } else if (what < 78) {
            revive(cd);
        } else if (what < 80) {
            vfu_client_hold_dma(cd->client, one_in(2));
        } else if (what < 82) {
            vfu_client_fail_dma_at(cd->client, VFU_CD_DATA + below(0x800000));
        } else if (what < 84) {
            vfu_client_shorten_read(cd->client, below(64));
        } else {
            g_main_context_iteration(NULL, FALSE);
        }
        if (one_in(6)) {
            vfu_client_hold_dma(cd->client, false);
            vfu_client_settle(cd->client);
        }
    }
}

/* One that never gets as far as an agreed version, or claims one of its own. */
static void stranger(VfuCd *cd)
{
    uint8_t hello[sizeof(VfuVersionMsg) + sizeof VFU_CLIENT_QEMU_JSON] = {0};

    vfu_client_free(cd->client);
    cd->client = vfu_client_connect(cd->path);
    memcpy(hello + sizeof(VfuVersionMsg), VFU_CLIENT_QEMU_JSON, sizeof VFU_CLIENT_QEMU_JSON);
    for (unsigned n = 1 + below(8); n; n--) {
        spoil(hello, sizeof hello);
        vfu_client_send(cd->client, VFU_VERSION, 0, hello, one_in(4) ? below(sizeof hello) : sizeof hello,
                        NULL, 0);
        random_message(cd);
    }
    vfu_client_settle(cd->client);
}

static void check_recovers(VfuCd *cd, VfuClientRam kind)
{
    static const uint8_t ready[16] = {0};

    mmc_drive_close_tray(cd->drive);
    vfu_cd_reconnect(cd, kind);
    for (unsigned i = 0; i < 4; i++) {
        vfu_cd_command(cd, ready, 0); /* attentions of reset, tray and medium */
    }
    g_assert_cmphex(vfu_cd_read10(cd, 7, 8), ==, 0x50);
    vfu_cd_check(cd, VFU_CD_DATA, 7 * 2048, 8 * 2048);
}

static const struct {
    const char *path;
    VfuDmaMode mode;
    VfuClientRam kind;
} ways[] = {
    {"/fuzz-vfu/mmap-sealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_SEALED},
    {"/fuzz-vfu/mmap-unsealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_UNSEALED},
    {"/fuzz-vfu/message-sealed", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED},
    {"/fuzz-vfu/message-no-fd", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD},
};

static void test_fuzz(gconstpointer opaque)
{
    unsigned way = GPOINTER_TO_UINT(opaque), fds = 0;
    const char *seconds = g_getenv("SPINDLE_STRESS_SECONDS");
    gint64 end = g_get_monotonic_time() + (seconds ? atoi(seconds) : 1) * G_USEC_PER_SEC;
    g_autoptr(VfuCd) cd = vfu_cd_new(ways[way].mode, ways[way].kind, SECTORS * 2048 - 700);

    do {
        if (one_in(8)) {
            stranger(cd);
        } else {
            random_moves(cd);
        }
        check_recovers(cd, ways[way].kind);
        if (!fds) {
            fds = vfu_fixture_count_fds();
        }
        g_assert_cmpuint(vfu_fixture_count_fds(), ==, fds);
    } while (g_get_monotonic_time() < end);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_test_add_data_func(ways[i].path, GUINT_TO_POINTER(i), test_fuzz);
    }
    return g_test_run();
}
