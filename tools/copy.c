/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The order of things: a thread takes the next piece under the lock (pieces never cross a 1 MiB boundary of
 * the target, nor the end of an extent or a source), reads it, waits for its turn if writes are to be in
 * order, writes it.
 *
 * As many threads work as there are CPUs, until the storage keeps them waiting: one more joins them with each
 * piece while that takes a quarter of their time, all others when it takes most of it. Storage in memory is
 * so copied through few buffers, which stay in the CPUs' caches, by threads that do not wait for each other.
 */
#include "tools/copy.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/crowd.h"
#include "util/buffer.h"
#include "util/log.h"

#define STATUS_SPAN    (1ULL << 30)  /* asked of the source at once */
#define ZERO_PIECE     (64ULL << 20) /* zeros written at once */
#define ZERO_UNIT      4096          /* zeros are looked for in blocks of this size */
#define SALVAGE_SECTOR 512
#define BUSY_ENOUGH    0.75  /* of a thread's time on a CPU: more threads would only wait for each other */
#define BUSY_LITTLE    0.25  /* the storage takes its time: as many requests as there may be */
#define RECENT_KEPT    0.875 /* of what is known about the pieces before this one */

#define USER_DATA       2048 /* bytes of user data in a sector of a disc */
#define SECTORS_AT_ONCE 128

typedef struct Piece {
    const CopySource *source;
    uint64_t from, to, bytes; /* offset in the source, in the target */
    bool zero;
    uint64_t number;
} Piece;

typedef struct Job {
    const Copy *copy;
    BufferPool *pool;
    pthread_mutex_t lock;
    pthread_cond_t turn_changed, more_wanted;
    unsigned at_work, wanted; /* threads that copy; how many are to */
    double elapsed, used;     /* recent seconds of threads that read or write; of CPU in these */
    unsigned source;          /* index of the present one */
    uint64_t source_done;     /* bytes of it given out */
    uint64_t target_done;     /* bytes given out */
    uint64_t extent_left;     /* bytes of the present extent */
    bool extent_zero;
    uint64_t next_number, turn; /* pieces given out; the one whose turn to write it is */
    int result;                 /* the first failure */
    char *message;
    gint64 start;
} Job;

/* Keeps the first failure; wakes those who wait for their turn. Takes the message. */
static void job_fail(Job *job, int result, char *message)
{
    pthread_mutex_lock(&job->lock);
    if (!job->result) {
        job->result = result;
        job->message = g_steal_pointer(&message);
    }
    pthread_cond_broadcast(&job->turn_changed);
    pthread_cond_broadcast(&job->more_wanted);
    pthread_mutex_unlock(&job->lock);
    g_free(message);
}

static bool is_stopped(const Job *job)
{
    return job->copy->stop && __atomic_load_n(job->copy->stop, __ATOMIC_RELAXED);
}

const BlockTrack *copy_find_track(const BlockNode *node, bool *ret_no_data)
{
    const BlockToc *toc = block_toc(node);
    *ret_no_data = toc != NULL;
    for (unsigned i = 0; toc && i < toc->tracks; i++) {
        const BlockTrack *track = &toc->track[i];
        if (track->mode != BLOCK_TRACK_AUDIO) {
            *ret_no_data = false;
            return track->stored == USER_DATA && track->stride == USER_DATA && !track->offset ? NULL : track;
        }
    }
    return NULL;
}

/* Where the user data lies in a stored sector: behind sync, header and (mode 2 form 1) subheader, ECMA-130
 * clause 14. */
static unsigned user_data_at(const BlockTrack *track)
{
    bool mode2 = track->mode == BLOCK_TRACK_MODE2;
    return track->stored == USER_DATA ? 0 : track->stored == 2336 ? 8 : mode2 ? 24 : 16;
}

