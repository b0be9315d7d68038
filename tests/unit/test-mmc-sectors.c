/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * READ CD and READ CD MSF: every selection on every kind of sector, on a plain image and on a disc of several
 * tracks and sessions.
 */
#include <string.h>
#include "hw/block/disc.h"
#include "hw/block/mmc-transfer.h"
#include "hw/block/msf.h"
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define DISC "mem,size=1M,pattern=offset"

/* SFF-8020i table 99 and MMC-6 table 352: bytes by flags 00h, 08h, 10h, … F8h; -1: illegal. */
typedef struct SizeRow {
    uint8_t flags;
    int mode1, formless, form1, form2;
} SizeRow;

static const SizeRow sizes[] = {
    {0x00, 0, 0, 0, 0},
    {0x08, -1, -1, -1, -1},
    {0x10, 2048, 2336, 2048, 2328},
    {0x18, 2336, 2336, 2328, 2328},
    {0x20, 4, 4, 4, 4},
    {0x28, -1, -1, -1, -1},
    {0x30, 2052, 2340, -1, -1},
    {0x38, 2340, 2340, -1, -1},
    {0x40, 8, 8, 8, 8},
    {0x48, -1, -1, -1, -1},
    {0x50, 2048, 2336, 2056, 2336},
    {0x58, 2336, 2336, 2336, 2336},
    {0x60, 12, 12, 12, 12},
    {0x68, -1, -1, -1, -1},
    {0x70, 2052, 2340, 2060, 2340},
    {0x78, 2340, 2340, 2340, 2340},
    {0x80, 12, 12, 12, 12},
    {0x88, -1, -1, -1, -1},
    {0x90, -1, -1, -1, -1},
    {0x98, -1, -1, -1, -1},
    {0xa0, 16, 16, 16, 16},
    {0xa8, -1, -1, -1, -1},
    {0xb0, 2064, 2352, -1, -1},
    {0xb8, 2352, 2352, -1, -1},
    {0xc0, -1, -1, -1, -1},
    {0xc8, -1, -1, -1, -1},
    {0xd0, -1, -1, -1, -1},
    {0xd8, -1, -1, -1, -1},
    {0xe0, 24, 24, 24, 24},
    {0xe8, -1, -1, -1, -1},
    {0xf0, 2064, 2352, 2072, 2352},
    {0xf8, 2352, 2352, 2352, 2352},
};

static MmcFields fields_of(uint8_t flags)
{
    return (MmcFields){
        .sync = flags & 0x80,
        .subheader = flags & 0x40,
        .header = flags & 0x20,
        .user = flags & 0x10,
        .edc = flags & 0x08,
    };
}

static void test_sizes(void)
{
    g_assert_cmpuint(G_N_ELEMENTS(sizes), ==, 32);
    for (unsigned i = 0; i < 32; i++) {
        const MmcFields fields = fields_of(sizes[i].flags);
        g_assert_cmpuint(sizes[i].flags, ==, i * 8);
        g_assert_cmpint(mmc_fields_size(&fields, SECTOR_TYPE_CDDA), ==, i ? 2352 : 0);
        g_assert_cmpint(mmc_fields_size(&fields, SECTOR_TYPE_MODE1), ==, sizes[i].mode1);
        g_assert_cmpint(mmc_fields_size(&fields, SECTOR_TYPE_MODE2), ==, sizes[i].formless);
        g_assert_cmpint(mmc_fields_size(&fields, SECTOR_TYPE_MODE2_FORM1), ==, sizes[i].form1);
        g_assert_cmpint(mmc_fields_size(&fields, SECTOR_TYPE_MODE2_FORM2), ==, sizes[i].form2);
    }
}

