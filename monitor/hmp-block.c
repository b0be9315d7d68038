/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `info block`, `info blockstats` and `info remote`.
 */
#include <string.h>
#include "monitor/hmp.h"
#include "monitor/query.h"

static void print_node(HmpCall *call, BlockNode *node)
{
    const BlockInfo *info = block_info(node);

    hmp_print(call, ": %s (%s%s%s)\n", info->filename, info->driver, info->read_only ? ", read-only" : "",
              g_str_equal(info->driver, "luks") ? ", encrypted" : "");
}

static void print_cache(HmpCall *call, const BlockNode *node, bool writeback)
{
    BlockSettings settings = block_settings(node);

    hmp_print(call, "    Cache mode:       %s%s%s\n", writeback ? "writeback" : "writethrough",
              settings.direct ? ", direct" : "", settings.no_flush ? ", ignore flushes" : "");
    if (strcmp(settings.detect_zeroes, "off") != 0) {
        hmp_print(call, "    Detect zeroes:    %s\n", settings.detect_zeroes);
    }
}

static void print_limits(HmpCall *call, Backend *backend)
{
    ThrottleLimits limits;

    if (backend->group) {
        throttle_group_get_limits(backend->group, &limits);
        hmp_print(call,
                  "    I/O throttling:   bps=%" G_GUINT64_FORMAT " bps_rd=%" G_GUINT64_FORMAT
                  " bps_wr=%" G_GUINT64_FORMAT " bps_max=%" G_GUINT64_FORMAT " bps_rd_max=%" G_GUINT64_FORMAT
                  " bps_wr_max=%" G_GUINT64_FORMAT " iops=%" G_GUINT64_FORMAT " iops_rd=%" G_GUINT64_FORMAT
                  " iops_wr=%" G_GUINT64_FORMAT " iops_max=%" G_GUINT64_FORMAT
                  " iops_rd_max=%" G_GUINT64_FORMAT " iops_wr_max=%" G_GUINT64_FORMAT
                  " iops_size=%" G_GUINT64_FORMAT " group=%s\n",
                  limits.bucket[THROTTLE_BPS_TOTAL].average, limits.bucket[THROTTLE_BPS_READ].average,
                  limits.bucket[THROTTLE_BPS_WRITE].average, limits.bucket[THROTTLE_BPS_TOTAL].max,
                  limits.bucket[THROTTLE_BPS_READ].max, limits.bucket[THROTTLE_BPS_WRITE].max,
                  limits.bucket[THROTTLE_IOPS_TOTAL].average, limits.bucket[THROTTLE_IOPS_READ].average,
                  limits.bucket[THROTTLE_IOPS_WRITE].average, limits.bucket[THROTTLE_IOPS_TOTAL].max,
                  limits.bucket[THROTTLE_IOPS_READ].max, limits.bucket[THROTTLE_IOPS_WRITE].max,
                  limits.iops_size, throttle_group_name(backend->group));
    }
}

static void print_backend(HmpCall *call, Backend *backend)
{
    if (backend->name[0]) {
        hmp_print(call, "%s%s%s%s", backend->name, backend->node ? " (" : "",
                  backend->node ? block_name(backend->node) : "", backend->node ? ")" : "");
    } else {
        hmp_print(call, "%s", backend->node ? block_name(backend->node) : backend_title(backend));
    }
    if (backend->node) {
        print_node(call, backend->node);
    } else {
        hmp_print(call, ": [not inserted]\n");
    }
    if (backend->qdev) {
        hmp_print(call, "    Attached to:      %s\n", backend_qdev(backend));
    }
    if (backend->io_status != BACKEND_IO_OK) {
        hmp_print(call, "    I/O status:       %s\n", backend_io_status_name(backend));
    }
    if (backend->mmc || !backend->qdev) {
        hmp_print(call, "    Removable device: %slocked, tray %s\n",
                  backend->mmc && mmc_drive_locked(backend->mmc) ? "" : "not ",
                  backend->mmc && mmc_drive_tray_open(backend->mmc) ? "open" : "closed");
    }
    if (backend->node) {
        print_cache(call, backend->node, backend->writeback);
        print_limits(call, backend);
    }
}

