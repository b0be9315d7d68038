/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/drive-node.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "block/block.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"

/* cache= as the properties that nodes know, and the drive's own write cache. */
static const struct {
    const char *name, *direct, *no_flush;
    bool writeback;
} cache_modes[] = {
    {"writeback", "off", "off", true}, {"writethrough", "off", "off", false}, {"none", "on", "off", true},
    {"off", "on", "off", true},        {"directsync", "on", "off", false},    {"unsafe", "off", "on", true},
};

static int find_cache_mode(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cache_modes); i++) {
        if (!strcmp(cache_modes[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

bool drive_node_writeback(Options *drive, bool *ret_writeback, GError **error)
{
    const char *cache = options_get(drive, "cache");
    int mode = cache ? find_cache_mode(cache) : 0;

    if (mode < 0) {
        return error_set(error, "invalid cache option");
    }
    return options_get_bool(drive, "cache.writeback", cache_modes[mode].writeback, ret_writeback, error);
}

/* qcow2 and the like by their first bytes; raw else. */
static const char *probe(const char *filename)
{
    static const struct {
        const char *magic, *format;
    } formats[] = {{"QFI\xfb", "qcow2"}, {"KDMV", "vmdk"}, {"LUKS\xba\xbe", "luks"}, {"vhdxfile", "vhdx"}};
    char head[8] = {0};
    auto_fd fd = filename ? open(filename, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

    if (fd >= 0 && pread(fd, head, sizeof head, 0) > 0) {
        for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
            if (!memcmp(head, formats[i].magic, strlen(formats[i].magic))) {
                return formats[i].format;
            }
        }
    }
    return "raw";
}

static bool set_format(Options *node, Options *drive, GError **error)
{
    static const char *const foreign[] = {"qcow2", "qcow", "qed",       "vmdk", "vdi",
                                          "vpc",   "vhdx", "parallels", "dmg",  NULL};
    const char *format = options_get(drive, "format");

    if (!format) {
        format = options_get(drive, "driver");
    }
    if (!format) {
        const char *filename = options_get(node, "file.filename");
        format = probe(filename);
        if (filename && !strcmp(format, "raw")) {
            log_info("Image format was not specified for '%s' and probing guessed raw", filename);
        }
    }
    if (g_strv_contains(foreign, format)) {
        return error_set(error,
                         "The '%s' format is not served with -accel qtest: only raw images are. "
                         "Convert the image with `spindle-img convert -O raw` or `qemu-img convert -O raw`",
                         format);
    }
    if (!block_has_driver(format)) {
        return error_set(error, "Unknown driver '%s'", format);
    }
    options_set(node, "driver", format);
    return true;
}

/* What file= says, then file.… */
static bool set_file(Options *node, Options *drive, GError **error)
{
    const char *file = options_get(drive, "file");
    g_autoptr(Options) below = options_get_sub(drive, "file");
    g_autoptr(Options) child = file && file[0] ? block_options_from_filename(file, error) : options_new();

    if (!child) {
        return false;
    }
    g_auto(GStrv) below_keys = options_keys(below);
    for (char **key = below_keys; *key; key++) {
        options_set(child, *key, options_get(below, *key));
    }
    g_auto(GStrv) keys = options_keys(child);
    for (char **key = keys; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        options_set(node, name, options_get(child, *key));
    }
    return true;
}

static void copy_key(Options *node, const char *to, Options *drive, const char *from)
{
    const char *value = options_get(drive, from);

    if (value) {
        options_set(node, to, value);
    }
}

static bool set_switches(Options *node, Options *drive, bool cd, GError **error)
{
    static const char *const same[] = {"node-name", "discard", "detect-zeroes", "auto-read-only", "offset",
                                       "size",      NULL};
    const char *cache = options_get(drive, "cache");
    bool read_only, snapshot;

    if (!options_get_bool(drive, options_has(drive, "readonly") ? "readonly" : "read-only", cd, &read_only,
                          error) ||
        !options_get_bool(drive, "snapshot", false, &snapshot, error)) {
        return false;
    }
    if (snapshot) {
        return error_set(error, "snapshot=on is not served with -accel qtest: give a copy of the image");
    }
    if (cache) { /* checked by drive_node_writeback() */
        options_set(node, "cache.direct", cache_modes[find_cache_mode(cache)].direct);
        options_set(node, "cache.no-flush", cache_modes[find_cache_mode(cache)].no_flush);
    }
    copy_key(node, "cache.direct", drive, "cache.direct");
    copy_key(node, "cache.no-flush", drive, "cache.no-flush");
    copy_key(node, "file.aio", drive, "aio");
    for (const char *const *key = same; *key; key++) {
        copy_key(node, *key, drive, *key);
    }
    /* Zeroes may be unmapped then, as on QEMU. */
    if (!options_has(drive, "discard") && !g_strcmp0(options_get(drive, "detect-zeroes"), "unmap")) {
        options_set(node, "discard", "unmap");
    }
    options_set(node, "read-only", read_only || cd ? "on" : "off");
    return true;
}

/* Where only a file's name is said, the driver is `file`, at every depth. */
static void set_file_drivers(Options *node)
{
    g_auto(GStrv) keys = options_keys(node);

    for (char **key = keys; *key; key++) {
        if (g_str_has_suffix(*key, ".filename")) {
            g_autofree char *above = g_strndup(*key, strlen(*key) - strlen("filename"));
            g_autofree char *driver = g_strconcat(above, "driver", NULL);
            if (!options_has(node, driver)) {
                options_set(node, driver, "file");
            }
        }
    }
}

/* What is not the drive's is the driver's. */
static void pass_rest(Options *node, Options *drive)
{
    for (const char *key; (key = options_first_unused(drive));) {
        g_autofree char *name = g_strdup(key);
        options_set(node, name, options_get(drive, name));
    }
}

static bool names_a_file(const Options *drive)
{
    g_auto(GStrv) keys = options_keys(drive);

    for (char **key = keys; *key; key++) {
        if (g_str_has_prefix(*key, "file.")) {
            return true;
        }
    }
    return options_has(drive, "driver");
}

Options *drive_node_options(Options *drive, bool cd, GError **error)
{
    const char *file = options_get(drive, "file");
    g_autoptr(Options) node = options_new();
    bool writeback;

    if ((!file || !file[0]) && !names_a_file(drive)) {
        return NULL;
    }
    if (!drive_node_writeback(drive, &writeback, error) || !set_file(node, drive, error) ||
        !set_format(node, drive, error) || !set_switches(node, drive, cd, error)) {
        return NULL;
    }
    pass_rest(node, drive);
    set_file_drivers(node);
    return g_steal_pointer(&node);
}
