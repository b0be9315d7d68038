/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img info.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/img.h"
#include "util/log.h"

void img_print_json(JsonNode *node, unsigned indent)
{
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *object = json_node_get_object(node);
        g_autoptr(GList) names = json_object_get_members(object);
        printf("{");
        for (GList *link = names; link; link = link->next) {
            g_autoptr(JsonNode) name = json_node_init_string(json_node_alloc(), link->data);
            g_autofree char *quoted = json_to_string(name, FALSE);
            printf("\n%*s%s: ", indent + 4, "", quoted);
            img_print_json(json_object_get_member(object, link->data), indent + 4);
            printf("%s", link->next ? "," : "");
        }
        printf("\n%*s}", indent, "");
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        printf("[");
        for (guint i = 0; i < json_array_get_length(array); i++) {
            printf("%s\n%*s", i ? "," : "", indent + 4, "");
            img_print_json(json_array_get_element(array, i), indent + 4);
        }
        printf("\n%*s]", indent, "");
    } else {
        g_autofree char *text = json_to_string(node, FALSE);
        printf("%s", text);
    }
}

/* "key-offset: 4096" as "key offset: 4096", one item a line. */
static void print_human(JsonNode *node, unsigned indent)
{
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *object = json_node_get_object(node);
        g_autoptr(GList) names = json_object_get_members(object);
        for (GList *link = names; link; link = link->next) {
            JsonNode *value = json_object_get_member(object, link->data);
            g_autofree char *name = g_strdelimit(g_strdup(link->data), "-", ' ');
            printf("%*s%s:%s", indent, "", name, JSON_NODE_HOLDS_VALUE(value) ? " " : "\n");
            print_human(value, indent + 4);
        }
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        for (guint i = 0; i < json_array_get_length(array); i++) {
            printf("%*s[%u]:\n", indent, "", i);
            print_human(json_array_get_element(array, i), indent + 4);
        }
    } else if (json_node_get_value_type(node) == G_TYPE_STRING) {
        printf("%s\n", json_node_get_string(node));
    } else {
        g_autofree char *text = json_to_string(node, FALSE);
        printf("%s\n", text);
    }
}

/* What is to be told about one image. */
typedef struct Facts {
    Image image;
    BlockNode *file; /* the protocol node; the image's own if it is one */
    uint64_t size;   /* of the content */
    bool has_disk_size;
    uint64_t disk_size;   /* bytes that the file takes */
    JsonObject *specific; /* of a LUKS header, or NULL; owned */
    char *name;           /* as to be printed */
} Facts;

static void facts_clear(Facts *facts)
{
    if (facts->specific) {
        json_object_unref(facts->specific);
    }
    g_free(facts->name);
    image_close(&facts->image);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Facts, facts_clear)

static void find_disk_size(Facts *facts)
{
    struct stat st;
    const char *path = block_info(facts->file)->filename;
    facts->has_disk_size = *path && stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
    if (facts->has_disk_size) {
        facts->disk_size = (uint64_t)st.st_blocks * 512;
    }
}

/* An option string with more than a file name in it is told as JSON. */
static char *name_to_print(const Facts *facts, bool image_opts)
{
    const char *filename = block_info(facts->file)->filename;
    if (!image_opts) {
        return g_strdup(facts->image.name);
    }
    if (!facts->specific && *filename) {
        return g_strdup(filename);
    }
    g_autoptr(Options) options = options_parse(facts->image.name, NULL, NULL);
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, options_to_json(options));
    g_autofree char *text = json_to_string(node, FALSE);
    return g_strconcat("json:", text, NULL);
}

static bool find_luks(Facts *facts)
{
    GError *error = NULL;
    facts->specific = luks_info(facts->file, &error);
    if (!facts->specific) {
        log_gerror(error, "Could not open '%s': ", facts->image.name);
        return false;
    }
    uint64_t payload = json_object_get_int_member_with_default(facts->specific, "payload-offset", 0);
    uint64_t size = block_info(facts->file)->size;
    facts->size = size > payload ? size - payload : 0;
    return true;
}

static bool find_facts(const ToolArgs *args, Facts *facts)
{
    ImageSpec spec = {
        .name = tool_operand(args, 0),
        .format = tool_get(args, "format"),
        .cache = tool_get(args, "cache"),
        .image_opts = tool_has(args, "image-opts"),
        .force_share = true, /* nothing is written, and a header that changes is no danger */
        .header_only = true,
    };
    bool ignored;
    if (!img_check_format_options(args)) {
        return false;
    }
    if (!image_parse_cache(spec.cache, &ignored, &ignored, &ignored)) {
        log_error("Invalid cache option: %s", spec.cache);
        return false;
    }
    if (!image_open_or_say(&spec, &facts->image)) {
        return false;
    }
    BlockNode *child = block_child(facts->image.node, "file");
    bool luks = !strcmp(facts->image.format, "luks");
    facts->file = child && !luks ? child : facts->image.node;
    facts->size = block_info(facts->image.node)->size;
    find_disk_size(facts);
    if (luks && !find_luks(facts)) {
        return false;
    }
    facts->name = name_to_print(facts, spec.image_opts);
    return true;
}

