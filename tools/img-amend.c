/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img amend: the key slots of an encrypted image.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block/secret-object.h"
#include "tools/img.h"
#include "util/error.h"
#include "util/log.h"

static const char *const state_names[] = {"active", "inactive", "changed", NULL};

/* Named by `key` in the options; *ret NULL when it is not there. */
static bool take_secret(Options *options, const char *key, Secret **ret, GError **error)
{
    const char *id = options_get(options, key);
    if (!id || !*id) {
        return true;
    }
    *ret = secret_object_get(id, error);
    return *ret != NULL;
}

typedef struct Amendment {
    LuksAmend amend;
    Secret *unlock, *new_secret, *old_secret;
} Amendment;

static void amendment_clear(Amendment *a)
{
    secret_free(a->unlock);
    secret_free(a->new_secret);
    secret_free(a->old_secret);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Amendment, amendment_clear)

static bool parse_amendment(Options *options, bool force, Amendment *a, GError **error)
{
    int state = -1;
    uint64_t slot = UINT64_MAX;
    if (!options_get_enum(options, "state", state_names, -1, &state, error) ||
        !options_get_uint(options, "keyslot", 0, 31, UINT64_MAX, &slot, error) ||
        !options_get_uint(options, "iter-time", 1, G_MAXUINT32, 0, &a->amend.iter_time, error) ||
        !options_get_uint(options, "pbkdf-iterations", 1, G_MAXUINT32, 0, &a->amend.iterations, error) ||
        !take_secret(options, "new-secret", &a->new_secret, error) ||
        !take_secret(options, "old-secret", &a->old_secret, error) ||
        !take_secret(options, "key-secret", &a->unlock, error) || !options_check_unused(options, error)) {
        return false;
    }
    if (state < 0) {
        return error_set(error, "Parameter 'state' is missing");
    }
    a->amend.action = (LuksAmendAction[]){LUKS_AMEND_ADD, LUKS_AMEND_ERASE, LUKS_AMEND_CHANGE}[state];
    if (a->amend.action != LUKS_AMEND_ERASE && !a->new_secret) {
        return error_set(error, "'new-secret' is required to activate a keyslot");
    }
    if (a->amend.action == LUKS_AMEND_ERASE && a->new_secret) {
        return error_set(error, "'new-secret' must not be given when erasing keyslots");
    }
    if (a->amend.action == LUKS_AMEND_ERASE && !a->old_secret && slot == UINT64_MAX) {
        return error_set(error, "To erase keyslot(s), either explicit keyslot index "
                                "or the password currently contained in them must be given");
    }
    a->amend.slot = slot == UINT64_MAX ? -1 : (int)slot;
    a->amend.force = force;
    return true;
}

/* The passphrase that opens the image: `key-secret` among the image's own options. */
static bool find_unlock(const ToolArgs *args, const char *name, Amendment *a, GError **error)
{
    bool json = g_str_has_prefix(name, "json:");
    if (a->unlock || (!tool_has(args, "image-opts") && !json)) {
        return true;
    }
    g_autoptr(Options) options = options_parse(name, NULL, error);
    return options && take_secret(options, "key-secret", &a->unlock, error) &&
           (a->unlock || take_secret(options, "encrypt.key-secret", &a->unlock, error));
}

static bool amend_image(const ToolArgs *args, Options *options, Image *image, GError **error)
{
    g_auto(Amendment) a = {{0}};
    if (strcmp(image->format, "luks")) {
        return error_set(error, "Format driver '%s' does not support option amendment", image->format);
    }
    if (!parse_amendment(options, tool_has(args, "force"), &a, error) ||
        !find_unlock(args, image->name, &a, error)) {
        return false;
    }
    if (a.amend.action != LUKS_AMEND_ERASE && !a.unlock) {
        return error_set(error, "Parameter 'key-secret' is required for cipher");
    }
    a.amend.unlock = a.unlock;
    a.amend.new_secret = a.new_secret;
    a.amend.old_secret = a.old_secret;
    return block_claim_write(image->node, error) && luks_amend(image->node, &a.amend, error);
}

static void print_options(void)
{
    printf("Amend options for 'luks':\n"
           "  iter-time=<num>        - Time to spend in PBKDF in milliseconds\n"
           "  key-secret=<str>       - Secret that opens the image, if its options name none\n"
           "  keyslot=<num>          - Select a single keyslot to modify explicitly\n"
           "  new-secret=<str>       - New secret to set in the matching keyslots\n"
           "  old-secret=<str>       - Select all keyslots that match this password\n"
           "  pbkdf-iterations=<num> - Exactly so many iterations instead of iter-time\n"
           "  state=<str>            - active: add new-secret; changed: put new-secret in the place of the\n"
           "                           secret that opens the image; inactive: erase\n");
}

static int amend_run(const ToolArgs *args)
{
    const char *format = tool_get(args, "format");
    g_autoptr(Options) options = target_options(args);
    if (!options) {
        return EXIT_FAILURE;
    }
    if (!tool_has(args, "options")) {
        return tool_wrong(args, "Must specify options (-o)");
    }
    if (options_has(options, "help") && (!format || !strcmp(format, "luks"))) {
        print_options();
        return EXIT_SUCCESS;
    }
    if (format && strcmp(format, "luks")) {
        log_error("Format driver '%s' does not support option amendment", format);
        return EXIT_FAILURE;
    }
    if (tool_count(args) != 1) {
        return tool_wrong(args, "Expecting one image file name");
    }
    if (!img_check_format_options(args)) {
        return EXIT_FAILURE;
    }
    ImageSpec spec = {
        .name = tool_operand(args, 0),
        .format = format,
        .cache = tool_get(args, "cache"),
        .image_opts = tool_has(args, "image-opts"),
        .writable = true,
        .header_only = true,
    };
    g_auto(Image) image = {0};
    GError *error = NULL;
    if (!image_open_or_say(&spec, &image)) {
        return EXIT_FAILURE;
    }
    if (!amend_image(args, options, &image, &error)) {
        log_gerror(error, NULL);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static const ToolOption amend_options[] = {
    {'o', "options", "OPTIONS", "what to change, key=value,…; '-o help' lists them"},
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {'t', "cache", "CACHE", "cache mode (writeback)"},
    {0, "force", NULL, "also replace a key slot in use, or erase the last one: the data is lost with it"},
    IMG_PROGRESS,
    TOOL_QUIET,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_amend = {
    .name = "amend",
    .summary = "Adds, changes and erases passphrases of an encrypted image",
    .usage = "-o OPTIONS [-f FMT | --image-opts] [-t CACHE] [--force] [-q]\n"
             "        [--object OBJDEF] FILE",
    .options = amend_options,
    .operands = "  FILE\n     the image\n",
    .examples =
        "  spindle-img amend --object secret,id=old,file=old.txt --object secret,id=new,file=new.txt \\\n"
        "     -o state=active,new-secret=new --image-opts driver=luks,key-secret=old,file.filename=d.luks\n"
        "  spindle-img amend --object secret,id=old,file=old.txt -o state=inactive,old-secret=old d.luks\n",
    .run = amend_run,
};