/* What the flags give of a whole sector, cut out by the layout's own offsets. */
static void expect_main(GByteArray *expect, const uint8_t *raw, uint8_t flags, SectorType type)
{
    static const uint8_t zeros[8];
    const SectorLayout *layout = sector_layout(type);
    const SectorField parts[] = {layout->sync, layout->header, layout->subheader, layout->user, layout->edc};
    const uint8_t bits[] = {0x80, 0x20, 0x40, 0x10, 0x08};
    if (type == SECTOR_TYPE_CDDA) {
        g_byte_array_append(expect, raw, flags ? 2352 : 0);
        return;
    }
    for (unsigned i = 0; i < 5; i++) {
        if (!(flags & bits[i])) {
            continue;
        }
        if (bits[i] == 0x40 && layout->subheader.length == 0 && !(flags & 0x10)) {
            g_byte_array_append(expect, zeros, 8);
        }
        g_byte_array_append(expect, raw + parts[i].offset, parts[i].length);
    }
}

static void make_q(uint8_t *q, uint8_t control, uint8_t track, uint8_t index, uint32_t lba, uint32_t rel)
{
    const uint32_t at[] = {rel, lba + 150};
    memset(q, 0, 12);
    q[0] = (uint8_t)(control << 4 | 1);
    q[1] = track;
    q[2] = index;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned value[] = {at[i] / 4500, at[i] / 75 % 60, at[i] % 75};
        for (unsigned b = 0; b < 3; b++) {
            q[3 + 4 * i + b] = (uint8_t)(value[b] / 10 * 16 + value[b] % 10);
        }
    }
    store_be16(q + 10, sector_q_crc(q)); /* proved in test-mmc-sector */
}

static void expect_sub(GByteArray *expect, const uint8_t *q, bool pause, unsigned sub)
{
    uint8_t bytes[96] = {0};
    if (sub == 2) {
        memcpy(bytes, q, 12);
        bytes[15] = pause ? 0x80 : 0;
    }
    for (unsigned i = 0; sub == 1 && i < 96; i++) {
        bytes[i] = (uint8_t)((pause ? 0x80 : 0) | ((q[i / 8] << i % 8 & 0x80) >> 1));
    }
    g_byte_array_append(expect, bytes, sub == 0 ? 0 : sub == 2 ? 16 : 96);
}

/* A sector of the plain image, mode 1. */
static void make_plain(uint8_t *raw, uint32_t lba)
{
    sector_put_header(raw, lba, 1);
    for (unsigned at = 0; at < 2048; at += 8) {
        store_le64(raw + 16 + at, lba * 2048ull + at);
    }
    sector_put_edc(raw, SECTOR_TYPE_MODE1);
}

/* All flags, with all C2 and sub-channel selections, two sectors each. */
static void test_every_selection(void)
{
    static const uint8_t subs[] = {0, 1, 2, 4}, zeros[296];
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    for (unsigned i = 0; i < 32 * 3 * 4; i++) {
        const uint8_t flags = sizes[i / 12].flags, c2 = i / 4 % 3, sub = subs[i % 4];
        g_autoptr(GByteArray) expect = g_byte_array_new();
        for (uint32_t lba = 100; lba < 102; lba++) {
            uint8_t raw[2352], q[12];
            make_plain(raw, lba);
            make_q(q, 4, 1, 1, lba, lba);
            expect_main(expect, raw, flags, SECTOR_TYPE_MODE1);
            g_byte_array_append(expect, zeros, c2 == 0 ? 0 : c2 == 1 ? 294 : 296);
            expect_sub(expect, q, false, sub);
        }
        const uint8_t cdb[] = {0xbe, 0, 0, 0, 0, 100, 0, 0, 2, flags | c2 << 1, sub};
        const uint32_t sense = mmc_guest_run(&g, cdb, sizeof cdb);
        if (sizes[i / 12].mode1 < 0) {
            g_assert_cmphex(sense, ==, 0x052400);
            g_assert_cmpuint(g.data->len, ==, 0);
        } else {
            g_assert_cmphex(sense, ==, 0);
            g_assert_cmpmem(g.data->data, g.data->len, expect->data, expect->len);
        }
    }
    mmc_guest_teardown(&g);
}