static bool is_layered(const Facts *facts)
{
    return facts->file != facts->image.node || facts->specific;
}

static void print_size(const char *label, uint64_t bytes, bool exact)
{
    g_autofree char *text = tool_format_size(bytes);
    printf(exact ? "%s: %s (%" G_GUINT64_FORMAT " bytes)\n" : "%s: %s\n", label, text, bytes);
}

static void print_disk_size(const Facts *facts, const char *indent)
{
    if (facts->has_disk_size) {
        printf("%s", indent);
        print_size("disk size", facts->disk_size, false);
    } else {
        printf("%sdisk size: unavailable\n", indent);
    }
}

static void print_limits(const Facts *facts)
{
    const BlockInfo *info = block_info(facts->image.node);
    printf("Block limits:\n    request alignment: %u\n    opt transfer: %u\n", info->align,
           info->opt_transfer);
}

static void print_facts_human(const Facts *facts, bool limits)
{
    const BlockInfo *file = block_info(facts->file);
    printf("image: %s\nfile format: %s\n", facts->name, facts->image.format);
    print_size("virtual size", facts->size, true);
    print_disk_size(facts, "");
    if (facts->specific) {
        g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), facts->specific);
        printf("encrypted: yes\nFormat specific information:\n");
        print_human(node, 4);
    }
    if (limits) {
        print_limits(facts);
    }
    if (is_layered(facts)) {
        printf("Child node '/file':\n    filename: %s\n    protocol type: %s\n    ", file->filename,
               file->driver);
        print_size("file length", file->size, true);
        print_disk_size(facts, "    ");
    }
}

static JsonObject *node_object(const Facts *facts, bool top)
{
    const BlockInfo *file = block_info(facts->file);
    JsonObject *object = json_object_new();
    JsonArray *children = json_array_new();
    if (top && is_layered(facts)) {
        JsonObject *child = json_object_new();
        json_object_set_string_member(child, "name", "file");
        json_object_set_object_member(child, "info", node_object(facts, false));
        json_array_add_object_element(children, child);
    }
    json_object_set_array_member(object, "children", children);
    json_object_set_int_member(object, "virtual-size", top ? facts->size : file->size);
    json_object_set_string_member(object, "filename", top ? facts->name : file->filename);
    json_object_set_string_member(object, "format", top ? facts->image.format : file->driver);
    if (facts->has_disk_size) {
        json_object_set_int_member(object, "actual-size", facts->disk_size);
    }
    if (top && facts->specific) {
        JsonObject *specific = json_object_new();
        json_object_set_string_member(specific, "type", "luks");
        json_object_set_object_member(specific, "data", json_object_ref(facts->specific));
        json_object_set_object_member(object, "format-specific", specific);
        json_object_set_boolean_member(object, "encrypted", TRUE);
    }
    json_object_set_boolean_member(object, "dirty-flag", FALSE);
    return object;
}

static int info_run(const ToolArgs *args)
{
    bool json;
    int status;
    if (!tool_get_output(args, &json, &status)) {
        return status;
    }
    if (tool_count(args) != 1) {
        return tool_wrong(args, "Expecting one image file name");
    }
    g_auto(Facts) facts = {{0}};
    if (!find_facts(args, &facts)) {
        return EXIT_FAILURE;
    }
    if (json) {
        g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
        json_node_take_object(node, node_object(&facts, true));
        if (tool_has(args, "backing-chain")) {
            JsonArray *chain = json_array_new();
            json_array_add_element(chain, g_steal_pointer(&node));
            node = json_node_init_array(json_node_alloc(), chain);
            json_array_unref(chain);
        }
        img_print_json(node, 0);
        printf("\n");
    } else {
        print_facts_human(&facts, tool_has(args, "limits"));
    }
    return EXIT_SUCCESS;
}

static const ToolOption info_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {0, "backing-chain", NULL, "accepted; there are no backing files"},
    {'t', "cache", "CACHE", "cache mode (writeback)"},
    {0, "limits", NULL, "also print alignment and transfer size"},
    IMG_OUTPUT,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_info = {
    .name = "info",
    .summary = "Describes an image",
    .usage = "[-f FMT | --image-opts] [-t CACHE] [-U] [--limits] [--output human|json]\n"
             "        [--object OBJDEF] FILE",
    .options = info_options,
    .operands = "  FILE\n     the image; an encrypted one is described without its passphrase\n",
    .examples = "  spindle-img info disc.iso\n  spindle-img info --output=json disk.luks\n",
    .run = info_run,
};
