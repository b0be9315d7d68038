/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data path of `driver=luks`.
 *
 * A request is cut into pieces of at most 1 MiB, whole encryption sectors: one child I/O each. Two pieces are
 * under way at once, so that the crew deciphers one while the next is read (or encrypts one while the last is
 * written). A request of one piece, the usual case, is read and then deciphered by its own thread, with the
 * crew's help when it is large and there are CPUs to spare.
 *
 * Reads land in the caller's memory, which is private to the request (design rule 7), and are deciphered in
 * place when its parts are whole sectors; else they pass through a buffer of the pool. Writes are always
 * encrypted into a buffer of the pool: the caller's memory is only read, once. Every request holds its
 * sectors in the range lock, as a reader or as the writer: a sector that is written in part is read, changed
 * and written back, and a sector must not be deciphered half old, half new.
 */
#include "block/luks-int.h"

#include <errno.h>

#include "util/checked.h"
#include "util/iov.h"

#define SLICE_MAX   128          /* parts of caller's memory in a piece; more pass through a buffer */
#define NOW_BYTES   (16 * 1024)  /* most that the loop thread deciphers itself */
#define SPLIT_LEAST (128 * 1024) /* bytes from which help pays for the wake-up of a helper */
#define SPLIT_BYTES (64 * 1024)  /* bytes that a helper takes at a time; a multiple of every sector size */

typedef struct Transfer {
    BlockNode *node;
    LuksState *s;
    bool write;
    uint64_t offset, bytes; /* of the request */
    const struct iovec *iov;
    int niov;
    BlockFlags flags;
} Transfer;

/* A piece under way. Plaintext is in `slice`, or in `bounce` when niov is 0. */
typedef struct Piece {
    CrewJob job;
    LuksState *s;
    bool encrypt;
    uint64_t start, bytes; /* of the payload, whole sectors */
    struct iovec slice[SLICE_MAX];
    int niov;
    Buffer *bounce; /* or NULL */
    unsigned step;  /* bytes of one part of the job */
    gint failed;
} Piece;

static uint64_t iv_at(const LuksState *s, uint64_t offset)
{
    return s->iv_offset + offset / LUKS_SECTOR;
}

static int cipher(LuksState *s, bool encrypt, uint64_t offset, void *out, const void *in, size_t bytes)
{
    return s->module->cipher_run(s->cipher, encrypt, iv_at(s, offset), out, in, bytes);
}

/* [at, at + bytes) of the piece, whose plaintext lies in the slices: to or from the bounce buffer or in
 * place. */
static int cipher_slices(Piece *p, size_t at, size_t bytes)
{
    size_t begin = 0;
    int r = 0;
    for (int i = 0; i < p->niov && !r && begin < at + bytes; i++) {
        size_t end = begin + p->slice[i].iov_len;
        size_t from = MAX(begin, at), to = MIN(end, at + bytes);
        if (from < to) {
            uint8_t *plain = (uint8_t *)p->slice[i].iov_base + (from - begin);
            uint8_t *out = p->bounce ? p->bounce->data + from : plain;
            r = cipher(p->s, p->encrypt, p->start + from, out, plain, to - from);
        }
        begin = end;
    }
    return r;
}

/* Any thread of the crew. */
static void piece_run(CrewJob *job, unsigned index)
{
    Piece *p = (Piece *)job;
    size_t at = (size_t)index * p->step, bytes = MIN(p->step, p->bytes - at);
    int r;
    if (p->niov) {
        r = cipher_slices(p, at, bytes);
    } else {
        r = cipher(p->s, p->encrypt, p->start + at, p->bounce->data + at, p->bounce->data + at, bytes);
    }
    if (r < 0) {
        g_atomic_int_set(&p->failed, 1);
    }
}

/* Help for what no request's own thread will do: as many threads as the width has left. */
static void piece_start(Piece *p)
{
    LuksState *s = p->s;
    unsigned busy = g_atomic_int_get(&s->busy), helpers = 0;
    if (p->bytes >= SPLIT_LEAST && busy < s->width) {
        helpers = s->width - busy;
    }
    p->step = helpers ? SPLIT_BYTES : p->bytes;
    p->job = (CrewJob){.run = piece_run, .count = (p->bytes + p->step - 1) / p->step};
    crew_start(s->crew, &p->job, helpers);
}

static int piece_finish(Piece *p)
{
    crew_finish(p->s->crew, &p->job);
    return g_atomic_int_get(&p->failed) ? -EIO : 0;
}