static void test_refusals(void)
{
    static const struct {
        uint8_t cdb[12];
        uint32_t sense;
    } rows[] = {
        {{0xbe, 1 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x056400}, /* CD-DA */
        {{0xbe, 2 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0},        /* mode 1 */
        {{0xbe, 3 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x056400},
        {{0xbe, 4 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x056400},
        {{0xbe, 5 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x056400},
        {{0xbe, 6 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x052400},
        {{0xbe, 7 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x052400},
        {{0xbe, 1, 0, 0, 0, 0, 0, 0, 1, 0x10}, 0x052400},    /* relative address */
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x16}, 0x052400},    /* C2 code 3 */
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 3}, 0x052400}, /* sub-channel codes */
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 5}, 0x052400},
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 7}, 0x052400},
        {{0xbe, 0, 0, 0, 2, 0, 0, 0, 1, 0x10}, 0x052100},             /* LBA 512 of 512 */
        {{0xbe, 0, 0, 0, 1, 0xff, 0, 0, 2, 0x10}, 0x052100},          /* runs over the end */
        {{0xbe, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0x10}, 0x052100}, /* LBA -1 */
        {{0xbe, 0, 0xff, 0xff, 0xff, 0x6a, 0, 0, 1, 0x10}, 0x052100}, /* LBA -150 */
        {{0xbe, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x10}, 0x052100},
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}, 0},         /* no sectors */
        {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x00}, 0},         /* no fields */
        {{0xb9, 0, 0, 0, 2, 0, 0, 2, 0, 0x10}, 0},         /* empty range */
        {{0xb9, 0, 0, 0, 2, 75, 0, 3, 0, 0x10}, 0x052400}, /* frame 75 */
        {{0xb9, 0, 0, 0, 60, 0, 1, 3, 0, 0x10}, 0x052400}, /* second 60 */
        {{0xb9, 0, 0, 0, 3, 0, 0, 2, 0, 0x10}, 0x052400},  /* backwards */
        {{0xb9, 0, 0, 0, 1, 0, 0, 2, 1, 0x10}, 0x052100},  /* before LBA 0 */
        {{0xb9, 0, 0, 0, 2, 0, 0, 8, 63, 0x10}, 0x052100}, /* one too many */
    };
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmphex(mmc_guest_run(&g, rows[i].cdb, 12), ==, rows[i].sense);
        g_assert_cmpuint(g.data->len, ==, rows[i].sense || i != 1 ? 0 : 2048);
    }
    mmc_guest_teardown(&g);
}

static void test_msf_form(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0xbe, 0, 0, 0, 0, 0, 0, 2, 0, 0xf8); /* all 512 sectors, raw: more than one chunk */
    g_assert_cmpuint(g.chunks, >, 1);
    g_autoptr(GByteArray) whole = g_byte_array_new();
    g_byte_array_append(whole, g.data->data, g.data->len);
    assert_good(&g, 0xb9, 0, 0, 0, 2, 0, 0, 8, 62, 0xf8);
    g_assert_cmpmem(g.data->data, g.data->len, whole->data, whole->len);
    g_assert_cmpuint(whole->len, ==, 512 * 2352);
    for (uint32_t lba = 0; lba < 512; lba++) {
        uint8_t raw[2352];
        make_plain(raw, lba);
        g_assert_cmpmem(whole->data + lba * 2352, 2352, raw, 2352);
    }
    mmc_guest_teardown(&g);
}

/* A DVD has user data and nothing else to give. */
static void test_dvd(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "null-co,size=4G");
    assert_good(&g, 0xbe, 0, 0, 0, 0, 0, 0, 0, 2, 0x10);
    g_assert_cmpuint(g.data->len, ==, 4096);
    assert_sense(&g, 0x056400, 0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0xf8);
    assert_sense(&g, 0x056400, 0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 1);
    assert_sense(&g, 0x056400, 0xbe, 1 << 2, 0, 0, 0, 0, 0, 0, 1, 0x10);
    mmc_guest_teardown(&g);
}

/* Three tracks in one session, a fourth in a second one. */
typedef struct Mixed {
    MmcGuest g;
    BlockNode *node;
    Disc *disc;
} Mixed;

enum {
    T1 = 0, /* mode 1, stored whole */
    T1_SECTORS = 300,
    T2 = 450, /* mode 2, 2336 stored, behind a pause that is not */
    T2_SECTORS = 150,
    T3 = 600, /* audio, with sub-channel between the sectors */
    T3_SECTORS = 100,
    T4 = 12100, /* mode 1, user data only, session 2 */
    T4_SECTORS = 50,
    END = T4 + T4_SECTORS,
};

