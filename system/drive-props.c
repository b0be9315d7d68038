/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/drive-props.h"
#include <string.h>
#include "util/checked.h"
#include "util/error.h"
#include "util/log.h"

#define BLOCK_SIZE_MIN  512
#define BLOCK_SIZE_MAX  (2 << 20) /* QEMU's */
#define DISCARD_DEFAULT UINT32_MAX

#define COMMON_PROPS                                                                                         \
    "account-failed", "account-invalid", "backend_defaults", "bootindex", "bus", "discard_granularity",      \
        "drive", "driver", "id", "logical_block_size", "min_io_size", "model", "opt_io_size",                \
        "physical_block_size", "rerror", "serial", "share-rw", "stats-intervals", "unit", "ver", "werror",   \
        "win2k-install-hack", "write-cache", "wwn"

static const char *const cd_props[] = {COMMON_PROPS, "passthrough", NULL};
static const char *const hd_props[] = {COMMON_PROPS, "bios-chs-trans", "cyls",          "heads", "lcyls",
                                       "lheads",     "lsecs",          "rotation_rate", "secs",  NULL};

static const struct {
    const char *name;
    const char *const *props;
} models[] = {[DRIVE_CD] = {"ide-cd", cd_props}, [DRIVE_HD] = {"ide-hd", hd_props}};

const char *drive_model_name(DriveModel model)
{
    return models[model].name;
}

bool drive_model_parse(const char *name, DriveModel *ret_model)
{
    for (size_t i = 0; name && i < G_N_ELEMENTS(models); i++) {
        if (!strcmp(models[i].name, name)) {
            *ret_model = (DriveModel)i;
            return true;
        }
    }
    return false;
}

const char *const *drive_model_props(DriveModel model)
{
    return models[model].props;
}

/* Any 32-bit integer: a negative one is no place in the order. */
static bool check_bootindex(const char *text, GError **error)
{
    uint64_t number;

    if (!text || (options_parse_uint(text + (text[0] == '-'), &number) == 0 && number <= INT32_MAX)) {
        return true;
    }
    return error_set(error, "Parameter 'bootindex' expects integer");
}

/* Those without an effect, here or in QEMU, are checked and left at that. */
static bool check_idle_props(Options *options, GError **error)
{
    static const char *const switches[] = {"account-failed", "account-invalid", "backend_defaults"};
    static const char *const on_off_auto[] = {"on", "off", "auto", NULL};
    static const char *const numbers[] = {"lcyls", "lheads", "lsecs"};
    uint64_t number;
    int choice;
    bool on;

    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++) {
        if (!options_get_enum(options, switches[i], on_off_auto, 0, &choice, error)) {
            return false;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (!options_get_uint(options, numbers[i], 0, UINT32_MAX, 0, &number, error)) {
            return false;
        }
    }
    return options_get_bool(options, "win2k-install-hack", false, &on, error) &&
           check_bootindex(options_get(options, "bootindex"), error);
}

static bool check_names(Options *options, DriveModel model, GError **error)
{
    g_auto(GStrv) keys = options_keys(options);

    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(models[model].props, *key) && !g_str_has_prefix(*key, "stats-intervals.")) {
            return error_set(error, "Property '%s.%s' not found", models[model].name, *key);
        }
    }
    return true;
}

static bool get_block_size(Options *options, const char *key, uint32_t *ret, GError **error)
{
    uint64_t size;

    if (!options_get_size(options, key, 0, &size, error)) {
        return false;
    }
    if (size && (size < BLOCK_SIZE_MIN || size > BLOCK_SIZE_MAX || !is_power_of_2(size))) {
        return error_set(error, "parameter %s must be a power of 2 between %d and %d", key, BLOCK_SIZE_MIN,
                         BLOCK_SIZE_MAX);
    }
    *ret = (uint32_t)size;
    return true;
}

/* As far as a disc drive is concerned they are sizes and no more. */
static bool parse_cd_sizes(Options *options, GError **error)
{
    static const char *const sizes[] = {"discard_granularity", "logical_block_size", "min_io_size",
                                        "opt_io_size", "physical_block_size"};
    uint64_t size;

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (!options_get_size(options, sizes[i], 0, &size, error)) {
            return false;
        }
    }
    return true;
}

static bool parse_hd_sizes(Options *options, DriveProps *props, GError **error)
{
    static const char *const io_sizes[] = {"min_io_size", "opt_io_size"};
    uint64_t size;

    if (!get_block_size(options, "logical_block_size", &props->logical_block_size, error) ||
        !get_block_size(options, "physical_block_size", &props->physical_block_size, error)) {
        return false;
    }
    uint32_t logical = props->logical_block_size ? props->logical_block_size : 512;
    if (logical > (props->physical_block_size ? props->physical_block_size : 512)) {
        return error_set(error, "logical_block_size > physical_block_size not supported");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(io_sizes); i++) {
        if (!options_get_size(options, io_sizes[i], 0, &size, error)) {
            return false;
        }
        if (size % logical) {
            return error_set(error, "%s must be a multiple of logical_block_size", io_sizes[i]);
        }
    }
    if (!options_get_size(options, "discard_granularity", DISCARD_DEFAULT, &size, error)) {
        return false;
    }
    return size == 0 || size == DISCARD_DEFAULT || size == 512 ||
           error_set(error, "discard_granularity must be 512 for ide");
}

