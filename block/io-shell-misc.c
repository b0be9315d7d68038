/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The io-shell's commands that move no data: discard, flush, length, map, help, …
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block/io-shell-int.h"
#include "util/checked.h"

static const IoCommand *command_named(const char *name)
{
    const IoCommand *command = io_commands_misc;
    while (strcmp(command->name, name)) {
        command++;
    }
    return command;
}

static int discard_run(IoShell *shell, int argc, char **argv)
{
    IoArgs args = {shell, command_named("discard"), argc, argv, .next = 1, .scanned = 1};
    bool machine = false, quiet = false;
    int letter;
    while ((letter = io_args_next(&args, "Cq"))) {
        if (letter == '?') {
            return -EINVAL;
        }
        machine |= letter == 'C';
        quiet |= letter == 'q';
    }
    uint64_t offset, bytes;
    if (!io_args_rest(&args, 2, 2) || !io_parse_size(shell, argv[args.next], &offset) ||
        !io_parse_size(shell, argv[args.next + 1], &bytes)) {
        return -EINVAL;
    }
    int r = io_check_writable(shell);
    if (r < 0) {
        return r;
    }
    gint64 start = g_get_monotonic_time();
    r = io_check_range(shell, offset, bytes);
    r = r < 0 ? r : block_discard(shell->node, offset, bytes);
    if (r < 0) {
        io_shell_print(shell, "discard failed: %s\n", g_strerror(-r));
    } else if (!quiet) {
        io_report(shell, "discard", start, offset, bytes, machine);
    }
    return r;
}

static int flush_run(IoShell *shell, int argc, char **argv)
{
    int r = block_flush(shell->node);
    if (r < 0) {
        io_shell_print(shell, "flush failed: %s\n", g_strerror(-r));
    }
    return r;
}

static int length_run(IoShell *shell, int argc, char **argv)
{
    g_autofree char *size = io_format_size(block_info(shell->node)->size);
    io_shell_print(shell, "%s\n", size);
    return 0;
}

static int info_run(IoShell *shell, int argc, char **argv)
{
    io_shell_print(shell, "format name: %s\ncluster size: 0 bytes\nvm state offset: 0 bytes\n",
                   block_info(shell->node)->driver);
    return 0;
}

/* "Allocated" as qemu-io means it: in this image and not in a backing file, which no format here has. */
static int map_run(IoShell *shell, int argc, char **argv)
{
    uint64_t size = block_info(shell->node)->size;
    if (size) {
        g_autofree char *text = io_format_size(size);
        io_shell_print(shell, "%s (0x%" G_GINT64_MODIFIER "x) bytes     allocated at offset 0 bytes (0x0)\n",
                       text, size);
    }
    return 0;
}

static int alloc_run(IoShell *shell, int argc, char **argv)
{
    uint64_t offset, bytes = 512;
    if (!io_parse_size(shell, argv[1], &offset) || (argc > 2 && !io_parse_size(shell, argv[2], &bytes))) {
        return -EINVAL;
    }
    uint64_t size = block_info(shell->node)->size;
    bytes = offset < size ? MIN(bytes, size - offset) : 0;
    g_autofree char *at = io_format_size(offset);
    io_shell_print(shell, "%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT " bytes allocated at offset %s\n", bytes,
                   bytes, at);
    return 0;
}

static int truncate_run(IoShell *shell, int argc, char **argv)
{
    IoArgs args = {shell, command_named("truncate"), argc, argv, .next = 1, .scanned = 1};
    int letter;
    while ((letter = io_args_next(&args, "m:"))) {
        if (letter == '?') {
            return -EINVAL;
        }
        if (strcmp(args.value, "off")) {
            io_shell_print_error(shell, "Unsupported preallocation mode '%s'\n", args.value);
            return -ENOTSUP;
        }
    }
    uint64_t size;
    if (!io_args_rest(&args, 1, 1) || !io_parse_size(shell, argv[args.next], &size)) {
        return -EINVAL;
    }
    int r = io_check_writable(shell);
    if (r < 0) {
        return r;
    }
    g_autoptr(GError) error = NULL;
    r = block_resize(shell->node, size, &error);
    if (r < 0) {
        io_shell_print_error(shell, "%s%s%s\n", shell->program ? shell->program : "",
                             shell->program ? ": " : "", error->message);
    }
    return r;
}