static void piece_clear(Piece *p)
{
    buffer_unref(p->bounce);
    p->bounce = NULL;
}

/* Describes the caller's memory of the piece if it can be ciphered as it lies: all of it and in whole
 * sectors. */
static void piece_map(const Transfer *t, Piece *p)
{
    p->niov = 0;
    if (p->start < t->offset || p->start + p->bytes > t->offset + t->bytes) {
        return;
    }
    int n = iov_slice(t->iov, t->niov, p->start - t->offset, p->bytes, p->slice, SLICE_MAX);
    for (int i = 0; i < n; i++) {
        if (p->slice[i].iov_len % t->s->sector_size) {
            return;
        }
    }
    p->niov = MAX(n, 0);
}

/* The part of the caller's memory that the piece covers, as an offset there and one in the piece. */
static size_t piece_overlap(const Transfer *t, const Piece *p, size_t *ret_caller, size_t *ret_piece)
{
    uint64_t from = MAX(p->start, t->offset), to = MIN(p->start + p->bytes, t->offset + t->bytes);
    *ret_caller = from - t->offset;
    *ret_piece = from - p->start;
    return to - from;
}

static int child_read(const Transfer *t, uint64_t start, size_t bytes, const struct iovec *iov, int niov)
{
    return block_node_preadv(t->node->child, t->s->payload_offset + start, bytes, iov, niov);
}

static int read_begin(const Transfer *t, Piece *p)
{
    int r;
    if (p->niov) {
        r = child_read(t, p->start, p->bytes, p->slice, p->niov);
    } else {
        p->bounce = buffer_pool_get(t->s->pool);
        struct iovec whole = {p->bounce->data, p->bytes};
        r = child_read(t, p->start, p->bytes, &whole, 1);
    }
    if (r < 0) {
        piece_clear(p);
        return r;
    }
    piece_start(p);
    return 0;
}

static int read_end(const Transfer *t, Piece *p, bool abandoned)
{
    int r = piece_finish(p);
    if (!r && p->bounce) {
        size_t caller, piece, bytes = piece_overlap(t, p, &caller, &piece);
        iov_from_buf(t->iov, t->niov, caller, p->bounce->data + piece, bytes);
    }
    piece_clear(p);
    return r;
}

/* One sector of plaintext into the bounce buffer. */
static int read_edge(const Transfer *t, Piece *p, uint64_t start)
{
    uint8_t *data = p->bounce->data + (start - p->start);
    struct iovec sector = {data, t->s->sector_size};
    int r = child_read(t, start, t->s->sector_size, &sector, 1);
    return r < 0 ? r : cipher(t->s, false, start, data, data, t->s->sector_size);
}

/* What the request leaves as it was in the first and the last sector of the piece. */
static int read_edges(const Transfer *t, Piece *p)
{
    uint64_t last = p->start + p->bytes - t->s->sector_size;
    bool head = p->start<t->offset, tail = p->start + p->bytes> t->offset + t->bytes;
    int r = 0;
    if (head) {
        r = read_edge(t, p, p->start);
    }
    if (!r && tail && !(head && last == p->start)) {
        r = read_edge(t, p, last);
    }
    return r;
}

static int write_begin(const Transfer *t, Piece *p)
{
    p->bounce = buffer_pool_get(t->s->pool);
    if (!p->niov) {
        int r = read_edges(t, p);
        if (r < 0) {
            piece_clear(p);
            return r;
        }
        size_t caller, piece, bytes = piece_overlap(t, p, &caller, &piece);
        iov_to_buf(t->iov, t->niov, caller, p->bounce->data + piece, bytes);
    }
    piece_start(p);
    return 0;
}

static int write_end(const Transfer *t, Piece *p, bool abandoned)
{
    int r = piece_finish(p);
    if (!r && !abandoned) {
        struct iovec whole = {p->bounce->data, p->bytes};
        r = block_node_pwritev(t->node->child, t->s->payload_offset + p->start, p->bytes, &whole, 1,
                               t->flags & (BLOCK_FUA | BLOCK_WRITE_BEHIND));
    }
    piece_clear(p);
    return r;
}

static int piece_begin(const Transfer *t, Piece *p, uint64_t start, uint64_t bytes)
{
    p->s = t->s;
    p->encrypt = t->write;
    p->start = start;
    p->bytes = bytes;
    p->bounce = NULL;
    p->failed = 0;
    piece_map(t, p);
    return t->write ? write_begin(t, p) : read_begin(t, p);
}