/* As block_pread() on the user data of the track. */
static int read_track(const CopySource *source, uint64_t from, uint8_t *data, uint64_t bytes)
{
    const BlockTrack *track = source->track;
    unsigned skip = user_data_at(track);
    g_autofree uint8_t *raw = g_malloc((size_t)SECTORS_AT_ONCE * track->stride);
    while (bytes) {
        uint64_t sector = from / USER_DATA, inside = from % USER_DATA;
        uint64_t sectors = MIN(SECTORS_AT_ONCE, (inside + bytes + USER_DATA - 1) / USER_DATA);
        int r = block_pread(source->node, track->offset + sector * track->stride, raw,
                            (sectors - 1) * track->stride + track->stored);
        if (r < 0) {
            return r;
        }
        for (uint64_t i = 0; i < sectors; i++, inside = 0) {
            uint64_t n = MIN(USER_DATA - inside, bytes);
            memcpy(data, raw + i * track->stride + skip + inside, n);
            data += n;
            from += n;
            bytes -= n;
        }
    }
    return 0;
}

static int read_source(const CopySource *source, uint64_t from, uint8_t *data, uint64_t bytes)
{
    return source->track ? read_track(source, from, data, bytes)
                         : block_pread(source->node, from, data, bytes);
}

/* Asks what comes next in the source. Called with the lock held. */
static void look_at_extent(Job *job, const CopySource *source)
{
    uint64_t offset = source->start + job->source_done, left = source->bytes - job->source_done, run;
    unsigned status;
    if (source->track) {
        job->extent_left = left;
        job->extent_zero = false;
        return;
    }
    if (block_status(source->node, offset, MIN(left, STATUS_SPAN), &run, &status) < 0) {
        run = MIN(left, BUFFER_MAX); /* reading will tell */
        status = BLOCK_STATUS_DATA;
    }
    job->extent_left = run;
    job->extent_zero = (status & BLOCK_STATUS_ZERO) && !(status & BLOCK_STATUS_DATA);
}

/* Called with the lock held. */
static bool take_piece(Job *job, Piece *ret)
{
    const Copy *copy = job->copy;
    while (job->source < copy->n_sources && job->source_done == copy->sources[job->source].bytes) {
        job->source++;
        job->source_done = 0;
        job->extent_left = 0;
    }
    if (job->source == copy->n_sources || job->result || is_stopped(job)) {
        return false;
    }
    const CopySource *source = &copy->sources[job->source];
    if (!job->extent_left) {
        look_at_extent(job, source);
    }
    uint64_t limit = BUFFER_MAX - job->target_done % BUFFER_MAX;
    if (job->extent_zero && (copy->target_is_zero || copy->target_keeps_zeros)) {
        limit = ZERO_PIECE;
    }
    *ret = (Piece){.source = source,
                   .from = source->start + job->source_done,
                   .to = job->target_done,
                   .bytes = MIN(job->extent_left, limit),
                   .zero = job->extent_zero,
                   .number = job->next_number++};
    job->extent_left -= ret->bytes;
    job->source_done += ret->bytes;
    job->target_done += ret->bytes;
    return true;
}

/* Sleeps for as long as the rate limit asks. */
static void hold_rate(const Job *job, const Piece *piece)
{
    if (job->copy->rate) {
        gint64 due = job->start + (gint64)((double)piece->to / job->copy->rate * 1e6);
        gint64 now = g_get_monotonic_time();
        while (now < due && !is_stopped(job)) {
            g_usleep(MIN(due - now, 100000));
            now = g_get_monotonic_time();
        }
    }
}

/* Reads sector by sector what did not read as a whole; zeros take the place of what does not read at all. */
static void salvage(const Piece *piece, uint8_t *data)
{
    uint64_t lost = 0;
    int first_error = 0;
    for (uint64_t at = 0; at < piece->bytes; at += SALVAGE_SECTOR) {
        uint64_t n = MIN(SALVAGE_SECTOR, piece->bytes - at);
        int r = read_source(piece->source, piece->from + at, data + at, n);
        if (r < 0) {
            memset(data + at, 0, n);
            lost += n;
            first_error = first_error ? first_error : r;
        }
    }
    log_warn("error while reading offset %" G_GUINT64_FORMAT ": %s; %" G_GUINT64_FORMAT
             " bytes are zeros instead",
             piece->from, g_strerror(-first_error), lost);
}

