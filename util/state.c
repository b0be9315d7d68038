/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/state.h"
#include <string.h>
#include "util/bytes.h"
#include "util/error.h"

#define MAGIC          "SPNDSTAT"
#define MAGIC_SIZE     8
#define FORMAT_VERSION 1
#define HEADER_SIZE    STATE_HEADER_SIZE /* magic, u32 format version, u64 bytes of the sections */
#define SUM_SIZE       32
#define NAME_MAX_SIZE  64
#define DEPTH_MAX      16

/* A section that is open. */
typedef struct Section {
    const StateOps *ops;
    unsigned version;
    size_t mark; /* saving: where its length goes; loading: where it ends */
} Section;

struct StateIo {
    bool loading;
    GByteArray *out;
    const uint8_t *in;
    size_t at, end; /* of `in`: read so far, and where the innermost section ends */
    Section open[DEPTH_MAX];
    unsigned depth;
    GError *error;
};

bool state_loading(const StateIo *io)
{
    return io->loading;
}

unsigned state_version(const StateIo *io)
{
    return io->depth ? io->open[io->depth - 1].version : FORMAT_VERSION;
}

bool state_failed(const StateIo *io)
{
    return io->error != NULL;
}

void state_fail(StateIo *io, const char *format, ...)
{
    va_list args;

    if (!io->loading || io->error) {
        return;
    }
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autoptr(GString) where = g_string_new(NULL);
    for (unsigned i = 0; i < io->depth; i++) {
        g_string_append_printf(where, "%s%s", i ? "/" : "", io->open[i].ops->name);
    }
    error_set(&io->error, "State of '%s': %s", where->str, text);
}

/* Bytes. */

void state_bytes(StateIo *io, void *bytes, size_t size)
{
    if (!io->loading) {
        g_byte_array_append(io->out, bytes, (guint)size);
        return;
    }
    if (!io->error && size > io->end - io->at) {
        state_fail(io, "it ends early");
    }
    if (io->error) {
        memset(bytes, 0, size);
        return;
    }
    memcpy(bytes, io->in + io->at, size);
    io->at += size;
}

void state_u8(StateIo *io, uint8_t *value)
{
    state_bytes(io, value, 1);
}

void state_u16(StateIo *io, uint16_t *value)
{
    uint8_t raw[2];

    store_le16(raw, *value);
    state_bytes(io, raw, sizeof raw);
    *value = load_le16(raw);
}

void state_u32(StateIo *io, uint32_t *value)
{
    uint8_t raw[4];

    store_le32(raw, *value);
    state_bytes(io, raw, sizeof raw);
    *value = load_le32(raw);
}

void state_u64(StateIo *io, uint64_t *value)
{
    uint8_t raw[8];

    store_le64(raw, *value);
    state_bytes(io, raw, sizeof raw);
    *value = load_le64(raw);
}

void state_range(StateIo *io, const char *field, uint64_t *value, uint64_t min, uint64_t max)
{
    state_u64(io, value);
    if (io->loading && (*value < min || *value > max)) {
        state_fail(io,
                   "%s is %" G_GUINT64_FORMAT ", which is not between %" G_GUINT64_FORMAT
                   " and %" G_GUINT64_FORMAT,
                   field, *value, min, max);
        *value = min;
    }
}

void state_bool(StateIo *io, bool *value)
{
    uint8_t raw = *value;

    state_u8(io, &raw);
    if (raw > 1) {
        state_fail(io, "a switch is neither off nor on");
    }
    *value = raw == 1;
}

void state_same(StateIo *io, const char *field, uint64_t value)
{
    uint64_t there = value;

    state_u64(io, &there);
    if (there != value) {
        state_fail(io, "%s is %" G_GUINT64_FORMAT " there and %" G_GUINT64_FORMAT " here", field, there,
                   value);
    }
}

void state_same_text(StateIo *io, const char *field, const char *text)
{
    char there[256] = "";
    uint8_t len = (uint8_t)MIN(strlen(text), 255);

    memcpy(there, text, len);
    state_u8(io, &len);
    state_bytes(io, there, len);
    there[len] = '\0';
    if (strncmp(there, text, 255) != 0) {
        g_autofree char *shown = g_strescape(there, NULL);
        state_fail(io, "%s is '%s' there and '%s' here", field, shown, text);
    }
}

