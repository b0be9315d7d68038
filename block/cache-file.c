/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 *   0        CacheFileHeader, identity
 *   4096     sums: 8 bytes a granule, 0: absent
 *   data     at a multiple of 64 KiB
 *
 * Host byte order: a cache does not travel. The descriptor holds a shared lock while the file is in use; only
 * one who gets it exclusively may throw the content away.
 */
#include "block/cache-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "block/cache.h"
#include "util/checked.h"
#include "util/cleanup.h"
#include "util/error.h"

#define MAGIC          "SPINDLE\1"
#define HEADER_BYTES   4096
#define IDENTITY_MAX   3072
#define CHUNK_GRANULES (CACHE_CHUNK / CACHE_GRANULE)
#define LOCK_TRIES     100
#define LOCK_PAUSE_US  10000
#define TICK_US        500000 /* what other processes added is seen after so long */

typedef struct CacheFileHeader {
    char magic[8];
    uint64_t size;
    uint64_t granule;
    uint64_t identity_bytes;
    char identity[IDENTITY_MAX];
} CacheFileHeader;

G_STATIC_ASSERT(sizeof(CacheFileHeader) <= HEADER_BYTES);

/* What the table said of a chunk when it was last read. */
typedef struct Looked {
    uint16_t mask, tick;
} Looked;

struct CacheFile {
    int fd;
    uint64_t size, data;
    pthread_mutex_t lock;
    Looked *looked; /* by chunk; the lock */
    bool full;      /* atomic: a write failed */
};

static uint16_t tick_now(void)
{
    return (uint16_t)(g_get_monotonic_time() / TICK_US % 65535 + 1);
}

/* Of a granule at its place; never 0. Four lanes of multiply and rotate, mixed at the end. */
static uint64_t granule_sum(const uint8_t *data, size_t bytes, uint64_t index)
{
    const uint64_t k = 0x9e3779b97f4a7c15;
    uint64_t lane[4] = {index ^ k, index + bytes, ~index, bytes * k};
    size_t i = 0;
    for (; i + 32 <= bytes; i += 32) {
        for (unsigned j = 0; j < 4; j++) {
            uint64_t v;
            memcpy(&v, data + i + 8 * j, 8);
            lane[j] = (lane[j] ^ v) * k;
            lane[j] ^= lane[j] >> 29;
        }
    }
    for (; i < bytes; i++) {
        lane[0] = (lane[0] ^ data[i]) * k;
        lane[0] ^= lane[0] >> 29;
    }
    uint64_t sum = lane[0];
    for (unsigned j = 1; j < 4; j++) {
        sum = (sum ^ lane[j]) * k;
        sum ^= sum >> 32;
    }
    return sum ? sum : 1;
}

static bool header_fits(const CacheFileHeader *header, const char *identity, uint64_t size)
{
    return !memcmp(header->magic, MAGIC, sizeof header->magic) && header->size == size &&
           header->granule == CACHE_GRANULE && header->identity_bytes == strlen(identity) &&
           !memcmp(header->identity, identity, strlen(identity));
}

static bool read_header(int fd, CacheFileHeader *ret)
{
    return pread(fd, ret, sizeof *ret, 0) == sizeof *ret;
}

/* Only with the exclusive lock. */
static bool write_anew(int fd, const char *path, const char *identity, uint64_t size, uint64_t length,
                       GError **error)
{
    CacheFileHeader header = {.size = size, .granule = CACHE_GRANULE, .identity_bytes = strlen(identity)};
    memcpy(header.magic, MAGIC, sizeof header.magic);
    memcpy(header.identity, identity, strlen(identity));
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, length) < 0 ||
        pwrite(fd, &header, sizeof header, 0) != sizeof header) {
        return error_set_errno(error, errno, "Could not write cache file '%s'", path);
    }
    return true;
}

/* Nothing that is not a cache is ever overwritten; and what somebody else wrote may be anything. */
static bool check_file(int fd, const CacheFileHeader *header, const char *path, GError **error)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return error_set_errno(error, errno, "Could not look at cache file '%s'", path);
    }
    if (!S_ISREG(st.st_mode) || (st.st_size > 0 && memcmp(header->magic, MAGIC, sizeof header->magic) != 0)) {
        return error_set(error, "'%s' is not a cache file; it was left alone", path);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return error_set(error, "Cache file '%s' belongs to another user (%u), who could put anything there",
                         path, (unsigned)st.st_uid);
    }
    return true;
}

