/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * CUE sheets: what they may say, where the tracks come to lie, what they may not reach; and a drive with such
 * a disc in it.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include "block/cue-sheet.h"
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define ONE "FILE \"a.bin\" BINARY\n"
#define T1  ONE "TRACK 01 MODE1/2352\nINDEX 01 00:00:00\n"

static CueSheet *parse(const char *text, GError **error)
{
    return cue_sheet_parse(text, strlen(text), "x.cue", error);
}

typedef struct BadRow {
    const char *name, *text, *message;
} BadRow;

static const BadRow bad[] = {
    {"empty", "", "x.cue: Not a CUE sheet: it has no TRACK"},
    {"no-track", ONE, "x.cue: Not a CUE sheet: it has no TRACK"},
    {"other-text", "hello world\n", "x.cue:1: Not a command of a CUE sheet"},
    {"track-before-file", "TRACK 01 AUDIO\n", "x.cue:1: TRACK before any FILE"},
    {"track-2-first", ONE "TRACK 02 AUDIO\n", "x.cue:2: TRACK numbers must go up by one from 1"},
    {"track-100", ONE "TRACK 100 AUDIO\n", "x.cue:2: TRACK needs a number from 1 to 99 and a mode"},
    {"track-huge", ONE "TRACK 4294967297 AUDIO\n", "x.cue:2: TRACK needs a number from 1 to 99 and a mode"},
    {"track-without-mode", ONE "TRACK 01\n", "x.cue:2: TRACK needs a number from 1 to 99 and a mode"},
    {"mode", ONE "TRACK 01 MODE1/2324\n", "x.cue:2: Unsupported TRACK mode"},
    {"no-index-1", ONE "TRACK 01 AUDIO\nINDEX 00 00:00:00\n", "x.cue:2: Track 1 has no INDEX 01"},
    {"index-before-track", ONE "INDEX 01 00:00:00\n",
     "x.cue:2: INDEX needs a track, a number from 0 to 99 and a time"},
    /* CVE-2023-43641 */
    {"index-2-to-the-32", ONE "TRACK 01 AUDIO\nINDEX 4294967296 00:00:00\n",
     "x.cue:3: INDEX needs a track, a number from 0 to 99 and a time"},
    {"index-negative", ONE "TRACK 01 AUDIO\nINDEX -1 00:00:00\n",
     "x.cue:3: INDEX needs a track, a number from 0 to 99 and a time"},
    {"index-frame-75", ONE "TRACK 01 AUDIO\nINDEX 01 00:00:75\n",
     "x.cue:3: INDEX needs a track, a number from 0 to 99 and a time"},
    {"index-second-60", ONE "TRACK 01 AUDIO\nINDEX 01 00:60:00\n",
     "x.cue:3: INDEX needs a track, a number from 0 to 99 and a time"},
    {"index-two-parts", ONE "TRACK 01 AUDIO\nINDEX 01 00:00\n",
     "x.cue:3: INDEX needs a track, a number from 0 to 99 and a time"},
    {"index-backwards", ONE "TRACK 01 AUDIO\nINDEX 01 00:02:00\nINDEX 00 00:00:00\n",
     "x.cue:4: INDEX numbers must go up"},
    {"pregap-before-track", ONE "PREGAP 00:02:00\n", "x.cue:2: PREGAP and POSTGAP need a track and a time"},
    {"file-without-type", "FILE \"a.bin\"\n", "x.cue:1: FILE needs a name and a type"},
    {"file-mp3", "FILE \"a.mp3\" MP3\n", "x.cue:1: FILE type must be BINARY, MOTOROLA or WAVE"},
    {"file-absolute", "FILE \"/etc/passwd\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"file-dot-dot", "FILE \"b/../../a.bin\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"file-url", "FILE \"http://x/a.bin\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"file-drive-letter", "FILE \"C:\\a.bin\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"file-backslashes", "FILE \"..\\a.bin\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"file-no-name", "FILE \"\" BINARY\n",
     "x.cue:1: FILE must name a file in the sheet's own folder: a relative name without '..'"},
    {"data-in-a-wave", "FILE \"a.wav\" WAVE\nTRACK 01 MODE1/2352\nINDEX 01 00:00:00\n",
     "x.cue:2: Track 1 is no audio: its file must be BINARY"},
    {"session-0", "REM SESSION 0\n", "x.cue:1: REM SESSION numbers must go up by one from 1"},
    {"session-3", T1 "REM SESSION 3\n", "x.cue:4: REM SESSION numbers must go up by one from 1"},
    {"session-empty", "REM SESSION 2\n" T1, "x.cue:3: Session 1 has no track"},
};

