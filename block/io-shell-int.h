/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of the io-shell share.
 */
#ifndef SPINDLE_BLOCK_IO_SHELL_INT_H
#define SPINDLE_BLOCK_IO_SHELL_INT_H

#include "block/io-shell.h"

#define IO_REQUEST_MAX 2147483136ULL /* bytes in one request, QEMU's limit: INT_MAX in whole sectors */

struct IoShell {
    const char *program;
    const IoCommand *extra;
    IoPrint print;
    void *opaque;
    BlockNode *node;
    bool writethrough, misalign;
    unsigned in_flight; /* aio commands; loop thread */
};

/* An argument list being taken apart as getopt does, without its globals. */
typedef struct IoArgs {
    IoShell *shell;
    const IoCommand *command;
    int argc;
    char **argv;
    int next;           /* the first argument not taken yet: an operand, once the options are taken */
    int scanned;        /* behind the last option; operands lie between */
    const char *letter; /* within a group of option letters */
    char *value;        /* of the option just returned */
} IoArgs;

extern const IoCommand io_commands_rw[], io_commands_aio[], io_commands_misc[];

/* The next option letter among `letters` (a colon after those with a value), 0 at the end, '?' after an error
 * that has been printed. */
int io_args_next(IoArgs *args, const char *letters);

/* The number of arguments that are no options; prints the usage and returns false when it is not in [min,
 * max] (max -1: any). */
bool io_args_rest(const IoArgs *args, int min, int max);

/* Prints NAME USAGE -- SUMMARY; always -EINVAL. */
int io_usage(IoShell *shell, const IoCommand *command);

/* A size with suffix at argv[…], of at most `max`; false after printing why not. */
bool io_parse_size(IoShell *shell, const char *text, uint64_t *ret);
bool io_parse_length(IoShell *shell, const char *text, uint64_t *ret);
bool io_parse_pattern(IoShell *shell, const char *text, uint8_t *ret);

/* 0, or -EIO when the range is not inside the node, as qemu-io reports it. */
int io_check_range(IoShell *shell, uint64_t offset, uint64_t bytes);

/* 0, or the error printed that the node cannot be written to. */
int io_check_writable(IoShell *shell);

/* Memory for `bytes` bytes, aligned (or, on wish, not); NULL after printing when there is none. Free with
 * io_buffer_free(). */
uint8_t *io_buffer_new(IoShell *shell, uint64_t bytes);
void io_buffer_free(IoShell *shell, uint8_t *buffer);

/* "10 MiB", "1.500 KiB", "7 bytes"; free with g_free(). */
char *io_format_size(double bytes);

void io_dump(IoShell *shell, const uint8_t *buffer, uint64_t offset, uint64_t bytes);

/* What a finished command did: `verb` 12/12 bytes at offset 0, and how fast since `start` (monotonic,
 * microseconds). */
void io_report(IoShell *shell, const char *verb, gint64 start, uint64_t offset, uint64_t bytes, bool machine);

/* True when all bytes equal the pattern; else prints so. */
bool io_verify(IoShell *shell, const uint8_t *buffer, uint8_t pattern, uint64_t offset, uint64_t bytes);

#endif