static gboolean sleep_over(gpointer opaque)
{
    *(bool *)opaque = true;
    return G_SOURCE_REMOVE;
}

static int sleep_run(IoShell *shell, int argc, char **argv)
{
    uint64_t ms;
    if (options_parse_uint(argv[1], &ms) < 0 || ms > G_MAXUINT) {
        io_shell_print(shell, "%s is not a valid number\n", argv[1]);
        return -EINVAL;
    }
    bool over = false;
    g_timeout_add(ms, sleep_over, &over);
    while (!over) {
        g_main_context_iteration(NULL, TRUE);
    }
    return 0;
}

static void print_summary(IoShell *shell, const IoCommand *command)
{
    io_shell_print(shell, "%s %s -- %s\n", command->name, command->usage, command->summary);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(const IoCommand *const *)a)->name, (*(const IoCommand *const *)b)->name);
}

static int help_run(IoShell *shell, int argc, char **argv)
{
    const IoCommand *tables[] = {io_commands_misc, io_commands_rw, io_commands_aio, shell->extra};
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const IoCommand *command = tables[i]; command && command->name; command++) {
            g_ptr_array_add(all, (gpointer)command);
        }
    }
    g_ptr_array_sort(all, by_name);
    for (guint i = 0; i < all->len; i++) {
        const IoCommand *command = all->pdata[i];
        if (argc == 1) {
            print_summary(shell, command);
        } else if (!strcmp(argv[1], command->name) || !g_strcmp0(argv[1], command->alias)) {
            print_summary(shell, command);
            if (command->help) {
                io_shell_print(shell, "\n%s\n", command->help);
            }
            return 0;
        }
    }
    if (argc == 1) {
        io_shell_print(shell, "\nUse 'help commandname' for extended help.\n");
        return 0;
    }
    io_shell_print(shell, "command %s not found\n", argv[1]);
    return -EINVAL;
}

const IoCommand io_commands_misc[] = {
    {"alloc", NULL, alloc_run, 1, 2, IO_NEEDS_NODE, "offset [count]",
     "checks if offset is allocated in the file", NULL},
    {"discard", "d", discard_run, 2, -1, IO_NEEDS_NODE, "[-Cq] off len",
     "discards a number of bytes at a specified offset",
     " Does something where the image was opened with -d unmap and the node below can.\n\n"
     " Example:\n  discard 512 1k\n"},
    {"flush", "f", flush_run, 0, 0, IO_NEEDS_NODE, "", "flush all in-core file state to disk", NULL},
    {"help", "?", help_run, 0, 1, 0, "[command]", "help for one or all commands", NULL},
    {"info", "i", info_run, 0, 0, IO_NEEDS_NODE, "", "prints information about the current file", NULL},
    {"length", "l", length_run, 0, 0, IO_NEEDS_NODE, "", "gets the length of the current file", NULL},
    {"map", NULL, map_run, 0, 0, IO_NEEDS_NODE, "", "prints the allocated areas of a file", NULL},
    {"sleep", NULL, sleep_run, 1, 1, IO_ON_LOOP, "milliseconds", "waits for the given value in milliseconds",
     " Outstanding aio commands go on meanwhile.\n"},
    {"truncate", "t", truncate_run, 1, 3, IO_NEEDS_NODE | IO_ON_LOOP, "[-m prealloc_mode] off",
     "truncates the current file at the given offset", NULL},
    {NULL},
};