void state_buffer(StateIo *io, const char *field, Buffer **buffer, size_t *len, size_t max, size_t room)
{
    uint64_t size = *buffer ? *len : 0;

    state_range(io, field, &size, 0, max);
    if (!io->loading) {
        if (size) {
            state_bytes(io, (*buffer)->data, size);
        }
        return;
    }
    *buffer = NULL;
    *len = 0;
    if (!io->error && size > io->end - io->at) {
        state_fail(io, "it ends early");
    }
    if (!io->error && size) {
        *buffer = buffer_new(MAX(size, room), BUFFER_ALIGN);
        *len = size;
        state_bytes(io, (*buffer)->data, size);
    }
}

/* Sections: a byte of name length, the name, u32 version, u32 length, content. */

static void section_begin(StateIo *io, const StateOps *ops)
{
    uint8_t len = (uint8_t)strlen(ops->name);
    Section *section = &io->open[io->depth];

    g_assert(len <= NAME_MAX_SIZE && io->depth < DEPTH_MAX);
    *section = (Section){.ops = ops, .version = ops->version};
    g_byte_array_append(io->out, &len, 1);
    g_byte_array_append(io->out, (const guint8 *)ops->name, len);
    state_u32(io, &section->version);
    section->mark = io->out->len;
    state_u32(io, &(uint32_t){0});
    io->depth++;
}

static void section_end(StateIo *io)
{
    Section *section = &io->open[--io->depth];

    store_le32(io->out->data + section->mark, (uint32_t)(io->out->len - section->mark - 4));
}

/* False after a failure. The section is open all the same, so that failures are told with its name. */
static bool section_enter(StateIo *io, const StateOps *ops)
{
    Section *section = &io->open[io->depth];
    char name[NAME_MAX_SIZE + 1] = "";
    uint8_t len;
    uint32_t size;

    g_assert(io->depth < DEPTH_MAX);
    *section = (Section){.ops = ops, .mark = io->end};
    state_u8(io, &len);
    state_bytes(io, name, MIN(len, NAME_MAX_SIZE));
    state_u32(io, &section->version);
    state_u32(io, &size);
    io->depth++;
    if (strcmp(name, ops->name) != 0) {
        g_autofree char *shown = g_strescape(name, NULL);
        state_fail(io, "in its place the state has '%s'", shown);
    } else if (section->version < 1 || section->version > ops->version) {
        state_fail(io, "its version is %u, this Spindle reads up to %u", section->version, ops->version);
    } else if (size > io->end - io->at) {
        state_fail(io, "it ends early");
    }
    if (!io->error) {
        io->end = io->at + size;
    }
    return !io->error;
}

static void section_leave(StateIo *io)
{
    if (!io->error && io->at != io->end) {
        state_fail(io, "%zu bytes at its end are not known", io->end - io->at);
    }
    io->end = io->open[--io->depth].mark;
}

void state_save(StateIo *io, const StateOps *ops, void *object)
{
    void *image = g_malloc0(ops->size);

    ops->capture(object, image);
    section_begin(io, ops);
    ops->visit(object, image, io);
    section_end(io);
    state_discard(ops, image);
}

void *state_load(StateIo *io, const StateOps *ops, void *object)
{
    void *image = g_malloc0(ops->size);

    if (section_enter(io, ops)) {
        ops->visit(object, image, io);
    }
    section_leave(io);
    if (io->error) {
        state_discard(ops, image);
        return NULL;
    }
    return image;
}

void state_child(StateIo *io, const StateOps *ops, void *object, void **image)
{
    if (io->loading) {
        *image = io->error ? NULL : state_load(io, ops, object);
    } else {
        state_save(io, ops, object);
    }
}

void state_optional(StateIo *io, const char *what, const StateOps *ops, void *object, void **image)
{
    bool there = object != NULL;

    state_bool(io, &there);
    if (there != (object != NULL)) {
        state_fail(io, there ? "it has %s, and here is none" : "it has no %s, and here is one", what);
    } else if (there) {
        state_child(io, ops, object, image);
    }
}

