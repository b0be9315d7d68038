/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A slow link: passes TCP connections on to another port of this machine, at a rate that all of them share
 * and with a round trip of a given length.
 *
 *   slow-link PORT TARGET_PORT BYTES_PER_SECOND ROUND_TRIP_MS
 *
 * Prints `ready PORT` when it listens (PORT 0: any), and on SIGUSR1 the bytes that went to the clients so
 * far. A connection's first bytes wait one round trip more, as if the handshake had gone over the link.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE   16384
#define QUEUED  (4 * 1024 * 1024) /* bytes on their way in one direction of a connection */
#define LINKS   64
#define IN_LINK 2 /* the pipes of a connection */

typedef struct Piece {
    struct Piece *next;
    int64_t due; /* ns */
    size_t bytes, sent;
    uint8_t data[PIECE];
} Piece;

/* One direction. */
typedef struct Pipe {
    int from, to;
    bool down, ended, shut;
    size_t queued;
    Piece *head, **tail;
} Pipe;

typedef struct Link {
    bool used;
    int64_t start;
    Pipe pipe[IN_LINK];
} Link;

static Link links[LINKS];
static int64_t half_trip, link_free;
static double ns_per_byte;
static uint64_t delivered;
static volatile sig_atomic_t asked;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_usr1(int number)
{
    asked = 1;
}

static void set_up(int fd)
{
    int on = 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static struct sockaddr_in local(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void link_close(Link *link)
{
    for (int i = 0; i < IN_LINK; i++) {
        while (link->pipe[i].head) {
            Piece *piece = link->pipe[i].head;
            link->pipe[i].head = piece->next;
            free(piece);
        }
    }
    close(link->pipe[0].from);
    close(link->pipe[0].to);
    link->used = false;
}

static void link_open(int client, int target_port)
{
    struct sockaddr_in to = local(target_port);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < LINKS; i++) {
        Link *link = &links[i];
        if (link->used || connect(server, (struct sockaddr *)&to, sizeof to) < 0) {
            continue;
        }
        set_up(client);
        set_up(server);
        *link = (Link){.used = true, .start = now() + 2 * half_trip};
        link->pipe[0] = (Pipe){.from = client, .to = server};
        link->pipe[1] = (Pipe){.from = server, .to = client, .down = true};
        link->pipe[0].tail = &link->pipe[0].head;
        link->pipe[1].tail = &link->pipe[1].head;
        return;
    }
    close(client);
    close(server);
}

/* When the last of these bytes comes out at the other end. */
static int64_t due_time(const Link *link, const Pipe *pipe, size_t bytes)
{
    int64_t start = now() > link->start ? now() : link->start;
    if (!pipe->down) {
        return start + half_trip;
    }
    if (link_free < start) {
        link_free = start;
    }
    link_free += (int64_t)(bytes * ns_per_byte);
    return link_free + half_trip;
}

static bool pipe_take(Link *link, Pipe *pipe)
{
    while (!pipe->ended && pipe->queued < QUEUED) {
        Piece *piece = malloc(sizeof *piece);
        ssize_t n = read(pipe->from, piece->data, PIECE);
        if (n <= 0) {
            bool again = n < 0 && errno == EAGAIN;
            free(piece);
            pipe->ended = !again;
            return n >= 0 || again;
        }
        piece->next = NULL;
        piece->bytes = n;
        piece->sent = 0;
        piece->due = due_time(link, pipe, n);
        *pipe->tail = piece;
        pipe->tail = &piece->next;
        pipe->queued += n;
    }
    return true;
}

static bool pipe_give(Pipe *pipe)
{
    while (pipe->head && pipe->head->due <= now()) {
        Piece *piece = pipe->head;
        ssize_t n = send(pipe->to, piece->data + piece->sent, piece->bytes - piece->sent, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN;
        }
        piece->sent += n;
        if (pipe->down) {
            delivered += n;
        }
        if (piece->sent < piece->bytes) {
            return true;
        }
        pipe->queued -= piece->bytes;
        pipe->head = piece->next;
        if (!pipe->head) {
            pipe->tail = &pipe->head;
        }
        free(piece);
    }
    if (pipe->ended && !pipe->head && !pipe->shut) {
        pipe->shut = true;
        shutdown(pipe->to, SHUT_WR);
    }
    return true;
}

static void run(int listener, int target_port)
{
    struct pollfd fds[1 + 2 * LINKS * IN_LINK];
    for (;;) {
        int n = 0;
        int64_t next = now() + 1000000000;
        fds[n++] = (struct pollfd){listener, POLLIN, 0};
        for (int i = 0; i < LINKS; i++) {
            for (int j = 0; j < IN_LINK && links[i].used; j++) {
                Pipe *pipe = &links[i].pipe[j];
                if (!pipe->ended && pipe->queued < QUEUED) {
                    fds[n++] = (struct pollfd){pipe->from, POLLIN, 0};
                }
                if (pipe->head && pipe->head->due <= now()) {
                    fds[n++] = (struct pollfd){pipe->to, POLLOUT, 0};
                } else if (pipe->head && pipe->head->due < next) {
                    next = pipe->head->due;
                }
            }
        }
        int64_t wait = next - now();
        struct timespec t = {wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0};
        if (ppoll(fds, n, &t, NULL) < 0 && errno != EINTR) {
            exit(1);
        }
        if (asked) {
            asked = 0;
            printf("%llu\n", (unsigned long long)delivered);
            fflush(stdout);
        }
        int client = accept(listener, NULL, NULL);
        if (client >= 0) {
            link_open(client, target_port);
        }
        for (int i = 0; i < LINKS; i++) {
            Link *link = &links[i];
            bool good = link->used;
            for (int j = 0; j < IN_LINK && good; j++) {
                good = pipe_take(link, &link->pipe[j]) && pipe_give(&link->pipe[j]);
            }
            if (link->used && (!good || (link->pipe[0].shut && link->pipe[1].shut))) {
                link_close(link);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: slow-link PORT TARGET_PORT BYTES_PER_SECOND ROUND_TRIP_MS\n");
        return 1;
    }
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = local(atoi(argv[1]));
    socklen_t length = sizeof at;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) < 0) {
        perror("slow-link");
        return 1;
    }
    fcntl(listener, F_SETFL, O_NONBLOCK);
    ns_per_byte = 1e9 / atof(argv[3]);
    half_trip = (int64_t)(atof(argv[4]) * 500000);
    signal(SIGUSR1, on_usr1);
    printf("ready %d\n", ntohs(at.sin_port));
    fflush(stdout);
    run(listener, atoi(argv[2]));
    return 0;
}
