/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * JSON on the wire as QEMU has it: values printed with a space behind each comma and colon, and a stream of
 * bytes cut into the texts of values. Any thread, one owner at a time.
 */
#ifndef SPINDLE_MONITOR_QMP_JSON_H
#define SPINDLE_MONITOR_QMP_JSON_H

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* Appends the value's text; `pretty`: over several lines, indented. */
void qmp_json_print(GString *out, JsonNode *node, bool pretty);

/* The value of a member of the object text[0, size), as it stands there, without parsing all of it; NULL:
 * none of that name, or no object. The name is compared as written. */
const char *qmp_json_member(const char *text, size_t size, const char *name, size_t *ret_size);

typedef struct QmpFramer QmpFramer;

QmpFramer *qmp_framer_new(size_t max);
void qmp_framer_free(QmpFramer *framer); /* NULL is allowed */

/* Adds bytes; what is kept is bounded by the framer's `max` and this call's `size`. */
void qmp_framer_add(QmpFramer *framer, const char *bytes, size_t size);

/* The text of the next value, to be freed; NULL when there is none yet. A text that cannot be a value is
 * given out as far as its line goes, for the parser to name the mistake. *ret_too_long: the value is longer
 * than `max`; there is no way on. */
char *qmp_framer_next(QmpFramer *framer, size_t *ret_len, bool *ret_too_long);

#endif
