/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The cache against a source of the test's own, which counts what is fetched and fails on demand.
 */
#include "block/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/checked.h"

#define SIZE (20 * 1024 * 1024 + 777)

typedef struct Source {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t fetched, fetches, largest;
    unsigned fail;       /* so many fetches fail, … */
    uint64_t fail_after; /* … after so many bytes */
    bool final, hang, stopped, from_start;
    unsigned active, most;
    uint8_t *times; /* by granule: how often it was fetched */
} Source;

typedef struct Rig {
    Source source;
    BlockCache *cache;
    CacheConfig config;
    char *folder;
} Rig;

static uint8_t byte_at(uint64_t pos)
{
    return (uint8_t)(pos * 2654435761u >> 11) ^ (uint8_t)(pos >> 20);
}

static int source_fetch(void *opaque, uint64_t offset, uint64_t bytes, CachePut put, void *sink,
                        CacheFailure *ret)
{
    Source *s = opaque;
    uint8_t buf[10000];
    uint64_t done = 0;
    pthread_mutex_lock(&s->lock);
    s->fetches++;
    s->largest = MAX(s->largest, bytes);
    s->active++;
    s->most = MAX(s->most, s->active);
    const bool fails = s->fail > 0;
    s->fail -= fails;
    while (s->hang && !s->stopped) {
        pthread_cond_wait(&s->wake, &s->lock);
    }
    const uint64_t end = s->stopped ? 0 : fails ? MIN(bytes, s->fail_after) : bytes;
    s->fetched += end;
    pthread_mutex_unlock(&s->lock);
    while (done < end) {
        const size_t n = MIN(sizeof buf, end - done);
        for (size_t i = 0; i < n; i++) {
            buf[i] = byte_at(offset + done + i);
            if ((offset + done + i) % CACHE_GRANULE == 0) {
                __atomic_fetch_add(&s->times[(offset + done + i) / CACHE_GRANULE], 1, __ATOMIC_RELAXED);
            }
        }
        if (!put(sink, buf, n)) {
            break;
        }
        done += n;
    }
    pthread_mutex_lock(&s->lock);
    s->active--;
    pthread_mutex_unlock(&s->lock);
    ret->final = fails && s->final;
    g_strlcpy(ret->text, "made to fail", sizeof ret->text);
    return done == bytes ? 0 : -EIO;
}

