/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "monitor/hmp.h"
#include "util/options.h"

#define MIB_SHIFT 20

typedef struct Spec {
    char *name;
    char type; /* as in HmpCommand.spec; '-': a flag */
    char flag;
    bool optional;
} Spec;

static void spec_clear(gpointer data)
{
    g_free(((Spec *)data)->name);
}

static GArray *read_spec(const char *text)
{
    g_auto(GStrv) items = g_strsplit(text, ",", -1);
    GArray *specs = g_array_new(false, true, sizeof(Spec));

    g_array_set_clear_func(specs, spec_clear);
    for (char **item = items; *item; item++) {
        const char *colon = strchr(*item, ':');
        if (colon) {
            Spec spec = {.name = g_strndup(*item, colon - *item), .type = colon[1], .flag = colon[2]};
            spec.optional = spec.type == '-' || colon[2] == '?';
            g_array_append_val(specs, spec);
        }
    }
    return specs;
}

char *hmp_next_word(const char **text, bool *ret_bad)
{
    g_autoptr(GString) word = g_string_new(NULL);
    const char *p = *text + strspn(*text, " \t");

    if (!*p) {
        return NULL;
    }
    if (*p != '"') {
        size_t len = strcspn(p, " \t");
        *text = p + len;
        return g_strndup(p, len);
    }
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            g_string_append_c(word, *p == 'n' ? '\n' : *p == 'r' ? '\r' : *p);
        } else {
            g_string_append_c(word, *p);
        }
    }
    if (!*p) {
        *ret_bad = true;
        return NULL;
    }
    *text = p + 1;
    return g_strdup(word->str);
}

/* What is wrong with a command's words, and where to read more. */
static char *refuse(const HmpCommand *command, const char *called, const char *what, bool names)
{
    bool info = hmp_find(hmp_infos, called) == command;

    return g_strdup_printf("%s%s%s\nTry \"help %s%s\" for more information\n", names ? command->name : "",
                           names ? ": " : "", what, info ? "info " : "", called);
}

/* Takes flags at *text. NULL, or what is wrong. */
static char *take_flags(const GArray *specs, const char **text, JsonObject *args)
{
    for (;;) {
        const char *p = *text + strspn(*text, " \t");
        bool known = false;
        if (p[0] != '-' || !g_ascii_isalpha(p[1]) || (p[2] && p[2] != ' ' && p[2] != '\t')) {
            return NULL;
        }
        for (guint i = 0; i < specs->len; i++) {
            const Spec *spec = &g_array_index(specs, Spec, i);
            if (spec->type == '-' && spec->flag == p[1]) {
                json_object_set_boolean_member(args, spec->name, true);
                known = true;
            }
        }
        if (!known) {
            return g_strdup_printf("unsupported option -%c", p[1]);
        }
        *text = p + 2;
    }
}

static const char *expected(char type)
{
    switch (type) {
    case 'B':
        return "block device name expected";
    case 'F':
        return "filename expected";
    case 'l':
        return "unexpected end of expression";
    case 'o':
        return "invalid size";
    default:
        return "string expected";
    }
}

static bool set_value(JsonObject *args, const Spec *spec, const char *word)
{
    uint64_t size = 0;
    char *end;

    if (spec->type == 'l') {
        errno = 0;
        gint64 number = g_ascii_strtoll(word, &end, 0);
        json_object_set_int_member(args, spec->name, number);
        return !*end && end != word && errno == 0;
    }
    if (spec->type != 'o') {
        json_object_set_string_member(args, spec->name, word);
        return true;
    }
    if (strspn(word, "0123456789") == strlen(word)) {
        bool good = options_parse_uint(word, &size) == 0 && size <= G_MAXINT64 >> MIB_SHIFT;
        json_object_set_int_member(args, spec->name, good ? (gint64)(size << MIB_SHIFT) : 0);
        return good;
    }
    bool good = options_parse_size(word, &size) == 0 && size <= G_MAXINT64;
    json_object_set_int_member(args, spec->name, (gint64)size);
    return good;
}

/* NULL, or what is wrong; *ret_names: with the command's name before it. */
static char *take_args(const GArray *specs, const char **text, JsonObject *args, bool *ret_names)
{
    bool bad = false;

    *ret_names = true;
    for (guint i = 0; i < specs->len; i++) {
        const Spec *spec = &g_array_index(specs, Spec, i);
        char *wrong = take_flags(specs, text, args);
        if (wrong) {
            return wrong;
        }
        if (spec->type == '-') {
            continue;
        }
        const char *rest = *text + strspn(*text, " \t");
        g_autofree char *word = spec->type == 'S' && *rest ? g_strdup(rest) : hmp_next_word(text, &bad);
        if (spec->type == 'S') {
            *text += strlen(*text);
        }
        if (!word && spec->optional && !bad) {
            continue;
        }
        if (!word || !set_value(args, spec, word)) {
            *ret_names = spec->type != 'l' && spec->type != 'o';
            return g_strdup(bad ? "unterminated string" : expected(spec->type));
        }
    }
    return take_flags(specs, text, args);
}

bool hmp_parse(const HmpCommand *command, const char *called, const char *text, JsonObject *args,
               char **ret_message)
{
    g_autoptr(GArray) specs = read_spec(command->spec);
    bool names;
    g_autofree char *wrong = take_args(specs, &text, args, &names);

    if (!wrong && text[strspn(text, " \t")]) {
        wrong = g_strdup("extraneous characters at the end of line");
        names = true;
    }
    if (wrong) {
        *ret_message = refuse(command, called, wrong, names);
    }
    return !wrong;
}
