/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Making a new image.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block/secret-object.h"
#include "tools/img.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"

enum { PREALLOCATION_OFF, PREALLOCATION_FALLOC, PREALLOCATION_FULL };

static const char *const preallocation_names[] = {"off", "falloc", "full", NULL};

typedef struct OptionHelp {
    const char *key, *help;
} OptionHelp;

static const OptionHelp raw_help[] = {
    {"extent_size_hint=<size>", "Extent size hint for the image file, 0 to disable"},
    {"preallocation=<str>", "Preallocation mode (off, falloc, full)"},
    {"size=<size>", "Virtual disk size"},
    {NULL},
};

static const OptionHelp luks_help[] = {
    {"cipher=<str>", "Cipher as cryptsetup writes it (aes-xts-plain64), instead of the next four"},
    {"cipher-alg=<str>", "Name of encryption cipher algorithm (aes-256)"},
    {"cipher-mode=<str>", "Name of encryption cipher mode (xts)"},
    {"ivgen-alg=<str>", "Name of IV generator algorithm (plain64)"},
    {"ivgen-hash-alg=<str>", "Name of IV generator hash algorithm"},
    {"hash-alg=<str>", "Name of encryption hash algorithm (sha256)"},
    {"detached-header=<bool (on/off)>", "The file gets the header only"},
    {"iter-time=<num>", "Time to spend in PBKDF in milliseconds (2000)"},
    {"key-secret=<str>", "ID of the secret that provides the keyslot passphrase"},
    {"key-size=<num>", "Bits of the key, with cipher"},
    {"label=<str>", "Label (version 2)"},
    {"pbkdf=<str>", "pbkdf2, argon2i or argon2id (version 2)"},
    {"pbkdf-iterations=<num>", "Exactly so many iterations instead of iter-time"},
    {"pbkdf-memory=<size>", "Memory of Argon2"},
    {"pbkdf-parallel=<num>", "Threads of Argon2"},
    {"preallocation=<str>", "Preallocation mode (off, falloc, full)"},
    {"sector-size=<num>", "Encryption sector: 512; with version 2 up to 4096"},
    {"size=<size>", "Virtual disk size"},
    {"uuid=<str>", "UUID"},
    {"version=<num>", "1 or 2 (1)"},
    {NULL},
};

void target_print_options(const char *format)
{
    printf("Supported %s options:\n", format);
    for (const OptionHelp *h = !strcmp(format, "luks") ? luks_help : raw_help; h->key; h++) {
        printf("  %-22s - %s\n", h->key, h->help);
    }
}

Options *target_options(const ToolArgs *args)
{
    g_autoptr(Options) all = options_new();
    const GPtrArray *texts = tool_get_all(args, "o");
    for (guint i = 0; texts && i < texts->len; i++) {
        GError *error = NULL;
        const char *text = texts->pdata[i];
        g_autoptr(Options) some = options_parse(strcmp(text, "?") ? text : "help", NULL, &error);
        if (!some) {
            log_gerror(error, NULL);
            return NULL;
        }
        g_auto(GStrv) keys = options_keys(some);
        for (char **key = keys; *key; key++) {
            options_set(all, *key, options_get(some, *key));
        }
    }
    return g_steal_pointer(&all);
}

/* What `-o` says about the target. */
typedef struct TargetOptions {
    int preallocation;    /* -1: a mode that does not exist */
    uint64_t extent_hint; /* bytes; 0: none */
    bool detached;
    const char *key_secret; /* the options' */
    LuksFormat *format;
} TargetOptions;

static void target_options_clear(TargetOptions *o)
{
    luks_format_free(o->format);
}

