/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Boot order. QEMU describes a device with a bootindex to the firmware by its path. UEFI understands the path
 * of a vfio-user-pci device; SeaBIOS does not: it looks for a drive below the controller, which QEMU does
 * not know of. Worse, a device with a bootindex that it does find goes before all others, whatever -boot
 * says. So for SeaBIOS the bootindexes from the first of Spindle's drives on become letters of -boot order=;
 * devices that come before it keep theirs.
 */
#include "system/plan-int.h"
#include <stdlib.h>
#include <string.h>

#define BOOT_LETTERS_MAX 3 /* what QEMU's pc machines take */

typedef struct BootEntry {
    int bootindex;
    char letter;
    CmdItem *item; /* NULL: Spindle's */
} BootEntry;

static char boot_letter(const char *driver)
{
    static const char *const nics[] = {"e1000", "rtl8139", "i8255", "ne2k", "pcnet", "vmxnet",
                                       "igb",   "tulip",   "i82",   "vfio", NULL};

    if (g_str_has_suffix(driver, "-cd")) {
        return 'd';
    }
    if (!strcmp(driver, "floppy") || !strcmp(driver, "isa-fdc")) {
        return 'a';
    }
    if (strstr(driver, "net")) {
        return 'n';
    }
    for (const char *const *nic = nics; *nic; nic++) {
        if (g_str_has_prefix(driver, *nic)) {
            return 'n';
        }
    }
    return 'c';
}

static int compare_entries(gconstpointer a, gconstpointer b)
{
    return ((const BootEntry *)a)->bootindex - ((const BootEntry *)b)->bootindex;
}

/* Everything with a bootindex, in order. */
static GArray *boot_entries(PlanDraft *draft)
{
    GArray *entries = g_array_new(false, false, sizeof(BootEntry));

    for (guint i = 0; i < draft->drives->len; i++) {
        const PlanDrive *drive = g_ptr_array_index(draft->drives, i);
        BootEntry entry = {drive->bootindex, drive->model == DRIVE_HD ? 'c' : 'd', NULL};
        if (drive->bootindex >= 0) {
            g_array_append_val(entries, entry);
        }
    }
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        const char *text = cmd_item_is(item, "device") && !item->dropped && item->parsed
                               ? options_get(item->parsed, "bootindex")
                               : NULL;
        const char *driver = text ? options_get(item->parsed, "driver") : NULL;
        BootEntry entry = {text ? atoi(text) : -1, driver ? boot_letter(driver) : 'c', item};
        if (entry.bootindex >= 0) {
            g_array_append_val(entries, entry);
        }
    }
    g_array_sort(entries, compare_entries);
    return entries;
}

/* Drives with a bootindex to the lowest of the ports in use, in order: SeaBIOS tries the ports in turn. */
static int compare_drives(gconstpointer a, gconstpointer b)
{
    const PlanDrive *one = *(PlanDrive *const *)a, *two = *(PlanDrive *const *)b;

    return (int)((unsigned)one->bootindex > (unsigned)two->bootindex) -
           (int)((unsigned)one->bootindex < (unsigned)two->bootindex);
}

/* Disks and discs have a letter each, and change ports among themselves only. */
static bool sort_model_ports(PlanController *controller, DriveModel model)
{
    g_autoptr(GPtrArray) drives = g_ptr_array_new();
    bool moved = false;

    for (int i = 0; i < PLAN_PORTS; i++) {
        if (controller->ports[i] && controller->ports[i]->model == model) {
            g_ptr_array_add(drives, controller->ports[i]);
        }
    }
    g_ptr_array_sort(drives, compare_drives);
    for (int i = 0, next = 0; i < PLAN_PORTS; i++) {
        if (controller->ports[i] && controller->ports[i]->model == model) {
            PlanDrive *drive = g_ptr_array_index(drives, next++);
            moved |= controller->ports[i] != drive;
            controller->ports[i] = drive;
        }
    }
    return moved;
}

