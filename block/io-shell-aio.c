/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The io-shell's commands that return at once and print when they are done, on the loop thread.
 */
#include <errno.h>
#include <string.h>

#include "block/io-shell-int.h"

typedef struct Aio {
    BlockRequest request;
    IoShell *shell;
    struct iovec iov;
    uint8_t *buffer;
    gint64 start;
    bool machine, quiet, dump, has_pattern, invalid;
    uint8_t pattern;
    const char *verb, *failure; /* for the report */
} Aio;

static Aio *aio_new(IoShell *shell, BlockOp op, const char *verb, const char *failure)
{
    Aio *aio = g_new0(Aio, 1);
    aio->shell = shell;
    aio->request.op = op;
    aio->verb = verb;
    aio->failure = failure;
    return aio;
}

static void aio_free(Aio *aio)
{
    io_buffer_free(aio->shell, aio->buffer);
    g_free(aio);
}

static void aio_done(BlockRequest *request)
{
    Aio *aio = request->opaque;
    IoShell *shell = aio->shell;
    shell->in_flight--;
    int r = request->result;
    if (r < 0) {
        /* A range outside is the shell's to report as qemu-io does. */
        io_shell_print(shell, "%s failed: %s\n", aio->failure, g_strerror(r == -EINVAL ? EIO : -r));
    } else {
        if (request->op == BLOCK_READ && aio->has_pattern) {
            io_verify(shell, aio->buffer, aio->pattern, request->offset, request->bytes);
        }
        if (aio->dump && !aio->quiet) {
            io_dump(shell, aio->buffer, request->offset, request->bytes);
        }
        if (!aio->quiet) {
            io_report(shell, aio->verb, aio->start, request->offset, request->bytes, aio->machine);
        }
    }
    aio_free(aio);
}

static int aio_submit(Aio *aio)
{
    BlockRequest *request = &aio->request;
    request->node = aio->shell->node;
    request->done = aio_done;
    request->opaque = aio;
    if (aio->buffer) {
        aio->iov = (struct iovec){aio->buffer, request->bytes};
        request->iov = &aio->iov;
        request->niov = 1;
    }
    aio->start = g_get_monotonic_time();
    aio->shell->in_flight++;
    block_submit(request);
    return 0;
}

static bool take_option(IoArgs *args, int letter, Aio *aio)
{
    switch (letter) {
    case 'C':
        aio->machine = true;
        return true;
    case 'f':
        aio->request.flags |= BLOCK_FUA;
        return true;
    case 'i':
        aio->invalid = true;
        return true;
    case 'P':
        aio->has_pattern = true;
        return io_parse_pattern(args->shell, args->value, &aio->pattern);
    case 'q':
        aio->quiet = true;
        return true;
    case 'r':
        return true;
    case 'u':
        aio->request.flags |= BLOCK_MAY_UNMAP;
        return true;
    case 'v':
        aio->dump = true;
        return true;
    case 'z':
        aio->request.op = BLOCK_WRITE_ZEROES;
        return true;
    default:
        return false;
    }
}

static bool take_range(IoArgs *args, Aio *aio)
{
    BlockRequest *request = &aio->request;
    if (!io_parse_size(args->shell, args->argv[args->next], &request->offset)) {
        return false;
    }
    for (int i = args->next + 1; i < args->argc; i++) {
        uint64_t length;
        if (!io_parse_length(args->shell, args->argv[i], &length)) {
            return false;
        }
        if (length > IO_REQUEST_MAX - request->bytes) {
            io_shell_print(args->shell, "The total number of bytes exceed the maximum size %llu\n",
                           IO_REQUEST_MAX);
            return false;
        }
        request->bytes += length;
    }
    return true;
}

static bool parse_aio(IoArgs *args, const char *letters, Aio *aio)
{
    int letter;
    while ((letter = io_args_next(args, letters))) {
        if (!take_option(args, letter, aio)) {
            return false;
        }
    }
    return io_args_rest(args, 2, -1);
}

static int aio_read_run(IoShell *shell, int argc, char **argv)
{
    Aio *aio = aio_new(shell, BLOCK_READ, "read", "readv");
    IoArgs args = {shell, &io_commands_aio[0], argc, argv, .next = 1, .scanned = 1};
    bool ok = parse_aio(&args, "CP:iqrv", aio);
    if (ok && aio->invalid) {
        io_shell_print(shell, "injecting invalid read request\n");
        aio_free(aio);
        return 0;
    }
    if (!ok || !take_range(&args, aio)) {
        aio_free(aio);
        return -EINVAL;
    }
    aio->buffer = io_buffer_new(shell, aio->request.bytes);
    if (!aio->buffer) {
        aio_free(aio);
        return -ENOMEM;
    }
    return aio_submit(aio);
}

