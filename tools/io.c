/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-io: single reads and writes on an image, in the manner of qemu-io.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block/io-shell.h"
#include "block/secret-object.h"
#include "tools/image.h"
#include "tools/tool.h"
#include "util/error.h"
#include "util/log.h"
#include "util/trace.h"

#define CLOSE_MS 5000

/* What the commands `open` and `reopen` need to know again. */
typedef struct Session {
    ImageSpec spec; /* its strings are the session's */
    char *name, *format, *cache, *discard;
    bool quit;
} Session;

static void print(const char *text, bool is_error, void *opaque)
{
    fputs(text, is_error ? stderr : stdout);
}

/* Opens what session->spec says into the shell. */
static bool session_open(Session *session, IoShell *shell)
{
    g_auto(Image) image = {0};
    GError *error = NULL;
    if (!image_open(&session->spec, &image, &error)) {
        if (session->spec.image_opts) {
            log_gerror(error, "can't open: ");
        } else {
            log_gerror(error, "can't open device %s: ", session->spec.name);
        }
        return false;
    }
    io_shell_set_node(shell, image.node);
    io_shell_set_writethrough(shell, image.writethrough);
    return true;
}

static bool valid_cache(const char *mode)
{
    bool ignored;
    if (!image_parse_cache(mode, &ignored, &ignored, &ignored)) {
        log_error("Invalid cache option: %s", mode);
        return false;
    }
    return true;
}

static bool valid_discard(const char *mode)
{
    static const char *const modes[] = {"ignore", "off", "unmap", "on", NULL};
    if (!g_strv_contains(modes, mode)) {
        log_error("Invalid discard option: %s", mode);
        return false;
    }
    return true;
}

static void replace(char **string, const char *value)
{
    g_free(*string);
    *string = g_strdup(value);
}

/* The next option of an interactive command: its letter, its value if it has one (letters in `valued`). */
static int next_option(int argc, char **argv, int *at, const char *valued, const char **ret_value)
{
    if (*at >= argc || argv[*at][0] != '-' || !argv[*at][1] || argv[*at][2]) {
        return 0;
    }
    int letter = argv[(*at)++][1];
    *ret_value = strchr(valued, letter) && *at < argc ? argv[(*at)++] : NULL;
    return strchr(valued, letter) && !*ret_value ? '?' : letter;
}

typedef struct OpenArguments {
    const char *path, *options, *cache, *discard;
    bool read_only, force_share;
} OpenArguments;

/* False after printing what is wrong. */
static bool parse_open(IoShell *shell, int argc, char **argv, OpenArguments *ret)
{
    *ret = (OpenArguments){0};
    const char *value;
    int at = 1, letter;
    while ((letter = next_option(argc, argv, &at, "tdo", &value))) {
        switch (letter) {
        case 'r':
            ret->read_only = true;
            break;
        case 'n':
            ret->cache = "none";
            break;
        case 'U':
            ret->force_share = true;
            break;
        case 'k': /* how requests are carried out is the driver's matter */
            break;
        case 't':
            ret->cache = value;
            break;
        case 'd':
            ret->discard = value;
            break;
        case 'o':
            ret->options = value;
            break;
        default:
            io_shell_print_error(shell, "open: invalid option -- '%c'\n", letter);
            return false;
        }
    }
    ret->path = at < argc ? argv[at] : NULL;
    if (at + 1 < argc || (!ret->path && !ret->options)) {
        io_shell_print(shell, "open: give one path, or -o OPTIONS, or both\n");
        return false;
    }
    return (!ret->cache || valid_cache(ret->cache)) && (!ret->discard || valid_discard(ret->discard));
}

/* The options of a format node over what the path names, `text` having the last word. NULL: an error. */
static char *options_with_path(const char *path, const char *text, GError **error)
{
    g_autoptr(Options) all = options_new();
    g_autoptr(Options) said = options_parse(text, NULL, error);
    g_autoptr(Options) file = said ? block_options_from_filename(path, error) : NULL;

    if (!file) {
        return NULL;
    }
    options_set(all, "driver", "raw");
    g_auto(GStrv) names = options_keys(file);
    for (char **name = names; *name; name++) {
        g_autofree char *key = g_strconcat("file.", *name, NULL);
        options_set(all, key, options_get(file, *name));
    }
    g_auto(GStrv) keys = options_keys(said);
    for (char **key = keys; *key; key++) {
        options_set(all, *key, options_get(said, *key));
    }
    return options_to_string(all);
}