void state_commit(const StateOps *ops, void *object, void *image)
{
    if (image) {
        ops->commit(object, image);
        state_discard(ops, image);
    }
}

void state_discard(const StateOps *ops, void *image)
{
    if (image && ops->clear) {
        ops->clear(image);
    }
    g_free(image);
}

/* The whole. */

static void sum(const uint8_t *data, size_t size, uint8_t out[SUM_SIZE])
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize len = SUM_SIZE;

    g_checksum_update(checksum, data, (gssize)size);
    g_checksum_get_digest(checksum, out, &len);
}

static void io_free(StateIo *io)
{
    g_clear_error(&io->error);
    if (io->out) {
        g_byte_array_unref(io->out);
    }
    g_free(io);
}

StateIo *state_writer_new(void)
{
    StateIo *io = g_new0(StateIo, 1);
    uint8_t header[HEADER_SIZE] = MAGIC;

    io->out = g_byte_array_new();
    store_le32(header + MAGIC_SIZE, FORMAT_VERSION);
    g_byte_array_append(io->out, header, sizeof header);
    return io;
}

GBytes *state_writer_finish(StateIo *io, GError **error)
{
    uint8_t digest[SUM_SIZE];
    GBytes *bytes = NULL;

    store_le64(io->out->data + MAGIC_SIZE + 4, io->out->len - HEADER_SIZE);
    if (io->out->len > STATE_MAX - SUM_SIZE) {
        error_set(error, "The state of the devices is larger than %u bytes", STATE_MAX);
    } else {
        sum(io->out->data, io->out->len, digest);
        g_byte_array_append(io->out, digest, sizeof digest);
        bytes = g_byte_array_free_to_bytes(g_steal_pointer(&io->out));
    }
    io_free(io);
    return bytes;
}

size_t state_size(const uint8_t header[STATE_HEADER_SIZE])
{
    uint64_t sections = load_le64(header + MAGIC_SIZE + 4);

    return memcmp(header, MAGIC, MAGIC_SIZE) == 0 && load_le32(header + MAGIC_SIZE) == FORMAT_VERSION &&
                   sections <= STATE_MAX - HEADER_SIZE - SUM_SIZE
               ? (size_t)sections + HEADER_SIZE + SUM_SIZE
               : 0;
}

static bool check_whole(const uint8_t *data, size_t size, GError **error)
{
    uint8_t digest[SUM_SIZE];

    if (size < HEADER_SIZE || memcmp(data, MAGIC, MAGIC_SIZE) != 0) {
        return error_set(error, "This is no state of Spindle's devices");
    }
    if (load_le32(data + MAGIC_SIZE) != FORMAT_VERSION) {
        return error_set(error,
                         "The state has format version %u, this Spindle reads version %u: use a newer one",
                         load_le32(data + MAGIC_SIZE), FORMAT_VERSION);
    }
    if (size > STATE_MAX || size < HEADER_SIZE + SUM_SIZE ||
        load_le64(data + MAGIC_SIZE + 4) != size - HEADER_SIZE - SUM_SIZE) {
        return error_set(error, "The state is not complete: it has %zu bytes of %" G_GUINT64_FORMAT, size,
                         load_le64(data + MAGIC_SIZE + 4) + HEADER_SIZE + SUM_SIZE);
    }
    sum(data, size - SUM_SIZE, digest);
    return memcmp(digest, data + size - SUM_SIZE, SUM_SIZE) == 0 ||
           error_set(error, "The state is damaged: its checksum is wrong");
}

StateIo *state_reader_new(const void *data, size_t size, GError **error)
{
    if (!check_whole(data, size, error)) {
        return NULL;
    }
    StateIo *io = g_new0(StateIo, 1);
    io->loading = true;
    io->in = data;
    io->at = HEADER_SIZE;
    io->end = size - SUM_SIZE;
    return io;
}

bool state_reader_finish(StateIo *io, GError **error)
{
    if (!io->error && io->at != io->end) {
        error_set(&io->error, "The state has more in it than this machine has devices");
    }
    bool ok = !io->error;
    if (io->error) {
        g_propagate_error(error, g_steal_pointer(&io->error));
    }
    io_free(io);
    return ok;
}