static void source_stop(void *opaque)
{
    Source *s = opaque;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static BlockCache *rig_open(Rig *rig, const char *identity, bool sequential, GError **error)
{
    const CacheSource source = {&rig->source, source_fetch, source_stop};
    rig->source.stopped = false;
    return block_cache_new(&rig->config, &source, "test", identity, SIZE, sequential, error);
}

static void rig_init(Rig *rig)
{
    *rig =
        (Rig){.config = {
                  .cache_size = CACHE_SIZE_DEFAULT, .readahead = CACHE_AHEAD, .retries = 5, .deadline_s = 5}};
    pthread_mutex_init(&rig->source.lock, NULL);
    pthread_cond_init(&rig->source.wake, NULL);
    rig->source.times = g_malloc0(SIZE / CACHE_GRANULE + 1);
    rig->folder = g_dir_make_tmp("spindle-cache-XXXXXX", NULL);
}

static void rig_start(Rig *rig)
{
    GError *error = NULL;
    rig->cache = rig_open(rig, "same", false, &error);
    g_assert_no_error(error);
}

static void rig_clear(Rig *rig)
{
    g_autofree char *path = g_build_filename(rig->folder, "cache", NULL);
    block_cache_free(rig->cache);
    g_unlink(path);
    g_rmdir(rig->folder);
    g_free(rig->folder);
    g_free(rig->source.times);
    cache_config_clear(&rig->config);
    pthread_mutex_destroy(&rig->source.lock);
    pthread_cond_destroy(&rig->source.wake);
}

static int read_at(BlockCache *cache, uint64_t offset, uint64_t bytes)
{
    g_autofree uint8_t *buf = g_malloc(bytes);
    struct iovec iov[2] = {{buf, bytes / 3}, {buf + bytes / 3, bytes - bytes / 3}};
    int ret = block_cache_preadv(cache, offset, bytes, iov, 2);
    for (uint64_t i = 0; ret == 0 && i < bytes; i++) {
        g_assert_cmpuint(buf[i], ==, byte_at(offset + i));
    }
    return ret;
}

/* From the start to the end: each byte once, in large requests, several at once. */
static void test_sequential(void)
{
    Rig rig;
    rig_init(&rig);
    rig_start(&rig);
    for (uint64_t pos = 0; pos < SIZE; pos += 32768) {
        g_assert_cmpint(read_at(rig.cache, pos, MIN(32768, SIZE - pos)), ==, 0);
    }
    g_assert_cmpuint(rig.source.fetched, ==, SIZE);
    g_assert_cmpuint(rig.source.largest, ==, 1024 * 1024);
    g_assert_cmpuint(rig.source.fetches, <, 60);
    rig_clear(&rig);
}

/* Far apart: at most 4 times of 2 KiB, and nothing again. */
static void test_random(void)
{
    Rig rig;
    rig_init(&rig);
    rig_start(&rig);
    for (unsigned round = 0; round < 2; round++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(5);
        for (unsigned i = 0; i < 500; i++) {
            const uint64_t pos = (uint64_t)g_rand_int_range(rand, 0, SIZE / 2048) * 2048;
            g_assert_cmpint(read_at(rig.cache, pos, 2048), ==, 0);
        }
        g_assert_cmpuint(rig.source.fetched, <=, 500 * 2048 * 4);
    }
    for (unsigned i = 0; i < SIZE / CACHE_GRANULE; i++) {
        g_assert_cmpuint(rig.source.times[i], <=, 1);
    }
    rig_clear(&rig);
}

/* A reader that jumps by equal steps finds the next places there. */
static void test_strided(void)
{
    Rig rig;
    BlockRemoteStats stats;
    rig_init(&rig);
    rig_start(&rig);
    for (uint64_t pos = 0; pos + 2048 <= SIZE; pos += 300 * 1024) {
        g_assert_cmpint(read_at(rig.cache, pos, 2048), ==, 0);
        g_usleep(1000);
    }
    block_cache_stats(rig.cache, &stats);
    g_assert_cmpuint(stats.misses, <, 35);
    g_assert_cmpuint(rig.source.fetched, <=, SIZE / (300 * 1024) * 4096 + 20 * 4096 + 3 * CACHE_CHUNK);
    rig_clear(&rig);
}

typedef struct Reader {
    BlockCache *cache;
    unsigned seed;
    int failed;
} Reader;

static void *reader_main(void *opaque)
{
    Reader *reader = opaque;
    g_autoptr(GRand) rand = g_rand_new_with_seed(reader->seed);
    for (unsigned i = 0; i < 300; i++) {
        const uint64_t pos = g_rand_int_range(rand, 0, SIZE - 200000);
        reader->failed |= read_at(reader->cache, pos, g_rand_int_range(rand, 1, 200000));
    }
    return NULL;
}

static void read_by_many(Rig *rig)
{
    pthread_t threads[8];
    Reader readers[8];
    for (unsigned i = 0; i < 8; i++) {
        readers[i] = (Reader){rig->cache, i / 2, 0};
        pthread_create(&threads[i], NULL, reader_main, &readers[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        g_assert_cmpint(readers[i].failed, ==, 0);
    }
}

/* Many readers, overlapping: nothing is fetched twice. */
static void test_single_flight(void)
{
    Rig rig;
    rig_init(&rig);
    rig_start(&rig);
    read_by_many(&rig);
    for (unsigned i = 0; i < SIZE / CACHE_GRANULE; i++) {
        g_assert_cmpuint(rig.source.times[i], <=, 1);
    }
    g_assert_cmpuint(rig.source.most, <=, 5);
    rig_clear(&rig);
}

/* With hardly any memory, and with fetches that fail in the middle, the data is still right. */
static void test_small_and_failing(void)
{
    Rig rig;
    rig_init(&rig);
    rig.config.cache_size = 2 * 1024 * 1024;
    rig.source.fail = 40;
    rig.source.fail_after = 5000;
    rig_start(&rig);
    read_by_many(&rig);
    rig_clear(&rig);
}

static void test_final_error(void)
{
    Rig rig;
    rig_init(&rig);
    rig.source.fail = 1;
    rig.source.final = true;
    rig_start(&rig);
    g_assert_cmpint(read_at(rig.cache, 0, 4096), ==, -EIO);
    g_assert_cmpuint(rig.source.fetches, ==, 1);
    g_assert_cmpint(read_at(rig.cache, 0, 4096), ==, 0);
    rig_clear(&rig);
}

static void test_retries_end(void)
{
    Rig rig;
    rig_init(&rig);
    rig.source.fail = 100;
    rig.config.retries = 2;
    rig_start(&rig);
    g_assert_cmpint(read_at(rig.cache, 0, 4096), ==, -EIO);
    g_assert_cmpuint(rig.source.fetches, ==, 3);
    rig_clear(&rig);
}

static void test_deadline(void)
{
    Rig rig;
    rig_init(&rig);
    rig.source.hang = true;
    rig.config.deadline_s = 1;
    rig_start(&rig);
    const int64_t start = g_get_monotonic_time();
    g_assert_cmpint(read_at(rig.cache, 0, 4096), ==, -ETIMEDOUT);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 2 * G_USEC_PER_SEC);
    rig_clear(&rig); /* must not hang either */
}

static void *interrupted(void *opaque)
{
    return GINT_TO_POINTER(read_at(opaque, 0, 4096));
}

static void test_interrupt(void)
{
    Rig rig;
    pthread_t thread;
    void *result;
    rig_init(&rig);
    rig.source.hang = true;
    rig_start(&rig);
    pthread_create(&thread, NULL, interrupted, rig.cache);
    g_usleep(100000);
    const int64_t start = g_get_monotonic_time();
    block_cache_interrupt(rig.cache);
    pthread_join(thread, &result);
    g_assert_cmpint(GPOINTER_TO_INT(result), ==, -ECANCELED);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 100000);
    rig_clear(&rig);
}

/* A source that can only give all: what lies far ahead comes in its turn, and once. */
static void test_from_start_only(void)
{
    Rig rig;
    GError *error = NULL;
    rig_init(&rig);
    rig.cache = rig_open(&rig, "same", true, &error);
    g_assert_no_error(error);
    g_assert_cmpint(read_at(rig.cache, SIZE - 5000, 5000), ==, 0);
    for (uint64_t pos = 0; pos < SIZE; pos += 1000000) {
        g_assert_cmpint(read_at(rig.cache, pos, MIN(4096, SIZE - pos)), ==, 0);
    }
    g_assert_cmpuint(rig.source.fetched, <=, 2 * (uint64_t)SIZE);
    rig_clear(&rig);
}

static void test_prefetch(void)
{
    Rig rig;
    BlockRemoteStats stats;
    rig_init(&rig);
    rig.config.prefetch = true;
    rig_start(&rig);
    for (unsigned i = 0; i < 1000; i++) {
        block_cache_stats(rig.cache, &stats);
        if (stats.fetched == SIZE) {
            break;
        }
        g_usleep(10000);
    }
    g_assert_cmpuint(stats.fetched, ==, SIZE);
    rig_clear(&rig);
}

static void read_all(BlockCache *cache)
{
    for (uint64_t pos = 0; pos < SIZE; pos += 1000000) {
        g_assert_cmpint(read_at(cache, pos, MIN(1000000, SIZE - pos)), ==, 0);
    }
}

/* A new process: everything from the file, nothing from the source. */
static void test_file_survives(void)
{
    Rig rig;
    rig_init(&rig);
    rig.config.file = g_build_filename(rig.folder, "cache", NULL);
    rig_start(&rig);
    read_all(rig.cache);
    block_cache_free(rig.cache);
    rig.source.fetched = 0;
    rig_start(&rig);
    read_all(rig.cache);
    g_assert_cmpuint(rig.source.fetched, ==, 0);
    rig_clear(&rig);
}

/* What a crash or a bad disk left behind is fetched anew. */
static void test_file_damaged(void)
{
    Rig rig;
    uint8_t junk[100000];
    struct stat st;
    rig_init(&rig);
    rig.config.file = g_build_filename(rig.folder, "cache", NULL);
    rig_start(&rig);
    read_all(rig.cache);
    g_clear_pointer(&rig.cache, block_cache_free);
    memset(junk, 0xa5, sizeof junk);
    int fd = open(rig.config.file, O_RDWR);
    g_assert_cmpint(fstat(fd, &st), ==, 0);
    g_assert_cmpint(pwrite(fd, junk, sizeof junk, st.st_size - 5000000), ==, sizeof junk);
    g_assert_cmpint(pwrite(fd, junk, 64, 8192), ==, 64);
    g_assert_cmpint(ftruncate(fd, st.st_size - 300000), ==, 0);
    close(fd);
    rig.source.fetched = 0;
    rig_start(&rig);
    read_all(rig.cache);
    g_assert_cmpuint(rig.source.fetched, >=, 400000);
    g_assert_cmpuint(rig.source.fetched, <, 1500000);
    rig_clear(&rig);
}

static void test_file_of_another(void)
{
    Rig rig;
    GError *error = NULL;
    rig_init(&rig);
    rig.config.file = g_build_filename(rig.folder, "cache", NULL);
    rig_start(&rig);
    read_all(rig.cache);
    g_assert_null(rig_open(&rig, "other", false, &error));
    g_assert_nonnull(strstr(error->message, "is in use for something else"));
    g_clear_error(&error);
    BlockCache *second = rig_open(&rig, "same", false, &error); /* shared */
    g_assert_no_error(error);
    rig.source.fetched = 0;
    read_all(second);
    g_assert_cmpuint(rig.source.fetched, ==, 0);
    block_cache_free(second);
    block_cache_free(rig.cache);
    rig.cache = rig_open(&rig, "other", false, &error); /* nobody uses it now */
    g_assert_no_error(error);
    read_all(rig.cache);
    g_assert_cmpuint(rig.source.fetched, ==, SIZE);
    rig_clear(&rig);
}

static void test_file_is_foreign(void)
{
    Rig rig;
    GError *error = NULL;
    g_autofree char *text = NULL;
    rig_init(&rig);
    rig.config.file = g_build_filename(rig.folder, "cache", NULL);
    g_assert_true(g_file_set_contents(rig.config.file, "my letter", -1, NULL));
    g_assert_null(rig_open(&rig, "same", false, &error));
    g_assert_nonnull(strstr(error->message, "is not a cache file; it was left alone"));
    g_clear_error(&error);
    g_assert_true(g_file_get_contents(rig.config.file, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "my letter");
    rig_clear(&rig);
}

static void test_read_now(void)
{
    Rig rig;
    uint8_t buf[8192];
    struct iovec iov = {buf, sizeof buf};
    rig_init(&rig);
    rig.config.readahead = 0;
    rig_start(&rig);
    g_assert_cmpint(block_cache_read_now(rig.cache, 4096, sizeof buf, &iov, 1), ==, -EAGAIN);
    g_assert_cmpint(read_at(rig.cache, 4096, 4096), ==, 0);
    g_assert_cmpint(block_cache_read_now(rig.cache, 4096, sizeof buf, &iov, 1), ==, -EAGAIN);
    g_assert_cmpint(read_at(rig.cache, 8192, 4096), ==, 0);
    g_assert_cmpint(block_cache_read_now(rig.cache, 4096, sizeof buf, &iov, 1), ==, 0);
    g_assert_cmpuint(buf[5000], ==, byte_at(9096));
    rig_clear(&rig);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"sequential", test_sequential},
        {"random", test_random},
        {"strided", test_strided},
        {"single-flight", test_single_flight},
        {"small-and-failing", test_small_and_failing},
        {"final-error", test_final_error},
        {"retries-end", test_retries_end},
        {"deadline", test_deadline},
        {"interrupt", test_interrupt},
        {"from-start-only", test_from_start_only},
        {"prefetch", test_prefetch},
        {"file-survives", test_file_survives},
        {"file-damaged", test_file_damaged},
        {"file-of-another", test_file_of_another},
        {"file-is-foreign", test_file_is_foreign},
        {"read-now", test_read_now},
    };
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_autofree char *path = g_strconcat("/cache/", tests[i].name, NULL);
        g_test_add_func(path, tests[i].run);
    }
    return g_test_run();
}
