/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=cue`: a CUE sheet (`file`) and the files that it names. The node's bytes are the files' data one
 * behind the other; its table of contents (toc.h) says which of them are which track.
 *
 * A sheet on a local file system finds its files in its own folder and nowhere else: no name leads out of it,
 * and no symbolic link. For other sources, or to place them elsewhere, `files.0`, `files.1`, … name the nodes
 * (or hold their options) in the sheet's order. Read only.
 */
#include "block/block-int.h"
#include "block/cue-sheet.h"
#include "block/wave.h"
#include "util/error.h"
#include "util/iov.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 64 /* of a request inside one file */

typedef struct CueSegment {
    BlockNode *node;
    uint64_t start; /* byte in our node */
    uint64_t bytes;
    uint64_t offset; /* of `start` in the file */
    bool swap;       /* samples are big-endian there */
} CueSegment;

typedef struct CueState {
    CueSegment segments[BLOCK_TOC_TRACKS];
    unsigned n;
} CueState;

static CueSheet *read_sheet(BlockNode *node, GError **error)
{
    const BlockInfo *info = block_info(node->child);
    if (info->size == 0 || info->size > CUE_SHEET_MAX) {
        error_set(error, "'%s' is not a CUE sheet", info->filename);
        return NULL;
    }
    g_autofree char *text = g_malloc(info->size);
    const struct iovec iov = {text, info->size};
    const int ret = block_node_preadv(node->child, 0, info->size, &iov, 1);
    if (ret < 0) {
        error_set_errno(error, ret, "Could not read '%s'", info->filename);
        return NULL;
    }
    return cue_sheet_parse(text, info->size, info->filename, error);
}

/* The real path of `name` below the sheet's real folder, or NULL and an error. */
static char *find_file(BlockNode *node, const char *name, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(block_info(node->child)->filename);
    g_autofree char *joined = g_build_filename(folder, name, NULL);
    char *real_folder = realpath(folder, NULL), *real = realpath(joined, NULL);
    char *path = NULL;
    if (!real) {
        error_set_errno(error, errno, "Could not open '%s'", joined);
    } else {
        g_autofree char *inside = g_strconcat(real_folder ? real_folder : "/", "/", NULL);
        if (real_folder &&
            g_str_has_prefix(real, g_str_has_suffix(real_folder, "/") ? real_folder : inside)) {
            path = g_strdup(real);
        } else {
            error_set(error, "'%s' leads out of the folder of '%s'", joined,
                      block_info(node->child)->filename);
        }
    }
    free(real_folder);
    free(real);
    return path;
}

/* The options of `files.N` that the user left to us. */
static bool name_file(BlockNode *node, Options *options, const char *role, const char *name, GError **error)
{
    if (options_has_prefix(options, role)) {
        return true;
    }
    if (strcmp(block_info(node->child)->driver, "file")) {
        return error_set(error, "Parameter '%s' is missing: it says where '%s' of the CUE sheet is", role,
                         name);
    }
    g_autofree char *path = find_file(node, name, error);
    g_autofree char *driver = g_strconcat(role, ".driver", NULL);
    g_autofree char *filename = g_strconcat(role, ".filename", NULL);
    g_autofree char *read_only = g_strconcat(role, ".read-only", NULL);
    if (!path) {
        return false;
    }
    options_set(options, driver, "file");
    options_set(options, filename, path);
    options_set(options, read_only, "on");
    return true;
}

static bool open_segment(BlockNode *node, Options *options, const CueFile *file, unsigned i, GError **error)
{
    CueState *s = node->state;
    CueSegment *segment = &s->segments[i];
    g_autofree char *role = g_strdup_printf("files.%u", i);
    if (!name_file(node, options, role, file->name, error)) {
        return false;
    }
    segment->node = block_node_open_extra_child(node, options, role, error);
    if (!segment->node) {
        return false;
    }
    segment->bytes = block_info(segment->node)->size;
    segment->swap = file->type == CUE_MOTOROLA;
    if (file->type == CUE_WAVE && !wave_find_data(segment->node, &segment->offset, &segment->bytes, error)) {
        return false;
    }
    segment->start = node->info.size;
    node->info.size += segment->bytes;
    node->info.slow |= block_info(segment->node)->slow;
    s->n = i + 1;
    return true;
}

static bool cue_open(BlockNode *node, Options *options, GError **error)
{
    CueState *s = node->state;
    uint64_t sizes[BLOCK_TOC_TRACKS];
    if (!block_node_open_child(node, options, "file", error)) {
        return false;
    }
    g_autoptr(CueSheet) sheet = read_sheet(node, error);
    if (!sheet) {
        return false;
    }
    node->info.size = 0;
    node->info.align = 1;
    for (unsigned i = 0; i < sheet->n_files; i++) {
        if (!open_segment(node, options, &sheet->files[i], i, error)) {
            return false;
        }
        sizes[i] = s->segments[i].bytes;
    }
    node->toc = cue_sheet_layout(sheet, sizes, block_info(node->child)->filename, error);
    return node->toc != NULL;
}

/* Samples turned round: read on even borders, swapped, and cut to what was asked for. */
static int read_swapped(const CueSegment *segment, uint64_t at, uint64_t bytes, const struct iovec *iov,
                        int niov, size_t skip)
{
    const uint64_t from = at & ~UINT64_C(1);
    const uint64_t to = MIN((at + bytes + 1) & ~UINT64_C(1), segment->bytes);
    g_autofree uint8_t *buf = g_try_malloc(to - from + 1);
    if (!buf) {
        return -ENOMEM;
    }
    const struct iovec whole = {buf, to - from};
    const int ret = block_node_preadv(segment->node, segment->offset + from, to - from, &whole, 1);
    for (uint64_t i = 0; i + 1 < to - from; i += 2) {
        const uint8_t low = buf[i + 1];
        buf[i + 1] = buf[i];
        buf[i] = low;
    }
    iov_from_buf(iov, niov, skip, buf + (at - from), bytes);
    return ret;
}

static int read_segment(const CueSegment *segment, uint64_t at, uint64_t bytes, const struct iovec *iov,
                        int niov, size_t skip, bool now)
{
    struct iovec pieces[PIECES];
    if (segment->swap) {
        return now ? -EAGAIN : read_swapped(segment, at, bytes, iov, niov, skip);
    }
    const int n = iov_slice(iov, niov, skip, bytes, pieces, PIECES);
    if (n >= 0) {
        return now ? block_node_read_now(segment->node, segment->offset + at, bytes, pieces, n)
                   : block_node_preadv(segment->node, segment->offset + at, bytes, pieces, n);
    }
    if (now) {
        return -EAGAIN;
    }
    g_autofree uint8_t *buf = g_try_malloc(bytes);
    const struct iovec whole = {buf, bytes};
    const int ret = buf ? block_node_preadv(segment->node, segment->offset + at, bytes, &whole, 1) : -ENOMEM;
    if (ret == 0) {
        iov_from_buf(iov, niov, skip, buf, bytes);
    }
    return ret;
}

static int read_range(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                      bool now)
{
    const CueState *s = node->state;
    const uint64_t end = offset + bytes;
    for (unsigned i = 0; i < s->n; i++) {
        const CueSegment *segment = &s->segments[i];
        const uint64_t from = MAX(offset, segment->start), to = MIN(end, segment->start + segment->bytes);
        if (from >= to) {
            continue;
        }
        const int ret =
            read_segment(segment, from - segment->start, to - from, iov, niov, (size_t)(from - offset), now);
        if (ret < 0) {
            return ret;
        }
    }
    return 0;
}

static int cue_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return read_range(node, offset, bytes, iov, niov, false);
}

static int cue_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return read_range(node, offset, bytes, iov, niov, true);
}

const BlockDriver block_driver_cue = {
    .name = "cue",
    .parallel = true,
    .state_size = sizeof(CueState),
    .open = cue_open,
    .preadv = cue_preadv,
    .read_now = cue_read_now,
};
