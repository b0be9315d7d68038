/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/image.h"

#include <string.h>

#include "block/luks.h"
#include "util/error.h"
#include "util/log.h"

/* Formats are layers upon a protocol (file, nbd, …). */
static const char *const formats[] = {"raw", "luks", NULL};

bool image_format_known(const char *format)
{
    return g_strv_contains(formats, format);
}

bool image_parse_cache(const char *mode, bool *ret_direct, bool *ret_no_flush, bool *ret_writethrough)
{
    static const struct {
        const char *name;
        bool direct, no_flush, writethrough;
    } modes[] = {
        {"none", true, false, false},         {"off", true, false, false},
        {"directsync", true, false, true},    {"writeback", false, false, false},
        {"writethrough", false, false, true}, {"unsafe", false, true, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (!strcmp(modes[i].name, mode ? mode : "writeback")) {
            *ret_direct = modes[i].direct;
            *ret_no_flush = modes[i].no_flush;
            *ret_writethrough = modes[i].writethrough;
            return true;
        }
    }
    return false;
}

/* Copies all of `from` into `to` below `prefix`. */
static void put_below(Options *to, const char *prefix, const Options *from)
{
    g_auto(GStrv) keys = options_keys(from);
    for (char **key = keys; *key; key++) {
        g_autofree char *name = g_strdup_printf("%s.%s", prefix, *key);
        options_set(to, name, options_get((Options *)from, *key));
    }
}

/* Where `PREFIX.filename` has no driver beside it, chooses the driver by the name, as QEMU does. */
static bool complete_protocol(Options *options, const char *prefix, GError **error)
{
    g_autofree char *driver = g_strdup_printf("%s%sdriver", prefix, *prefix ? "." : "");
    g_autofree char *filename = g_strdup_printf("%s%sfilename", prefix, *prefix ? "." : "");
    const char *name = options_get(options, filename);
    if (!name || options_has(options, driver)) {
        return true;
    }
    g_autoptr(Options) found = block_options_from_filename(name, error);
    if (!found) {
        return false;
    }
    options_remove(options, filename);
    g_auto(GStrv) keys = options_keys(found);
    for (char **key = keys; *key; key++) {
        g_autofree char *full = g_strdup_printf("%s%s%s", prefix, *prefix ? "." : "", *key);
        options_set(options, full, options_get(found, *key));
    }
    return true;
}

/* Every level of `file`, `file.file`, … and the header's. */
static bool complete_protocols(Options *options, GError **error)
{
    g_autoptr(GString) prefix = g_string_new("file");
    while (options_has_prefix(options, prefix->str)) {
        if (!complete_protocol(options, prefix->str, error)) {
            return false;
        }
        g_string_append(prefix, ".file");
    }
    return complete_protocol(options, "header", error) && complete_protocol(options, "", error);
}

static void set_default(Options *options, const char *key, const char *value)
{
    if (value && !options_has(options, key)) {
        options_set(options, key, value);
    }
}

/* What the tool's own options say, for the node at the top; nodes below inherit it. */
static void apply_spec(const ImageSpec *spec, Options *options, bool direct, bool no_flush)
{
    set_default(options, "read-only", spec->writable ? "off" : "on");
    set_default(options, "cache.direct", direct ? "on" : NULL);
    set_default(options, "cache.no-flush", no_flush ? "on" : NULL);
    set_default(options, "discard", spec->discard ? spec->discard : "unmap");
    if (spec->force_share && !spec->writable) {
        set_default(options, "force-share", "on");
    }
}

/* `aio` belongs to a node that is a file, where it is said to be one. */
static void apply_aio(const ImageSpec *spec, Options *options, bool protocol_on_top)
{
    static const char *const files[] = {"file", "host_device", "host_cdrom", NULL};
    const char *driver = options_get(options, protocol_on_top ? "driver" : "file.driver");

    if (spec->aio && driver && g_strv_contains(files, driver)) {
        set_default(options, protocol_on_top ? "aio" : "file.aio", spec->aio);
    }
}

/* A CUE sheet is known by its name, as in `-cdrom`. */
static bool is_cue_sheet(Options *protocol)
{
    const char *filename = options_get(protocol, "filename");
    size_t n = filename ? strlen(filename) : 0;
    return n > 4 && !g_ascii_strcasecmp(filename + n - 4, ".cue");
}

/* The options of the chain; *ret_probe: they describe a protocol node whose content says the format. */
static Options *chain_options(const ImageSpec *spec, bool *ret_probe, GError **error)
{
    g_autoptr(Options) named = spec->image_opts ? options_parse(spec->name, NULL, error)
                                                : block_options_from_filename(spec->name, error);
    if (!named || !complete_protocols(named, error)) {
        return NULL;
    }
    *ret_probe = false;
    const char *driver = options_get(named, "driver");
    if (spec->image_opts && driver) {
        return g_steal_pointer(&named);
    }
    if (!driver) { /* only `file.…`: the format is what its content says */
        *ret_probe = true;
        return options_get_sub(named, "file");
    }
    if (spec->format) {
        if (!strcmp(spec->format, driver)) {
            return g_steal_pointer(&named);
        }
        g_autoptr(Options) top = options_new();
        options_set(top, "driver", spec->format);
        put_below(top, "file", named);
        return g_steal_pointer(&top);
    }
    if (is_cue_sheet(named)) {
        g_autoptr(Options) top = options_new();
        options_set(top, "driver", "cue");
        put_below(top, "file", named);
        return g_steal_pointer(&top);
    }
    *ret_probe = !image_format_known(driver);
    return g_steal_pointer(&named);
}

/* Puts the format layer on an open protocol node; consumes its reference. */
static BlockNode *open_probed(const ImageSpec *spec, BlockNode *file, Options *file_options, bool direct,
                              bool no_flush, GError **error)
{
    unsigned version = luks_probe(file);
    if (version && spec->header_only) {
        return file;
    }
    g_autoptr(Options) top = options_new();
    options_set(top, "driver", version ? "luks" : "raw");
    options_set(top, "file", block_name(file));
    apply_spec(spec, top, direct, no_flush);
    BlockNode *node = block_open(top, error);
    block_unref(file);
    return node;
}

bool image_open(const ImageSpec *spec, Image *ret, GError **error)
{
    bool direct, no_flush, writethrough, probe;
    if (!image_parse_cache(spec->cache, &direct, &no_flush, &writethrough)) {
        return error_set(error, "Invalid cache option: %s", spec->cache);
    }
    g_autoptr(Options) options = chain_options(spec, &probe, error);
    if (!options) {
        return false;
    }
    const char *driver = options_get(options, "driver");
    bool keyless = spec->header_only && !g_strcmp0(driver, "luks");
    g_autofree char *format = g_strdup(driver);
    if (keyless) { /* the node with the header tells all that there is to know without a key */
        Options *file = options_get_sub(options, options_has_prefix(options, "header") ? "header" : "file");
        options_unref(options);
        options = file;
    }
    apply_spec(spec, options, direct, no_flush);
    apply_aio(spec, options, probe || keyless || !image_format_known(format ? format : ""));
    BlockNode *node = block_open(options, error);
    if (node && keyless && !luks_probe(node)) {
        block_unref(node);
        return error_set(error, "Volume is not in LUKS format");
    }
    if (node && probe) {
        node = open_probed(spec, node, options, direct, no_flush, error);
    }
    if (!node) {
        return false;
    }
    bool header = keyless || (probe && spec->header_only && luks_probe(node));
    *ret = (Image){.node = node,
                   .name = spec->name,
                   .format = header ? "luks" : block_info(node)->driver,
                   .writethrough = writethrough};
    return true;
}

bool image_open_or_say(const ImageSpec *spec, Image *ret)
{
    GError *error = NULL;
    if (!image_open(spec, ret, &error)) {
        log_gerror(error, "Could not open '%s': ", spec->name);
        return false;
    }
    return true;
}

void image_close(Image *image)
{
    block_unref(image->node);
    image->node = NULL;
}