static bool parse_geometry(Options *options, DriveProps *props, GError **error)
{
    static const char *const translations[] = {"auto", "none", "lba", "large", "rechs", NULL};
    static const struct {
        const char *name;
        unsigned max;
    } rows[] = {{"cyls", 65535}, {"heads", 16}, {"secs", 255}};
    uint32_t *const out[] = {&props->cyls, &props->heads, &props->secs};
    bool any = false;
    int translation;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t number;
        if (!options_get_uint(options, rows[i].name, 0, UINT32_MAX, 0, &number, error)) {
            return false;
        }
        *out[i] = (uint32_t)number;
        any |= number != 0;
    }
    for (size_t i = 0; any && i < G_N_ELEMENTS(rows); i++) {
        if (*out[i] < 1 || *out[i] > rows[i].max) {
            return error_set(error, "%s must be between 1 and %u", rows[i].name, rows[i].max);
        }
    }
    if (!options_get_enum(options, "bios-chs-trans", translations, 0, &translation, error)) {
        return false;
    }
    props->translation = (DriveTranslation)translation;
    return true;
}

static bool parse_on_error(Options *options, const char *key, DriveOnError *ret, GError **error)
{
    static const char *const policies[] = {"report", "ignore", "enospc", "stop", "auto", NULL};
    int policy;

    if (!options_get_enum(options, key, policies, DRIVE_ON_ERROR_AUTO, &policy, error)) {
        return false;
    }
    *ret = (DriveOnError)policy;
    return true;
}

static bool parse_hd(Options *options, DriveProps *props, GError **error)
{
    static const char *const on_off_auto[] = {"on", "off", "auto", NULL};
    uint64_t rate;
    int cache;
    bool share;

    if (!parse_hd_sizes(options, props, error) || !parse_geometry(options, props, error) ||
        !options_get_uint(options, "rotation_rate", 0, UINT64_MAX, 0, &rate, error) ||
        !options_get_enum(options, "write-cache", on_off_auto, 2, &cache, error) ||
        !options_get_bool(options, "share-rw", false, &share, error)) {
        return false;
    }
    if (rate > UINT16_MAX) {
        return error_set(error, "Parameter 'rotation_rate' expects uint16_t");
    }
    if (share) {
        log_warn("share-rw=on: Spindle's disks do not share an image with another writer");
    }
    props->rotation_rate = (uint16_t)rate;
    props->write_back = cache != 1;
    return true;
}

static bool parse_cd(Options *options, DriveProps *props, GError **error)
{
    static const char *const policies[] = {"off", "safe", "burn", NULL}; /* as MmcPassthrough */
    static const char *const on_off_auto[] = {"on", "off", "auto", NULL};
    int cache, policy;
    bool share;

    if (!options_get_enum(options, "passthrough", policies, MMC_PASSTHROUGH_SAFE, &policy, error)) {
        return false;
    }
    props->passthrough = (MmcPassthrough)policy;
    if (!parse_cd_sizes(options, error) ||
        !options_get_enum(options, "write-cache", on_off_auto, 2, &cache, error) ||
        !options_get_bool(options, "share-rw", false, &share, error)) {
        return false;
    }
    props->write_back = cache != 1;
    return true;
}

bool drive_props_parse(Options *options, DriveProps *ret_props, GError **error)
{
    const char *driver = options_get(options, "driver");
    const char *drive = options_get(options, "drive");
    DriveProps props = {.unit = -1, .write_back = true};
    uint64_t unit;

    if (!driver) {
        return error_set(error, "Parameter 'driver' is missing");
    }
    if (!drive_model_parse(driver, &props.model)) {
        return error_set(error, "'%s' is not a valid device model name", driver);
    }
    if (!check_names(options, props.model, error) || !check_idle_props(options, error) ||
        !parse_on_error(options, "rerror", &props.rerror, error) ||
        !parse_on_error(options, "werror", &props.werror, error) ||
        !options_get_uint(options, "wwn", 0, UINT64_MAX, 0, &props.wwn, error) ||
        !options_get_uint(options, "unit", 0, UINT32_MAX, UINT32_MAX, &unit, error)) {
        return false;
    }
    props.unit = unit == UINT32_MAX ? -1 : (int)MIN(unit, INT32_MAX);
    if (!(props.model == DRIVE_HD ? parse_hd(options, &props, error) : parse_cd(options, &props, error))) {
        return false;
    }
    props.id = options_get(options, "id");
    props.bus = options_get(options, "bus");
    props.drive = drive && drive[0] ? drive : NULL;
    props.serial = options_get(options, "serial");
    props.product = options_get(options, "model");
    props.ver = options_get(options, "ver");
    *ret_props = props;
    return true;
}