static uint64_t offset_of(uint32_t lba)
{
    const uint64_t t2 = T1_SECTORS * 2352, t3 = t2 + T2_SECTORS * 2336, t4 = t3 + T3_SECTORS * 2448;
    return lba < T2   ? lba * 2352ull
           : lba < T3 ? t2 + (lba - T2) * 2336ull
           : lba < T4 ? t3 + (lba - T3) * 2448ull
                      : t4 + (lba - T4) * 2048ull;
}

static SectorType type_of(uint32_t lba)
{
    if (lba >= T2 && lba < T3) {
        return lba % 3 == 0 ? SECTOR_TYPE_MODE2_FORM2 : SECTOR_TYPE_MODE2_FORM1;
    }
    return lba >= T3 && lba < T3 + T3_SECTORS ? SECTOR_TYPE_CDDA : SECTOR_TYPE_MODE1;
}

/* The sector as it is on the disc. */
static void make_mixed(uint8_t *raw, uint32_t lba)
{
    const SectorType type = type_of(lba);
    for (unsigned i = 0; i < 2352; i++) {
        raw[i] = (uint8_t)(lba * 7 + i);
    }
    if (type == SECTOR_TYPE_CDDA) {
        return;
    }
    sector_put_header(raw, lba, type == SECTOR_TYPE_MODE1 ? 1 : 2);
    if (type != SECTOR_TYPE_MODE1) {
        const uint8_t subheader[8] = {1, 2, type == SECTOR_TYPE_MODE2_FORM2 ? 0x24 : 0x08, 3,
                                      1, 2, type == SECTOR_TYPE_MODE2_FORM2 ? 0x24 : 0x08, 3};
        memcpy(raw + 16, subheader, 8);
    }
    sector_put_edc(raw, type);
}

static void store_track(const Mixed *m, uint32_t start, uint32_t sectors, unsigned from, unsigned stored)
{
    for (uint32_t lba = start; lba < start + sectors; lba++) {
        uint8_t raw[2352];
        make_mixed(raw, lba);
        g_assert_cmpint(block_pwrite(m->node, offset_of(lba), raw + from, stored, 0), ==, 0);
    }
}

static void add_track(const Mixed *m, DiscTrack track)
{
    g_autoptr(GError) error = NULL;
    track.node = m->node;
    track.offset = offset_of(track.start);
    if (!track.stride) {
        track.stride = track.stored;
    }
    g_assert_nonnull(disc_add_track(m->disc, &track, &error));
    g_assert_no_error(error);
}

static void mixed_setup(Mixed *m)
{
    mmc_guest_setup(&m->g, NULL);
    m->node = mmc_guest_open("mem,size=8M");
    m->disc = disc_new_cd();
    store_track(m, T1, T1_SECTORS, 0, 2352);
    store_track(m, T2, T2_SECTORS, 16, 2336);
    store_track(m, T3, T3_SECTORS, 0, 2352);
    store_track(m, T4, T4_SECTORS, 16, 2048);
    add_track(
        m, (DiscTrack){.control = 4, .mode = DISC_MODE1, .start = T1, .sectors = T1_SECTORS, .stored = 2352});
    add_track(m, (DiscTrack){.control = 4,
                             .mode = DISC_MODE2,
                             .start = T2,
                             .pregap = 150,
                             .sectors = T2_SECTORS,
                             .stored = 2336});
    add_track(m, (DiscTrack){.control = 2,
                             .mode = DISC_AUDIO,
                             .start = T3,
                             .sectors = T3_SECTORS,
                             .stored = 2352,
                             .stride = 2448,
                             .isrc = "DEABC1234567"});
    g_assert_true(disc_end_session(m->disc, T3 + T3_SECTORS, NULL));
    add_track(
        m, (DiscTrack){.control = 4, .mode = DISC_MODE1, .start = T4, .sectors = T4_SECTORS, .stored = 2048});
    g_assert_true(disc_end_session(m->disc, END, NULL));
    m->disc->type = 0x20;
    memcpy(m->disc->mcn, "4006408000000", 13);
    mmc_drive_insert_disc(m->g.drive, m->node, m->disc, false);
}

