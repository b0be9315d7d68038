/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/checked.h"

/* From this size on memory comes by mmap, so that a trimmed pool really shrinks the process: malloc raises
 * its own mmap threshold with each large block freed and keeps them from then on. */
#define BUFFER_MMAP_MIN (64 * 1024)

/* AddressSanitizer sees only what malloc hands out. */
#if defined(__SANITIZE_ADDRESS__)
#define BUFFER_MALLOC_ONLY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUFFER_MALLOC_ONLY 1
#endif
#endif
#ifndef BUFFER_MALLOC_ONLY
#define BUFFER_MALLOC_ONLY 0
#endif

struct BufferPool {
    pthread_mutex_t lock; /* guards free_list and free_count */
    size_t size, align;
    unsigned keep;
    unsigned free_count;
    Buffer *free_list;
    gint refs; /* the owner's hold, and one for each buffer that is out */
};

static bool buffer_is_mapped(size_t size, size_t align)
{
    return !BUFFER_MALLOC_ONLY && size >= BUFFER_MMAP_MIN && align <= BUFFER_ALIGN;
}

static void *buffer_memory_new(size_t size, size_t align)
{
    void *memory;
    if (buffer_is_mapped(size, align)) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            memory = NULL;
        } else {
            /* Data of guests and discs, perhaps deciphered: of no use in a core dump, and not for others'
             * eyes. */
            (void)madvise(memory, size, MADV_DONTDUMP);
        }
    } else if (posix_memalign(&memory, align, size ? size : 1)) {
        memory = NULL;
    }
    if (!memory) {
        g_error("failed to allocate %zu bytes for a buffer", size);
    }
    return memory;
}

static void buffer_memory_free(void *memory, size_t size, size_t align)
{
    if (buffer_is_mapped(size, align)) {
        munmap(memory, size);
    } else {
        free(memory);
    }
}

static void buffer_pool_unref(BufferPool *pool)
{
    if (g_atomic_int_dec_and_test(&pool->refs)) {
        pthread_mutex_destroy(&pool->lock);
        g_free(pool);
    }
}

static void buffer_pool_free_list(BufferPool *pool, Buffer *list)
{
    while (list) {
        Buffer *next = list->next;
        buffer_memory_free(list->data, pool->size, pool->align);
        g_free(list);
        list = next;
    }
}

BufferPool *buffer_pool_new(size_t size, size_t align, unsigned keep)
{
    g_return_val_if_fail(align == 0 || is_power_of_2(align), NULL);
    BufferPool *pool = g_new0(BufferPool, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pool->size = size;
    pool->align = MAX(align, (size_t)BUFFER_ALIGN);
    pool->keep = keep;
    pool->refs = 1;
    return pool;
}

void buffer_pool_free(BufferPool *pool)
{
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->keep = 0;
    pthread_mutex_unlock(&pool->lock);
    buffer_pool_trim(pool);
    buffer_pool_unref(pool);
}

Buffer *buffer_pool_get(BufferPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    Buffer *buffer = pool->free_list;
    if (buffer) {
        pool->free_list = buffer->next;
        pool->free_count--;
    }
    pthread_mutex_unlock(&pool->lock);

    if (!buffer) {
        buffer = g_new0(Buffer, 1);
        buffer->data = buffer_memory_new(pool->size, pool->align);
    }
    buffer->size = pool->size;
    buffer->next = NULL;
    buffer->pool = pool;
    buffer->refs = 1;
    g_atomic_int_inc(&pool->refs);
    return buffer;
}

Buffer *buffer_new(size_t size, size_t align)
{
    /* A pool of one use: the buffer holds it, and its last reference frees both. */
    g_autoptr(BufferPool) pool = buffer_pool_new(size, align, 0);
    Buffer *buffer = buffer_pool_get(pool);
    memset(buffer->data, 0, size);
    return buffer;
}

Buffer *buffer_ref(Buffer *buffer)
{
    g_atomic_int_inc(&buffer->refs);
    return buffer;
}

void buffer_unref(Buffer *buffer)
{
    if (!buffer || !g_atomic_int_dec_and_test(&buffer->refs)) {
        return;
    }
    BufferPool *pool = buffer->pool;
    pthread_mutex_lock(&pool->lock);
    bool kept = pool->free_count < pool->keep;
    if (kept) {
        buffer->next = pool->free_list;
        pool->free_list = buffer;
        pool->free_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!kept) {
        buffer->next = NULL;
        buffer_pool_free_list(pool, buffer);
    }
    buffer_pool_unref(pool);
}

void buffer_pool_trim(BufferPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    Buffer *list = pool->free_list;
    pool->free_list = NULL;
    pool->free_count = 0;
    pthread_mutex_unlock(&pool->lock);
    buffer_pool_free_list(pool, list);
}
