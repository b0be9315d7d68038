/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=fault`: a layer over `file` that misbehaves as told, for tests and benchmarks. Operations are
 * counted from 1 since open, each kind for itself; write zeroes counts as a write.
 *
 *   fail-read=N, fail-write=N, fail-flush=N   the Nth fails
 *   fail-nth=N                                the Nth operation of any kind fails
 *   fail-every=N                              every Nth operation of any kind fails
 *   bad-offset=, bad-bytes=                   reads that touch this range fail
 *   errno=NAME|NUMBER                         with this (EIO)
 *   delay-ns=, delay-read-ns=                 every operation, every read takes this much longer
 *   hang-read=N, hang-write=N, hang-flush=N   the Nth waits until it is interrupted (-ECANCELED)
 *   hang-ns=                                  … or this long, and goes on then
 *   bps-read=, bps-write=, iops-read=         a device of that speed: one transfer after the other, each
 * taking its bytes / bps (and 1 / iops) from when the device was free burst= … and that may have read this
 * many bytes ahead while it was idle slow=on|off                               what BlockInfo says; default:
 * on when reads are held up
 */
#include "block/block-int.h"
#include "util/checked.h"
#include "util/error.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

typedef enum { FAULT_READ, FAULT_WRITE, FAULT_FLUSH, FAULT_OPS } FaultOp;

/* A device that does one transfer at a time. */
typedef struct FaultClock {
    uint64_t bps, iops, burst; /* 0: no limit */
    gint64 free_at;            /* ns */
} FaultClock;

typedef struct FaultState {
    uint64_t fail[FAULT_OPS], hang[FAULT_OPS]; /* 0: none */
    uint64_t fail_nth, fail_every, bad_offset, bad_bytes, delay_ns, delay_read_ns, hang_ns;
    int error;
    bool passes_reads;    /* nothing is told about reads */
    pthread_mutex_t lock; /* for the rest: workers */
    pthread_cond_t wake;
    unsigned interrupts;
    uint64_t count[FAULT_OPS], count_all;
    FaultClock clock[FAULT_OPS];
} FaultState;

static const struct {
    const char *name;
    int value;
} errors[] = {
    {"EAGAIN", EAGAIN},
    {"EBUSY", EBUSY},
    {"ECANCELED", ECANCELED},
    {"EFAULT", EFAULT},
    {"EINTR", EINTR},
    {"EINVAL", EINVAL},
    {"EIO", EIO},
    {"ENODEV", ENODEV},
    {"ENOMEM", ENOMEM},
    {"ENOMEDIUM", ENOMEDIUM},
    {"ENOSPC", ENOSPC},
    {"EPERM", EPERM},
    {"EROFS", EROFS},
    {"ETIMEDOUT", ETIMEDOUT},
    {"EACCES", EACCES},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EFBIG", EFBIG},
    {"EMEDIUMTYPE", EMEDIUMTYPE},
    {"ESTALE", ESTALE},
};

static bool parse_errno(Options *options, int *ret, GError **error)
{
    const char *text = options_get(options, "errno");
    guint64 number;
    *ret = EIO;
    for (guint i = 0; text && i < G_N_ELEMENTS(errors); i++) {
        if (!strcmp(text, errors[i].name)) {
            *ret = errors[i].value;
            return true;
        }
    }
    if (text && !g_ascii_string_to_unsigned(text, 10, 1, 4095, &number, NULL)) {
        return error_set(error, "Parameter 'errno' expects a name like EIO or a number from 1 to 4095");
    }
    if (text) {
        *ret = (int)number;
    }
    return true;
}

static bool parse_counts(FaultState *s, Options *options, GError **error)
{
    const struct {
        const char *key;
        uint64_t *ret;
    } numbers[] = {
        {"fail-read", &s->fail[FAULT_READ]},
        {"fail-write", &s->fail[FAULT_WRITE]},
        {"fail-flush", &s->fail[FAULT_FLUSH]},
        {"hang-read", &s->hang[FAULT_READ]},
        {"hang-write", &s->hang[FAULT_WRITE]},
        {"hang-flush", &s->hang[FAULT_FLUSH]},
        {"fail-nth", &s->fail_nth},
        {"fail-every", &s->fail_every},
        {"delay-ns", &s->delay_ns},
        {"delay-read-ns", &s->delay_read_ns},
        {"hang-ns", &s->hang_ns},
        {"iops-read", &s->clock[FAULT_READ].iops},
    };
    const struct {
        const char *key;
        uint64_t *ret;
    } sizes[] = {
        {"bad-offset", &s->bad_offset},          {"bad-bytes", &s->bad_bytes},
        {"bps-read", &s->clock[FAULT_READ].bps}, {"bps-write", &s->clock[FAULT_WRITE].bps},
        {"burst", &s->clock[FAULT_READ].burst},
    };
    bool good = true;
    for (guint i = 0; good && i < G_N_ELEMENTS(numbers); i++) {
        good = options_get_uint(options, numbers[i].key, 0, INT64_MAX / 4, 0, numbers[i].ret, error);
    }
    for (guint i = 0; good && i < G_N_ELEMENTS(sizes); i++) {
        good = options_get_size(options, sizes[i].key, 0, sizes[i].ret, error);
    }
    return good;
}

static bool fault_open(BlockNode *node, Options *options, GError **error)
{
    FaultState *s = node->state;
    if (!parse_counts(s, options, error) || !parse_errno(options, &s->error, error)) {
        return false;
    }
    const FaultClock *clock = &s->clock[FAULT_READ];
    bool holds_up = s->delay_ns || s->delay_read_ns || clock->bps || clock->iops;
    bool slow;
    s->passes_reads = !holds_up && !s->fail[FAULT_READ] && !s->hang[FAULT_READ] && !s->fail_nth &&
                      !s->fail_every && !s->bad_bytes;
    if (!options_get_bool(options, "slow", holds_up, &slow, error) ||
        !block_node_open_child(node, options, "file", error)) {
        return false;
    }
    s->clock[FAULT_WRITE].burst = clock->burst;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
    node->info.slow |= slow;
    node->info.size = block_info(node->child)->size;
    node->info.align = block_info(node->child)->align;
    node->info.opt_transfer = block_info(node->child)->opt_transfer;
    return true;
}

static void fault_close(BlockNode *node)
{
    FaultState *s = node->state;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
}

static void fault_refresh(BlockNode *node)
{
    block_node_set_size(node, block_info(node->child)->size);
}

static gint64 now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (gint64)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* When a transfer that comes now is over. Called with the lock held. */
static gint64 clock_book(FaultClock *clock, uint64_t bytes, gint64 now)
{
    if (!clock->bps && !clock->iops) {
        return now;
    }
    double ahead = clock->bps ? clock->burst * 1e9 / clock->bps : 0;
    double takes = (clock->bps ? bytes * 1e9 / clock->bps : 0) + (clock->iops ? 1e9 / clock->iops : 0);
    gint64 start = MAX(now - (gint64)MIN(ahead, 1e18), clock->free_at);
    clock->free_at = start + (gint64)MIN(takes, 1e18);
    return clock->free_at;
}

/* Waits until a time (ns; 0: for ever). -ECANCELED when interrupted. Called with the lock held. */
static int wait_until(FaultState *s, gint64 until)
{
    unsigned before = s->interrupts;
    struct timespec end = {until / 1000000000, until % 1000000000};
    while (s->interrupts == before) {
        if (until && until <= now_ns()) {
            return 0;
        }
        if (until) {
            pthread_cond_timedwait(&s->wake, &s->lock, &end);
        } else {
            pthread_cond_wait(&s->wake, &s->lock);
        }
    }
    return -ECANCELED;
}

static bool must_fail(const FaultState *s, FaultOp op, uint64_t offset, uint64_t bytes)
{
    bool bad = op == FAULT_READ && s->bad_bytes && offset < s->bad_offset + s->bad_bytes &&
               offset + bytes > s->bad_offset;
    return bad || s->count[op] == s->fail[op] || s->count_all == s->fail_nth ||
           (s->fail_every && s->count_all % s->fail_every == 0);
}

/* Counts the operation and decides its fate: 0 to go on, and *ret_until is when it may end. */
static int fault_begin(FaultState *s, FaultOp op, uint64_t offset, uint64_t bytes, gint64 *ret_until)
{
    pthread_mutex_lock(&s->lock);
    gint64 now = now_ns();
    bool hang = ++s->count[op] == s->hang[op];
    s->count_all++;
    bool fail = must_fail(s, op, offset, bytes);
    int ret = hang ? wait_until(s, s->hang_ns ? now + (gint64)s->hang_ns : 0) : 0;
    if (ret == 0 && fail) {
        ret = -s->error;
    }
    gint64 delay = (gint64)(s->delay_ns + (op == FAULT_READ ? s->delay_read_ns : 0));
    gint64 over = ret == 0 ? clock_book(&s->clock[op], bytes, now) : now;
    *ret_until = over + delay;
    pthread_mutex_unlock(&s->lock);
    return ret;
}

/* The rest of the operation's time. */
static int fault_end(FaultState *s, gint64 until)
{
    prctl(PR_SET_TIMERSLACK, 1000); /* ns; the default of 50 us is percents of a fast drive's transfer */
    pthread_mutex_lock(&s->lock);
    int ret = wait_until(s, until);
    pthread_mutex_unlock(&s->lock);
    return ret;
}

static int fault_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    gint64 until;
    int ret = fault_begin(node->state, FAULT_READ, offset, bytes, &until);
    if (ret == 0) {
        ret = block_node_preadv(node->child, offset, bytes, iov, niov);
    }
    int waited = ret == -ECANCELED ? 0 : fault_end(node->state, until);
    return ret < 0 ? ret : waited;
}

static int fault_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    FaultState *s = node->state;
    return s->passes_reads ? block_node_read_now(node->child, offset, bytes, iov, niov) : -EAGAIN;
}

static int fault_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                         BlockFlags flags)
{
    gint64 until;
    int ret = fault_begin(node->state, FAULT_WRITE, offset, bytes, &until);
    if (ret == 0) {
        ret = block_node_pwritev(node->child, offset, bytes, iov, niov, flags);
    }
    int waited = ret == -ECANCELED ? 0 : fault_end(node->state, until);
    return ret < 0 ? ret : waited;
}

static int fault_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    gint64 until;
    int ret = fault_begin(node->state, FAULT_WRITE, offset, 0, &until);
    if (ret == 0) {
        ret = block_write_zeroes(node->child, offset, bytes, flags);
    }
    int waited = ret == -ECANCELED ? 0 : fault_end(node->state, until);
    return ret < 0 ? ret : waited;
}

static int fault_flush(BlockNode *node)
{
    gint64 until;
    int ret = fault_begin(node->state, FAULT_FLUSH, 0, 0, &until);
    if (ret == 0) {
        ret = block_node_flush(node->child);
    }
    int waited = ret == -ECANCELED ? 0 : fault_end(node->state, until);
    return ret < 0 ? ret : waited;
}

static int fault_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    return block_discard(node->child, offset, bytes);
}

static int fault_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                        unsigned *ret_status)
{
    return block_status(node->child, offset, bytes, ret_bytes, ret_status);
}

static int fault_resize(BlockNode *node, uint64_t size, GError **error)
{
    return block_resize(node->child, size, error);
}

static void fault_interrupt(BlockNode *node)
{
    FaultState *s = node->state;
    pthread_mutex_lock(&s->lock);
    s->interrupts++;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

#define FAULT_FUNCTIONS                                                                                      \
    .state_size = sizeof(FaultState), .open = fault_open, .close = fault_close, .preadv = fault_preadv,      \
    .pwritev = fault_pwritev, .flush = fault_flush, .discard = fault_discard,                                \
    .write_zeroes = fault_write_zeroes, .read_now = fault_read_now, .status = fault_status,                  \
    .resize = fault_resize, .interrupt = fault_interrupt, .refresh = fault_refresh

const BlockDriver block_driver_fault = {.name = "fault", .parallel = true, FAULT_FUNCTIONS};

/* The same, one call at a time. */
const BlockDriver block_driver_fault_serial = {.name = "fault-serial", FAULT_FUNCTIONS};
