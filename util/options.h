/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Options in QEMU's forms, as one flat list of dotted keys: `a=b,c.d=e` (a comma inside a value is written
 * `,,`), `{"c": {"d": "e"}}`, `json:{…}`. JSON arrays become `key.0`, `key.1`, …; true/false become
 * `on`/`off`; numbers their decimal text; null the empty text. Getters mark a key as used, so that
 * options_check_unused() can name the one nobody asked for. Loop thread or one owner at a time.
 */
#ifndef SPINDLE_UTIL_OPTIONS_H
#define SPINDLE_UTIL_OPTIONS_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Options Options;

Options *options_new(void);
Options *options_ref(Options *options);
void options_unref(Options *options);

/* Parses either form; keys are limited to 1024 bytes and JSON to JSON_MAX_DEPTH. `implied_key` (may be NULL)
 * names the key of a first item without `=`, as "driver" in
 * `-device ide-cd,…`. A later item without `=` means `on` (and `noX` means X=off is NOT supported, as in QEMU
 * today). Duplicate keys: the last wins, as in QEMU. */
Options *options_parse(const char *text, const char *implied_key, GError **error);

/* Flattens a JSON object. */
Options *options_from_json(JsonObject *object, GError **error);

/* The reverse: nested JSON with every value as text (arrays come back as objects with the keys "0", "1", …,
 * unless they are dense). Where a key holds a value and also has keys below it, the keys below win. */
JsonObject *options_to_json(const Options *options);

/* `k=v,k2=v2` with commas doubled. */
char *options_to_string(const Options *options);

/* False with QEMU's "used inconsistently" when one key holds a value and also has keys below it
 * (`a=1,a.b=2`), which `-blockdev` forbids and `-drive file=x,file.locking=off` does not. */
bool options_check_consistent(const Options *options, GError **error);

void options_set(Options *options, const char *key, const char *value);
void options_remove(Options *options, const char *key);
bool options_has(const Options *options, const char *key);

/* Any key equal to `prefix` or beginning with `prefix.` */
bool options_has_prefix(const Options *options, const char *prefix);

/* The value or NULL; stays the options'. */
const char *options_get(Options *options, const char *key);

/* A new Options with all keys below `prefix.`, the prefix taken off; all of them are marked used here. An
 * empty one if there are none. */
Options *options_get_sub(Options *options, const char *prefix);

/* Typed getters: false and an error in QEMU's words ("Parameter 'x' expects …") for a bad value; *ret =
 * fallback when absent. */
bool options_get_bool(Options *options, const char *key, bool fallback, bool *ret, GError **error);
bool options_get_uint(Options *options, const char *key, uint64_t min, uint64_t max, uint64_t fallback,
                      uint64_t *ret, GError **error);
/* Bytes, with the suffixes b k K M G T P E (powers of 1024) and a decimal fraction, as QEMU's sizes. */
bool options_get_size(Options *options, const char *key, uint64_t fallback, uint64_t *ret, GError **error);
/* The parser behind it: 0, -EINVAL or -ERANGE. Leading blanks and `+` are allowed, as is 0x1f without suffix.
 */
int options_parse_size(const char *text, uint64_t *ret);
/* A decimal, 0x hexadecimal or 0 octal number without sign: 0, -EINVAL or -ERANGE. */
int options_parse_uint(const char *text, uint64_t *ret);
/* One of the NULL-terminated names; *ret is its index. */
bool options_get_enum(Options *options, const char *key, const char *const *names, int fallback, int *ret,
                      GError **error);

/* NULL-terminated array of all keys in order; free with g_strfreev. */
char **options_keys(const Options *options);

/* The first key that no getter touched, or NULL; stays the options'. */
const char *options_first_unused(const Options *options);

/* False with "Invalid parameter 'x'" naming the first key that no getter touched. */
bool options_check_unused(Options *options, GError **error);

/* The same in the words of QEMU's typed options (-blockdev, -object): "Parameter 'x' is unexpected". */
bool options_check_expected(Options *options, GError **error);

/* A name of an object, a device or a node, as QEMU's: a letter, then letters, digits, `-`, `.`, `_`. */
bool options_is_id(const char *text);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Options, options_unref)

#endif
