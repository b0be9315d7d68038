/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A guest's driver for the drive on port 0 of a controller that spindled serves, for scripts:
 *
 *   cd-client SOCKET [PERIOD | disk]
 *
 * Reads commands from standard input, and in between asks every PERIOD milliseconds (50; 0: never, but once)
 * for a media event and whether the drive is ready; `disk`: never, it is none for discs. Each line of output
 * begins with the seconds since the machine started:
 *
 *   event E           media event E of GET EVENT STATUS NOTIFICATION (1 eject request, 2 new, 3 removal)
 *   ready KKAAQQ      what TEST UNIT READY says now, when it says something else than before
 *   capacity N        in sectors, when it became ready
 *
 * Commands, and their lines:
 *
 *   cdb LENGTH HEX       sends the CDB, takes up to LENGTH bytes: `cdb KKAAQQ HEX`, sense and data
 *   reads N COUNT        N READ(10) of COUNT sectors in order, from the start again at the end:
 *                        `reads KKAAQQ MS`
 *   sum LBA COUNT        READ(10): `sum KKAAQQ SHA1`
 *   places LBA N COUNT   N sectors by READ(10) of COUNT, each 8 bytes of which hold their place, big
 *                        endian: `places KKAAQQ GOOD MS`, with those up to the first wrong one
 *   write LBA BYTE       to a disk, a sector full of BYTE (hexadecimal): `write TFD`, once it ended
 *   reg OFFSET           the register at hexadecimal OFFSET of the ABAR: `reg VALUE`
 *   up                   starts the port, as a driver does with a drive that has come: `up`
 *   stuck LBA COUNT      a READ(10) that is not waited for, 200 reads of a register, a reset of the port
 *                        and the way back: `stuck BUSY US MS`, with whether the command was under way all
 *                        the time, the slowest of the reads, and the reset
 *   mark TEXT            `mark TEXT`
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "tests/lib/vfu-cd.h"
#include "util/bytes.h"

typedef struct Script {
    VfuCd *cd;
    uint32_t ready, capacity; /* as told last */
} Script;

