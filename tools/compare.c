/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <pthread.h>
#include <string.h>

#include "tools/copy.h"
#include "tools/crowd.h"
#include "util/buffer.h"

#define STATUS_SPAN (1ULL << 30) /* asked of a node at once */
#define SECTOR      512          /* the first difference is told to this precision, as by qemu-img */

typedef struct Comparison {
    BlockNode *nodes[2];
    uint64_t end;
    BufferPool *pool;
    Progress *progress;
    pthread_mutex_t lock;
    uint64_t extent_end[2]; /* where what is known of each node ends */
    bool extent_zero[2];
    uint64_t next;   /* offset to be given out */
    uint64_t differ; /* the least offset that is known to differ, or `end` */
    int result;
    char *message;
} Comparison;

/* True when node i is known to read as zeros at `offset`; *bytes is cut to what is known. Called with the
 * lock held. Extents are asked for once: to find their ends may cost a walk over the whole of them. */
static bool reads_zero(Comparison *c, int i, uint64_t offset, uint64_t *bytes)
{
    uint64_t size = block_info(c->nodes[i])->size;
    if (offset >= size) {
        return true;
    }
    if (offset >= c->extent_end[i]) {
        uint64_t n = MIN(size - offset, STATUS_SPAN), run = MIN(n, BUFFER_MAX);
        unsigned status;
        c->extent_zero[i] = block_status(c->nodes[i], offset, n, &run, &status) == 0 &&
                            (status & BLOCK_STATUS_ZERO) && !(status & BLOCK_STATUS_DATA);
        c->extent_end[i] = offset + run;
    }
    *bytes = MIN(*bytes, c->extent_end[i] - offset);
    return c->extent_zero[i];
}

/* True when both read as zeros at [offset, offset + *bytes), which may be cut. */
static bool both_zero(Comparison *c, uint64_t offset, uint64_t *bytes)
{
    bool first = reads_zero(c, 0, offset, bytes);
    return reads_zero(c, 1, offset, bytes) && first;
}

/* Reads; what lies beyond the end is zeros. */
static int read_padded(BlockNode *node, uint64_t offset, uint8_t *data, uint64_t bytes)
{
    uint64_t size = block_info(node)->size;
    uint64_t inside = offset < size ? MIN(bytes, size - offset) : 0;
    memset(data + inside, 0, bytes - inside);
    return inside ? block_pread(node, offset, data, inside) : 0;
}

static void note_difference(Comparison *c, const uint8_t *a, const uint8_t *b, uint64_t offset,
                            uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += SECTOR) {
        if (memcmp(a + at, b + at, MIN(SECTOR, bytes - at))) {
            pthread_mutex_lock(&c->lock);
            c->differ = MIN(c->differ, offset + at);
            pthread_mutex_unlock(&c->lock);
            return;
        }
    }
}

static void compare_thread(void *opaque)
{
    Comparison *c = opaque;
    g_autoptr(Buffer) a = buffer_pool_get(c->pool);
    g_autoptr(Buffer) b = buffer_pool_get(c->pool);
    for (;;) {
        pthread_mutex_lock(&c->lock);
        uint64_t offset = c->next;
        /* What comes before a known difference is still looked at: the first one is asked for. */
        if (offset >= c->differ || c->result) {
            pthread_mutex_unlock(&c->lock);
            return;
        }
        uint64_t bytes = c->end - offset;
        bool zero = both_zero(c, offset, &bytes);
        bytes = zero ? bytes : MIN(bytes, BUFFER_MAX);
        c->next += bytes;
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < 2 && !zero; i++) {
            int r = read_padded(c->nodes[i], offset, (i ? b : a)->data, bytes);
            if (r < 0) {
                pthread_mutex_lock(&c->lock);
                if (!c->result) {
                    c->result = r;
                    c->message = g_strdup_printf("Error while reading offset %" G_GUINT64_FORMAT " of %s: %s",
                                                 offset, block_info(c->nodes[i])->filename, g_strerror(-r));
                }
                pthread_mutex_unlock(&c->lock);
                return;
            }
        }
        if (!zero && memcmp(a->data, b->data, bytes)) {
            note_difference(c, a->data, b->data, offset, bytes);
        }
        progress_add(c->progress, bytes);
    }
}

int compare_run(BlockNode *a, BlockNode *b, uint64_t start, uint64_t end, unsigned threads,
                Progress *progress, bool *ret_equal, uint64_t *ret_offset, char **ret_message)
{
    Comparison c = {.nodes = {a, b}, .end = end, .progress = progress, .next = start, .differ = end};
    c.pool = buffer_pool_new(BUFFER_MAX, BUFFER_ALIGN, 0);
    pthread_mutex_init(&c.lock, NULL);
    crowd_run(threads, compare_thread, &c);
    pthread_mutex_destroy(&c.lock);
    buffer_pool_free(c.pool);
    if (c.result) {
        *ret_message = c.message;
        return c.result;
    }
    *ret_equal = c.differ == end;
    *ret_offset = c.differ;
    return 0;
}