static int open_run(IoShell *shell, int argc, char **argv)
{
    Session *session = io_shell_opaque(shell);
    OpenArguments o;
    if (!parse_open(shell, argc, argv, &o)) {
        return -EINVAL;
    }
    if (io_shell_node(shell)) {
        io_shell_print_error(shell, "spindle-io: file open already, try 'help close'\n");
        return -EBUSY;
    }
    g_autofree char *both = NULL;
    GError *error = NULL;
    if (o.path && o.options && !(both = options_with_path(o.path, o.options, &error))) {
        io_shell_print_error(shell, "%s: %s\n", program_invocation_short_name, error->message);
        g_error_free(error);
        return -EINVAL;
    }
    replace(&session->name, both ? both : o.path ? o.path : o.options);
    replace(&session->cache, o.cache);
    replace(&session->discard, o.discard ? o.discard : "unmap");
    replace(&session->format, NULL);
    session->spec = (ImageSpec){
        .name = session->name,
        .cache = session->cache,
        .discard = session->discard,
        .image_opts = o.options != NULL,
        .writable = !o.read_only,
        .force_share = o.force_share,
    };
    return session_open(session, shell) ? 0 : -EINVAL;
}

/* Closes for good, so that the image's locks are free. */
static void session_close(IoShell *shell)
{
    io_shell_set_node(shell, NULL);
    block_shutdown(CLOSE_MS);
}

static int close_run(IoShell *shell, int argc, char **argv)
{
    session_close(shell);
    return 0;
}

static int reopen_run(IoShell *shell, int argc, char **argv)
{
    Session *session = io_shell_opaque(shell);
    ImageSpec before = session->spec;
    const char *value;
    int at = 1, letter;
    while ((letter = next_option(argc, argv, &at, "c", &value))) {
        if (letter == 'r' || letter == 'w') {
            session->spec.writable = letter == 'w';
        } else if (letter == 'c' && valid_cache(value)) {
            replace(&session->cache, value);
            session->spec.cache = session->cache;
        } else {
            session->spec = before;
            return -EINVAL;
        }
    }
    session_close(shell);
    if (session_open(session, shell)) {
        return 0;
    }
    session->spec = before;
    session_open(session, shell);
    return -EINVAL;
}

static int quit_run(IoShell *shell, int argc, char **argv)
{
    ((Session *)io_shell_opaque(shell))->quit = true;
    return 0;
}

static int abort_run(IoShell *shell, int argc, char **argv)
{
    fflush(stdout); /* what came before is to be seen */
    abort();
}

static int sigraise_run(IoShell *shell, int argc, char **argv)
{
    uint64_t signal;
    if (options_parse_uint(argv[1], &signal) < 0 || signal > 64) {
        io_shell_print(shell, "%s is not a valid number\n", argv[1]);
        return -EINVAL;
    }
    fflush(stdout);
    raise(signal);
    return 0;
}

static const IoCommand session_commands[] = {
    {"abort", NULL, abort_run, 0, 0, IO_ON_LOOP, "", "simulate a program crash using abort(3)", NULL},
    {"close", "c", close_run, 0, 0, IO_NEEDS_NODE | IO_ON_LOOP, "", "close the current open file", NULL},
    {"open", "o", open_run, 1, -1, IO_ON_LOOP, "[-rnkU] [-t cache] [-d discard] [-o options] [path]",
     "open the file specified by path",
     " -r  for reading only\n -n  without the host's page cache (-t none)\n -U  although others write to it\n"
     " -o  by options (driver=raw,file.filename=x), which a path may add the file to\n\n Example:\n  open -o "
     "driver=raw,file.filename=disc.iso\n"},
    {"quit", "q", quit_run, 0, 0, IO_ON_LOOP, "", "exit the program", NULL},
    {"reopen", NULL, reopen_run, 0, -1, IO_NEEDS_NODE | IO_ON_LOOP, "[(-r|-w)] [-c cache]",
     "reopens an image with new options", NULL},
    {"sigraise", NULL, sigraise_run, 1, 1, IO_ON_LOOP, "signal", "raises a signal", NULL},
    {NULL},
};

/* Lines from standard input until it ends or `quit`. */
static int run_interactive(Session *session, IoShell *shell)
{
    int result = 0;
    char *line = NULL;
    size_t room = 0;
    for (;;) {
        printf("%s> ", program_invocation_short_name);
        fflush(stdout);
        if (session->quit || getline(&line, &room, stdin) < 0) {
            break;
        }
        int r = io_shell_run(shell, line);
        result = r < 0 ? r : result;
        if (session->quit) {
            break;
        }
    }
    free(line);
    return result;
}

static int run_commands(Session *session, IoShell *shell, const GPtrArray *commands)
{
    int result = 0;
    for (guint i = 0; i < commands->len && !session->quit; i++) {
        int r = io_shell_run(shell, commands->pdata[i]);
        result = r < 0 ? r : result;
    }
    return result;
}

/* Options of qemu-io whose matter does not exist here. */
static bool refuse_unsupported(const ToolArgs *args)
{
    static const char *const names[] = {"snapshot", "copy-on-read"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (tool_has(args, names[i])) {
            log_error("--%s is not supported: there are no backing files", names[i]);
            return false;
        }
    }
    return true;
}