static bool read_piece(Job *job, const Piece *piece, uint8_t *data)
{
    if (piece->zero) {
        return true;
    }
    int r = read_source(piece->source, piece->from, data, piece->bytes);
    if (r < 0 && job->copy->salvage) {
        salvage(piece, data);
        r = 0;
    }
    if (r < 0) {
        job_fail(job, r,
                 g_strdup_printf("error while reading at byte %" G_GUINT64_FORMAT ": %s", piece->from,
                                 g_strerror(-r)));
    }
    return r == 0;
}

/* Waits for the piece's turn to be written; false when the copy has failed meanwhile. */
static bool wait_turn(Job *job, const Piece *piece)
{
    if (!job->copy->in_order) {
        return true;
    }
    pthread_mutex_lock(&job->lock);
    while (job->turn != piece->number && !job->result) {
        pthread_cond_wait(&job->turn_changed, &job->lock);
    }
    bool go = !job->result;
    pthread_mutex_unlock(&job->lock);
    return go;
}

static void pass_turn(Job *job)
{
    if (job->copy->in_order) {
        pthread_mutex_lock(&job->lock);
        job->turn++;
        pthread_cond_broadcast(&job->turn_changed);
        pthread_mutex_unlock(&job->lock);
    }
}

/* The zeros from `at` on, in whole units (the last one may be short). */
static uint64_t count_zeros(const uint8_t *data, uint64_t at, uint64_t bytes, uint64_t unit)
{
    static const uint8_t zeros[ZERO_UNIT];
    uint64_t end = at;
    while (end < bytes) {
        uint64_t n = MIN(unit, bytes - end);
        if (memcmp(data + end, zeros, n)) {
            break;
        }
        end += n;
    }
    return end - at;
}

/* The length of the next run: of zeros that make a hole (*ret_zero), or of data up to such zeros. */
static uint64_t next_run(const uint8_t *data, uint64_t at, uint64_t bytes, uint64_t sparse, bool *ret_zero)
{
    uint64_t unit = MIN(sparse, ZERO_UNIT);
    uint64_t zeros = count_zeros(data, at, bytes, unit);
    *ret_zero = zeros >= sparse;
    uint64_t end = at + zeros;
    while (!*ret_zero && end < bytes) {
        end += MIN(unit, bytes - end);
        zeros = count_zeros(data, end, bytes, unit);
        if (zeros >= sparse) {
            break;
        }
        end += zeros;
    }
    return end - at;
}

static int write_zeros(const Job *job, uint64_t to, uint64_t bytes)
{
    const Copy *copy = job->copy;
    if (copy->target_is_zero && copy->sparse) {
        return 0;
    }
    return block_write_zeroes(copy->target, to, bytes,
                              copy->write_flags | (copy->sparse ? BLOCK_MAY_UNMAP : 0));
}

static int write_data(const Job *job, const Piece *piece, const uint8_t *data)
{
    const Copy *copy = job->copy;
    if (!copy->sparse || !(copy->target_is_zero || copy->target_keeps_zeros)) {
        return block_pwrite(copy->target, piece->to, data, piece->bytes, copy->write_flags);
    }
    int r = 0;
    for (uint64_t at = 0, n; at < piece->bytes && r == 0; at += n) {
        bool zero;
        n = next_run(data, at, piece->bytes, copy->sparse, &zero);
        r = zero ? write_zeros(job, piece->to + at, n)
                 : block_pwrite(copy->target, piece->to + at, data + at, n, copy->write_flags);
    }
    return r;
}

