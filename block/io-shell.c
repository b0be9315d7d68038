/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The interpreter of the io-shell: finding a command, its arguments, printing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block/io-shell-int.h"
#include "util/checked.h"
#include "util/error.h"

#define MISALIGN_OFFSET 16

void io_shell_print(IoShell *shell, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    shell->print(text, false, shell->opaque);
}

void io_shell_print_error(IoShell *shell, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    shell->print(text, true, shell->opaque);
}

/* The tables of commands, one after the other. */
static const IoCommand *table_at(const IoShell *shell, unsigned index)
{
    const IoCommand *tables[] = {io_commands_misc, io_commands_rw, io_commands_aio, shell->extra};
    return index < G_N_ELEMENTS(tables) ? tables[index] : NULL;
}

static const IoCommand *find_command(const IoShell *shell, const char *name)
{
    const IoCommand *table;
    for (unsigned i = 0; (table = table_at(shell, i)); i++) {
        for (; table->name; table++) {
            if (!strcmp(table->name, name) || (table->alias && !strcmp(table->alias, name))) {
                return table;
            }
        }
    }
    return NULL;
}

const char *io_shell_command_name(const IoShell *shell, unsigned index)
{
    const IoCommand *table;
    for (unsigned i = 0; (table = table_at(shell, i)); i++) {
        for (; table->name; table++) {
            if (!index--) {
                return table->name;
            }
        }
    }
    return NULL;
}

/* The words of a line; they are separated by blanks, and there is no quoting. */
static char **split_line(const char *line, int *ret_argc)
{
    g_auto(GStrv) words = g_strsplit_set(line, " \t\r\n", -1);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    for (char **word = words; *word; word++) {
        if (**word) {
            g_ptr_array_add(argv, g_strdup(*word));
        }
    }
    *ret_argc = argv->len;
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}

bool io_shell_blocks(const IoShell *shell, const char *line)
{
    int argc;
    g_auto(GStrv) argv = split_line(line, &argc);
    const IoCommand *command = argc ? find_command(shell, argv[0]) : NULL;
    return command && !(command->flags & IO_ON_LOOP);
}

static bool check_count(IoShell *shell, const IoCommand *command, int count)
{
    if (count >= command->min && (command->max < 0 || count <= command->max)) {
        return true;
    }
    if (command->max < 0) {
        io_shell_print_error(shell, "bad argument count %d to %s, expected at least %d arguments\n", count,
                             command->name, command->min);
    } else if (command->min == command->max) {
        io_shell_print_error(shell, "bad argument count %d to %s, expected %d arguments\n", count,
                             command->name, command->min);
    } else {
        io_shell_print_error(shell, "bad argument count %d to %s, expected between %d and %d arguments\n",
                             count, command->name, command->min, command->max);
    }
    return false;
}

int io_shell_run(IoShell *shell, const char *line)
{
    int argc;
    g_auto(GStrv) argv = split_line(line, &argc);
    if (!argc) {
        return 0;
    }
    const IoCommand *command = find_command(shell, argv[0]);
    if (!command) {
        io_shell_print_error(shell, "command \"%s\" not found\n", argv[0]);
        return -EINVAL;
    }
    if ((command->flags & IO_NEEDS_NODE) && !shell->node) {
        io_shell_print_error(shell, "no file open, try 'help open'\n");
        return -EINVAL;
    }
    if (!check_count(shell, command, argc - 1)) {
        return -EINVAL;
    }
    return command->run(shell, argc, argv);
}

IoShell *io_shell_new(const char *program, const IoCommand *extra, IoPrint print, void *opaque)
{
    IoShell *shell = g_new0(IoShell, 1);
    *shell = (IoShell){.program = program, .extra = extra, .print = print, .opaque = opaque};
    return shell;
}

void io_shell_free(IoShell *shell)
{
    if (shell) {
        io_shell_set_node(shell, NULL);
        g_free(shell);
    }
}

void *io_shell_opaque(const IoShell *shell)
{
    return shell->opaque;
}

void io_shell_drain(IoShell *shell)
{
    while (shell->in_flight) {
        g_main_context_iteration(NULL, TRUE);
    }
}

void io_shell_set_node(IoShell *shell, BlockNode *node)
{
    io_shell_drain(shell);
    BlockNode *before = shell->node;
    shell->node = node ? block_ref(node) : NULL;
    block_unref(before);
}

BlockNode *io_shell_node(const IoShell *shell)
{
    return shell->node;
}

void io_shell_set_writethrough(IoShell *shell, bool on)
{
    shell->writethrough = on;
}

void io_shell_set_misalign(IoShell *shell, bool on)
{
    shell->misalign = on;
}