static void mixed_teardown(Mixed *m)
{
    mmc_guest_teardown(&m->g);
    disc_unref(m->disc);
    block_unref(m->node);
}

static uint32_t read_cd(MmcGuest *g, SectorType type, uint32_t lba, uint32_t n, uint8_t flags, uint8_t sub)
{
    const uint8_t cdb[] = {0xbe, type << 2, lba >> 24, lba >> 16, lba >> 8, lba, 0, n >> 8, n, flags, sub};
    return mmc_guest_run(g, cdb, sizeof cdb);
}

/* Every sector of every track, every selection that is legal for its type. */
static void test_mixed_selections(void)
{
    Mixed m;
    mixed_setup(&m);
    const uint32_t lbas[] = {T1, T1 + 299, T2, T2 + 1, T2 + 149, T3, T3 + 99, T4, T4 + 49};
    for (unsigned i = 0; i < G_N_ELEMENTS(lbas) * 32; i++) {
        const uint32_t lba = lbas[i / 32];
        const SectorType type = type_of(lba);
        const MmcFields fields = fields_of((uint8_t)(i % 32 * 8));
        g_autoptr(GByteArray) expect = g_byte_array_new();
        uint8_t raw[2352];
        make_mixed(raw, lba);
        expect_main(expect, raw, (uint8_t)(i % 32 * 8), type);
        if (mmc_fields_size(&fields, type) < 0) {
            g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, lba, 1, (uint8_t)(i % 32 * 8), 0), ==, 0x052400);
            continue;
        }
        g_assert_cmphex(read_cd(&m.g, type, lba, 1, (uint8_t)(i % 32 * 8), 0), ==, 0);
        g_assert_cmpmem(m.g.data->data, m.g.data->len, expect->data, expect->len);
    }
    mixed_teardown(&m);
}

static void test_mixed_whole_tracks(void)
{
    Mixed m;
    mixed_setup(&m);
    const uint32_t tracks[][2] = {{T1, T1_SECTORS}, {T2, T2_SECTORS}, {T3, T3_SECTORS}, {T4, T4_SECTORS}};
    for (unsigned t = 0; t < 4; t++) {
        g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, tracks[t][0], tracks[t][1], 0xf8, 0), ==, 0);
        g_assert_cmpuint(m.g.data->len, ==, tracks[t][1] * 2352);
        for (uint32_t i = 0; i < tracks[t][1]; i++) {
            uint8_t raw[2352];
            make_mixed(raw, tracks[t][0] + i);
            g_assert_cmpmem(m.g.data->data + i * 2352, 2352, raw, 2352);
        }
    }
    mixed_teardown(&m);
}

/* What comes before the first wrong sector is given, then 05/64. */
static void test_mixed_type_changes(void)
{
    Mixed m;
    mixed_setup(&m);
    /* form 2 every third sector: 450 is one */
    g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_MODE2_FORM1, 451, 10, 0x10, 0), ==, 0x056400);
    g_assert_cmpuint(m.g.data->len, ==, 2 * 2048);
    g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, 450, 4, 0x10, 0), ==, 0);
    g_assert_cmpuint(m.g.data->len, ==, 2328 + 2048 + 2048 + 2328);
    /* data to audio, any type: the transition ends it */
    g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, T3 - 2, 4, 0xf8, 0), ==, 0x056400);
    g_assert_cmpuint(m.g.data->len, ==, 2 * 2352);
    /* into the gap between the sessions */
    g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, T3 + 98, 4, 0xf8, 0), ==, 0x056400);
    g_assert_cmpuint(m.g.data->len, ==, 2 * 2352);
    /* READ(10): 2048 bytes or nothing */
    assert_sense(&m.g, 0x056400, 0x28, 0, 0, 0, T3 >> 8, T3 & 255, 0, 0, 1);
    g_assert_cmpuint(m.g.data->len, ==, 0);
    assert_sense(&m.g, 0x056400, 0x28, 0, 0, 0, 451 >> 8, 451 & 255, 0, 0, 3);
    g_assert_cmpuint(m.g.data->len, ==, 2 * 2048);
    mixed_teardown(&m);
}