/* A node by itself. */
static void print_named_node(HmpCall *call, BlockNode *node)
{
    hmp_print(call, "%s", block_name(node));
    print_node(call, node);
    print_cache(call, node, true);
}

/* `info block [-n] [-v] [device]` */
void hmp_info_block(HmpCall *call)
{
    GPtrArray *all = monitor_backends(call->monitor);
    const char *name = hmp_arg(call, "device");
    bool nodes = hmp_flag(call, "nodes"), found = false;

    for (guint i = 0; i < all->len && !nodes; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        if (!name || !strcmp(name, backend->name) || backend == backend_find_device(call->monitor, name)) {
            hmp_print(call, found ? "\n" : "");
            print_backend(call, backend);
            found = true;
        }
    }
    g_autoptr(GList) list = block_list();
    for (GList *l = g_list_last(list); l && (nodes || (name && !found)); l = l->prev) {
        if (!backend_is_limit_node(call->monitor, l->data) && (!name || !strcmp(name, block_name(l->data)))) {
            hmp_print(call, found ? "\n" : "");
            print_named_node(call, l->data);
            found = true;
        }
    }
}

static void print_row(HmpCall *call, const char *label, const BlockStats *stats, BlockOp op)
{
    if (op == BLOCK_FLUSH) {
        hmp_print(call, "%-31s%17" G_GUINT64_FORMAT "%25" G_GUINT64_FORMAT "\n", label, stats->ops[op],
                  stats->ns[op]);
    } else {
        hmp_print(call, "%-6s%25" G_GUINT64_FORMAT "%17" G_GUINT64_FORMAT "%25" G_GUINT64_FORMAT "%11d\n",
                  label, stats->bytes[op], stats->ops[op], stats->ns[op], 0);
    }
}

void hmp_info_blockstats(HmpCall *call)
{
    GPtrArray *all = monitor_backends(call->monitor);

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        BlockStats stats;
        backend_stats(backend, &stats);
        hmp_print(call, "%s%s:\n%31s%17s%25s%11s\n", i ? "\n" : "", backend_title(backend), "bytes",
                  "operations", "total_time_ns", "merged");
        print_row(call, "Read:", &stats, BLOCK_READ);
        print_row(call, "Write:", &stats, BLOCK_WRITE);
        print_row(call, "Flush:", &stats, BLOCK_FLUSH);
    }
}

void hmp_info_remote(HmpCall *call)
{
    g_autoptr(GList) list = block_list();

    for (GList *l = list; l; l = l->next) {
        BlockRemoteStats stats;
        if (!block_remote_stats(l->data, &stats)) {
            continue;
        }
        hmp_print(call, "%s", block_name(l->data));
        print_node(call, l->data);
        if (stats.state == BLOCK_REMOTE_RETRYING) {
            hmp_print(call, "    State:            retrying for %" G_GINT64_FORMAT " ms\n",
                      stats.since_us / 1000);
        } else {
            hmp_print(call, "    State:            connected\n");
        }
        hmp_print(call,
                  "    Bytes:            %" G_GUINT64_FORMAT " served, %" G_GUINT64_FORMAT
                  " fetched, %" G_GUINT64_FORMAT " from the cache file\n"
                  "    Cache:            %" G_GUINT64_FORMAT " hits, %" G_GUINT64_FORMAT " misses\n"
                  "    Fetching:         %" G_GUINT64_FORMAT " bytes/s, %" G_GUINT64_FORMAT " failures\n",
                  stats.served, stats.fetched, stats.from_file, stats.hits, stats.misses, stats.rate,
                  stats.failures);
    }
}