static void test_bad(gconstpointer data)
{
    const BadRow *row = data;
    g_autoptr(GError) error = NULL;
    g_assert_null(parse(row->text, &error));
    g_assert_cmpstr(error->message, ==, row->message);
}

static void test_binary(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(cue_sheet_parse("a\0b", 3, "x.cue", &error));
    g_assert_cmpstr(error->message, ==, "x.cue: Not a CUE sheet");
}

typedef struct Place {
    uint8_t session;
    uint32_t start, pregap, sectors;
    uint64_t offset;
    uint16_t stride;
    bool stored;
} Place;

typedef struct LayoutRow {
    const char *name, *text;
    uint64_t sizes[4];
    const char *message; /* or: */
    unsigned n;
    Place places[4];
} LayoutRow;

static const LayoutRow layouts[] = {
    {"one", T1, {2352 * 100}, NULL, 1, {{1, 0, 0, 100, 0, 2352, false}}},
    {"one-2048",
     ONE "TRACK 1 MODE1/2048\nINDEX 1 00:00:00",
     {2048 * 100},
     NULL,
     1,
     {{1, 0, 0, 100, 0, 2048, false}}},
    {"bom-crlf-lower-case",
     "\xef\xbb\xbf"
     "file a.bin binary\r\n\ttrack 01 audio\r\n  index 01 00:00:00\r\n",
     {2352},
     NULL,
     1,
     {{1, 0, 0, 1, 0, 2352, false}}},
    {"first-pause",
     ONE "TRACK 01 AUDIO\nINDEX 00 00:00:00\nINDEX 01 00:02:00\n",
     {2352 * 200},
     NULL,
     1,
     {{1, 150, 150, 50, 150 * 2352, 2352, true}}},
    {"hidden-track",
     ONE "TRACK 01 AUDIO\nINDEX 01 00:02:00\n",
     {2352 * 200},
     NULL,
     1,
     {{1, 150, 150, 50, 150 * 2352, 2352, true}}},
    {"three-with-pauses",
     ONE "TRACK 01 AUDIO\nINDEX 01 00:00:00\nTRACK 02 AUDIO\nPREGAP 00:02:00\nINDEX 01 00:01:00\n"
         "TRACK 03 AUDIO\nINDEX 00 00:02:00\nINDEX 01 00:02:10\nINDEX 02 00:02:20\n",
     {2352 * 200},
     NULL,
     3,
     {{1, 0, 0, 75, 0, 2352, false},
      {1, 225, 150, 75, 75 * 2352, 2352, false},
      {1, 310, 10, 40, 160 * 2352, 2352, true}}},
    {"mixed-sizes-in-one-file",
     ONE "TRACK 01 MODE1/2048\nINDEX 01 00:00:00\nTRACK 02 MODE2/2336\nINDEX 01 00:01:00\n"
         "TRACK 03 AUDIO\nINDEX 01 00:02:00\n",
     {75 * 2048 + 75 * 2336 + 10 * 2352},
     NULL,
     3,
     {{1, 0, 0, 75, 0, 2048, false},
      {1, 75, 0, 75, 75 * 2048, 2336, false},
      {1, 150, 0, 10, 75 * 2048 + 75 * 2336, 2352, false}}},
    {"file-a-track",
     ONE "TRACK 01 MODE1/2352\nINDEX 01 00:00:00\nFILE b.bin BINARY\nTRACK 02 AUDIO\nINDEX 00 00:00:00\n"
         "INDEX 01 00:02:00\n",
     {2352 * 100, 2352 * 200},
     NULL,
     2,
     {{1, 0, 0, 100, 0, 2352, false}, {1, 250, 150, 50, 250 * 2352, 2352, true}}},
    {"pause-at-the-end-of-the-file-before",
     ONE "TRACK 01 AUDIO\nINDEX 01 00:00:00\nTRACK 02 AUDIO\nINDEX 00 00:01:00\nFILE b.bin BINARY\n"
         "INDEX 01 00:00:00\n",
     {2352 * 100, 2352 * 50},
     NULL,
     2,
     {{1, 0, 0, 75, 0, 2352, false}, {1, 100, 25, 50, 100 * 2352, 2352, true}}},
    {"sub-channel-between",
     ONE "TRACK 01 CDG\nINDEX 01 00:00:00\n",
     {2448 * 10},
     NULL,
     1,
     {{1, 0, 0, 10, 0, 2448, false}}},
    {"two-sessions",
     "REM SESSION 01\n" T1 "REM SESSION 02\nFILE b.bin BINARY\nTRACK 02 MODE1/2352\nINDEX 01 00:00:00\n",
     {2352 * 100, 2352 * 50},
     NULL,
     2,
     {{1, 0, 0, 100, 0, 2352, false}, {2, 100 + 11400, 150, 50, 100 * 2352, 2352, false}}},
    {"three-sessions",
     "REM SESSION 01\n" T1 "REM SESSION 02\nTRACK 02 MODE1/2352\nINDEX 00 00:01:00\nINDEX 01 00:03:00\n"
     "REM SESSION 03\nTRACK 03 AUDIO\nINDEX 01 00:04:00\n",
     {2352 * 400},
     NULL,
     3,
     {{1, 0, 0, 75, 0, 2352, false},
      {2, 75 + 11400, 150, 75, 225 * 2352, 2352, true},
      {3, 75 + 11400 + 75 + 6900, 150, 100, 300 * 2352, 2352, false}}},
    {"postgap",
     ONE "TRACK 01 AUDIO\nINDEX 01 00:00:00\nPOSTGAP 00:01:00\nTRACK 02 AUDIO\nINDEX 01 00:01:00\n",
     {2352 * 100},
     NULL,
     2,
     {{1, 0, 0, 75, 0, 2352, false}, {1, 150, 0, 25, 75 * 2352, 2352, false}}},
    {"short-last-sector", T1, {2352 * 10 + 100}, NULL, 1, {{1, 0, 0, 10, 0, 2352, false}}},
    {"empty-file", T1, {0}, "x.cue:2: Track 1 has no sector in its file", 0, {{0}}},
    {"less-than-a-sector", T1, {2351}, "x.cue:2: Track 1 has no sector in its file", 0, {{0}}},
    {"index-beyond-the-file",
     ONE "TRACK 01 AUDIO\nINDEX 01 10:00:00\n",
     {2352 * 10},
     "x.cue:2: Track 1 begins before the one before it, or beyond the end of its file",
     0,
     {{0}}},
    {"second-beyond-the-file",
     T1 "TRACK 02 AUDIO\nINDEX 01 10:00:00\n",
     {2352 * 10},
     "x.cue:2: Track 1 is longer than its file",
     0,
     {{0}}},
    {"backwards",
     ONE "TRACK 01 AUDIO\nINDEX 01 00:01:00\nTRACK 02 AUDIO\nINDEX 01 00:00:10\n",
     {2352 * 100},
     "x.cue:2: Track 1 has no sector in its file",
     0,
     {{0}}},
    {"pause-longer-than-itself",
     ONE "TRACK 01 AUDIO\nINDEX 00 00:01:00\nINDEX 01 00:00:00\n",
     {2352 * 100},
     "x.cue:2: Track 1 begins before the one before it, or beyond the end of its file",
     0,
     {{0}}},
};