static void test_mixed_pause(void)
{
    Mixed m;
    uint8_t raw[2352] = {0};
    mixed_setup(&m);
    g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, 300, 150, 0x20, 0), ==, 0);
    sector_put_header(raw, 300, 2);
    g_assert_cmpuint(m.g.data->len, ==, 150 * 4);
    g_assert_cmpmem(m.g.data->data, 4, raw + 12, 4);
    mixed_teardown(&m);
}

static void test_mixed_sub_channel(void)
{
    static const struct {
        uint32_t lba;
        uint8_t control, track, index;
        uint32_t rel;
    } rows[] = {
        {0, 4, 1, 1, 0},   {299, 4, 1, 1, 299},    {300, 4, 2, 0, 150},  {449, 4, 2, 0, 1},
        {450, 4, 2, 1, 0}, {T3 + 77, 2, 3, 1, 77}, {T4 + 3, 4, 4, 1, 3},
    };
    Mixed m;
    mixed_setup(&m);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned sub = 1; sub <= 4; sub *= 2) {
            g_autoptr(GByteArray) expect = g_byte_array_new();
            uint8_t q[12];
            make_q(q, rows[i].control, rows[i].track, rows[i].index, rows[i].lba, rows[i].rel);
            expect_sub(expect, q, rows[i].index == 0, sub);
            g_assert_cmphex(read_cd(&m.g, SECTOR_TYPE_ANY, rows[i].lba, 1, 0, (uint8_t)sub), ==, 0);
            g_assert_cmpmem(m.g.data->data, m.g.data->len, expect->data, expect->len);
        }
    }
    mixed_teardown(&m);
}

static void test_mixed_toc(void)
{
    Mixed m;
    mixed_setup(&m);
    assert_good(&m.g, 0x25);
    assert_data(&m.g, 0, 0, (END - 1) >> 8, (END - 1) & 255, 0, 0, 8, 0);
    assert_good(&m.g, 0x43, 0, 0, 0, 0, 0, 3, 0, 255);
    assert_data(&m.g, 0, 26, 1, 4, 0, 0x12, 3, 0, 0, 0, T3 >> 8, T3 & 255, 0, 0x14, 4, 0, 0, 0, T4 >> 8,
                T4 & 255, 0, 0x14, 0xaa, 0, 0, 0, END >> 8, END & 255);
    assert_good(&m.g, 0x43, 0, 1, 0, 0, 0, 0, 0, 255);
    assert_data(&m.g, 0, 10, 1, 2, 0, 0x14, 4, 0, 0, 0, T4 >> 8, T4 & 255); /* what BeOS boots from */
    assert_good(&m.g, 0x43, 0, 2, 0, 0, 0, 1, 0, 255);
    const uint8_t first[] = {0, 134, 1, 2, 1, 0x14, 0, 0xa0, 0,    0, 0,    0, 1, 0x20, 0, 1, 0x12, 0, 0xa1,
                             0, 0,   0, 0, 3, 0,    0, 1,    0x12, 0, 0xa2, 0, 0, 0,    0, 0, 11,   25};
    g_assert_cmpuint(m.g.data->len, ==, 136); /* 12 entries of 11 bytes */
    g_assert_cmpmem(m.g.data->data, sizeof first, first, sizeof first);
    const uint8_t next[] = {1, 0x54, 0, 0xb0, 2, 41, 25, 2, 79, 59, 74,
                            1, 0x54, 0, 0xc0, 0, 0,  0,  0, 95, 0,  0};
    g_assert_cmpmem(m.g.data->data + 4 + 6 * 11, sizeof next, next, sizeof next);
    assert_good(&m.g, 0x43, 0, 2, 0, 0, 0, 2, 0, 255);
    g_assert_cmpuint(m.g.data->len, ==, 4 + 4 * 11);
    assert_good(&m.g, 0x51, 0, 0, 0, 0, 0, 0, 0, 9);
    assert_data(&m.g, 0, 32, 0x0e, 1, 2, 4, 4, 0x20, 0x20);
    assert_good(&m.g, 0x52, 1, 0, 0, 0, 2, 0, 0, 36);
    g_assert_cmphex(m.g.data->data[5], ==, 4);
    g_assert_cmphex(m.g.data->data[6], ==, 2);
    g_assert_cmphex(load_be32(m.g.data->data + 8), ==, T2);
    assert_good(&m.g, 0x52, 0, 0, 0, 300 >> 8, 300 & 255, 0, 0, 36); /* its pause belongs to the track */
    g_assert_cmphex(m.g.data->data[2], ==, 2);
    mixed_teardown(&m);
}

