/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * LUKS headers for the tools: probe, make, describe and amend them on any node that can be read (and
 * written). The data path is `driver=luks` (docs/luks.rst) and needs nothing from here. libcryptsetup does
 * the work, in a module that is loaded at first use, on a private copy of the header; what changed is then
 * written back key material first, header last, with a flush between. All functions block (key derivation
 * takes seconds): call them on a worker or in a tool. One call at a time per node; nodes, options and secrets
 * stay the caller's.
 */
#ifndef SPINDLE_BLOCK_LUKS_H
#define SPINDLE_BLOCK_LUKS_H

#include "block/block.h"
#include "util/secret.h"

/* How to make a LUKS image, with qemu-img's names: `cipher-alg` (aes-256), `cipher-mode` (xts), `ivgen-alg`
 * (plain64), `ivgen-hash-alg`, `hash-alg` (sha256), `iter-time` (ms, 2000); and ours: `version` (1 or 2; 1),
 * `sector-size` (512, 1024, 2048, 4096; above 512 only with version 2; 512), `pbkdf` (pbkdf2, argon2i,
 * argon2id; LUKS1: pbkdf2; LUKS2: argon2id), `pbkdf-iterations` (exactly so many instead of iter-time),
 * `pbkdf-memory` (bytes), `pbkdf-parallel`, `uuid`, `label` (LUKS2). `cipher` takes cryptsetup's whole name
 * instead of the first four (`serpent-cbc-essiv:sha256`), with `key-size` in bits. */
typedef struct LuksFormat LuksFormat;

/* Takes these keys out of `options` (without the prefix `encrypt.`: use options_get_sub() first) and marks
 * them used. NULL and an error in QEMU's words. */
LuksFormat *luks_format_parse(Options *options, GError **error);
void luks_format_free(LuksFormat *format);

/* The bytes before the payload in an image of this format (0 with `detached`). */
bool luks_format_measure(const LuksFormat *format, bool detached, uint64_t *ret_bytes, GError **error);

/* Writes a header for `payload` bytes with `passphrase` in the first slot. The node `file` is resized to
 * header + payload when its size differs. With `header`, that node gets the header (and `file` only the
 * payload's size). `payload` must be a multiple of the sector size. On failure nothing that could be taken
 * for a header has been written. */
bool luks_create(BlockNode *file, BlockNode *header, const LuksFormat *format, const Secret *passphrase,
                 uint64_t payload, GError **error);

/* 1 or 2 when the node begins with a LUKS header of that version, else 0 (also when it cannot be read). */
unsigned luks_probe(BlockNode *file);

/* qemu-img info's `format-specific` data of the header on `file`: cipher-alg, cipher-mode, ivgen-alg,
 * ivgen-hash-alg (if any), hash-alg, uuid, payload-offset, master-key-iters, slots[{active, key-offset,
 * iters, stripes}], detached-header; ours: version, sector-size, label, and per slot pbkdf, memory (bytes),
 * parallel. No passphrase is needed. The object is the caller's. */
JsonObject *luks_info(BlockNode *file, GError **error);

typedef enum {
    LUKS_AMEND_ADD,    /* state=active: `new_secret` into `slot` or the first free one */
    LUKS_AMEND_CHANGE, /* `new_secret` for the slot that `unlock` opens (or `slot`, which it must open); it
                          moves to a free slot if there is one, so that a crash leaves the old or the new */
    LUKS_AMEND_ERASE,  /* state=inactive: `slot`, or every slot that `old_secret` opens */
} LuksAmendAction;

typedef struct LuksAmend {
    LuksAmendAction action;
    const Secret *unlock;     /* key-secret; not needed to erase */
    const Secret *new_secret; /* add, change */
    const Secret *old_secret; /* erase; or NULL */
    int slot;                 /* -1: any */
    uint64_t iter_time;       /* ms; 0: 2000 */
    uint64_t iterations;      /* exactly so many; 0: by time */
    const char *pbkdf;        /* pbkdf2, argon2i, argon2id; NULL: pbkdf2 for LUKS1, argon2id for LUKS2 */
    bool force;               /* may replace a slot in use or erase the last one */
} LuksAmend;

bool luks_amend(BlockNode *file, const LuksAmend *amend, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(LuksFormat, luks_format_free)

#endif