static int write_options_fault(IoShell *shell, const Aio *aio, int lengths)
{
    bool zeroes = aio->request.op == BLOCK_WRITE_ZEROES;
    const char *fault = NULL;
    if (zeroes && lengths > 1) {
        fault = "-z supports only a single length parameter";
    } else if ((aio->request.flags & BLOCK_MAY_UNMAP) && !zeroes) {
        fault = "-u requires -z to be specified";
    }
    if (fault) {
        io_shell_print(shell, "%s\n", fault);
    }
    return fault ? -EINVAL : 0;
}

static int aio_write_start(IoShell *shell, IoArgs *args, Aio *aio)
{
    if (!parse_aio(args, "CfiP:qruz", aio) ||
        write_options_fault(shell, aio, args->argc - args->next - 1) < 0) {
        return -EINVAL;
    }
    if (aio->invalid) {
        io_shell_print(shell, "injecting invalid write request\n");
        aio_free(aio);
        return 0;
    }
    if (!take_range(args, aio)) {
        return -EINVAL;
    }
    int r = io_check_writable(shell);
    if (r < 0) {
        return r;
    }
    if (aio->request.op == BLOCK_WRITE) {
        aio->buffer = io_buffer_new(shell, aio->request.bytes);
        if (!aio->buffer) {
            return -ENOMEM;
        }
        memset(aio->buffer, aio->has_pattern ? aio->pattern : 0xcd, aio->request.bytes);
    }
    return aio_submit(aio);
}

static int aio_write_run(IoShell *shell, int argc, char **argv)
{
    Aio *aio = aio_new(shell, BLOCK_WRITE, "wrote", "aio_write");
    aio->request.flags = shell->writethrough ? BLOCK_FUA : 0;
    IoArgs args = {shell, &io_commands_aio[1], argc, argv, .next = 1, .scanned = 1};
    int r = aio_write_start(shell, &args, aio);
    if (r < 0) {
        aio_free(aio);
    }
    return r;
}

static int aio_discard_run(IoShell *shell, int argc, char **argv)
{
    Aio *aio = aio_new(shell, BLOCK_DISCARD, "discarded ", "aio_discard");
    IoArgs args = {shell, &io_commands_aio[2], argc, argv, .next = 1, .scanned = 1};
    int r = parse_aio(&args, "Cq", aio) && io_args_rest(&args, 2, 2) && take_range(&args, aio) ? 0 : -EINVAL;
    r = r < 0 ? r : io_check_writable(shell);
    if (r < 0) {
        aio_free(aio);
        return r;
    }
    return aio_submit(aio);
}

static int aio_flush_run(IoShell *shell, int argc, char **argv)
{
    io_shell_drain(shell);
    return 0;
}

const IoCommand io_commands_aio[] = {
    {"aio_read", NULL, aio_read_run, 2, -1, IO_NEEDS_NODE | IO_ON_LOOP,
     "[-Ciqrv] [-P pattern] off len [len..]", "asynchronously reads a number of bytes",
     " Returns at once; the result is printed when it is there, at the latest by aio_flush. Options as "
     "read's;\n"
     " -i submits nothing.\n\n Example:\n  aio_read -v 512 1k 1k\n"},
    {"aio_write", NULL, aio_write_run, 2, -1, IO_NEEDS_NODE | IO_ON_LOOP,
     "[-Cfiqruz] [-P pattern] off len [len..]", "asynchronously writes a number of bytes",
     " Returns at once; the result is printed when it is there, at the latest by aio_flush. Options as "
     "write's;\n"
     " -i submits nothing.\n\n Example:\n  aio_write -P 5 512 1k 1k\n"},
    {"aio_discard", NULL, aio_discard_run, 2, -1, IO_NEEDS_NODE | IO_ON_LOOP, "[-Cq] off len",
     "asynchronously discards a number of bytes", " Example:\n  aio_discard 0 1M\n"},
    {"aio_flush", NULL, aio_flush_run, 0, 0, IO_NEEDS_NODE | IO_ON_LOOP, "",
     "completes all outstanding aio requests", NULL},
    {NULL},
};
