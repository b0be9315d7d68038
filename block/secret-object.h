/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The `secret` objects: `-object secret,id=ID,data=TEXT|file=PATH[,format=raw|base64][,keyid=ID2,iv=BASE64]`,
 * as QEMU's. With `keyid` the data is the base64 of AES-256-CBC ciphertext with PKCS#7 padding, under the 32
 * bytes of secret ID2 (what libvirt passes, with its master key in a file). Decoded once, at creation. The
 * table is locked: any thread.
 */
#ifndef SPINDLE_BLOCK_SECRET_OBJECT_H
#define SPINDLE_BLOCK_SECRET_OBJECT_H

#include "util/options.h"
#include "util/secret.h"

/* Makes the object from its options without `qom-type` (`id`, `data`, …), and wipes nothing of them: see
 * secret_object_hide_argv(). Errors in QEMU's words. */
bool secret_object_add(Options *options, GError **error);

/* `object-del`: "object 'x' not found". Nodes that were opened with it keep their own key. */
bool secret_object_remove(const char *id, GError **error);

/* A copy of the secret (the caller's, secret_free()), or NULL and "No secret with id 'x'". */
Secret *secret_object_get(const char *id, GError **error);

/* The same for the id that option `key` holds; without the option true, and *ret is not touched. */
bool secret_object_take(Options *options, const char *key, Secret **ret, GError **error);

/* All ids in order; free with g_strfreev(). */
char **secret_object_list(void);

/* Frees every secret, as at the end of the process. */
void secret_object_clear(void);

/* Blanks the values of `data=` in argv's strings of the form `secret,…,data=…` (also in JSON form) with `*`,
 * so that /proc/PID/cmdline does not show them. Call after the arguments have been parsed, before threads
 * start. */
void secret_object_hide_argv(int argc, char **argv);

#endif
