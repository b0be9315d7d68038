/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a word of the human monitor may become.
 */
#include <string.h>
#include "monitor/hmp-complete.h"
#include "monitor/hmp.h"
#include "monitor/query.h"

void hmp_offer(GPtrArray *words, const char *word, const char *prefix)
{
    if (word && word[0] && g_str_has_prefix(word, prefix) &&
        !g_ptr_array_find_with_equal_func(words, word, g_str_equal, NULL)) {
        g_ptr_array_add(words, g_strdup(word));
    }
}

static void offer_table(GPtrArray *words, const Monitor *monitor, const HmpCommand *table, const char *prefix)
{
    for (; table->name; table++) {
        g_auto(GStrv) names = g_strsplit(table->name, "|", -1);
        if (hmp_available(table, monitor)) {
            hmp_offer(words, names[0], prefix);
        }
    }
}

/* Drives by all their names, and nodes. */
static void offer_drives(GPtrArray *words, const Monitor *monitor, const char *prefix)
{
    GPtrArray *all = monitor_backends(monitor);
    g_autoptr(GList) nodes = block_list();

    for (guint i = 0; i < all->len; i++) {
        const Backend *backend = g_ptr_array_index(all, i);
        hmp_offer(words, backend->name, prefix);
        hmp_offer(words, backend_qdev(backend), prefix);
    }
    for (GList *l = nodes; l; l = l->next) {
        if (!backend_is_limit_node(monitor, l->data)) {
            hmp_offer(words, block_name(l->data), prefix);
        }
    }
}

void hmp_offer_files(GPtrArray *words, const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    g_autofree char *folder = slash ? g_strndup(prefix, slash + 1 - prefix) : g_strdup("");
    g_autoptr(GDir) dir = g_dir_open(folder[0] ? folder : ".", 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strconcat(folder, name, NULL);
        g_autofree char *shown =
            g_file_test(path, G_FILE_TEST_IS_DIR) ? g_strconcat(path, "/", NULL) : g_strdup(path);
        if (name[0] != '.' || (slash ? slash[1] : prefix[0]) == '.') {
            hmp_offer(words, shown, prefix);
        }
    }
}

/* The type letter of the command's nth argument; 0: it has none. Flags do not count. */
static char type_of(const HmpCommand *command, unsigned n)
{
    g_auto(GStrv) items = g_strsplit(command->spec, ",", -1);

    for (char **item = items; *item; item++) {
        const char *colon = strchr(*item, ':');
        if (colon && colon[1] != '-' && n-- == 0) {
            return colon[1];
        }
    }
    return 0;
}

/* The nth argument of a command. */
static void offer_argument(GPtrArray *words, const Monitor *monitor, const HmpCommand *command, unsigned n,
                           const char *prefix)
{
    switch (type_of(command, n)) {
    case 'B':
        offer_drives(words, monitor, prefix);
        break;
    case 'F':
        hmp_offer_files(words, prefix);
        break;
    default:
        if (command->run == hmp_run_qmp && !strcmp(command->qmp, "device_del")) {
            offer_drives(words, monitor, prefix);
        }
        break;
    }
}

char **hmp_complete(const Monitor *monitor, const char *line, const char *prefix)
{
    GPtrArray *words = g_ptr_array_new(), *before = g_ptr_array_new_with_free_func(g_free);
    bool bad = false;
    char *word;

    while ((word = hmp_next_word(&line, &bad))) {
        if (word[0] == '-' && before->len > 0) {
            g_free(word);
        } else {
            g_ptr_array_add(before, word);
        }
    }
    const HmpCommand *command = before->len ? hmp_find(hmp_commands, g_ptr_array_index(before, 0)) : NULL;
    bool info = command && !strcmp(command->name, "info");
    bool help = command && g_str_has_prefix(command->name, "help");
    if (before->len == 0 || (help && before->len == 1)) {
        offer_table(words, monitor, hmp_commands, prefix);
    } else if (info && before->len == 1) {
        offer_table(words, monitor, hmp_infos, prefix);
    } else if (info) {
        command = hmp_find(hmp_infos, g_ptr_array_index(before, 1));
    }
    unsigned names = info ? 2 : 1;
    if (command && before->len >= names) {
        offer_argument(words, monitor, command, before->len - names, prefix);
    }
    g_ptr_array_unref(before);
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, false);
}
