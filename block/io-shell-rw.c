/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The io-shell's reads and writes that wait for their end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "block/io-shell-int.h"

#define DEFAULT_PATTERN 0xcd /* what is written unless -P says otherwise */

/* The options of one read or write. */
typedef struct Transfer {
    bool machine, quiet, dump, zeroes, vmstate, compressed, has_pattern, has_start, has_length, no_fallback;
    uint8_t pattern;
    uint64_t offset, bytes;
    uint64_t check_start, check_length; /* the part of a read to verify */
    const char *source;                 /* file to write from */
    BlockFlags flags;
} Transfer;

static bool take_option(IoArgs *args, int letter, Transfer *t)
{
    switch (letter) {
    case 'b':
        t->vmstate = true;
        return true;
    case 'c':
        t->compressed = true;
        return true;
    case 'C':
        t->machine = true;
        return true;
    case 'f':
        t->flags |= BLOCK_FUA;
        return true;
    case 'l':
        t->has_length = true;
        return io_parse_size(args->shell, args->value, &t->check_length);
    case 'n':
        t->no_fallback = true;
        return true;
    case 'p': /* of old */
    case 'r': /* buffers need no registration here */
        return true;
    case 'P':
        t->has_pattern = true;
        return io_parse_pattern(args->shell, args->value, &t->pattern);
    case 'q':
        t->quiet = true;
        return true;
    case 'u':
        t->flags |= BLOCK_MAY_UNMAP;
        return true;
    case 'v':
        t->dump = true;
        return true;
    case 'z':
        t->zeroes = true;
        return true;
    default:
        return false;
    }
}

static int read_check_options(IoShell *shell, const IoCommand *command, Transfer *t)
{
    if (!t->has_pattern && (t->has_start || t->has_length)) {
        return io_usage(shell, command);
    }
    if (!t->has_length) {
        t->check_length = t->bytes >= t->check_start ? t->bytes - t->check_start : 0;
    }
    if (t->check_start > t->bytes || t->check_length > t->bytes - t->check_start) {
        io_shell_print(shell, "pattern verification range exceeds end of read data\n");
        return -EINVAL;
    }
    return 0;
}

static int read_data(IoShell *shell, const Transfer *t, const char *name)
{
    uint8_t *buffer = io_buffer_new(shell, t->bytes);
    if (!buffer) {
        return -ENOMEM;
    }
    gint64 start = g_get_monotonic_time();
    int r = t->vmstate ? -ENOTSUP : io_check_range(shell, t->offset, t->bytes);
    r = r < 0 ? r : block_pread(shell->node, t->offset, buffer, t->bytes);
    if (r < 0) {
        io_shell_print(shell, "%s failed: %s\n", name, g_strerror(-r));
    } else {
        if (t->has_pattern && !io_verify(shell, buffer + t->check_start, t->pattern,
                                         t->offset + t->check_start, t->check_length)) {
            r = -EINVAL;
        }
        if (t->dump && !t->quiet) {
            io_dump(shell, buffer, t->offset, t->bytes);
        }
        if (!t->quiet) {
            io_report(shell, "read", start, t->offset, t->bytes, t->machine);
        }
    }
    io_buffer_free(shell, buffer);
    return r;
}

static int read_run(IoShell *shell, int argc, char **argv)
{
    const IoCommand *command = &io_commands_rw[0];
    IoArgs args = {shell, command, argc, argv, .next = 1, .scanned = 1};
    Transfer t = {0};
    int letter;
    while ((letter = io_args_next(&args, "bCl:pP:qrs:v"))) {
        bool ok = letter == 's' ? (t.has_start = true, io_parse_size(shell, args.value, &t.check_start))
                                : take_option(&args, letter, &t);
        if (!ok) {
            return -EINVAL;
        }
    }
    if (!io_args_rest(&args, 2, 2) || !io_parse_size(shell, argv[args.next], &t.offset) ||
        !io_parse_length(shell, argv[args.next + 1], &t.bytes)) {
        return -EINVAL;
    }
    int r = read_check_options(shell, command, &t);
    if (r < 0) {
        return r;
    }
    return read_data(shell, &t, "read");
}

