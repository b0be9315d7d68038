/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What options.c, options-json.c and options-get.c share.
 */
#ifndef SPINDLE_UTIL_OPTIONS_INT_H
#define SPINDLE_UTIL_OPTIONS_INT_H

#include "util/options.h"

/* False when a key is empty, has an empty part between dots, or is too long. */
bool options_check_key(const char *key, GError **error);

/* The options of a JSON object's text. */
Options *options_parse_json(const char *text, GError **error);

/* The value or NULL, without marking it used. */
const char *options_peek(const Options *options, const char *key);

#endif
