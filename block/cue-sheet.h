/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The text of a CUE sheet, taken apart (CDRWIN's commands, and `REM SESSION`). Opens nothing and believes
 * nothing: file names are only checked for not leading out of a folder. Pure; any thread.
 */
#ifndef SPINDLE_BLOCK_CUE_SHEET_H
#define SPINDLE_BLOCK_CUE_SHEET_H

#include <glib.h>
#include "block/toc.h"

#define CUE_SHEET_MAX (256 * 1024) /* bytes of text */

typedef enum { CUE_BINARY, CUE_MOTOROLA, CUE_WAVE } CueFileType;

typedef struct CueFile {
    char *name; /* relative, without `..` */
    CueFileType type;
} CueFile;

/* A position: sectors from the start of a file's data. */
typedef struct CueIndex {
    bool given;
    unsigned file;
    uint32_t frames;
} CueIndex;

typedef struct CueTrack {
    unsigned session, line;
    BlockTrackMode mode;
    bool cdi;
    uint8_t control;
    uint16_t stored, stride;
    CueIndex index0, index1;
    uint32_t pregap, postgap; /* sectors that are in no file */
    char isrc[13];
} CueTrack;

typedef struct CueSheet {
    CueFile files[BLOCK_TOC_TRACKS];
    unsigned n_files;
    CueTrack tracks[BLOCK_TOC_TRACKS];
    unsigned n_tracks;
    char catalog[14];
} CueSheet;

/* `name` is for messages. NULL and an error that names the line. */
CueSheet *cue_sheet_parse(const char *text, size_t len, const char *name, GError **error);
void cue_sheet_free(CueSheet *sheet); /* NULL is allowed */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(CueSheet, cue_sheet_free)

/* Where the tracks lie: on the disc by the sheet, in the node by the sizes in bytes of the files' data, one
 * behind the other. NULL and an error when they do not fit. */
BlockToc *cue_sheet_layout(const CueSheet *sheet, const uint64_t *sizes, const char *name, GError **error);

#endif