/* Fills the buffer from the file, over and over if it is shorter. */
static int fill_from_file(IoShell *shell, const char *path, uint8_t *buffer, uint64_t bytes)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        int r = -errno;
        io_shell_print_error(shell, "%s: %s\n", path, g_strerror(-r));
        return r;
    }
    uint64_t done = fread(buffer, 1, bytes, file);
    int r = ferror(file) ? -EIO : 0;
    fclose(file);
    if (r < 0 || (!done && bytes)) {
        io_shell_print_error(shell, "%s: %s\n", path, r < 0 ? g_strerror(-r) : "file is empty");
        return r < 0 ? r : -EINVAL;
    }
    for (uint64_t period = done; done < bytes; done++) {
        buffer[done] = buffer[done - period];
    }
    return 0;
}

static int write_check_options(IoShell *shell, const Transfer *t)
{
    const char *fault = NULL;
    if (t->vmstate && t->compressed) {
        fault = "-b and -c cannot be specified at the same time";
    } else if (t->vmstate && t->zeroes) {
        fault = "-b and -z cannot be specified at the same time";
    } else if ((t->flags & BLOCK_FUA) && (t->vmstate || t->compressed)) {
        fault = "-f and -b or -c cannot be specified at the same time";
    } else if (t->no_fallback && !t->zeroes) {
        fault = "-n requires -z to be specified";
    } else if ((t->flags & BLOCK_MAY_UNMAP) && !t->zeroes) {
        fault = "-u requires -z to be specified";
    } else if (t->zeroes + t->has_pattern + (t->source != NULL) > 1) {
        fault = "Only one of -z, -P, and -s can be specified at the same time";
    }
    if (fault) {
        io_shell_print(shell, "%s\n", fault);
    }
    return fault ? -EINVAL : 0;
}

static int write_data(IoShell *shell, const Transfer *t, const char *name)
{
    uint8_t *buffer = io_buffer_new(shell, t->bytes);
    if (!buffer) {
        return -ENOMEM;
    }
    int r = 0;
    if (t->source) {
        r = fill_from_file(shell, t->source, buffer, t->bytes);
    } else {
        memset(buffer, t->has_pattern ? t->pattern : DEFAULT_PATTERN, t->bytes);
    }
    gint64 start = g_get_monotonic_time();
    if (r == 0) {
        r = io_check_range(shell, t->offset, t->bytes);
        r = r < 0 ? r : block_pwrite(shell->node, t->offset, buffer, t->bytes, t->flags);
        if (r < 0) {
            io_shell_print(shell, "%s failed: %s\n", name, g_strerror(-r));
        } else if (!t->quiet) {
            io_report(shell, "wrote", start, t->offset, t->bytes, t->machine);
        }
    }
    io_buffer_free(shell, buffer);
    return r;
}

static int write_zeroes(IoShell *shell, const Transfer *t)
{
    gint64 start = g_get_monotonic_time();
    int r = io_check_range(shell, t->offset, t->bytes);
    r = r < 0 ? r : block_write_zeroes(shell->node, t->offset, t->bytes, t->flags);
    if (r < 0) {
        io_shell_print(shell, "write failed: %s\n", g_strerror(-r));
    } else if (!t->quiet) {
        io_report(shell, "wrote", start, t->offset, t->bytes, t->machine);
    }
    return r;
}

static int write_run(IoShell *shell, int argc, char **argv)
{
    const IoCommand *command = &io_commands_rw[1];
    IoArgs args = {shell, command, argc, argv, .next = 1, .scanned = 1};
    Transfer t = {.flags = shell->writethrough ? BLOCK_FUA : 0};
    int letter;
    while ((letter = io_args_next(&args, "bcCfnpP:qrs:uz"))) {
        if (letter == 's') {
            t.source = args.value;
        } else if (!take_option(&args, letter, &t)) {
            return -EINVAL;
        }
    }
    if (!io_args_rest(&args, 2, 2)) {
        return -EINVAL;
    }
    int r = write_check_options(shell, &t);
    if (r < 0) {
        return r;
    }
    if (!io_parse_size(shell, argv[args.next], &t.offset) ||
        !(t.zeroes ? io_parse_size : io_parse_length)(shell, argv[args.next + 1], &t.bytes)) {
        return -EINVAL;
    }
    if (t.vmstate || t.compressed) {
        io_shell_print(shell, "write failed: %s\n", g_strerror(ENOTSUP));
        return -ENOTSUP;
    }
    r = io_check_writable(shell);
    if (r < 0) {
        return r;
    }
    return t.zeroes ? write_zeroes(shell, &t) : write_data(shell, &t, "write");
}

