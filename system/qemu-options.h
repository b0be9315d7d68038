/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QEMU's command line as a list of items, each an option with its argument, in order. Pure: no file is
 * looked at. The table is that of QEMU 11.1; tests/cli/qemu-options.t checks it against the engine. An
 * option that is not in it (a newer QEMU's) is kept as it is: QEMU judges. Any thread.
 */
#ifndef SPINDLE_SYSTEM_QEMU_OPTIONS_H
#define SPINDLE_SYSTEM_QEMU_OPTIONS_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include "util/options.h"

typedef struct QemuOption {
    const char *name; /* without dashes */
    bool has_arg;
} QemuOption;

/* The whole table; the last entry's name is NULL. */
extern const QemuOption qemu_option_table[];

/* `text` with one or two leading dashes, or NULL when there is no such option. */
const QemuOption *qemu_option_find(const char *text);

typedef struct CmdItem {
    const char *name; /* the option's name without dashes, "" for a bare image name or an unknown option */
    char *word;       /* as written: "-m", "--m", "disk.img" */
    char *arg;        /* NULL: none */
    char *origin;     /* "-m 512M": what a message names */
    Options *parsed;  /* the argument, once cmd_item_parse() was called */
    bool dropped;     /* does not reach QEMU */
    bool taken;       /* the drive process has it, too or instead */
} CmdItem;

typedef struct CmdLine {
    GPtrArray *items; /* CmdItem, owned */
} CmdLine;

/* argv without argv[0]; NULL-terminated. NULL and "-m: requires an argument". */
CmdLine *cmd_line_parse(const char *const *argv, GError **error);
void cmd_line_free(CmdLine *line); /* NULL is allowed */

static inline CmdItem *cmd_line_item(const CmdLine *line, guint index)
{
    return g_ptr_array_index(line->items, index);
}

bool cmd_item_is(const CmdItem *item, const char *name);

/* Parses the argument once; `implied_key` as in options_parse(). The result stays the item's; NULL when the
 * argument is not in any of QEMU's forms (QEMU will say so itself). */
Options *cmd_item_parse(CmdItem *item, const char *implied_key);

/* Whether the argument is in JSON form. */
bool cmd_item_is_json(const CmdItem *item);

/* Rewrites the argument in its own form (JSON stays JSON, other members keep their type and order). A key
 * that is absent is added last; `value` NULL removes it. In JSON form on and off become booleans. */
void cmd_item_set(CmdItem *item, const char *key, const char *value);

/* Appends an item at the end. */
CmdItem *cmd_line_append(CmdLine *line, const char *name, const char *arg);

/* What is left, as an argv without argv[0]. Free with g_strfreev(). */
char **cmd_line_to_argv(const CmdLine *line);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(CmdLine, cmd_line_free)

#endif