static int piece_end(const Transfer *t, Piece *p, bool abandoned)
{
    return t->write ? write_end(t, p, abandoned) : read_end(t, p, abandoned);
}

/* The sectors [start, end): two pieces under way at most. */
static int transfer_sectors(const Transfer *t, uint64_t start, uint64_t end)
{
    Piece pieces[2];
    unsigned begun = 0, ended = 0;
    int r = 0;
    while (!r && start < end) {
        uint64_t bytes = MIN(BUFFER_MAX, end - start);
        if (begun - ended == 2) {
            r = piece_end(t, &pieces[ended++ % 2], false);
        }
        if (!r) {
            r = piece_begin(t, &pieces[begun % 2], start, bytes);
            begun += !r;
            start += bytes;
        }
    }
    for (; ended < begun; ended++) {
        int e = piece_end(t, &pieces[ended % 2], r < 0);
        r = r ? r : e;
    }
    return r;
}

static int transfer_run(const Transfer *t)
{
    LuksState *s = t->s;
    uint64_t start = align_down(t->offset, s->sector_size),
             end = align_up(t->offset + t->bytes, s->sector_size);
    RangeHold hold;
    range_lock_take(&s->ranges, &hold, start, end, t->write);
    g_atomic_int_inc(&s->busy);
    int r = transfer_sectors(t, start, end);
    g_atomic_int_add(&s->busy, -1);
    range_lock_release(&s->ranges, &hold);
    return r;
}

int luks_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    const Transfer t = {node, node->state, false, offset, bytes, iov, niov, 0};
    return transfer_run(&t);
}

/* Small reads that the child answers from memory are not worth a worker: deciphering 16 KiB takes 3 us, a
 * hand-over more. Here the caller's memory may be the guest's, so what the child gives stays in a buffer of
 * our own and only plaintext goes out. Loop thread. */
int luks_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    LuksState *s = node->state;
    uint64_t start = align_down(offset, s->sector_size), end = align_up(offset + bytes, s->sector_size);
    RangeHold hold;
    if (end - start > NOW_BYTES || !range_lock_try(&s->ranges, &hold, start, end, false)) {
        return -EAGAIN;
    }
    Buffer *buffer = buffer_pool_get(s->pool);
    struct iovec whole = {buffer->data, end - start};
    int r = block_node_read_now(node->child, s->payload_offset + start, end - start, &whole, 1);
    if (!r) {
        r = cipher(s, false, start, buffer->data, buffer->data, end - start);
        iov_from_buf(iov, niov, 0, buffer->data + (offset - start), bytes);
    }
    buffer_unref(buffer);
    range_lock_release(&s->ranges, &hold);
    return r;
}

/* The same for writes of whole sectors: what is written in part has to be read first, which may take longer.
 */
int luks_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    LuksState *s = node->state;
    RangeHold hold;
    if (bytes > NOW_BYTES || offset % s->sector_size || bytes % s->sector_size ||
        !range_lock_try(&s->ranges, &hold, offset, offset + bytes, true)) {
        return -EAGAIN;
    }
    Buffer *buffer = buffer_pool_get(s->pool);
    iov_to_buf(iov, niov, 0, buffer->data, bytes);
    int r = cipher(s, true, offset, buffer->data, buffer->data, bytes);
    if (!r) {
        struct iovec whole = {buffer->data, bytes};
        r = block_node_write_now(node->child, s->payload_offset + offset, bytes, &whole, 1);
    }
    buffer_unref(buffer);
    range_lock_release(&s->ranges, &hold);
    return r;
}

int luks_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                 BlockFlags flags)
{
    const Transfer t = {node, node->state, true, offset, bytes, iov, niov, flags};
    return transfer_run(&t);
}

/* Only when the user allowed it (discard=unmap): it tells the host which sectors are unused. Later reads give
 * what zeros decipher to. */
int luks_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    LuksState *s = node->state;
    uint64_t start = align_up(offset, s->sector_size), end = align_down(offset + bytes, s->sector_size);
    if (start >= end) {
        return 0;
    }
    RangeHold hold;
    range_lock_take(&s->ranges, &hold, start, end, true);
    int r = block_discard(node->child, s->payload_offset + start, end - start);
    range_lock_release(&s->ranges, &hold);
    return r;
}
