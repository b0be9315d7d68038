/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * JSON text from users and monitors, checked strictly before json-glib builds the tree (json-glib by itself
 * takes duplicate keys, comments, cut strings at \u0000 and wraps numbers). As in QEMU, strings may stand in
 * single quotes. Any thread.
 */
#ifndef SPINDLE_UTIL_JSON_H
#define SPINDLE_UTIL_JSON_H

#include <glib.h>
#include <json-glib/json-glib.h>

#define JSON_MAX_DEPTH 64                /* nested arrays and objects */
#define JSON_MAX_SIZE  (4 * 1024 * 1024) /* bytes of text */

/* The one value in text[0, size) (size -1: up to the NUL), white space round it allowed; the caller frees it
 * with json_node_unref(). NULL with an error in QEMU's manner ("LINE:COLUMN: JSON parse error, …") for: too
 * deep, too long, bad syntax, bad UTF-8, a NUL or control character in a string, a duplicate key, an integer
 * outside int64, a number outside double. */
JsonNode *json_parse(const char *text, gssize size, GError **error);

#endif
