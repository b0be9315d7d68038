/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/block-int.h"
#include "block/toc.h"
#include <string.h>

void block_toc_free(BlockToc *toc)
{
    if (toc) {
        g_clear_pointer(&toc->cd_text, g_bytes_unref);
        g_free(toc);
    }
}

/* Layers that change no byte's place, as long as the sizes agree too. */
static bool passes_through(const BlockNode *node)
{
    static const char *const names[] = {"blkdebug", "fault", "fault-serial", "raw", "throttle", NULL};
    return node->child && node->child->info.size == node->info.size &&
           g_strv_contains(names, node->driver->name);
}

const BlockToc *block_toc(const BlockNode *node)
{
    while (!node->toc && passes_through(node)) {
        node = node->child;
    }
    return node->toc;
}