static void test_layout(gconstpointer data)
{
    const LayoutRow *row = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(CueSheet) sheet = parse(row->text, &error);
    g_assert_no_error(error);
    g_autoptr(BlockToc) toc = cue_sheet_layout(sheet, row->sizes, "x.cue", &error);
    if (row->message) {
        g_assert_null(toc);
        g_assert_cmpstr(error->message, ==, row->message);
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpuint(toc->tracks, ==, row->n);
    for (unsigned i = 0; i < row->n; i++) {
        const BlockTrack *track = &toc->track[i];
        const Place *place = &row->places[i];
        g_assert_cmpuint(track->session, ==, place->session);
        g_assert_cmpuint(track->start, ==, place->start);
        g_assert_cmpuint(track->pregap, ==, place->pregap);
        g_assert_cmpuint(track->sectors, ==, place->sectors);
        g_assert_cmpuint(track->offset, ==, place->offset);
        g_assert_cmpuint(track->stride, ==, place->stride);
        g_assert_cmpint(track->pregap_stored, ==, place->stored);
    }
}

static void test_codes(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(CueSheet) sheet = parse("CATALOG 4006408000000\n" ONE "TRACK 01 AUDIO\nFLAGS DCP PRE 4CH SCMS\n"
                                      "ISRC DEABC1234567\nTITLE \"x y\"\nINDEX 01 00:00:00\n",
                                      &error);
    g_assert_no_error(error);
    g_assert_cmpstr(sheet->catalog, ==, "4006408000000");
    g_assert_cmpstr(sheet->tracks[0].isrc, ==, "DEABC1234567");
    g_assert_cmphex(sheet->tracks[0].control, ==, 0x0b);
    g_autoptr(CueSheet) wrong =
        parse("CATALOG 123\n" ONE "TRACK 01 AUDIO\nISRC tooshort\nINDEX 01 00:00:00\n", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(wrong->catalog, ==, "");
    g_assert_cmpstr(wrong->tracks[0].isrc, ==, "");
}

/* Damaged sheets: a refusal, or tracks that lie in their files and not on each other. */
static void test_mutations(void)
{
    const uint64_t sizes[BLOCK_TOC_TRACKS] = {2352 * 500, 2352 * 300, 2352 * 100, 5};
    const char *good =
        "REM SESSION 1\n" ONE "TRACK 01 MODE1/2352\nINDEX 01 00:00:00\nTRACK 02 AUDIO\n"
        "INDEX 00 00:03:00\nINDEX 01 00:05:00\nFILE b.bin BINARY\nTRACK 03 AUDIO\nPREGAP 00:02:00\n"
        "INDEX 01 00:00:00\nREM SESSION 2\nTRACK 04 MODE2/2352\nINDEX 01 00:02:00\n";
    unsigned accepted = 0;
    for (unsigned i = 0; i < 20000; i++) {
        g_autofree char *text = g_strdup(good);
        for (int n = g_test_rand_int_range(1, 4); n > 0; n--) {
            text[g_test_rand_int_range(0, (int)strlen(good))] =
                "0123456789 \n:\"-ABZ"[g_test_rand_int_range(0, 18)];
        }
        g_autoptr(CueSheet) sheet = parse(text, NULL);
        g_autoptr(BlockToc) toc = sheet ? cue_sheet_layout(sheet, sizes, "x.cue", NULL) : NULL;
        uint64_t end = 0;
        for (unsigned t = 0; toc && t < toc->tracks; t++) {
            const BlockTrack *track = &toc->track[t];
            g_assert_cmpuint(track->start - track->pregap, >=, end);
            g_assert_cmpuint(track->pregap, <=, track->start);
            g_assert_cmpuint(track->offset + (uint64_t)track->sectors * track->stride, <=, 2352 * 900 + 5);
            g_assert_true(!track->pregap_stored || track->offset >= (uint64_t)track->pregap * track->stride);
            end = track->start + track->sectors;
        }
        accepted += toc != NULL;
    }
    g_assert_cmpuint(accepted, >, 100);
}

/* The driver, on files. */

typedef struct Files {
    char *folder, *cue;
} Files;

static char *path_of(const Files *f, const char *name)
{
    return g_build_filename(f->folder, name, NULL);
}

static void put(const Files *f, const char *name, const void *data, size_t len)
{
    g_autofree char *path = path_of(f, name);
    g_assert_true(g_file_set_contents(path, data, (gssize)len, NULL));
}

static void files_setup(Files *f, const char *sheet)
{
    f->folder = g_dir_make_tmp("spindle-cue-XXXXXX", NULL);
    f->cue = path_of(f, "disc.cue");
    put(f, "disc.cue", sheet, strlen(sheet));
}

static void files_teardown(Files *f)
{
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = path_of(f, name);
        g_unlink(path);
    }
    g_rmdir(f->folder);
    g_free(f->folder);
    g_free(f->cue);
}

static char *cue_options(const Files *f)
{
    return g_strdup_printf("cue,read-only=on,file.driver=file,file.filename=%s", f->cue);
}

/* `sectors` sectors of `stride` bytes; each 32-bit word tells where it is. */
static void put_sectors(const Files *f, const char *name, unsigned sectors, unsigned stride, const void *head,
                        size_t head_len)
{
    const size_t len = head_len + (size_t)sectors * stride;
    g_autofree uint8_t *data = g_malloc(len);
    memcpy(data, head, head_len);
    for (size_t at = 0; at + 4 <= len - head_len; at += 4) {
        store_le32(data + head_len + at, (uint32_t)at * 2654435761u);
    }
    put(f, name, data, len);
}

static void check_words(const MmcGuest *g, size_t from, size_t len)
{
    g_assert_cmpuint(g->data->len, ==, len);
    for (size_t at = 0; at < len; at += 4) {
        g_assert_cmphex(load_le32(g->data->data + at), ==, (uint32_t)(from + at) * 2654435761u);
    }
}

static void test_disc_in_a_drive(void)
{
    Files f;
    MmcGuest g;
    uint8_t wave[46] =
        "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x44\xac\0\0\x10\xb1\2\0\4\0\x10\0data\xff\xff\xff\xff";
    files_setup(&f, "FILE data.bin BINARY\nTRACK 01 MODE1/2048\nINDEX 01 00:00:00\n"
                    "FILE audio.bin BINARY\nTRACK 02 AUDIO\nPREGAP 00:02:00\nINDEX 01 00:00:00\n"
                    "FILE big.raw MOTOROLA\nTRACK 03 AUDIO\nINDEX 01 00:00:00\n"
                    "FILE song.wav WAVE\nTRACK 04 AUDIO\nFLAGS DCP\nINDEX 01 00:00:00\n");
    put_sectors(&f, "data.bin", 100, 2048, "", 0);
    put_sectors(&f, "audio.bin", 80, 2352, "", 0);
    put_sectors(&f, "big.raw", 60, 2352, "", 0);
    put_sectors(&f, "song.wav", 40, 2352, wave, 44);
    g_autofree char *options = cue_options(&f);
    mmc_guest_setup(&g, options);
    assert_good(&g, 0x43, 0, 0, 0, 0, 0, 0, 0, 255);
    const uint32_t t2 = 250, t3 = 330, t4 = 390, end = 430;
    assert_data(&g, 0, 42, 1, 4, 0, 0x14, 1, 0, 0, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, t2, 0, 0x10, 3, 0, 0, 0,
                t3 >> 8, t3 & 255, 0, 0x12, 4, 0, 0, 0, t4 >> 8, t4 & 255, 0, 0x12, 0xaa, 0, 0, 0, end >> 8,
                end & 255);
    assert_good(&g, 0x28, 0, 0, 0, 0, 10, 0, 0, 20);
    check_words(&g, 10 * 2048, 20 * 2048);
    assert_good(&g, 0xbe, 1 << 2, 0, 0, 0, t2 + 3, 0, 0, 5, 0x10);
    check_words(&g, 3 * 2352, 5 * 2352);
    assert_good(&g, 0xbe, 1 << 2, 0, 0, (t4 + 39) >> 8, (t4 + 39) & 255, 0, 0, 1,
                0xf8); /* behind the header */
    check_words(&g, 39 * 2352, 2352);
    assert_good(&g, 0xbe, 1 << 2, 0, 0, (t3 + 7) >> 8, (t3 + 7) & 255, 0, 0, 2, 0x10); /* turned round */
    for (unsigned at = 0; at < g.data->len; at += 4) {
        const uint32_t word = (uint32_t)(7 * 2352 + at) * 2654435761u;
        g_assert_cmphex(load_le32(g.data->data + at), ==, (word & 0xff00ff) << 8 | (word >> 8 & 0xff00ff));
    }
    assert_good(&g, 0xbe, 1 << 2, 0, 0, 0, 100, 0, 0, 150, 0x10); /* the pause that is in no file: silence */
    for (unsigned i = 0; i < g.data->len; i++) {
        g_assert_cmphex(g.data->data[i], ==, 0);
    }
    assert_good(&g, 0xbe, 1 << 2, 0, 0, t3 >> 8, (t3 - 5) & 255, 0, 0, 10, 0x10); /* over a border of files */
    g_assert_cmpuint(g.data->len, ==, 10 * 2352);
    mmc_guest_teardown(&g);
    files_teardown(&f);
}

/* The node's bytes against the files', in reads of any place and length. */
static void test_reads_across_files(void)
{
    Files f;
    files_setup(&f, "FILE a BINARY\nTRACK 01 AUDIO\nINDEX 01 00:00:00\nFILE b MOTOROLA\nTRACK 02 AUDIO\n"
                    "INDEX 01 00:00:00\nFILE c BINARY\nTRACK 03 AUDIO\nINDEX 01 00:00:00\n");
    put_sectors(&f, "a", 3, 2352, "", 0);
    put_sectors(&f, "b", 2, 2352, "", 0);
    put_sectors(&f, "c", 3, 2352, "", 0);
    g_autofree char *options = cue_options(&f);
    BlockNode *node = mmc_guest_open(options);
    const size_t size = 8 * 2352;
    g_autofree uint8_t *whole = g_malloc(size), *part = g_malloc(size);
    g_assert_cmpuint(block_info(node)->size, ==, size);
    g_assert_true(block_info(node)->read_only);
    g_assert_cmpint(block_pread(node, 0, whole, size), ==, 0);
    for (unsigned i = 0; i < 3000; i++) {
        const size_t at = (size_t)g_test_rand_int_range(0, (int)size);
        const size_t len = (size_t)g_test_rand_int_range(1, (int)(size - at) + 1);
        g_assert_cmpint(block_pread(node, at, part, len), ==, 0);
        g_assert_cmpmem(part, len, whole + at, len);
    }
    block_unref(node);
    files_teardown(&f);
}

static void expect_refusal(const Files *f, const char *format)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = cue_options(f);
    g_autofree char *message =
        strstr(format, "%s") ? g_strdup_printf(format, f->folder, f->cue) : g_strdup(format);
    g_autoptr(Options) options = options_parse(text, "driver", NULL);
    g_assert_null(block_open(options, &error));
    g_assert_cmpstr(error->message, ==, message);
}

