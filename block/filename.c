/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What people write as the name of an image, into options.
 */
#include "block/block-int.h"
#include "block/host-cdrom-device.h"
#include "block/iscsi.h"
#include "block/nbd.h"
#include "block/nfs.h"
#include "block/rbd.h"
#include "block/ssh.h"
#include "util/error.h"
#include <string.h>
#include <sys/stat.h>

/* Drivers that take all of it as `url`. */
static const char *const url_drivers[] = {"http", "https", "ftp", "ftps", NULL};

/* Drivers whose names have parts. */
static const struct {
    const char *driver;
    Options *(*parse)(const char *filename, GError **error);
} parsers[] = {
    {"iscsi", iscsi_options_from_filename}, {"nbd", nbd_options_from_filename},
    {"nfs", nfs_options_from_filename},     {"rbd", rbd_options_from_filename},
    {"ssh", ssh_options_from_filename},
};

/* The part before a colon that comes before any slash, or NULL. */
static char *protocol_of(const char *filename)
{
    size_t n = strcspn(filename, ":/");
    return filename[n] == ':' ? g_strndup(filename, n) : NULL;
}

static const BlockDriver *driver_of_protocol(const char *protocol)
{
    for (const BlockDriver *const *d = block_drivers(); *d; d++) {
        if ((*d)->protocols && g_strv_contains((*d)->protocols, protocol)) {
            return *d;
        }
    }
    return NULL;
}

static Options *options_of(const char *driver, const char *filename)
{
    Options *options = options_new();
    options_set(options, "driver", driver);
    options_set(options, "filename", filename);
    return options;
}

/* A path: devices are known by what they are. */
static Options *from_path(const char *path, GError **error)
{
    if (!path[0]) {
        error_set(error, "The 'file' block driver requires a file name");
        return NULL;
    }
    struct stat st;
    bool device = stat(path, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode));
    return options_of(cdrom_device_probe(path) ? "host_cdrom" : device ? "host_device" : "file", path);
}

/* blkdebug:CONFIG:IMAGE */
static Options *from_blkdebug(const char *text, GError **error)
{
    const char *image = strchr(text, ':');
    if (!image) {
        error_set(error, "blkdebug requires both config file and image path");
        return NULL;
    }
    g_autoptr(Options) below = block_options_from_filename(image + 1, error);
    if (!below) {
        return NULL;
    }
    g_autofree char *config = g_strndup(text, image - text);
    Options *options = options_new();
    options_set(options, "driver", "blkdebug");
    options_set(options, "config", config);
    g_auto(GStrv) keys = options_keys(below);
    for (char **key = keys; *key; key++) {
        g_autofree char *name = g_strconcat("image.", *key, NULL);
        options_set(options, name, options_get(below, *key));
    }
    return options;
}

Options *block_options_from_filename(const char *filename, GError **error)
{
    g_autofree char *protocol = protocol_of(filename);
    if (!protocol) {
        return from_path(filename, error);
    }
    if (!strcmp(protocol, "json")) {
        Options *options = options_parse(filename, NULL, error);
        if (!options) {
            g_prefix_error(error, "Could not parse the JSON options: ");
        }
        return options;
    }
    if (!strcmp(protocol, "blkdebug")) {
        return from_blkdebug(filename + strlen("blkdebug:"), error);
    }
    const BlockDriver *driver = driver_of_protocol(protocol);
    if (!driver) {
        error_set(error, "Unknown protocol '%s'", protocol);
        return NULL;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(parsers); i++) {
        if (!strcmp(driver->name, parsers[i].driver)) {
            return parsers[i].parse(filename, error);
        }
    }
    if (g_strv_contains(url_drivers, driver->name)) {
        Options *options = options_new();
        options_set(options, "driver", driver->name);
        options_set(options, "url", filename);
        return options;
    }
    bool is_path = !strcmp(driver->name, "file") || g_str_has_prefix(driver->name, "host_");
    return options_of(driver->name, is_path ? filename + strlen(protocol) + 1 : filename);
}
