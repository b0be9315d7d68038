/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/drive-props.h"
#include <string.h>
#include "util/error.h"
#include "util/log.h"

const char *const drive_prop_names[] = {
    "account-failed",
    "account-invalid",
    "backend_defaults",
    "bootindex",
    "bus",
    "discard_granularity",
    "drive",
    "driver",
    "id",
    "logical_block_size",
    "min_io_size",
    "model",
    "opt_io_size",
    "physical_block_size",
    "rerror",
    "serial",
    "share-rw",
    "stats-intervals",
    "unit",
    "ver",
    "werror",
    "win2k-install-hack",
    "write-cache",
    "wwn",
    NULL,
};

/* What a disc drive has no use for is checked and left at that, as QEMU does. */
static bool check_idle_props(Options *options, GError **error)
{
    static const char *const sizes[] = {"discard_granularity", "logical_block_size", "min_io_size",
                                        "opt_io_size", "physical_block_size"};
    static const char *const switches[] = {"account-failed", "account-invalid", "backend_defaults",
                                           "write-cache"};
    static const char *const bools[] = {"share-rw", "win2k-install-hack"};
    static const char *const on_off_auto[] = {"on", "off", "auto", NULL};
    uint64_t size;
    int choice;
    bool on;

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (!options_get_size(options, sizes[i], 0, &size, error)) {
            return false;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++) {
        if (!options_get_enum(options, switches[i], on_off_auto, 0, &choice, error)) {
            return false;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bools); i++) {
        if (!options_get_bool(options, bools[i], false, &on, error)) {
            return false;
        }
    }
    return options_get_uint(options, "bootindex", 0, INT32_MAX, 0, &size, error);
}

/* Errors go to the guest, whatever the policy says: say so where that is not what was asked for. */
static bool check_error_policy(Options *options, GError **error)
{
    static const char *const keys[] = {"rerror", "werror"};
    static const char *const policies[] = {"auto", "report", "ignore", "enospc", "stop", NULL};
    int policy;

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!options_get_enum(options, keys[i], policies, 0, &policy, error)) {
            return false;
        }
        if (!strcmp(keys[i], "rerror") && (policy == 2 || policy == 4)) {
            log_warn(
                "rerror=%s is not supported for a drive of Spindle's: read errors are reported to the guest",
                policies[policy]);
        }
    }
    return true;
}

static bool check_names(Options *options, GError **error)
{
    g_auto(GStrv) keys = options_keys(options);

    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(drive_prop_names, *key) && !g_str_has_prefix(*key, "stats-intervals.")) {
            return error_set(error, "Property 'ide-cd.%s' not found", *key);
        }
    }
    return true;
}

bool drive_props_parse(Options *options, DriveProps *ret_props, GError **error)
{
    const char *driver = options_get(options, "driver");
    const char *drive = options_get(options, "drive");
    DriveProps props = {0};
    uint64_t unit;

    if (!driver) {
        return error_set(error, "Parameter 'driver' is missing");
    }
    if (strcmp(driver, "ide-cd")) {
        return error_set(error, "'%s' is not a valid device model name", driver);
    }
    if (!check_names(options, error) || !check_idle_props(options, error) ||
        !check_error_policy(options, error) ||
        !options_get_uint(options, "wwn", 0, UINT64_MAX, 0, &props.wwn, error) ||
        !options_get_uint(options, "unit", 0, UINT32_MAX, 0, &unit, error)) {
        return false;
    }
    if (unit > 0) {
        return error_set(error, "Can't create IDE unit %" G_GUINT64_FORMAT ", bus supports only 1 units",
                         unit);
    }
    props.id = options_get(options, "id");
    props.bus = options_get(options, "bus");
    props.drive = drive && drive[0] ? drive : NULL;
    props.serial = options_get(options, "serial");
    props.model = options_get(options, "model");
    props.ver = options_get(options, "ver");
    *ret_props = props;
    return true;
}