static void test_missing_file(void)
{
    Files f;
    files_setup(&f, T1);
    expect_refusal(&f, "Could not open '%s/a.bin': No such file or directory");
    files_teardown(&f);
}

static void test_symlink_out(void)
{
    Files f;
    files_setup(&f, T1);
    g_autofree char *link = path_of(&f, "a.bin");
    g_assert_cmpint(symlink("/etc/passwd", link), ==, 0);
    expect_refusal(&f, "'%s/a.bin' leads out of the folder of '%s'");
    files_teardown(&f);
}

static void test_symlink_inside(void)
{
    Files f;
    files_setup(&f, T1);
    put_sectors(&f, "real.bin", 10, 2352, "", 0);
    g_autofree char *link = path_of(&f, "a.bin");
    g_assert_cmpint(symlink("real.bin", link), ==, 0);
    g_autofree char *options = cue_options(&f);
    block_unref(mmc_guest_open(options));
    files_teardown(&f);
}

static void test_not_a_wave(void)
{
    static const struct {
        const char *head;
        size_t len;
        const char *message;
    } rows[] = {
        {"hello", 5, "'%s/a.wav' is not a WAVE file"},
        {"RIFF\0\0\0\0AVI fmt ", 16, "'%s/a.wav' is not a WAVE file"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x44\xac\0\0\x10\xb1\2\0\4\0\x10\0", 36,
         "'%s/a.wav' is not CD audio: PCM of 44100 Hz, 2 channels, 16 bits"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0", 22,
         "'%s/a.wav' is not CD audio: PCM of 44100 Hz, 2 channels, 16 bits"},
        {"RIFF\0\0\0\0WAVELIST\xff\xff\xff\xff", 20, "'%s/a.wav' has no WAVE data"},
        {"RIFF\0\0\0\0WAVEdata\4\0\0\0\0\0\0\0", 24, "'%s/a.wav' has no WAVE data"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Files f;
        files_setup(&f, "FILE a.wav WAVE\nTRACK 01 AUDIO\nINDEX 01 00:00:00\n");
        put(&f, "a.wav", rows[i].head, rows[i].len);
        expect_refusal(&f, rows[i].message);
        files_teardown(&f);
    }
}

/* A sheet from elsewhere does not name local files; the user does. */
static void test_files_by_node(void)
{
    g_autoptr(GError) error = NULL;
    const char *sheet = T1;
    BlockNode *text = mmc_guest_open("mem,node-name=sheet,size=64,read-only=off");
    BlockNode *bin = mmc_guest_open("mem,node-name=bin,size=23520,pattern=offset");
    g_autofree char *padded = g_strdup_printf("%-64s", sheet);
    g_assert_cmpuint(strlen(padded), ==, 64);
    g_assert_cmpint(block_pwrite(text, 0, padded, 64, 0), ==, 0);
    g_autoptr(Options) alone = options_parse("cue,read-only=on,file=sheet", "driver", NULL);
    g_assert_null(block_open(alone, &error));
    g_assert_cmpstr(error->message, ==,
                    "Parameter 'files.0' is missing: it says where 'a.bin' of the CUE sheet is");
    BlockNode *node = mmc_guest_open("cue,read-only=on,file=sheet,files.0=bin");
    g_assert_cmpuint(block_info(node)->size, ==, 23520);
    block_unref(node);
    block_unref(text);
    block_unref(bin);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *name = g_strdup_printf("/cue/bad/%s", bad[i].name);
        g_test_add_data_func(name, &bad[i], test_bad);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree char *name = g_strdup_printf("/cue/layout/%s", layouts[i].name);
        g_test_add_data_func(name, &layouts[i], test_layout);
    }
    g_test_add_func("/cue/bad/binary", test_binary);
    g_test_add_func("/cue/codes", test_codes);
    g_test_add_func("/cue/mutations", test_mutations);
    g_test_add_func("/cue/disc-in-a-drive", test_disc_in_a_drive);
    g_test_add_func("/cue/reads-across-files", test_reads_across_files);
    g_test_add_func("/cue/missing-file", test_missing_file);
    g_test_add_func("/cue/symlink-out", test_symlink_out);
    g_test_add_func("/cue/symlink-inside", test_symlink_inside);
    g_test_add_func("/cue/not-a-wave", test_not_a_wave);
    g_test_add_func("/cue/files-by-node", test_files_by_node);
    return g_test_run();
}
