/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * -nographic and -serial mon:stdio: one terminal for the first serial line and the human monitor. Both write
 * to it as they like; what is typed goes to one of them, and Ctrl-A is the key to change that, as QEMU has
 * it:
 *
 *   PLAIN --Ctrl-A--> ESCAPED --c--> the other one has the keys
 *     ^                  |---x--> QEMU is asked to quit
 *     |                  |---h, s, Ctrl-A, …
 *     '------------------'
 *
 * The terminal is in raw mode, keys such as Ctrl-C are the guest's. What the monitor says before it is first
 * asked for is kept until then.
 */
#include "system/router-int.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>
#include "util/log.h"

#define ESCAPE      '\001'
#define PENDING_MAX (256u << 10) /* bytes that the terminal has not taken */
#define LAST_TURNS  1000         /* of the loop, for what QEMU wrote before it ended */

struct RouterMux {
    Router *router;
    Stream *terminal, *serial, *console; /* NULL: gone */
    int fd;                              /* the terminal's, to restore it; -1: not to be done (again) */
    struct termios before;
    bool escaped;     /* Ctrl-A came last */
    bool on_console;  /* who has the keys */
    bool console_met; /* it had them before */
    GString *held;    /* what it said until then */
};

static void show(RouterMux *mux, const char *text, size_t len)
{
    if (mux->terminal) {
        stream_write(mux->terminal, text, len);
        if (mux->serial) {
            stream_pause(mux->serial, stream_pending(mux->terminal) > PENDING_MAX);
        }
    }
}

static void show_text(RouterMux *mux, const char *text)
{
    show(mux, text, strlen(text));
}

static void type(Stream *stream, const char *text, size_t len)
{
    if (stream &&
        stream_pending(stream) < PENDING_MAX) { /* a guest that does not read loses keys, as QEMU's */
        stream_write(stream, text, len);
    }
}

static void change_focus(RouterMux *mux)
{
    static const char again[] = "\025\r"; /* a new prompt, with nothing typed */

    mux->on_console = !mux->on_console;
    if (!mux->on_console) {
        return;
    }
    if (mux->console_met) {
        type(mux->console, again, sizeof again - 1);
    } else {
        mux->console_met = true;
        show(mux, mux->held->str, mux->held->len);
        g_string_truncate(mux->held, 0);
    }
}

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

static void quit(RouterMux *mux)
{
    show_text(mux, "QEMU: Terminated\n");
    router_peer_ask(mux->router->engine, "quit", NULL, ignore_reply, NULL);
}

static void commit_all(RouterMux *mux)
{
    g_autoptr(JsonObject) args = json_object_new();

    json_object_set_string_member(args, "command-line", "commit all");
    router_peer_ask(mux->router->engine, "human-monitor-command", args, ignore_reply, NULL);
}

static void command(RouterMux *mux, char key)
{
    static const char help[] = "\n"
                               "C-a h    print this help\n"
                               "C-a x    exit emulator\n"
                               "C-a s    save disk data back to file (if -snapshot)\n"
                               "C-a c    switch between console and monitor\n"
                               "C-a C-a  sends C-a\n";

    switch (key) {
    case 'h':
    case '?':
        show_text(mux, help);
        break;
    case 'x':
        quit(mux);
        break;
    case 's':
        commit_all(mux);
        break;
    case 'c':
        change_focus(mux);
        break;
    case ESCAPE:
        type(mux->on_console ? mux->console : mux->serial, &key, 1);
        break;
    default:
        break;
    }
}

static void on_keys(const char *bytes, size_t size, void *opaque)
{
    RouterMux *mux = opaque;

    for (size_t i = 0; i < size; i++) {
        if (mux->escaped) {
            mux->escaped = false;
            command(mux, bytes[i]);
        } else if (bytes[i] == ESCAPE) {
            mux->escaped = true;
        } else {
            type(mux->on_console ? mux->console : mux->serial, &bytes[i], 1);
        }
    }
}

static void on_terminal_drained(void *opaque)
{
    RouterMux *mux = opaque;

    if (mux->serial) {
        stream_pause(mux->serial, false);
    }
}

/* Nobody types any more; the machine goes on. */
static void on_terminal_closed(void *opaque)
{
    RouterMux *mux = opaque;

    g_clear_pointer(&mux->terminal, stream_free);
    on_terminal_drained(mux);
}

static void on_serial(const char *bytes, size_t size, void *opaque)
{
    show(opaque, bytes, size);
}

static void on_serial_closed(void *opaque)
{
    g_clear_pointer(&((RouterMux *)opaque)->serial, stream_free);
}

static void on_console(const char *bytes, size_t size, void *opaque)
{
    RouterMux *mux = opaque;

    if (mux->console_met) {
        show(mux, bytes, size);
    } else {
        g_string_append_len(mux->held, bytes, (gssize)size);
    }
}

static void on_console_closed(void *opaque)
{
    g_clear_pointer(&((RouterMux *)opaque)->console, stream_free);
}

static const StreamOps terminal_ops = {
    .data = on_keys, .drained = on_terminal_drained, .closed = on_terminal_closed};
static const StreamOps serial_ops = {.data = on_serial, .closed = on_serial_closed};
static const StreamOps console_ops = {.data = on_console, .closed = on_console_closed};

/* The terminal once more, with flags of its own: that it does not block is not to be seen by others who have
 * it, as the shell from which all was started. The descriptor, or `fd` itself. */
static int open_apart(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    int own = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (own < 0) {
        return fd;
    }
    close(fd);
    return own;
}

/* As QEMU's, with no key that sends a signal. */
static void make_raw(RouterMux *mux)
{
    if (tcgetattr(mux->fd, &mux->before) < 0) {
        mux->fd = -1;
        return;
    }
    struct termios raw = mux->before;
    raw.c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    raw.c_oflag |= OPOST;
    raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN | ISIG);
    raw.c_cflag = (raw.c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(mux->fd, TCSANOW, &raw);
}

RouterMux *router_mux_new(Router *router, int in, int out, int serial, int *ret_console)
{
    RouterMux *mux = g_new0(RouterMux, 1);
    int pair[2];

    mux->router = router;
    mux->held = g_string_new(NULL);
    mux->fd = fcntl(in, F_DUPFD_CLOEXEC, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        mux->console = stream_new(pair[0], pair[0], G_PRIORITY_DEFAULT, &console_ops, mux);
        *ret_console = pair[1];
    } else {
        log_error("Could not make a socket pair: %s", g_strerror(errno));
    }
    make_raw(mux);
    in = open_apart(in);
    out = open_apart(out);
    mux->terminal = stream_new(in, out, G_PRIORITY_DEFAULT, &terminal_ops, mux);
    mux->serial = stream_new(serial, serial, G_PRIORITY_DEFAULT, &serial_ops, mux);
    return mux;
}

void router_mux_restore(RouterMux *mux)
{
    if (mux->fd >= 0) {
        tcsetattr(mux->fd, TCSANOW, &mux->before);
        close(mux->fd);
        mux->fd = -1;
    }
}

void router_mux_free(RouterMux *mux)
{
    if (!mux) {
        return;
    }
    for (int i = 0; i < LAST_TURNS && (mux->serial || (mux->terminal && stream_pending(mux->terminal)));
         i++) {
        if (!g_main_context_iteration(NULL, false)) {
            g_usleep(1000);
        }
    }
    router_mux_restore(mux);
    g_clear_pointer(&mux->terminal, stream_free);
    g_clear_pointer(&mux->serial, stream_free);
    g_clear_pointer(&mux->console, stream_free);
    g_string_free(mux->held, true);
    g_free(mux);
}