/* `readv` and `writev`: one transfer of the sum of the lengths. What the lengths divide is invisible from
 * outside, as the block layer may cut as it likes; they are checked one by one. */
static int take_lengths(IoShell *shell, IoArgs *args, Transfer *t)
{
    if (!io_args_rest(args, 2, -1) || !io_parse_size(shell, args->argv[args->next], &t->offset)) {
        return -EINVAL;
    }
    for (int i = args->next + 1; i < args->argc; i++) {
        uint64_t length;
        if (!io_parse_length(shell, args->argv[i], &length)) {
            return -EINVAL;
        }
        if (length > IO_REQUEST_MAX - t->bytes) {
            io_shell_print(shell, "The total number of bytes exceed the maximum size %llu\n", IO_REQUEST_MAX);
            return -EINVAL;
        }
        t->bytes += length;
    }
    return 0;
}

static int readv_run(IoShell *shell, int argc, char **argv)
{
    IoArgs args = {shell, &io_commands_rw[2], argc, argv, .next = 1, .scanned = 1};
    Transfer t = {0};
    int letter;
    while ((letter = io_args_next(&args, "CP:qrv"))) {
        if (!take_option(&args, letter, &t)) {
            return -EINVAL;
        }
    }
    int r = take_lengths(shell, &args, &t);
    t.check_length = t.bytes;
    return r < 0 ? r : read_data(shell, &t, "readv");
}

static int writev_run(IoShell *shell, int argc, char **argv)
{
    IoArgs args = {shell, &io_commands_rw[3], argc, argv, .next = 1, .scanned = 1};
    Transfer t = {.flags = shell->writethrough ? BLOCK_FUA : 0};
    int letter;
    while ((letter = io_args_next(&args, "CfP:qr"))) {
        if (!take_option(&args, letter, &t)) {
            return -EINVAL;
        }
    }
    int r = take_lengths(shell, &args, &t);
    r = r < 0 ? r : io_check_writable(shell);
    return r < 0 ? r : write_data(shell, &t, "writev");
}

const IoCommand io_commands_rw[] = {
    {"read", "r", read_run, 2, -1, IO_NEEDS_NODE, "[-bCqrv] [-P pattern [-s off] [-l len]] off len",
     "reads a number of bytes at a specified offset",
     " -b  the VM state instead of the disk (no format here has one)\n"
     " -C  statistics for programs: bytes,ops,time,bytes/s,ops/s\n"
     " -P  every byte read must have this value; -s and -l: only `len` bytes from `off` within the read\n"
     " -q  no statistics\n"
     " -r  accepted; buffers need no registration\n"
     " -v  print the bytes\n"
     "\n"
     " Examples:\n"
     "  read -v 512 1k         show the second and third sector\n"
     "  read -P 0 1M 64k       check that a stretch reads as zeros\n"},
    {"write", "w", write_run, 2, -1, IO_NEEDS_NODE, "[-bcCfnqruz] [-P pattern | -s source_file] off len",
     "writes a number of bytes at a specified offset",
     " -C  statistics for programs: bytes,ops,time,bytes/s,ops/s\n"
     " -f  on stable storage before it is reported (FUA)\n"
     " -P  this byte instead of 0xcd\n"
     " -q  no statistics\n"
     " -s  from this file, repeated as often as needed\n"
     " -z  zeros, by the node's own means; with -u it may give the space back; -n is accepted,\n"
     "     but zeros are never refused for being slow\n"
     " -b, -c  VM state, compressed data: no format here has them\n"
     "\n"
     " Examples:\n"
     "  write -P 0xab 0 4k     the first block full of 0xab\n"
     "  write -zu 1M 1G        a hole of 1 GiB\n"},
    {"readv", "rv", readv_run, 2, -1, IO_NEEDS_NODE, "[-Cqrv] [-P pattern] off len [len..]",
     "reads a number of bytes at a specified offset",
     " As read, into buffers of the given lengths.\n\n Example:\n  readv -v 0 512 1k 512\n"},
    {"writev", "wv", writev_run, 2, -1, IO_NEEDS_NODE, "[-Cfqr] [-P pattern] off len [len..]",
     "writes a number of bytes at a specified offset",
     " As write, from buffers of the given lengths.\n\n Example:\n  writev -P 3 0 512 1k\n"},
    {NULL},
};
