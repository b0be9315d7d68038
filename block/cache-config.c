/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The cache's options, the same under every driver that has one.
 */
#include "block/cache.h"

#define RETRIES_DEFAULT  15
#define DEADLINE_DEFAULT 20 /* seconds: Linux and Windows give a CD 30 and more */
#define DEADLINE_MAX     3600

bool cache_config_read(CacheConfig *config, Options *options, GError **error)
{
    CacheConfig c = {0};
    if (!options_get_size(options, "cache-size", CACHE_SIZE_DEFAULT, &c.cache_size, error) ||
        !options_get_size(options, "readahead", CACHE_AHEAD, &c.readahead, error) ||
        !options_get_bool(options, "prefetch", false, &c.prefetch, error) ||
        !options_get_uint(options, "retries", 0, 1000000, RETRIES_DEFAULT, &c.retries, error) ||
        !options_get_uint(options, "deadline", 1, DEADLINE_MAX, DEADLINE_DEFAULT, &c.deadline_s, error)) {
        return false;
    }
    c.file = g_strdup(options_get(options, "cache-file"));
    *config = c;
    return true;
}

void cache_config_clear(CacheConfig *config)
{
    g_free(config->file);
    config->file = NULL;
}