int io_usage(IoShell *shell, const IoCommand *command)
{
    io_shell_print(shell, "%s %s -- %s\n", command->name, command->usage, command->summary);
    return -EINVAL;
}

/* Moves the argument at `from` down to args->next, past the operands between, and steps over it. */
static char *take_argument(IoArgs *args, int from)
{
    char *word = args->argv[from];
    memmove(&args->argv[args->next + 1], &args->argv[args->next], (from - args->next) * sizeof *args->argv);
    args->argv[args->next++] = word;
    args->scanned = from + 1;
    return word;
}

/* The next word of option letters: options may come after operands, as with getopt. */
static const char *next_option_word(IoArgs *args)
{
    for (int i = MAX(args->next, args->scanned); i < args->argc; i++) {
        if (args->argv[i][0] == '-' && args->argv[i][1]) {
            const char *word = take_argument(args, i);
            return strcmp(word, "--") ? word + 1 : NULL;
        }
    }
    return NULL;
}

static int option_fault(IoArgs *args, const char *what, char letter)
{
    io_shell_print_error(args->shell, "%s: %s -- '%c'\n", args->command->name, what, letter);
    io_usage(args->shell, args->command);
    return '?';
}

int io_args_next(IoArgs *args, const char *letters)
{
    if (!args->letter || !*args->letter) {
        args->letter = next_option_word(args);
        if (!args->letter) {
            return 0;
        }
    }
    char letter = *args->letter++;
    const char *known = letter == ':' ? NULL : strchr(letters, letter);
    if (!known) {
        return option_fault(args, "invalid option", letter);
    }
    if (known[1] == ':') {
        args->value = (char *)args->letter;
        if (!*args->value && args->scanned < args->argc) {
            args->value = take_argument(args, args->scanned);
        }
        args->letter = NULL;
        if (!*args->value) {
            return option_fault(args, "option requires an argument", letter);
        }
    }
    return letter;
}

bool io_args_rest(const IoArgs *args, int min, int max)
{
    int count = args->argc - args->next;
    if (count < min || (max >= 0 && count > max)) {
        io_usage(args->shell, args->command);
        return false;
    }
    return true;
}

bool io_parse_size(IoShell *shell, const char *text, uint64_t *ret)
{
    uint64_t value;
    int r = options_parse_size(text, &value);
    if (r == -EINVAL) {
        io_shell_print(
            shell, "Parsing error: non-numeric argument, or extraneous/unrecognized suffix -- %s\n", text);
        return false;
    }
    if (r == -ERANGE || value > INT64_MAX) {
        io_shell_print(shell, "Parsing error: argument too large -- %s\n", text);
        return false;
    }
    *ret = value;
    return true;
}

bool io_parse_length(IoShell *shell, const char *text, uint64_t *ret)
{
    uint64_t value;
    if (!io_parse_size(shell, text, &value)) {
        return false;
    }
    if (value > IO_REQUEST_MAX) {
        io_shell_print(shell, "length cannot exceed %llu, given %s\n", IO_REQUEST_MAX, text);
        return false;
    }
    *ret = value;
    return true;
}

bool io_parse_pattern(IoShell *shell, const char *text, uint8_t *ret)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 0);
    if (errno || *end || end == text || value < 0 || value > UINT8_MAX) {
        io_shell_print(shell, "%s is not a valid pattern byte\n", text);
        return false;
    }
    *ret = value;
    return true;
}

int io_check_range(IoShell *shell, uint64_t offset, uint64_t bytes)
{
    return range_inside(offset, bytes, block_info(shell->node)->size) ? 0 : -EIO;
}

int io_check_writable(IoShell *shell)
{
    g_autoptr(GError) error = NULL;
    if (!block_info(shell->node)->read_only && block_claim_write(shell->node, &error)) {
        return 0;
    }
    io_shell_print_error(shell, "%s%s%s\n", shell->program ? shell->program : "", shell->program ? ": " : "",
                         error ? error->message : "Block node is read-only");
    return -EACCES;
}

uint8_t *io_buffer_new(IoShell *shell, uint64_t bytes)
{
    void *buffer;
    if (posix_memalign(&buffer, 4096, bytes + MISALIGN_OFFSET)) {
        io_shell_print(shell, "cannot allocate a buffer of %" G_GUINT64_FORMAT " bytes\n", bytes);
        return NULL;
    }
    return (uint8_t *)buffer + (shell->misalign ? MISALIGN_OFFSET : 0);
}

void io_buffer_free(IoShell *shell, uint8_t *buffer)
{
    if (buffer) {
        free(buffer - (shell->misalign ? MISALIGN_OFFSET : 0));
    }
}