/* A shared lock, which our own kind waits for briefly only. */
static bool share(int fd, const char *path, GError **error)
{
    for (unsigned tries = 0; flock(fd, LOCK_SH | LOCK_NB) < 0; tries++) {
        if (errno != EWOULDBLOCK) {
            return error_set_errno(error, errno, "Could not lock cache file '%s'", path);
        }
        if (tries >= LOCK_TRIES) {
            return error_set(error, "Cache file '%s' is locked by another program", path);
        }
        g_usleep(LOCK_PAUSE_US);
    }
    return true;
}

static bool claim(int fd, const char *path, const char *identity, uint64_t size, uint64_t length,
                  GError **error)
{
    CacheFileHeader header = {0};
    const bool alone = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!alone && !share(fd, path, error)) {
        return false;
    }
    read_header(fd, &header);
    if (!check_file(fd, &header, path, error)) {
        return false;
    }
    if (!header_fits(&header, identity, size)) {
        if (!alone) {
            return error_set(error, "Cache file '%s' is in use for something else", path);
        }
        if (!write_anew(fd, path, identity, size, length, error)) {
            return false;
        }
    }
    if (alone) {
        /* The change of locks is not atomic: somebody may have been quicker. */
        if (!share(fd, path, error)) {
            return false;
        }
        if (!read_header(fd, &header) || !header_fits(&header, identity, size)) {
            return error_set(error, "Cache file '%s' is in use for something else", path);
        }
    }
    return true;
}

CacheFile *cache_file_open(const char *path, const char *identity, uint64_t size, GError **error)
{
    const uint64_t granules = (size + CACHE_GRANULE - 1) / CACHE_GRANULE;
    const uint64_t data = align_up(HEADER_BYTES + granules * 8, CACHE_CHUNK);
    g_autofree char *digest = NULL;
    if (strlen(identity) > IDENTITY_MAX) {
        identity = digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, identity, -1);
    }
    auto_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        error_set_errno(error, errno, "Could not open cache file '%s'", path);
        return NULL;
    }
    if (!claim(fd, path, identity, size, data + size, error)) {
        return NULL;
    }
    CacheFile *file = g_new0(CacheFile, 1);
    file->looked = g_try_new0(Looked, size / CACHE_CHUNK + 1);
    if (!file->looked) {
        g_free(file);
        error_set(error, "Not enough memory for cache file '%s'", path);
        return NULL;
    }
    file->fd = steal_fd(&fd);
    file->size = size;
    file->data = data;
    pthread_mutex_init(&file->lock, NULL);
    return file;
}

void cache_file_close(CacheFile *file)
{
    if (!file) {
        return;
    }
    close(file->fd);
    pthread_mutex_destroy(&file->lock);
    g_free(file->looked);
    g_free(file);
}

static unsigned granules_at(const CacheFile *file, uint64_t offset)
{
    return MIN((file->size - offset + CACHE_GRANULE - 1) / CACHE_GRANULE, CHUNK_GRANULES);
}

static size_t granule_bytes(const CacheFile *file, uint64_t pos)
{
    return MIN(file->size - pos, CACHE_GRANULE);
}

/* The chunk's part of the table; false: nothing of use. */
static bool read_sums(CacheFile *file, uint64_t offset, uint64_t sums[CHUNK_GRANULES])
{
    const size_t bytes = granules_at(file, offset) * 8;
    memset(sums, 0, CHUNK_GRANULES * 8);
    return pread(file->fd, sums, bytes, HEADER_BYTES + offset / CACHE_GRANULE * 8) == (ssize_t)bytes;
}

static bool write_sums(CacheFile *file, uint64_t offset, unsigned first, unsigned count, const uint64_t *sums)
{
    const size_t bytes = count * 8;
    return pwrite(file->fd, sums + first, bytes, HEADER_BYTES + (offset / CACHE_GRANULE + first) * 8) ==
           (ssize_t)bytes;
}

