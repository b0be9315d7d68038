/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/options.h"

#include <string.h>

#include "util/error.h"
#include "util/json.h"
#include "util/options-int.h"
#include "util/secret.h"

#define KEY_MAX      1024
#define FRAGMENT_MAX 127 /* bytes between two dots, QEMU's own limit */

typedef struct {
    char *key, *value;
    bool used;
} Item;

struct Options {
    gint refs;
    GPtrArray *items;  /* of Item, in order of their first appearance */
    GHashTable *index; /* key -> Item */
};

/* Any value may be a passphrase: none is left behind in freed memory. */
static void value_free(char *value)
{
    if (value) {
        secret_wipe(value, strlen(value));
        g_free(value);
    }
}

static void item_free(gpointer opaque)
{
    Item *item = opaque;
    g_free(item->key);
    value_free(item->value);
    g_free(item);
}

Options *options_new(void)
{
    Options *options = g_new0(Options, 1);
    options->refs = 1;
    options->items = g_ptr_array_new_with_free_func(item_free);
    options->index = g_hash_table_new(g_str_hash, g_str_equal);
    return options;
}

Options *options_ref(Options *options)
{
    g_atomic_int_inc(&options->refs);
    return options;
}

void options_unref(Options *options)
{
    if (options && g_atomic_int_dec_and_test(&options->refs)) {
        g_hash_table_unref(options->index);
        g_ptr_array_unref(options->items);
        g_free(options);
    }
}

void options_set(Options *options, const char *key, const char *value)
{
    Item *item = g_hash_table_lookup(options->index, key);
    char *copy = g_strdup(value); /* first: `value` may be the item's own */
    if (!item) {
        item = g_new0(Item, 1);
        item->key = g_strdup(key);
        g_ptr_array_add(options->items, item);
        g_hash_table_insert(options->index, item->key, item);
    }
    value_free(item->value);
    item->value = copy;
}

void options_remove(Options *options, const char *key)
{
    Item *item = g_hash_table_lookup(options->index, key);
    if (item) {
        g_hash_table_remove(options->index, key);
        g_ptr_array_remove(options->items, item);
    }
}

bool options_has(const Options *options, const char *key)
{
    return g_hash_table_contains(options->index, key);
}

/* What follows `prefix.` in the key, or NULL. */
static const char *key_below(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);
    return !strncmp(key, prefix, n) && key[n] == '.' ? key + n + 1 : NULL;
}

bool options_has_prefix(const Options *options, const char *prefix)
{
    for (guint i = 0; i < options->items->len; i++) {
        const Item *item = options->items->pdata[i];
        if (!strcmp(item->key, prefix) || key_below(item->key, prefix)) {
            return true;
        }
    }
    return false;
}

const char *options_get(Options *options, const char *key)
{
    Item *item = g_hash_table_lookup(options->index, key);
    if (!item) {
        return NULL;
    }
    item->used = true;
    return item->value;
}

Options *options_get_sub(Options *options, const char *prefix)
{
    Options *sub = options_new();
    for (guint i = 0; i < options->items->len; i++) {
        Item *item = options->items->pdata[i];
        const char *below = key_below(item->key, prefix);
        if (below) {
            item->used = true;
            options_set(sub, below, item->value);
        }
    }
    return sub;
}

char **options_keys(const Options *options)
{
    char **keys = g_new0(char *, options->items->len + 1);
    for (guint i = 0; i < options->items->len; i++) {
        keys[i] = g_strdup(((const Item *)options->items->pdata[i])->key);
    }
    return keys;
}

const char *options_first_unused(const Options *options)
{
    for (guint i = 0; i < options->items->len; i++) {
        const Item *item = options->items->pdata[i];
        if (!item->used) {
            return item->key;
        }
    }
    return NULL;
}

bool options_check_unused(Options *options, GError **error)
{
    const char *key = options_first_unused(options);
    return !key || error_set(error, "Invalid parameter '%s'", key);
}

bool options_check_expected(Options *options, GError **error)
{
    const char *key = options_first_unused(options);
    return !key || error_set(error, "Parameter '%s' is unexpected", key);
}

bool options_check_consistent(const Options *options, GError **error)
{
    for (guint i = 0; i < options->items->len; i++) {
        g_autofree char *above = g_strdup(((const Item *)options->items->pdata[i])->key);
        for (char *dot; (dot = strrchr(above, '.'));) {
            *dot = '\0';
            if (options_has(options, above)) {
                return error_set(error, "Parameters '%s.*' used inconsistently", above);
            }
        }
    }
    return true;
}

bool options_check_key(const char *key, GError **error)
{
    size_t fragment = 0, length = strlen(key);
    for (const char *p = key;; p++) {
        if (*p && *p != '.') {
            fragment++;
            continue;
        }
        if (!fragment) {
            return error_set(error, "Invalid parameter '%s'", key);
        }
        if (fragment > FRAGMENT_MAX || length > KEY_MAX) {
            return error_set(error, "Parameter '%.40s…' is too long", key);
        }
        if (!*p) {
            return true;
        }
        fragment = 0;
    }
}

/* The text up to the next single comma, `,,` taken for one; *at moves past that comma. */
static char *parse_until_comma(const char **at)
{
    const char *p = *at;
    size_t length = 0;
    char *text = g_malloc(strlen(p) + 1); /* never moved, which would leave a copy */
    for (; *p && (*p != ',' || p[1] == ','); p++) {
        text[length++] = *p;
        p += *p == ',';
    }
    text[length] = '\0';
    *at = *p ? p + 1 : p;
    return text;
}

/* One `key=value`, `key` or (with implied_key) `value`; *at moves to the next item. */
static bool parse_item(Options *options, const char **at, const char *implied_key, GError **error)
{
    size_t n = strcspn(*at, "=,");
    if ((*at)[n] == '=') {
        g_autofree char *key = g_strndup(*at, n);
        *at += n + 1;
        char *value = parse_until_comma(at);
        bool ok = options_check_key(key, error);
        if (ok) {
            options_set(options, key, value);
        }
        value_free(value);
        return ok;
    }
    g_autofree char *word = parse_until_comma(at);
    if (implied_key) {
        options_set(options, implied_key, word);
        return true;
    }
    if (!options_check_key(word, error)) {
        return false;
    }
    options_set(options, word, "on");
    return true;
}

Options *options_parse(const char *text, const char *implied_key, GError **error)
{
    bool pseudo = g_str_has_prefix(text, "json:");
    if (pseudo || text[strspn(text, " \t\r\n")] == '{') {
        return options_parse_json(text + (pseudo ? strlen("json:") : 0), error);
    }
    g_autoptr(Options) options = options_new();
    while (*text) {
        if (!parse_item(options, &text, implied_key, error)) {
            return NULL;
        }
        implied_key = NULL;
    }
    return g_steal_pointer(&options);
}

char *options_to_string(const Options *options)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < options->items->len; i++) {
        const Item *item = options->items->pdata[i];
        g_string_append_printf(text, "%s%s=", i ? "," : "", item->key);
        for (const char *p = item->value; *p; p++) {
            g_string_append_c(text, *p);
            if (*p == ',') {
                g_string_append_c(text, ',');
            }
        }
    }
    return g_string_free(text, FALSE);
}

const char *options_peek(const Options *options, const char *key)
{
    const Item *item = g_hash_table_lookup(options->index, key);
    return item ? item->value : NULL;
}
