/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * CUE sheets as libcdio reads them, a program of another hand: the same tracks at the same places, and the
 * same bytes in them.
 */
#include <cdio/cdio.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include "block/toc.h"
#include "hw/block/sector.h"
#include "util/bytes.h"

typedef struct Row {
    const char *name, *sheet;
} Row;

static const Row rows[] = {
    {"data", "FILE \"disc.bin\" BINARY\n  TRACK 01 MODE1/2352\n    INDEX 01 00:00:00\n"},
    {"data-and-audio",
     "FILE \"disc.bin\" BINARY\n  TRACK 01 MODE1/2352\n    INDEX 01 00:00:00\n  TRACK 02 AUDIO\n"
     "    FLAGS DCP\n    INDEX 00 00:02:00\n    INDEX 01 00:04:00\n  TRACK 03 AUDIO\n"
     "    INDEX 01 00:05:10\n"},
    {"mode-2",
     "FILE \"disc.bin\" BINARY\n  TRACK 01 MODE2/2352\n    INDEX 01 00:00:00\n  TRACK 02 MODE2/2352\n"
     "    INDEX 01 00:03:33\n"},
    {"audio", "CATALOG 4006408000000\nFILE \"disc.bin\" BINARY\n  TRACK 01 AUDIO\n    ISRC DEABC1234567\n"
              "    INDEX 01 00:00:00\n  TRACK 02 AUDIO\n    INDEX 01 00:01:00\n"},
};

static void make_disc(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "disc.bin", NULL);
    const unsigned sectors = 500;
    g_autofree uint8_t *data = g_malloc(sectors * 2352);
    for (unsigned i = 0; i < sectors; i++) {
        uint8_t *raw = data + i * 2352;
        for (unsigned at = 0; at < 2352; at += 4) {
            store_le32(raw + at, (i * 2352 + at) * 2654435761u);
        }
        sector_put_header(raw, i, 1);
    }
    g_assert_true(g_file_set_contents(path, (char *)data, sectors * 2352, NULL));
}

static track_format_t format_of(const BlockTrack *track)
{
    return track->mode == BLOCK_TRACK_AUDIO   ? TRACK_FORMAT_AUDIO
           : track->mode == BLOCK_TRACK_MODE1 ? TRACK_FORMAT_DATA
                                              : TRACK_FORMAT_XA;
}

static void compare(CdIo_t *cdio, BlockNode *node)
{
    const BlockToc *toc = block_toc(node);
    g_assert_cmpuint(cdio_get_num_tracks(cdio), ==, toc->tracks);
    for (unsigned i = 0; i < toc->tracks; i++) {
        const BlockTrack *track = &toc->track[i];
        uint8_t theirs[2352], ours[2352];
        g_assert_cmpint(cdio_get_track_lsn(cdio, (track_t)(i + 1)), ==, track->start);
        g_assert_cmpint(cdio_get_track_format(cdio, (track_t)(i + 1)), ==, format_of(track));
        if (track->mode == BLOCK_TRACK_AUDIO) {
            g_assert_cmpint(cdio_read_audio_sector(cdio, theirs, (lsn_t)track->start + 7), ==, 0);
            g_assert_cmpint(block_pread(node, track->offset + 7ull * track->stride, ours, 2352), ==, 0);
            g_assert_cmpmem(ours, 2352, theirs, 2352);
        } else if (track->mode == BLOCK_TRACK_MODE1) {
            g_assert_cmpint(cdio_read_mode1_sector(cdio, theirs, (lsn_t)track->start + 7, false), ==, 0);
            g_assert_cmpint(block_pread(node, track->offset + 7ull * track->stride, ours, 2352), ==, 0);
            g_assert_cmpmem(ours + 16, 2048, theirs, 2048);
        }
    }
    const BlockTrack *last = &toc->track[toc->tracks - 1];
    g_assert_cmpint(cdio_get_track_lsn(cdio, CDIO_CDROM_LEADOUT_TRACK), ==, last->start + last->sectors);
    g_autofree char *mcn = cdio_get_mcn(cdio);
    g_assert_cmpstr(toc->mcn, ==, mcn ? mcn : "");
}

static void test_row(gconstpointer data)
{
    const Row *row = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("spindle-cue-XXXXXX", NULL);
    g_autofree char *cue = g_build_filename(folder, "disc.cue", NULL);
    g_autofree char *bin = g_build_filename(folder, "disc.bin", NULL);
    make_disc(folder);
    g_assert_true(g_file_set_contents(cue, row->sheet, -1, NULL));
    g_autofree char *text = g_strdup_printf("cue,read-only=on,file.driver=file,file.filename=%s", cue);
    g_autoptr(Options) options = options_parse(text, "driver", NULL);
    BlockNode *node = block_open(options, &error);
    g_assert_no_error(error);
    CdIo_t *cdio = cdio_open(cue, DRIVER_BINCUE);
    g_assert_nonnull(cdio);
    compare(cdio, node);
    cdio_destroy(cdio);
    block_unref(node);
    g_unlink(bin);
    g_unlink(cue);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/cue/libcdio/%s", rows[i].name);
        g_test_add_data_func(name, &rows[i], test_row);
    }
    return g_test_run();
}