static bool take_spec(const ToolArgs *args, Session *session)
{
    static const char *const aio[] = {"threads", "native", "io_uring", NULL};
    ImageSpec *spec = &session->spec;
    const char *cache = tool_has(args, "nocache") ? "none" : tool_get(args, "cache");
    const char *discard = tool_get(args, "discard");
    if ((cache && !valid_cache(cache)) || (discard && !valid_discard(discard)) || !refuse_unsupported(args)) {
        return false;
    }
    spec->aio = tool_has(args, "native-aio") ? "native" : tool_get(args, "aio");
    if (spec->aio && !g_strv_contains(aio, spec->aio)) {
        log_error("Invalid aio option: %s", spec->aio);
        return false;
    }
    if (tool_has(args, "image-opts") && tool_has(args, "format")) {
        log_error("--image-opts and -f are mutually exclusive");
        return false;
    }
    replace(&session->cache, cache);
    replace(&session->discard, discard ? discard : "unmap");
    replace(&session->format, tool_get(args, "format"));
    replace(&session->name, tool_operand(args, 0));
    spec->name = session->name;
    spec->format = session->format;
    spec->cache = session->cache;
    spec->discard = session->discard;
    spec->image_opts = tool_has(args, "image-opts");
    spec->writable = !tool_has(args, "read-only");
    spec->force_share = tool_has(args, "force-share");
    return true;
}

static void session_clear(Session *session)
{
    g_free(session->name);
    g_free(session->format);
    g_free(session->cache);
    g_free(session->discard);
}

static bool take_trace(const ToolArgs *args)
{
    GError *error = NULL;
    const char *trace = tool_get(args, "trace");
    if (trace && trace_print_help(trace)) {
        exit(EXIT_SUCCESS);
    }
    if (trace && !trace_parse(trace, &error)) {
        log_gerror(error, NULL);
        return false;
    }
    return true;
}

static int io_run(const ToolArgs *args)
{
    if (tool_has(args, "version")) {
        printf("spindle-io version %s\n", SPINDLE_VERSION);
        return EXIT_SUCCESS;
    }
    if (tool_count(args) > 1) {
        return tool_wrong(args, "Unexpected argument: %s", tool_operand(args, 1));
    }
    Session session = {0};
    int status = EXIT_FAILURE;
    IoShell *shell = io_shell_new("spindle-io", session_commands, print, &session);
    io_shell_set_misalign(shell, tool_has(args, "misalign"));
    if (take_trace(args) && take_spec(args, &session) &&
        (!session.spec.name || session_open(&session, shell))) {
        const GPtrArray *commands = tool_get_all(args, "cmd");
        int r = commands ? run_commands(&session, shell, commands) : run_interactive(&session, shell);
        status = r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    io_shell_free(shell);
    session_clear(&session);
    return status;
}

static const ToolOption io_options[] = {
    TOOL_OBJECT,
    {0, "image-opts", NULL, "the file is an option string (driver=…,file.filename=…)"},
    {'c', "cmd", "STRING", "run this command; may be given several times"},
    {'f', "format", "FMT", "the image's format; probed if not given"},
    {'r', "read-only", NULL, "open for reading only"},
    {'s', "snapshot", NULL, "not supported"},
    {'n', "nocache", NULL, "past the host's page cache, the same as -t none"},
    {'C', "copy-on-read", NULL, "not supported"},
    {'m', "misalign", NULL, "use memory that O_DIRECT cannot take, to test bounce buffers"},
    {'k', "native-aio", NULL, "the same as -i native"},
    {'i', "aio", "MODE", "threads, native or io_uring; accepted as in QEMU"},
    {'t', "cache", "MODE", "none, writeback, writethrough, directsync or unsafe"},
    {'d', "discard", "MODE", "ignore (off) or unmap (on)"},
    {'T', "trace", "PATTERN",
     "switch trace events on: [enable=]PATTERN[,events=FILE][,file=FILE]; help lists them"},
    TOOL_SHARE,
    TOOL_HELP,
    {'V', "version", NULL, "print the version and exit"},
    {0},
};

static const ToolCommand io_command = {
    .name = "spindle-io",
    .summary = "Exercises an image with single reads and writes",
    .usage = "[OPTIONS]… [-c STRING]… [FILE]",
    .options = io_options,
    .operands = "  FILE\n     the image; without -c, commands come from standard input\n"
                "\nSee 'spindle-io -c help' for the commands and 'spindle-io -c \"help read\"' for one.\n",
    .examples = "  spindle-io -f raw -c 'write -P 0xab 0 64k' -c 'read -P 0xab 0 64k' disk.img\n"
                "  spindle-io -r -c 'read -v 32k 64' disc.iso\n"
                "  spindle-io --object secret,id=s0,file=pass.txt --image-opts \\\n"
                "     -c 'read 0 4k' driver=luks,key-secret=s0,file.filename=disc.luks\n",
    .run = io_run,
};

int main(int argc, char **argv)
{
    tool_init(argv[0]);
    int status = tool_run(&io_command, "spindle-io", argc, argv);
    return tool_exit(status);
}
