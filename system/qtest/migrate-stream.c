/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/migrate-stream.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "util/bytes.h"
#include "util/error.h"
#include "util/state.h"

#define MAGIC       "SPNDVM\0\1"
#define MAGIC_SIZE  8
#define HEADER_SIZE (MAGIC_SIZE + 8 + 8)
#define PAGE        4096
#define END_MARK    UINT64_MAX
#define SUM_SIZE    32

typedef struct Channel {
    int fd;
    GCancellable *cancellable;
    GChecksum *sum; /* NULL: its digest was taken */
    MigrateCount *count;
} Channel;

/* False when it was cancelled. */
static bool wait_ready(Channel *channel, short events, GError **error)
{
    GPollFD cancel;
    bool watched = g_cancellable_make_pollfd(channel->cancellable, &cancel);
    struct pollfd fds[] = {{.fd = channel->fd, .events = events},
                           {.fd = watched ? cancel.fd : -1, .events = POLLIN}};

    poll(fds, G_N_ELEMENTS(fds), -1);
    if (watched) {
        g_cancellable_release_fd(channel->cancellable);
    }
    return !g_cancellable_set_error_if_cancelled(channel->cancellable, error);
}

static bool is_retry(int error)
{
    return error == EINTR || error == EAGAIN;
}

static bool write_all(Channel *channel, const void *data, size_t size, GError **error)
{
    const uint8_t *at = data;

    if (channel->sum) {
        g_checksum_update(channel->sum, data, (gssize)size);
    }
    __atomic_fetch_add(channel->count, (gint64)size, __ATOMIC_RELAXED);
    while (size) {
        ssize_t n;

        if (!wait_ready(channel, POLLOUT, error)) {
            return false;
        }
        n = write(channel->fd, at, size);
        if (n < 0 && !is_retry(errno)) {
            return error_set_errno(error, errno, "Unable to write to the migration channel");
        }
        at += MAX(n, 0);
        size -= (size_t)MAX(n, 0);
    }
    return true;
}

static bool read_all(Channel *channel, void *data, size_t size, GError **error)
{
    for (size_t done = 0; done < size;) {
        ssize_t n;

        if (!wait_ready(channel, POLLIN, error)) {
            return false;
        }
        n = read(channel->fd, (uint8_t *)data + done, size - done);
        if (n == 0) {
            return error_set(error, "The migration stream ends early");
        }
        if (n < 0 && !is_retry(errno)) {
            return error_set_errno(error, errno, "Unable to read from the migration channel");
        }
        done += (size_t)MAX(n, 0);
    }
    if (channel->sum) {
        g_checksum_update(channel->sum, data, (gssize)size);
    }
    __atomic_fetch_add(channel->count, (gint64)size, __ATOMIC_RELAXED);
    return true;
}

static void digest(Channel *channel, uint8_t out[SUM_SIZE])
{
    gsize len = SUM_SIZE;

    g_checksum_get_digest(channel->sum, out, &len);
    channel->sum = NULL;
}

static bool is_zero(const uint8_t *page, size_t size)
{
    return !page[0] && !memcmp(page, page + 1, size - 1);
}

static bool send_pages(Channel *channel, const Ram *ram, GError **error)
{
    uint8_t record[8 + PAGE];

    for (uint64_t at = 0; at < ram->size; at += PAGE) {
        size_t size = MIN(PAGE, ram->size - at);

        if (is_zero(ram->data + at, size)) {
            continue;
        }
        memset(record, 0, sizeof record);
        store_le64(record, at);
        memcpy(record + 8, ram->data + at, size);
        if (!write_all(channel, record, sizeof record, error)) {
            return false;
        }
    }
    store_le64(record, END_MARK);
    return write_all(channel, record, 8, error);
}

bool migrate_stream_send(int fd, GBytes *state, const Ram *ram, MigrateCount *count,
                         GCancellable *cancellable, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    Channel channel = {fd, cancellable, sum, count};
    uint8_t header[HEADER_SIZE] = MAGIC, end[SUM_SIZE];
    gsize size;
    const void *data = g_bytes_get_data(state, &size);

    store_le64(header + MAGIC_SIZE, ram->size);
    store_le64(header + MAGIC_SIZE + 8, size);
    if (!write_all(&channel, header, sizeof header, error) || !write_all(&channel, data, size, error) ||
        !send_pages(&channel, ram, error)) {
        return false;
    }
    digest(&channel, end);
    return write_all(&channel, end, sizeof end, error);
}

static bool receive_pages(Channel *channel, Ram *ram, GError **error)
{
    uint8_t raw[8], page[PAGE];

    for (;;) {
        if (!read_all(channel, raw, sizeof raw, error)) {
            return false;
        }
        uint64_t at = load_le64(raw);
        if (at == END_MARK) {
            return true;
        }
        if (at % PAGE || at >= ram->size) {
            return error_set(
                error, "The migration stream has a page at 0x%" G_GINT64_MODIFIER "x, outside the memory",
                at);
        }
        if (!read_all(channel, page, PAGE, error)) {
            return false;
        }
        memcpy(ram->data + at, page, MIN(PAGE, ram->size - at));
    }
}

static bool receive_header(Channel *channel, const Ram *like, size_t *ret_size, GError **error)
{
    uint8_t header[HEADER_SIZE];

    if (!read_all(channel, header, sizeof header, error)) {
        return false;
    }
    if (memcmp(header, MAGIC, MAGIC_SIZE - 1) != 0) {
        return error_set(error, "Not a migration stream of Spindle's machine for -accel qtest");
    }
    if (header[MAGIC_SIZE - 1] != (uint8_t)MAGIC[MAGIC_SIZE - 1]) {
        return error_set(error, "Unsupported migration stream version %u", header[MAGIC_SIZE - 1]);
    }
    if (load_le64(header + MAGIC_SIZE) != like->size) {
        return error_set(error,
                         "Size mismatch: pc.ram: 0x%" G_GINT64_MODIFIER "x != 0x%" G_GINT64_MODIFIER "x",
                         load_le64(header + MAGIC_SIZE), like->size);
    }
    if (load_le64(header + MAGIC_SIZE + 8) > STATE_MAX) {
        return error_set(error, "The migration stream has too large a state of the devices");
    }
    *ret_size = load_le64(header + MAGIC_SIZE + 8);
    return true;
}

bool migrate_stream_receive(int fd, const Ram *like, Ram *ret_ram, GBytes **ret_state, MigrateCount *count,
                            GCancellable *cancellable, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    Channel channel = {fd, cancellable, sum, count};
    uint8_t want[SUM_SIZE], end[SUM_SIZE];
    size_t size = 0;
    Ram ram;

    if (!receive_header(&channel, like, &size, error)) {
        return false;
    }
    g_autofree uint8_t *state = g_malloc(size + 1);
    if (!read_all(&channel, state, size, error) || !ram_init(&ram, like->size, like->below, error)) {
        return false;
    }
    bool ok = receive_pages(&channel, &ram, error);
    digest(&channel, want);
    ok = ok && read_all(&channel, end, sizeof end, error) &&
         (!memcmp(want, end, SUM_SIZE) ||
          error_set(error, "The migration stream is damaged: its checksum is wrong"));
    if (!ok) {
        ram_clear(&ram);
        return false;
    }
    *ret_ram = ram;
    *ret_state = g_bytes_new_take(g_steal_pointer(&state), size);
    return true;
}
