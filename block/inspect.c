/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/inspect.h"
#include <errno.h>
#include <string.h>
#include "block/core.h"
#include "block/luks.h"

char **block_driver_names(void)
{
    GPtrArray *names = g_ptr_array_new();

    for (const BlockDriver *const *driver = block_drivers(); *driver; driver++) {
        g_ptr_array_add(names, g_strdup((*driver)->name));
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, false);
}

BlockSettings block_settings(const BlockNode *node)
{
    static const char *const names[] = {"off", "on", "unmap"};
    const GenericOptions *generic = &node->priv->generic;

    return (BlockSettings){generic->direct, generic->no_flush, names[generic->detect_zeroes]};
}

int64_t block_allocated_size(BlockNode *node)
{
    for (; node; node = node->child) {
        if (node->driver->allocated) {
            return node->driver->allocated(node);
        }
    }
    return -ENOTSUP;
}

static JsonObject *luks_specific(BlockNode *node)
{
    const GPtrArray *extras = node->priv->extras;
    BlockNode *header = extras->len ? g_ptr_array_index(extras, 0) : node->child;

    return luks_info(header, NULL);
}

JsonObject *block_format_specific(BlockNode *node)
{
    const char *driver = node->driver->name;
    JsonObject *data = NULL;

    if (!strcmp(driver, "luks")) {
        data = luks_specific(node);
    } else if (!strcmp(driver, "file")) {
        data = json_object_new();
    }
    if (!data) {
        return NULL;
    }
    JsonObject *specific = json_object_new();
    json_object_set_string_member(specific, "type", driver);
    json_object_set_object_member(specific, "data", data);
    return specific;
}

typedef struct MeasureJob {
    BlockJob job;
    GArray *measures;
    BlockMeasured done;
    void *opaque;
} MeasureJob;

static void measure_run(BlockJob *job)
{
    GArray *measures = ((MeasureJob *)job)->measures;

    for (guint i = 0; i < measures->len; i++) {
        BlockMeasure *measure = &g_array_index(measures, BlockMeasure, i);
        measure->allocated = block_allocated_size(measure->node);
        measure->specific = block_format_specific(measure->node);
    }
}

static void measure_done(BlockJob *job)
{
    MeasureJob *measure = (MeasureJob *)job;

    measure->done(measure->measures, measure->opaque);
    g_free(measure);
}

static void measure_clear(gpointer data)
{
    BlockMeasure *measure = data;

    block_unref(measure->node);
    g_clear_pointer(&measure->specific, json_object_unref);
}

void block_measure_async(GList *nodes, BlockMeasured done, void *opaque)
{
    MeasureJob *job = g_new0(MeasureJob, 1);

    job->job.run = measure_run;
    job->job.done = measure_done;
    job->measures = g_array_new(false, true, sizeof(BlockMeasure));
    job->done = done;
    job->opaque = opaque;
    g_array_set_clear_func(job->measures, measure_clear);
    for (GList *l = nodes; l; l = l->next) {
        for (BlockNode *node = l->data; node; node = node->child) {
            if (!block_measure_find(job->measures, node)) {
                BlockMeasure measure = {.node = block_ref(node)};
                g_array_append_val(job->measures, measure);
            }
        }
    }
    block_job_start(&job->job);
}

const BlockMeasure *block_measure_find(const GArray *measures, const BlockNode *node)
{
    for (guint i = 0; i < measures->len; i++) {
        const BlockMeasure *measure = &g_array_index(measures, BlockMeasure, i);
        if (measure->node == node) {
            return measure;
        }
    }
    return NULL;
}

void block_set_write_threshold(BlockNode *node, uint64_t threshold)
{
    __atomic_store_n(&node->priv->threshold, threshold, __ATOMIC_RELAXED);
}

uint64_t block_write_threshold(const BlockNode *node)
{
    return __atomic_load_n(&node->priv->threshold, __ATOMIC_RELAXED);
}

bool block_take_exceeded(BlockNode *node, uint64_t *ret_threshold, uint64_t *ret_amount)
{
    struct BlockExceeded *exceeded = &node->priv->exceeded;

    if (exceeded->amount == 0) {
        return false;
    }
    *ret_threshold = exceeded->threshold;
    *ret_amount = exceeded->amount;
    exceeded->amount = 0;
    return true;
}

static void note_exceeded(BlockNode *node, void *data)
{
    node->priv->exceeded = *(struct BlockExceeded *)data;
}

void node_pass_threshold(BlockNode *node, uint64_t threshold, uint64_t end)
{
    struct BlockExceeded exceeded = {threshold, end - threshold};

    /* One writer tells, also where several pass it at once. */
    if (__atomic_compare_exchange_n(&node->priv->threshold, &threshold, 0, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        block_node_post_event(node, BLOCK_EVENT_THRESHOLD, note_exceeded,
                              g_memdup2(&exceeded, sizeof exceeded), g_free);
    }
}
