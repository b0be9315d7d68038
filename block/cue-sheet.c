/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/cue-sheet.h"
#include "util/error.h"
#include <string.h>

#define FRAMES  75
#define MINUTE  (60 * FRAMES)
#define WORDS   8
#define INDEXES 100

/* The line being read, cut into words. */
typedef struct CueLine {
    const char *name;
    unsigned number;
    unsigned session; /* of the tracks that follow */
    char *words[WORDS];
    unsigned n;
} CueLine;

static bool line_error(const CueLine *line, GError **error, const char *message)
{
    return error_set(error, "%s:%u: %s", line->name, line->number, message);
}

void cue_sheet_free(CueSheet *sheet)
{
    if (!sheet) {
        return;
    }
    for (unsigned i = 0; i < sheet->n_files; i++) {
        g_free(sheet->files[i].name);
    }
    g_free(sheet);
}

/* Cuts `text` in place; what is in double quotes is one word. */
static void line_cut(CueLine *line, char *text)
{
    line->n = 0;
    for (char *p = text; line->n < WORDS; p++) {
        p += strspn(p, " \t\r");
        if (!*p) {
            return;
        }
        const bool quoted = *p == '"';
        p += quoted;
        line->words[line->n++] = p;
        p += strcspn(p, quoted ? "\"" : " \t\r");
        if (!*p) {
            return;
        }
        *p = '\0';
    }
}

/* Up to `most`, digits only. */
static bool parse_number(const char *text, unsigned most, unsigned *ret)
{
    unsigned value = 0;
    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        if (!g_ascii_isdigit(*text)) {
            return false;
        }
        value = value * 10 + (unsigned)(*text - '0');
        if (value > most) {
            return false;
        }
    }
    *ret = value;
    return true;
}

/* mm:ss:ff; minutes may have three digits for sheets of DVD size. */
static bool parse_msf(const char *text, uint32_t *ret)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 4);
    unsigned m, s, f;
    if (g_strv_length(parts) != 3 || !parse_number(parts[0], 999, &m) || !parse_number(parts[1], 59, &s) ||
        !parse_number(parts[2], FRAMES - 1, &f)) {
        return false;
    }
    *ret = m * MINUTE + s * FRAMES + f;
    return true;
}

/* A sheet comes from anywhere and must not read the user's other files (CVE-2024-4467's kind). */
static bool name_is_inside(const char *name)
{
    g_auto(GStrv) parts = g_strsplit_set(name, "/\\", -1);
    if (!*name || strchr(name, ':') || *name == '/' || *name == '\\') {
        return false;
    }
    for (char **part = parts; *part; part++) {
        if (!strcmp(*part, "..")) {
            return false;
        }
    }
    return true;
}

static bool do_file(CueSheet *sheet, const CueLine *line, GError **error)
{
    static const struct {
        const char *word;
        CueFileType type;
    } types[] = {{"BINARY", CUE_BINARY}, {"MOTOROLA", CUE_MOTOROLA}, {"WAVE", CUE_WAVE}};
    if (line->n < 3) {
        return line_error(line, error, "FILE needs a name and a type");
    }
    if (sheet->n_files == BLOCK_TOC_TRACKS) {
        return line_error(line, error, "Too many files");
    }
    if (!name_is_inside(line->words[1])) {
        return line_error(line, error,
                          "FILE must name a file in the sheet's own folder: a relative name without '..'");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        if (!g_ascii_strcasecmp(line->words[2], types[i].word)) {
            sheet->files[sheet->n_files++] = (CueFile){g_strdup(line->words[1]), types[i].type};
            return true;
        }
    }
    return line_error(line, error, "FILE type must be BINARY, MOTOROLA or WAVE");
}