static bool parse(const Target *target, TargetOptions *ret, GError **error)
{
    Options *options = target->options;
    *ret = (TargetOptions){0};
    if (!image_format_known(target->format)) {
        return error_set(error, "Unknown file format '%s'", target->format);
    }
    options_get(options, "size");
    if (!strcmp(target->format, "raw") &&
        !options_get_size(options, "extent_size_hint", 0, &ret->extent_hint, error)) {
        return false;
    }
    if (ret->extent_hint > UINT32_MAX) {
        return error_set(error, "Extent size hint is too large");
    }
    if (options_has(options, "extent_size_hint")) { /* as it is told to users */
        g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT, ret->extent_hint);
        options_set(options, "extent_size_hint", number);
        options_get(options, "extent_size_hint");
    }
    if (!options_get_enum(options, "preallocation", preallocation_names, PREALLOCATION_OFF,
                          &ret->preallocation, NULL)) {
        ret->preallocation = -1; /* target_create() says so */
    }
    if (!strcmp(target->format, "luks")) {
        ret->key_secret = options_get(options, "key-secret");
        if (!options_get_bool(options, "detached-header", false, &ret->detached, error)) {
            return false;
        }
        ret->format = luks_format_parse(options, error);
        if (!ret->format) {
            return false;
        }
    }
    return options_check_unused(options, error);
}

bool target_check(const Target *target, GError **error)
{
    TargetOptions o;
    bool ok = parse(target, &o, error);
    target_options_clear(&o);
    return ok;
}

bool target_measure(const Target *target, uint64_t *ret, GError **error)
{
    TargetOptions o;
    uint64_t header = 0;
    bool ok =
        parse(target, &o, error) && (!o.format || luks_format_measure(o.format, o.detached, &header, error));
    if (ok) {
        *ret = header + target->size;
    }
    target_options_clear(&o);
    return ok;
}

/* Makes sure that there is a file; what is in it stays, until its locks are ours. */
static bool touch(const char *path, GError **error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0) {
        return error_set_errno(error, errno, "Could not create '%s'", path);
    }
    close(fd);
    return true;
}

/* Where the file system knows extents. It may have a reason to refuse, which costs nothing but speed. */
static void hint_extents(BlockNode *node, uint32_t bytes)
{
    struct fsxattr attr;
    auto_fd fd = bytes ? open(block_info(node)->filename, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0 && ioctl(fd, FS_IOC_FSGETXATTR, &attr) == 0) {
        attr.fsx_xflags |= FS_XFLAG_EXTSIZE;
        attr.fsx_extsize = bytes;
        if (ioctl(fd, FS_IOC_FSSETXATTR, &attr) < 0 && errno != EOPNOTSUPP && errno != ENOTTY) {
            log_warn("Could not set the extent size hint: %s", g_strerror(errno));
        }
    }
}

static BlockNode *open_protocol(const Target *target, bool *ret_regular, GError **error)
{
    g_autoptr(Options) options = block_options_from_filename(target->name, error);
    if (!options) {
        return NULL;
    }
    const char *driver = options_get(options, "driver");
    bool file = !g_strcmp0(driver, "file");
    if (file && !touch(options_get(options, "filename"), error)) {
        return NULL;
    }
    options_set(options, "cache.direct", target->direct ? "on" : "off");
    options_set(options, "cache.no-flush", target->no_flush ? "on" : "off");
    options_set(options, "discard", "unmap");
    BlockNode *node = block_open(options, error);
    if (node && !block_claim_write(node, error)) {
        block_unref(node);
        return NULL;
    }
    struct stat st;
    *ret_regular = node && file && stat(block_info(node)->filename, &st) == 0 && S_ISREG(st.st_mode);
    return node;
}

static bool preallocate(BlockNode *node, int mode, GError **error)
{
    uint64_t size = block_info(node)->size;
    if (mode == PREALLOCATION_FALLOC) {
        auto_fd fd = open(block_info(node)->filename, O_RDWR | O_CLOEXEC);
        int r = fd < 0 ? errno : size ? posix_fallocate(fd, 0, size) : 0;
        return !r || error_set_errno(error, r, "Could not preallocate data for the new file");
    }
    if (mode == PREALLOCATION_FULL) {
        g_autofree uint8_t *zeros = g_malloc0(1024 * 1024);
        for (uint64_t at = 0; at < size; at += MIN(size - at, 1024 * 1024)) {
            int r = block_pwrite(node, at, zeros, MIN(size - at, 1024 * 1024), 0);
            if (r < 0) {
                return error_set_errno(error, r, "Could not write zeros for preallocation");
            }
        }
    }
    return true;
}

