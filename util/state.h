/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a machine's devices are doing, as bytes, and back from bytes that nobody vouches for.
 *
 * An object's state is a plain copy of its fields, the image. One function walks the image's fields for both
 * ways: when saving it writes them, when loading it reads and checks them (`visit`). Only when the images of
 * all objects are read and found good are they put into the objects (`commit`), which cannot fail: a refused
 * state changes nothing.
 *
 * The bytes: a magic, the format's version, the length, then sections, then a SHA-256 of all before it. A
 * section has a name, a version of its own and a length; it may hold sections. Integers are little-endian.
 * Pure; any thread, one owner at a time.
 */
#ifndef SPINDLE_UTIL_STATE_H
#define SPINDLE_UTIL_STATE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "util/buffer.h"

#define STATE_MAX         (64u * 1024 * 1024) /* bytes of a whole state, at most */
#define STATE_HEADER_SIZE 20                  /* bytes that tell how long the state is */

typedef struct StateIo StateIo;

/* How an object is saved and loaded. */
typedef struct StateOps {
    const char *name; /* of its section, 1 to 64 characters */
    unsigned version; /* the newest; older ones are read too */
    size_t size;      /* bytes of the image, which begins zeroed */
    void (*capture)(void *object, void *image);
    /* Fields in a fixed order; while loading, what the object cannot be brought into is a state_fail(). */
    void (*visit)(void *object, void *image, StateIo *io);
    /* The image's content is taken or left. */
    void (*commit)(void *object, void *image);
    void (*clear)(void *image); /* what the image holds; NULL: nothing */
} StateOps;

/* Saving. */
StateIo *state_writer_new(void);
/* The finished bytes; the writer is gone. NULL and an error when there are more than STATE_MAX. */
GBytes *state_writer_finish(StateIo *io, GError **error);
void state_save(StateIo *io, const StateOps *ops, void *object);

/* Bytes of a state that begins with this header; 0: it is none, or one that cannot be read here. */
size_t state_size(const uint8_t header[STATE_HEADER_SIZE]);

/* Loading. NULL and an error in words: no state, damaged, cut off, or of a newer format. The bytes stay the
 * caller's, and alive. */
StateIo *state_reader_new(const void *data, size_t size, GError **error);
/* The image, or NULL after a failure. */
void *state_load(StateIo *io, const StateOps *ops, void *object);
/* True when everything was read and found good. The reader is gone. */
bool state_reader_finish(StateIo *io, GError **error);

void state_commit(const StateOps *ops, void *object, void *image); /* frees the image; NULL: nothing */
void state_discard(const StateOps *ops, void *image);

/* For visit(): which way, and the section's version (of what is read). */
bool state_loading(const StateIo *io);
unsigned state_version(const StateIo *io);

/* The first failure counts; from then on reads give zeroes. Nothing happens while saving. */
void state_fail(StateIo *io, const char *format, ...) G_GNUC_PRINTF(2, 3);
bool state_failed(const StateIo *io);

/* An object inside another one: *image is made while loading. */
void state_child(StateIo *io, const StateOps *ops, void *object, void **image);
/* The same for one that may be missing: `object` NULL. Loading fails if the state says otherwise. */
void state_optional(StateIo *io, const char *what, const StateOps *ops, void *object, void **image);

void state_u8(StateIo *io, uint8_t *value);
void state_u16(StateIo *io, uint16_t *value);
void state_u32(StateIo *io, uint32_t *value);
void state_u64(StateIo *io, uint64_t *value);
void state_bool(StateIo *io, bool *value);
void state_bytes(StateIo *io, void *bytes, size_t size);
/* While loading, a value outside min to max is a failure that names the field. */
void state_range(StateIo *io, const char *field, uint64_t *value, uint64_t min, uint64_t max);
/* A value that must be as it is here: something that was configured. */
void state_same(StateIo *io, const char *field, uint64_t value);
/* A text that must be so, of 0 to 255 characters. */
void state_same_text(StateIo *io, const char *field, const char *text);
/* Content of 0 to `max` bytes; a NULL buffer and one of 0 bytes are the same. *len bytes of it count. While
 * loading the buffer is new, with room for `room` bytes at least. */
void state_buffer(StateIo *io, const char *field, Buffer **buffer, size_t *len, size_t max, size_t room);

/* An integer or enum of any type. */
#define STATE_NUMBER(io, lvalue, min, max)                                                                   \
    do {                                                                                                     \
        uint64_t number_ = (uint64_t)(lvalue);                                                               \
        state_range(io, #lvalue, &number_, min, max);                                                        \
        (lvalue) = (__typeof__(lvalue))number_;                                                              \
    } while (0)

#endif