uint16_t cache_file_look(CacheFile *file, uint64_t offset)
{
    uint64_t sums[CHUNK_GRANULES];
    const uint16_t tick = tick_now();
    pthread_mutex_lock(&file->lock);
    Looked *looked = &file->looked[offset / CACHE_CHUNK];
    if (looked->tick != tick) {
        looked->tick = tick;
        looked->mask = 0;
        if (read_sums(file, offset, sums)) {
            for (unsigned i = 0; i < CHUNK_GRANULES; i++) {
                looked->mask |= (sums[i] != 0) << i;
            }
        }
    }
    const uint16_t mask = looked->mask;
    pthread_mutex_unlock(&file->lock);
    return mask;
}

/* The next run of set bits from *first on; its length, 0: none. */
static unsigned next_run(uint16_t mask, unsigned *first)
{
    while (*first < CHUNK_GRANULES && !(mask & 1u << *first)) {
        (*first)++;
    }
    unsigned n = 0;
    while (*first + n < CHUNK_GRANULES && (mask & 1u << (*first + n))) {
        n++;
    }
    return n;
}

static size_t run_bytes(const CacheFile *file, uint64_t pos, unsigned granules)
{
    return MIN((uint64_t)granules * CACHE_GRANULE, file->size - pos);
}

static void forget(CacheFile *file, uint64_t offset, uint16_t bad)
{
    const uint64_t none[CHUNK_GRANULES] = {0};
    for (unsigned i = 0; i < CHUNK_GRANULES; i++) {
        if (bad & 1u << i) {
            write_sums(file, offset, i, 1, none);
        }
    }
    pthread_mutex_lock(&file->lock);
    file->looked[offset / CACHE_CHUNK].mask &= ~bad;
    pthread_mutex_unlock(&file->lock);
}

uint16_t cache_file_load(CacheFile *file, uint64_t offset, uint16_t mask, uint8_t *data)
{
    uint64_t sums[CHUNK_GRANULES];
    uint16_t good = 0;
    if (!read_sums(file, offset, sums)) {
        return 0;
    }
    unsigned n;
    for (unsigned first = 0; (n = next_run(mask, &first)); first += n) {
        const uint64_t pos = offset + (uint64_t)first * CACHE_GRANULE;
        const size_t bytes = run_bytes(file, pos, n);
        uint8_t *to = data + (size_t)first * CACHE_GRANULE;
        if (pread(file->fd, to, bytes, file->data + pos) != (ssize_t)bytes) {
            continue;
        }
        for (unsigned i = first; i < first + n; i++) {
            const uint64_t at = offset + (uint64_t)i * CACHE_GRANULE;
            const uint8_t *granule = data + (size_t)i * CACHE_GRANULE;
            good |= (granule_sum(granule, granule_bytes(file, at), at) == sums[i]) << i;
        }
    }
    if (good != mask) {
        forget(file, offset, mask & ~good);
    }
    return good;
}

int cache_file_store(CacheFile *file, uint64_t offset, uint16_t mask, const uint8_t *data)
{
    uint64_t sums[CHUNK_GRANULES];
    unsigned n;
    if (__atomic_load_n(&file->full, __ATOMIC_RELAXED)) {
        return 0;
    }
    for (unsigned first = 0; (n = next_run(mask, &first)); first += n) {
        const uint64_t pos = offset + (uint64_t)first * CACHE_GRANULE;
        const size_t bytes = run_bytes(file, pos, n);
        const uint8_t *from = data + (size_t)first * CACHE_GRANULE;
        for (unsigned i = first; i < first + n; i++) {
            const uint64_t at = offset + (uint64_t)i * CACHE_GRANULE;
            sums[i] = granule_sum(data + (size_t)i * CACHE_GRANULE, granule_bytes(file, at), at);
        }
        errno = ENOSPC; /* for a short write */
        if (pwrite(file->fd, from, bytes, file->data + pos) != (ssize_t)bytes ||
            !write_sums(file, offset, first, n, sums)) {
            const int errnum = errno;
            return __atomic_exchange_n(&file->full, true, __ATOMIC_RELAXED) ? 0 : -errnum;
        }
    }
    pthread_mutex_lock(&file->lock);
    file->looked[offset / CACHE_CHUNK].mask |= mask;
    pthread_mutex_unlock(&file->lock);
    return 0;
}