static void test_mixed_numbers(void)
{
    Mixed m;
    mixed_setup(&m);
    assert_good(&m.g, 0x42, 0, 0x40, 2, 0, 0, 0, 0, 255);
    g_assert_cmpmem(m.g.data->data + 8, 14,
                    "\x80"
                    "4006408000000",
                    14);
    assert_good(&m.g, 0x42, 0, 0x40, 3, 0, 0, 3, 0, 255);
    g_assert_cmpmem(m.g.data->data + 4, 4, "\x03\x12\x03\x00", 4);
    g_assert_cmpmem(m.g.data->data + 8, 13,
                    "\x80"
                    "DEABC1234567",
                    13);
    assert_sense(&m.g, 0x056400, 0x44, 0, 0, 0, T3 >> 8, T3 & 255, 0, 0, 8);
    assert_good(&m.g, 0x44, 0, 0, 0, T2 >> 8, T2 & 255, 0, 0, 8);
    g_assert_cmphex(m.g.data->data[0], ==, 2);
    assert_good(&m.g, 0x1a, 0, 0x01, 0, 4);
    g_assert_cmphex(m.g.data->data[1], ==, 3); /* data and audio */
    mixed_teardown(&m);
}

static void test_bad_discs(void)
{
    g_autoptr(GError) error = NULL;
    BlockNode *node = mmc_guest_open("mem,size=1M");
    g_autoptr(Disc) disc = disc_new_cd();
    DiscTrack track = {.mode = DISC_MODE1, .sectors = 10, .node = node, .stored = 2048, .stride = 2048};
    g_assert_false(disc_end_session(disc, 10, &error));
    g_clear_error(&error);
    g_assert_nonnull(disc_add_track(disc, &track, &error));
    g_assert_null(disc_add_track(disc, &track, &error)); /* on top of itself */
    g_clear_error(&error);
    track.start = 20;
    track.pregap = 11; /* reaches into track 1 */
    g_assert_null(disc_add_track(disc, &track, &error));
    g_clear_error(&error);
    track.pregap = 0;
    track.sectors = UINT32_MAX;
    g_assert_null(disc_add_track(disc, &track, &error));
    g_clear_error(&error);
    g_assert_false(disc_end_session(disc, 9, &error)); /* lead-out inside */
    g_clear_error(&error);
    g_assert_true(disc_end_session(disc, 10, &error));
    track.sectors = 1;
    for (unsigned i = 1; i < DISC_MAX_TRACKS; i++) {
        track.start = 20 + i;
        g_assert_nonnull(disc_add_track(disc, &track, &error));
    }
    track.start = 1000;
    g_assert_null(disc_add_track(disc, &track, &error));
    block_unref(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/read-cd/sizes", test_sizes);
    g_test_add_func("/mmc/read-cd/every-selection", test_every_selection);
    g_test_add_func("/mmc/read-cd/refusals", test_refusals);
    g_test_add_func("/mmc/read-cd/msf", test_msf_form);
    g_test_add_func("/mmc/read-cd/dvd", test_dvd);
    g_test_add_func("/mmc/mixed/selections", test_mixed_selections);
    g_test_add_func("/mmc/mixed/whole-tracks", test_mixed_whole_tracks);
    g_test_add_func("/mmc/mixed/type-changes", test_mixed_type_changes);
    g_test_add_func("/mmc/mixed/pause", test_mixed_pause);
    g_test_add_func("/mmc/mixed/sub-channel", test_mixed_sub_channel);
    g_test_add_func("/mmc/mixed/toc", test_mixed_toc);
    g_test_add_func("/mmc/mixed/numbers", test_mixed_numbers);
    g_test_add_func("/mmc/mixed/bad-discs", test_bad_discs);
    return g_test_run();
}