static void say(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void say(const char *format, ...)
{
    struct timespec t;
    va_list args;
    clock_gettime(CLOCK_BOOTTIME, &t);
    printf("%ld.%03ld ", (long)t.tv_sec, t.tv_nsec / 1000000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* The sense as 0xKKAAQQ. */
static uint32_t run(Script *s, const uint8_t *cdb, uint32_t bytes)
{
    return vfu_cd_command(s->cd, cdb, bytes) & 1 ? vfu_cd_sense(s->cd) : 0;
}

static const uint8_t *data(Script *s)
{
    return vfu_client_ram(s->cd->client, VFU_CD_DATA);
}

static void ask(Script *s)
{
    static const uint8_t event[16] = {0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8}, ready[16] = {0},
                         capacity[16] = {0x25};
    if (run(s, event, 8) == 0 && data(s)[4] & 0x0f) {
        say("event %u", data(s)[4] & 0x0f);
    }
    const uint32_t sense = run(s, ready, 0);
    if (sense != s->ready) {
        s->ready = sense;
        say("ready %06x", sense);
        if (sense == 0 && run(s, capacity, 8) == 0) {
            s->capacity = load_be32(data(s)) + 1;
            say("capacity %u", s->capacity);
        }
    }
}

static void command_cdb(Script *s, const char *args)
{
    uint8_t cdb[16] = {0};
    unsigned length = 0;
    int at = 0;
    sscanf(args, "%u %n", &length, &at);
    for (unsigned i = 0; i < sizeof cdb && sscanf(args + at + 2 * i, "%2" SCNx8, &cdb[i]) == 1; i++) {
    }
    const uint32_t sense = run(s, cdb, length);
    const uint32_t got = length ? vfu_cd_prdbc(s->cd, 0) : 0;
    g_autoptr(GString) hex = g_string_new(NULL);
    for (uint32_t i = 0; sense == 0 && i < MIN(got, 4096); i++) {
        g_string_append_printf(hex, "%02x", data(s)[i]);
    }
    say("cdb %06x %s", sense, hex->str);
}

static uint32_t read10(Script *s, uint32_t lba, uint16_t count)
{
    return vfu_cd_read10(s->cd, lba, count) & 1 ? vfu_cd_sense(s->cd) : 0;
}

static void command_reads(Script *s, const char *args)
{
    unsigned n = 0, count = 0;
    uint32_t lba = 0, sense = 0;
    sscanf(args, "%u %u", &n, &count);
    const gint64 begun = g_get_monotonic_time();
    for (unsigned i = 0; i < n && sense == 0; i++) {
        lba = lba + count > s->capacity ? 0 : lba;
        sense = read10(s, lba, (uint16_t)count);
        lba += count;
    }
    say("reads %06x %" PRId64, sense, (g_get_monotonic_time() - begun) / 1000);
}

static void command_sum(Script *s, const char *args)
{
    unsigned lba = 0, count = 0;
    sscanf(args, "%u %u", &lba, &count);
    const uint32_t sense = read10(s, lba, (uint16_t)count);
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA1, data(s), count * 2048u);
    say("sum %06x %s", sense, sum);
}

/* Sectors of `data`, which begins at `lba`, before the first with a word that is not its place. */
static unsigned sectors_in_place(const uint8_t *bytes, uint32_t lba, unsigned count)
{
    for (uint64_t i = 0; i < count * UINT64_C(2048); i += 8) {
        if (load_be64(bytes + i) != lba * UINT64_C(2048) + i) {
            return i / 2048;
        }
    }
    return count;
}

static void command_places(Script *s, const char *args)
{
    unsigned lba = 0, all = 0, count = 0, good = 0, now = 1;
    uint32_t sense = 0;
    sscanf(args, "%u %u %u", &lba, &all, &count);
    const gint64 begun = g_get_monotonic_time();
    while (good < all && sense == 0 && now > 0) {
        now = MIN(count, all - good);
        sense = read10(s, lba + good, (uint16_t)now);
        const unsigned right = sense ? 0 : sectors_in_place(data(s), lba + good, now);
        good += right;
        now = right < now ? 0 : now;
    }
    say("places %06x %u %" PRId64, sense, good, (g_get_monotonic_time() - begun) / 1000);
}

static void command_write(Script *s, const char *args)
{
    unsigned lba = 0, byte = 0;
    sscanf(args, "%u %x", &lba, &byte);
    const uint8_t fis[20] = {0x27, 0x80,    0x35, 0, lba & 0xff, lba >> 8 & 0xff, lba >> 16 & 0xff,
                             0x40, [12] = 1}; /* WRITE DMA EXT */
    const VfuCdPrd prds[2] = {{VFU_CD_DATA, 512}};
    memset(vfu_client_ram(s->cd->client, VFU_CD_DATA), (int)byte, 512);
    vfu_cd_issue(s->cd, 0, fis, NULL, prds);
    say("write %02x", vfu_cd_wait(s->cd, 0));
}

static void command_reg(Script *s, const char *args)
{
    unsigned offset = 0;
    sscanf(args, "%x", &offset);
    say("reg %08x", vfu_cd_read(s->cd, offset));
}

static void command_stuck(Script *s, const char *args)
{
    unsigned lba = 0, count = 0;
    sscanf(args, "%u %u", &lba, &count);
    const uint8_t packet[16] = {0x28, [2] = lba >> 24 & 0xff, lba >> 16 & 0xff, lba >> 8 & 0xff, lba & 0xff,
                                0,    count >> 8 & 0xff,      count & 0xff};
    const VfuCdPrd prds[2] = {{VFU_CD_DATA, count * 2048}};
    gint64 slowest = 0;
    bool busy = true;
    vfu_cd_packet(s->cd, 0, packet, 1, 0xf000, prds);
    for (int i = 0; i < 200; i++) {
        const gint64 begun = g_get_monotonic_time();
        busy &= vfu_cd_read(s->cd, VFU_CD_PX_CI) & 1;
        slowest = MAX(slowest, g_get_monotonic_time() - begun);
        g_usleep(1000);
    }
    const gint64 begun = g_get_monotonic_time();
    vfu_cd_write(s->cd, VFU_CD_PX_CMD, 0x10); /* ST off */
    vfu_cd_write(s->cd, VFU_CD_PX_SCTL, 1);
    vfu_cd_write(s->cd, VFU_CD_PX_SCTL, 0);
    vfu_cd_port_up(s->cd);
    say("stuck %d %" PRId64 " %" PRId64, busy, slowest, (g_get_monotonic_time() - begun) / 1000);
}

static void obey(Script *s, const char *line)
{
    if (g_str_has_prefix(line, "cdb ")) {
        command_cdb(s, line + 4);
    } else if (g_str_has_prefix(line, "reads ")) {
        command_reads(s, line + 6);
    } else if (g_str_has_prefix(line, "sum ")) {
        command_sum(s, line + 4);
    } else if (g_str_has_prefix(line, "places ")) {
        command_places(s, line + 7);
    } else if (g_str_has_prefix(line, "write ")) {
        command_write(s, line + 6);
    } else if (g_str_has_prefix(line, "reg ")) {
        command_reg(s, line + 4);
    } else if (g_str_has_prefix(line, "stuck ")) {
        command_stuck(s, line + 6);
    } else if (!strcmp(line, "up")) {
        vfu_cd_recover(s->cd);
        say("up");
    } else {
        say("%s", line);
    }
}

int main(int argc, char **argv)
{
    Script s = {.ready = UINT32_MAX};
    char line[512];
    if (argc < 2) {
        fprintf(stderr, "usage: cd-client SOCKET [PERIOD | disk]\n");
        return 2;
    }
    const bool disk = argc > 2 && !strcmp(argv[2], "disk");
    const int period = argc > 2 ? atoi(argv[2]) : 50;
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees all that is left */
    s.cd = vfu_cd_attach(argv[1]);
    if (disk) {
        say("ready");
    } else {
        ask(&s);
    }
    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};
        if (poll(&in, 1, period ? period : -1) > 0) {
            if (!fgets(line, sizeof line, stdin)) {
                break;
            }
            obey(&s, g_strchomp(line));
        } else {
            ask(&s);
        }
    }
    vfu_cd_free(s.cd);
    return 0;
}
