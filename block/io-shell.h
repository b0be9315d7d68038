/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The command language of qemu-io on a node: one interpreter for spindle-io and for the monitor's `qemu-io`
 * command. A shell belongs to one owner, who calls it from the loop thread; commands for which
 * io_shell_blocks() is true may be run on a worker instead, one at a time, while nobody else uses the shell.
 */
#ifndef SPINDLE_BLOCK_IO_SHELL_H
#define SPINDLE_BLOCK_IO_SHELL_H

#include "block/block.h"

typedef struct IoShell IoShell;

/* Where the text goes: complete lines, usually; `is_error` for what qemu-io writes to stderr. */
typedef void (*IoPrint)(const char *text, bool is_error, void *opaque);

/* A command of the owner's own, beside the built-in ones. argv[0] is the name; the count of the others is
 * within [min, max] (max -1: any). 0 or -errno. */
typedef struct IoCommand {
    const char *name, *alias;
    int (*run)(IoShell *shell, int argc, char **argv);
    int min, max;
    unsigned flags;      /* IO_… */
    const char *usage;   /* arguments, after the name */
    const char *summary; /* one line */
    const char *help;    /* more lines, or NULL */
} IoCommand;

enum {
    IO_NEEDS_NODE = 1 << 0,
    IO_ON_LOOP = 1 << 1, /* must run on the loop thread; it may iterate the loop */
};

/* `program` goes before errors of the block layer ("spindle-io: …"); NULL for none. `extra` is an array that
 * ends with a NULL name, or NULL. */
IoShell *io_shell_new(const char *program, const IoCommand *extra, IoPrint print, void *opaque);

/* Waits for outstanding aio commands. NULL is allowed. */
void io_shell_free(IoShell *shell);

void *io_shell_opaque(const IoShell *shell);

/* The node that commands work on; the shell takes a reference and drops the one on the last. NULL: none.
 * Outstanding aio commands are waited for. */
void io_shell_set_node(IoShell *shell, BlockNode *node);
BlockNode *io_shell_node(const IoShell *shell);

/* cache=writethrough and directsync: every write is on stable storage before it is reported. */
void io_shell_set_writethrough(IoShell *shell, bool on);

/* Buffers that no O_DIRECT likes, for tests of bounce buffers. */
void io_shell_set_misalign(IoShell *shell, bool on);

/* True when the command blocks and needs no loop, so that a monitor should run it on a worker. */
bool io_shell_blocks(const IoShell *shell, const char *line);

/* Runs one line; blank lines do nothing. 0 or -errno; what is to be said has been printed. */
int io_shell_run(IoShell *shell, const char *line);

/* Iterates the default main context until no aio command is under way. Loop thread. */
void io_shell_drain(IoShell *shell);

void io_shell_print(IoShell *shell, const char *format, ...) G_GNUC_PRINTF(2, 3);
void io_shell_print_error(IoShell *shell, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The name of each command in turn, for completion; NULL at the end. */
const char *io_shell_command_name(const IoShell *shell, unsigned index);

#endif