static bool write_piece(Job *job, const Piece *piece, const uint8_t *data)
{
    int r = piece->zero ? write_zeros(job, piece->to, piece->bytes) : write_data(job, piece, data);
    if (r < 0) {
        job_fail(job, r,
                 g_strdup_printf("error while writing at byte %" G_GUINT64_FORMAT ": %s", piece->to,
                                 g_strerror(-r)));
    }
    return r == 0;
}

/* Seconds on the clock, and of CPU time of this thread. */
typedef struct Spent {
    double elapsed, used;
} Spent;

static double clock_read(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void spent_add(Spent *spent, double sign)
{
    spent->elapsed += sign * clock_read(CLOCK_MONOTONIC);
    spent->used += sign * clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Takes note of what a piece took, and calls more threads when the storage keeps those at work waiting. */
static void note_spent(Job *job, const Spent *spent)
{
    pthread_mutex_lock(&job->lock);
    job->elapsed = job->elapsed * RECENT_KEPT + spent->elapsed;
    job->used = job->used * RECENT_KEPT + spent->used;
    if (job->used < job->elapsed * BUSY_LITTLE) {
        job->wanted = COPY_THREADS_MAX;
        pthread_cond_broadcast(&job->more_wanted);
    } else if (job->used < job->elapsed * BUSY_ENOUGH && job->wanted == job->at_work) {
        job->wanted++;
        pthread_cond_signal(&job->more_wanted);
    }
    pthread_mutex_unlock(&job->lock);
}

/* The next piece, or false when there is none. */
static bool next_piece(Job *job, Piece *ret)
{
    pthread_mutex_lock(&job->lock);
    bool more = take_piece(job, ret);
    if (!more) {
        job->wanted = COPY_THREADS_MAX; /* those that still wait may go, too */
        pthread_cond_broadcast(&job->more_wanted);
    }
    pthread_mutex_unlock(&job->lock);
    return more;
}

static bool copy_piece(Job *job, const Piece *piece, uint8_t *data)
{
    Spent spent = {0};
    spent_add(&spent, -1);
    bool ok = read_piece(job, piece, data);
    spent_add(&spent, 1);
    if (!ok || !wait_turn(job, piece)) {
        return false;
    }
    spent_add(&spent, -1);
    ok = write_piece(job, piece, data);
    spent_add(&spent, 1);
    pass_turn(job);
    note_spent(job, &spent);
    return ok;
}

/* Waits until this thread is needed. */
static void wait_wanted(Job *job)
{
    pthread_mutex_lock(&job->lock);
    while (job->at_work >= job->wanted && !job->result) {
        pthread_cond_wait(&job->more_wanted, &job->lock);
    }
    job->at_work++;
    pthread_mutex_unlock(&job->lock);
}

static void copy_thread(void *opaque)
{
    Job *job = opaque;
    wait_wanted(job);
    Piece piece;
    Buffer *buffer = NULL;
    while (next_piece(job, &piece)) {
        hold_rate(job, &piece);
        buffer = buffer ? buffer : buffer_pool_get(job->pool);
        if (!copy_piece(job, &piece, buffer->data)) {
            break;
        }
        progress_add(job->copy->progress, piece.bytes);
    }
    buffer_unref(buffer);
}

int copy_run(const Copy *copy, char **ret_message)
{
    Job job = {.copy = copy, .start = g_get_monotonic_time()};
    job.pool = buffer_pool_new(BUFFER_MAX, BUFFER_ALIGN, 0);
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.turn_changed, NULL);
    pthread_cond_init(&job.more_wanted, NULL);
    job.wanted = g_get_num_processors();
    crowd_run(CLAMP(copy->threads, 1, COPY_THREADS_MAX), copy_thread, &job);
    pthread_cond_destroy(&job.more_wanted);
    pthread_cond_destroy(&job.turn_changed);
    pthread_mutex_destroy(&job.lock);
    buffer_pool_free(job.pool);
    if (!job.result && is_stopped(&job)) {
        return -ECANCELED;
    }
    if (job.result) {
        *ret_message = job.message;
    }
    return job.result;
}