static void sort_ports(PlanDraft *draft, PlanController *controller)
{
    bool discs = sort_model_ports(controller, DRIVE_CD), disks = sort_model_ports(controller, DRIVE_HD);

    if (discs || disks) {
        plan_note(draft, "drives of controller '%s' changed ports, so that the first to boot comes first",
                  controller->user_id);
    }
}

/* The last value of a key of -boot, or NULL. */
static const char *boot_get(PlanDraft *draft, const char *key)
{
    const char *value = NULL;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "boot") && cmd_item_parse(item, "order") && options_has(item->parsed, key)) {
            value = options_get(item->parsed, key);
        }
    }
    return value;
}

static void append_boot(PlanDraft *draft, const char *letters, bool kept)
{
    g_autoptr(GString) boot = g_string_new(NULL);

    g_string_printf(boot, "order=%s", letters);
    if (boot_get(draft, "once")) {
        g_string_append_printf(boot, ",once=%s", letters);
    }
    if (kept && !g_strcmp0(boot_get(draft, "strict"), "on")) {
        /* Strict means: only what has a bootindex. */
        g_string_append(boot, ",strict=off");
    }
    plan_note(draft, "boot order for SeaBIOS: -boot %s instead of bootindex", boot->str);
    cmd_line_append(draft->line, "boot", boot->str);
}

static void order_seabios(PlanDraft *draft)
{
    g_autoptr(GArray) entries = boot_entries(draft);
    char letters[BOOT_LETTERS_MAX + 1] = "";
    bool ours = false, kept = false;

    for (guint i = 0; i < entries->len; i++) {
        const BootEntry *entry = &g_array_index(entries, BootEntry, i);
        size_t n = strlen(letters);
        ours |= !entry->item;
        kept |= !ours;
        if (!ours) {
            continue;
        }
        if (entry->item) {
            cmd_item_set(entry->item, "bootindex", NULL);
        }
        if (!strchr(letters, entry->letter) && n < BOOT_LETTERS_MAX) {
            letters[n] = entry->letter;
        }
    }
    if (!ours) {
        return;
    }
    for (guint i = 0; i < draft->controllers->len; i++) {
        sort_ports(draft, g_ptr_array_index(draft->controllers, i));
    }
    append_boot(draft, letters, kept);
}

static void move_to_own_controller(PlanDraft *draft, PlanController *controller, int port)
{
    PlanController *own = g_new0(PlanController, 1);
    PlanDrive *drive = controller->ports[port];

    own->user_id = g_strdup_printf("boot%d", drive->bootindex);
    own->model = controller->model;
    own->units = controller->units;
    own->bootindex = drive->bootindex;
    own->ports[0] = drive;
    controller->ports[port] = NULL;
    g_ptr_array_add(draft->controllers, own);
    plan_note(draft, "%s: a controller of its own, for its place in the boot order", drive->origin);
}

/* UEFI tries all drives of the controller that has a bootindex, in an order of its own. So a drive that has
 * one goes to a controller of its own; the first of them can stay where only such drives are. */
static void order_uefi(PlanDraft *draft)
{
    guint n = draft->controllers->len; /* without those that come to be here */

    for (guint i = 0; i < n; i++) {
        PlanController *controller = g_ptr_array_index(draft->controllers, i);
        bool others = false;
        for (int port = 0; port < PLAN_PORTS; port++) {
            others |= controller->ports[port] && controller->ports[port]->bootindex < 0;
        }
        for (int port = 0; port < PLAN_PORTS; port++) {
            PlanDrive *drive = controller->ports[port];
            if (!drive || drive->bootindex < 0) {
                continue;
            }
            if (others || controller->bootindex >= 0) {
                move_to_own_controller(draft, controller, port);
            } else {
                controller->bootindex = drive->bootindex;
            }
        }
    }
}

void plan_order_boot(PlanDraft *draft)
{
    if (draft->uefi) {
        order_uefi(draft);
    } else {
        order_seabios(draft);
    }
}