static bool do_track(CueSheet *sheet, const CueLine *line, GError **error)
{
    static const struct {
        const char *word;
        BlockTrackMode mode;
        uint16_t stored, stride;
        bool cdi;
    } modes[] = {
        {"AUDIO", BLOCK_TRACK_AUDIO, 2352, 2352, false},
        {"CDG", BLOCK_TRACK_AUDIO, 2352, 2448, false},
        {"MODE1/2048", BLOCK_TRACK_MODE1, 2048, 2048, false},
        {"MODE1/2352", BLOCK_TRACK_MODE1, 2352, 2352, false},
        {"MODE2/2048", BLOCK_TRACK_MODE2, 2048, 2048, false},
        {"MODE2/2336", BLOCK_TRACK_MODE2, 2336, 2336, false},
        {"MODE2/2352", BLOCK_TRACK_MODE2, 2352, 2352, false},
        {"CDI/2336", BLOCK_TRACK_MODE2, 2336, 2336, true},
        {"CDI/2352", BLOCK_TRACK_MODE2, 2352, 2352, true},
    };
    unsigned number;
    if (line->n < 3 || !parse_number(line->words[1], BLOCK_TOC_TRACKS, &number)) {
        return line_error(line, error, "TRACK needs a number from 1 to 99 and a mode");
    }
    if (number != sheet->n_tracks + 1) {
        return line_error(line, error, "TRACK numbers must go up by one from 1");
    }
    if (sheet->n_files == 0) {
        return line_error(line, error, "TRACK before any FILE");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (!g_ascii_strcasecmp(line->words[2], modes[i].word)) {
            sheet->tracks[sheet->n_tracks++] = (CueTrack){
                .session = line->session,
                .line = line->number,
                .mode = modes[i].mode,
                .cdi = modes[i].cdi,
                .control = modes[i].mode == BLOCK_TRACK_AUDIO ? 0 : BLOCK_TRACK_DATA,
                .stored = modes[i].stored,
                .stride = modes[i].stride,
            };
            return true;
        }
    }
    return line_error(line, error, "Unsupported TRACK mode");
}

static CueTrack *current(CueSheet *sheet)
{
    return sheet->n_tracks ? &sheet->tracks[sheet->n_tracks - 1] : NULL;
}

static bool do_index(CueSheet *sheet, const CueLine *line, GError **error)
{
    CueTrack *track = current(sheet);
    unsigned number;
    uint32_t frames;
    if (!track || line->n < 3 || !parse_number(line->words[1], INDEXES - 1, &number) ||
        !parse_msf(line->words[2], &frames)) {
        return line_error(line, error, "INDEX needs a track, a number from 0 to 99 and a time");
    }
    CueIndex *index = number == 0 ? &track->index0 : &track->index1;
    if (number > 1) { /* inside the track: nothing that a drive tells */
        return track->index1.given || line_error(line, error, "INDEX 01 is missing");
    }
    if (index->given || track->index1.given) {
        return line_error(line, error, "INDEX numbers must go up");
    }
    *index = (CueIndex){true, sheet->n_files - 1, frames};
    return true;
}

static bool do_gap(CueSheet *sheet, const CueLine *line, bool post, GError **error)
{
    CueTrack *track = current(sheet);
    uint32_t frames;
    if (!track || line->n < 2 || !parse_msf(line->words[1], &frames)) {
        return line_error(line, error, "PREGAP and POSTGAP need a track and a time");
    }
    *(post ? &track->postgap : &track->pregap) = frames;
    return true;
}

static bool do_flags(CueSheet *sheet, const CueLine *line, GError **error)
{
    CueTrack *track = current(sheet);
    if (!track) {
        return line_error(line, error, "FLAGS before any TRACK");
    }
    for (unsigned i = 1; i < line->n; i++) {
        if (!g_ascii_strcasecmp(line->words[i], "DCP")) {
            track->control |= BLOCK_TRACK_COPY;
        } else if (!g_ascii_strcasecmp(line->words[i], "PRE")) {
            track->control |= BLOCK_TRACK_PREEMPHASIS;
        } else if (!g_ascii_strcasecmp(line->words[i], "4CH")) {
            track->control |= BLOCK_TRACK_4CHANNELS;
        }
    }
    return true;
}

/* Text of exactly so many letters and digits. */
static bool take_code(const CueLine *line, size_t len, char *ret)
{
    if (line->n < 2 || strlen(line->words[1]) != len) {
        return false;
    }
    for (const char *p = line->words[1]; *p; p++) {
        if (!g_ascii_isalnum(*p)) {
            return false;
        }
    }
    memcpy(ret, line->words[1], len + 1);
    return true;
}

