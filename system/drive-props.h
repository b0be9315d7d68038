/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The properties of `--device ide-cd` and `--device ide-hd`, QEMU's own. Strings stay the options'. Pure, any
 * thread.
 */
#ifndef SPINDLE_SYSTEM_DRIVE_PROPS_H
#define SPINDLE_SYSTEM_DRIVE_PROPS_H

#include <glib.h>
#include <stdbool.h>
#include "hw/block/mmc.h"
#include "util/options.h"

typedef enum { DRIVE_CD, DRIVE_HD } DriveModel;

/* Values of werror= and rerror=, in the order of QEMU's enumeration. */
typedef enum {
    DRIVE_ON_ERROR_REPORT,
    DRIVE_ON_ERROR_IGNORE,
    DRIVE_ON_ERROR_ENOSPC,
    DRIVE_ON_ERROR_STOP,
    DRIVE_ON_ERROR_AUTO
} DriveOnError;

/* Values of bios-chs-trans=. */
typedef enum {
    DRIVE_TRANSLATION_AUTO,
    DRIVE_TRANSLATION_NONE,
    DRIVE_TRANSLATION_LBA,
    DRIVE_TRANSLATION_LARGE,
    DRIVE_TRANSLATION_RECHS
} DriveTranslation;

typedef struct DriveProps {
    DriveModel model;
    const char *id, *bus, *drive, *serial, *product, *ver; /* NULL: not given; `product` is model= */
    uint64_t wwn;                                          /* 0: none */
    int unit;                                              /* -1: not given */
    DriveOnError rerror, werror;
    MmcPassthrough passthrough; /* ide-cd's, and Spindle's own */
    /* The rest is ide-hd's. */
    uint32_t cyls, heads, secs; /* 0: not given */
    DriveTranslation translation;
    uint32_t logical_block_size, physical_block_size; /* bytes, 0: not given */
    uint16_t rotation_rate;
    bool write_back; /* write-cache= */
} DriveProps;

/* "ide-cd" and "ide-hd". */
const char *drive_model_name(DriveModel model);
/* False for any other name. */
bool drive_model_parse(const char *name, DriveModel *ret_model);

/* All of QEMU's properties of the model, NULL-terminated. */
const char *const *drive_model_props(DriveModel model);

/* False with QEMU's message for an unknown driver, property or value. */
bool drive_props_parse(Options *options, DriveProps *ret_props, GError **error);

#endif