static bool size_node(BlockNode *node, uint64_t size, bool regular, GError **error)
{
    if (regular) {
        return block_resize(node, 0, error) >= 0 && block_resize(node, size, error) >= 0;
    }
    return block_info(node)->size >= size ||
           error_set(error, "The image size is too large for '%s', which holds %" G_GUINT64_FORMAT " bytes",
                     block_info(node)->filename, block_info(node)->size);
}

/* A node of the payload's size that swallows everything: the payload beside a detached header is made
 * elsewhere. */
static BlockNode *open_no_payload(uint64_t size, GError **error)
{
    g_autofree char *text = g_strdup_printf("driver=null-co,size=%" G_GUINT64_FORMAT, size);
    g_autoptr(Options) options = options_parse(text, NULL, error);
    return options ? block_open(options, error) : NULL;
}

static bool create_luks(const Target *target, const TargetOptions *o, BlockNode *node, bool regular,
                        GError **error)
{
    if (!o->key_secret) {
        return error_set(error, "Parameter 'key-secret' is required for cipher");
    }
    g_autoptr(Secret) passphrase = secret_object_get(o->key_secret, error);
    if (!passphrase) {
        return false;
    }
    if (regular && block_resize(node, 0, error) < 0) {
        return false;
    }
    if (!o->detached) {
        return luks_create(node, NULL, o->format, passphrase, target->size, error);
    }
    BlockNode *payload = open_no_payload(target->size, error);
    bool ok = payload && luks_create(payload, node, o->format, passphrase, target->size, error);
    block_unref(payload);
    return ok;
}

static BlockNode *create(const Target *target, bool *ret_made, GError **error)
{
    TargetOptions o;
    *ret_made = false;
    bool ok = parse(target, &o, error), regular = false;
    if (ok && o.preallocation < 0) {
        ok = error_set(error, "invalid parameter value: %s", options_get(target->options, "preallocation"));
    }
    BlockNode *node = ok ? open_protocol(target, &regular, error) : NULL;
    if (node) {
        *ret_made = regular;
        if (regular) {
            hint_extents(node, (uint32_t)o.extent_hint);
        }
        ok = o.format ? create_luks(target, &o, node, regular, error)
                      : size_node(node, target->size, regular, error);
        if (ok && regular) {
            ok = preallocate(node, o.preallocation, error);
        }
        if (!ok) {
            block_unref(node);
            node = NULL;
        }
    }
    target_options_clear(&o);
    return node;
}

char *target_path(const char *name)
{
    g_autoptr(Options) options = block_options_from_filename(name, NULL);
    const char *filename = options ? options_get(options, "filename") : NULL;
    char *real = filename ? realpath(filename, NULL) : NULL, *copy = g_strdup(real);
    free(real);
    return copy;
}

/* Signals that would end the program wait until there is an image that can be removed. */
BlockNode *target_create(const Target *target, bool *ret_made, GError **error)
{
    sigset_t ending, before, pending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    BlockNode *node = create(target, ret_made, error);
    sigpending(&pending);
    bool ends =
        sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) || sigismember(&pending, SIGHUP);
    g_autofree char *path = ends && *ret_made ? target_path(target->name) : NULL;
    if (path) {
        unlink(path);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return node;
}

BlockNode *target_open(const Target *target, BlockNode *file, GError **error)
{
    if (strcmp(target->format, "luks")) {
        return block_ref(file);
    }
    bool detached;
    if (!options_get_bool(target->options, "detached-header", false, &detached, error)) {
        return NULL;
    }
    if (detached) {
        error_set(error, "A detached header holds no data; make it with create, then convert with "
                         "-n --target-image-opts");
        return NULL;
    }
    g_autoptr(Options) options = options_new();
    options_set(options, "driver", "luks");
    options_set(options, "file", block_name(file));
    options_set(options, "key-secret", options_get(target->options, "key-secret"));
    options_set(options, "cache.no-flush", target->no_flush ? "on" : "off");
    return block_open(options, error);
}
