/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/device-set.h"
#include "util/error.h"

#define LOOK_MS  2     /* between two looks at what is not ready yet */
#define CD_MS    200   /* for reads of a CD */
#define LIMIT_MS 10000 /* then it is an error */

typedef struct NamedFunction {
    char *name;
    PciDevice *pci;
} NamedFunction;

typedef struct NamedDisk {
    char *name;
    HardDisk *disk;
    BlockNode *node; /* a reference, for the flush */
} NamedDisk;

struct DeviceSet {
    GArray *functions, *disks, *cds; /* NamedFunction, NamedDisk, MmcDrive * */
    guint timer;
    gint64 start;
    DeviceSetSettled done;
    void *opaque;
};

static void function_clear(gpointer data)
{
    g_free(((NamedFunction *)data)->name);
}

static void disk_clear(gpointer data)
{
    NamedDisk *disk = data;

    g_free(disk->name);
    block_unref(disk->node);
}

DeviceSet *device_set_new(void)
{
    DeviceSet *set = g_new0(DeviceSet, 1);

    set->functions = g_array_new(false, false, sizeof(NamedFunction));
    set->disks = g_array_new(false, false, sizeof(NamedDisk));
    set->cds = g_array_new(false, false, sizeof(MmcDrive *));
    g_array_set_clear_func(set->functions, function_clear);
    g_array_set_clear_func(set->disks, disk_clear);
    return set;
}

void device_set_free(DeviceSet *set)
{
    if (set) {
        device_set_settle_cancel(set);
        g_array_unref(set->functions);
        g_array_unref(set->disks);
        g_array_unref(set->cds);
        g_free(set);
    }
}

void device_set_add_function(DeviceSet *set, const char *name, PciDevice *pci)
{
    NamedFunction function = {g_strdup(name), pci};

    g_array_append_val(set->functions, function);
}

void device_set_add_disk(DeviceSet *set, const char *name, HardDisk *disk)
{
    NamedDisk named = {g_strdup(name), disk, block_ref(hard_disk_node(disk))};

    g_array_append_val(set->disks, named);
}

void device_set_add_cd(DeviceSet *set, MmcDrive *mmc)
{
    g_array_append_val(set->cds, mmc);
}

static PciDevice *function_at(const DeviceSet *set, guint i)
{
    return g_array_index(set->functions, NamedFunction, i).pci;
}

void device_set_each_function(DeviceSet *set, void (*call)(const char *name, PciDevice *pci, void *opaque),
                              void *opaque)
{
    for (guint i = 0; i < set->functions->len; i++) {
        call(g_array_index(set->functions, NamedFunction, i).name, function_at(set, i), opaque);
    }
}

/* Settling. */

static bool cds_idle(const DeviceSet *set)
{
    for (guint i = 0; i < set->cds->len; i++) {
        const BlockNode *node = mmc_drive_node(g_array_index(set->cds, MmcDrive *, i));
        if (node && block_active(node)) {
            return false;
        }
    }
    return true;
}

/* What is not ready, in words; NULL: all is. */
static char *find_unsettled(const DeviceSet *set)
{
    for (guint i = 0; i < set->disks->len; i++) {
        const NamedDisk *disk = &g_array_index(set->disks, NamedDisk, i);
        if (!hard_disk_idle(disk->disk)) {
            return g_strdup_printf("Device '%s' still waits for its image", disk->name);
        }
    }
    for (guint i = 0; i < set->cds->len; i++) {
        const MmcDrive *mmc = g_array_index(set->cds, MmcDrive *, i);
        if (!mmc_drive_settled(mmc)) {
            return g_strdup_printf("Device '%s' still waits for the host's drive",
                                   mmc_drive_id(mmc) ? mmc_drive_id(mmc) : "");
        }
    }
    for (guint i = 0; i < set->functions->len; i++) {
        const PciDevice *pci = function_at(set, i);
        if (pci->ops->settled && !pci->ops->settled(pci)) {
            return g_strdup_printf("Controller '%s' still waits for the guest's memory",
                                   g_array_index(set->functions, NamedFunction, i).name);
        }
    }
    return NULL;
}

static gboolean on_look(gpointer data)
{
    DeviceSet *set = data;
    gint64 ms = (g_get_monotonic_time() - set->start) / 1000;
    g_autofree char *unsettled = find_unsettled(set);
    GError *error = NULL;

    if ((unsettled && ms < LIMIT_MS) || (!cds_idle(set) && ms < CD_MS)) {
        return G_SOURCE_CONTINUE;
    }
    if (unsettled) {
        error_set(&error, "%s, after %d seconds", unsettled, LIMIT_MS / 1000);
    }
    set->timer = 0;
    set->done(set, error, set->opaque);
    return G_SOURCE_REMOVE;
}

void device_set_settle(DeviceSet *set, DeviceSetSettled done, void *opaque)
{
    set->done = done;
    set->opaque = opaque;
    set->start = g_get_monotonic_time();
    set->timer = g_timeout_add(LOOK_MS, on_look, set);
}

void device_set_settle_cancel(DeviceSet *set)
{
    g_clear_handle_id(&set->timer, g_source_remove);
}

void device_set_park(DeviceSet *set, bool on)
{
    for (guint i = 0; i < set->functions->len; i++) {
        PciDevice *pci = function_at(set, i);
        if (pci->ops->park) {
            pci->ops->park(pci, on);
        }
    }
}

bool device_set_hold_images(DeviceSet *set, GError **error)
{
    bool ok = block_hold_images(error);

    for (guint i = 0; ok && i < set->disks->len; i++) {
        ok = hard_disk_hold(g_array_index(set->disks, NamedDisk, i).disk, error);
        if (!ok) {
            block_release_images();
        }
    }
    return ok;
}

int device_set_flush(DeviceSet *set)
{
    int ret = 0;

    for (guint i = 0; ret == 0 && i < set->disks->len; i++) {
        ret = block_flush(g_array_index(set->disks, NamedDisk, i).node);
    }
    return ret;
}

/* Saving and loading. */

typedef struct SetImage {
    guint count;
    const StateOps **ops;
    void **images;
} SetImage;

static void set_capture(void *object, void *image)
{
}

static void set_visit(void *object, void *data, StateIo *io)
{
    DeviceSet *set = object;
    SetImage *image = data;

    state_same(io, "the number of controllers", set->functions->len);
    image->count = set->functions->len;
    image->ops = g_new0(const StateOps *, image->count);
    image->images = g_new0(void *, image->count);
    for (guint i = 0; i < image->count; i++) {
        PciDevice *pci = function_at(set, i);

        image->ops[i] = pci->ops->state ? pci->ops->state : &pci_config_state;
        state_same_text(io, "a controller's name", g_array_index(set->functions, NamedFunction, i).name);
        state_child(io, image->ops[i], pci, &image->images[i]);
    }
}

static void set_commit(void *object, void *data)
{
    DeviceSet *set = object;
    SetImage *image = data;

    for (guint i = 0; i < image->count; i++) {
        state_commit(image->ops[i], function_at(set, i), g_steal_pointer(&image->images[i]));
    }
}

static void set_clear(void *data)
{
    SetImage *image = data;

    for (guint i = 0; i < image->count; i++) {
        if (image->images[i]) {
            state_discard(image->ops[i], image->images[i]);
        }
    }
    g_free(image->ops);
    g_free(image->images);
}

const StateOps device_set_state = {
    .name = "devices",
    .version = 1,
    .size = sizeof(SetImage),
    .capture = set_capture,
    .visit = set_visit,
    .commit = set_commit,
    .clear = set_clear,
};