static bool do_rem(CueLine *line, GError **error)
{
    unsigned session;
    if (line->n < 2 || g_ascii_strcasecmp(line->words[1], "SESSION")) {
        return true;
    }
    if (line->n < 3 || !parse_number(line->words[2], BLOCK_TOC_TRACKS, &session) ||
        (session != line->session && session != line->session + 1) || session == 0) {
        return line_error(line, error, "REM SESSION numbers must go up by one from 1");
    }
    line->session = session;
    return true;
}

static bool do_line(CueSheet *sheet, CueLine *line, GError **error)
{
    static const char *const ignored[] = {"TITLE", "PERFORMER", "SONGWRITER", "CDTEXTFILE", NULL};
    const char *word = line->words[0];
    if (!g_ascii_strcasecmp(word, "FILE")) {
        return do_file(sheet, line, error);
    }
    if (!g_ascii_strcasecmp(word, "TRACK")) {
        return do_track(sheet, line, error);
    }
    if (!g_ascii_strcasecmp(word, "INDEX")) {
        return do_index(sheet, line, error);
    }
    if (!g_ascii_strcasecmp(word, "PREGAP") || !g_ascii_strcasecmp(word, "POSTGAP")) {
        return do_gap(sheet, line, g_ascii_toupper(word[1]) == 'O', error);
    }
    if (!g_ascii_strcasecmp(word, "FLAGS")) {
        return do_flags(sheet, line, error);
    }
    if (!g_ascii_strcasecmp(word, "CATALOG")) {
        take_code(line, 13, sheet->catalog); /* a wrong one is worth no refusal */
        return true;
    }
    if (!g_ascii_strcasecmp(word, "ISRC")) {
        if (current(sheet)) {
            take_code(line, 12, current(sheet)->isrc);
        }
        return true;
    }
    if (!g_ascii_strcasecmp(word, "REM")) {
        return do_rem(line, error);
    }
    for (unsigned i = 0; ignored[i]; i++) {
        if (!g_ascii_strcasecmp(word, ignored[i])) {
            return true;
        }
    }
    return line_error(line, error, "Not a command of a CUE sheet");
}

static bool check_tracks(const CueSheet *sheet, const CueLine *line, GError **error)
{
    if (sheet->n_tracks == 0) {
        return error_set(error, "%s: Not a CUE sheet: it has no TRACK", line->name);
    }
    unsigned session = 0;
    for (unsigned i = 0; i < sheet->n_tracks; i++) {
        const CueTrack *track = &sheet->tracks[i];
        if (!track->index1.given) {
            return error_set(error, "%s:%u: Track %u has no INDEX 01", line->name, track->line, i + 1);
        }
        if (track->session > session + 1) {
            return error_set(error, "%s:%u: Session %u has no track", line->name, track->line, session + 1);
        }
        if (track->mode != BLOCK_TRACK_AUDIO && sheet->files[track->index1.file].type != CUE_BINARY) {
            return error_set(error, "%s:%u: Track %u is no audio: its file must be BINARY", line->name,
                             track->line, i + 1);
        }
        session = track->session;
    }
    return true;
}

CueSheet *cue_sheet_parse(const char *text, size_t len, const char *name, GError **error)
{
    g_autoptr(CueSheet) sheet = g_new0(CueSheet, 1);
    CueLine line = {.name = name, .session = 1};
    if (len > CUE_SHEET_MAX || memchr(text, '\0', len)) {
        error_set(error, "%s: Not a CUE sheet", name);
        return NULL;
    }
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* byte order mark */
        text += 3;
        len -= 3;
    }
    g_autofree char *copy = g_strndup(text, len);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        line.number = i + 1;
        line_cut(&line, lines[i]);
        if (line.n > 0 && !do_line(sheet, &line, error)) {
            return NULL;
        }
    }
    if (!check_tracks(sheet, &line, error)) {
        return NULL;
    }
    return g_steal_pointer(&sheet);
}
