/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the steps of plan.h share. The draft owns everything; items belong to its command line.
 */
#ifndef SPINDLE_SYSTEM_PLAN_INT_H
#define SPINDLE_SYSTEM_PLAN_INT_H

#include "system/drive-props.h"
#include "system/plan.h"
#include "system/qemu-options.h"

#define PLAN_PORTS 6 /* of one AHCI controller, as ICH9 has */

typedef enum { MACHINE_OTHER, MACHINE_PC, MACHINE_Q35 } MachineFamily;
typedef enum { ACCEL_TCG, ACCEL_KVM, ACCEL_UNSURE } Accel;

/* A drive that Spindle takes over. */
typedef struct PlanDrive {
    DriveModel model;
    CmdItem *source;    /* the -drive or -cdrom that it comes from, or NULL */
    CmdItem *device;    /* the -device, or NULL for if=ide drives */
    Options *props;     /* properties for --device, without driver, bus, unit and bootindex */
    char *node;         /* node name, NULL: empty */
    char *name;         /* of the -drive, by which monitors know it, or NULL */
    char *bus;          /* QEMU's bus as the user wrote it ("ide.1", "sata1.0"), or NULL: wherever */
    int unit;           /* -1: not given */
    int bootindex;      /* -1: none */
    int index;          /* of if=ide drives: QEMU's own numbering, else -1 */
    const char *origin; /* an item's */
} PlanDrive;

typedef struct PlanController {
    char *id;          /* of the vfio-user-pci device */
    char *user_id;     /* QEMU's controller that it stands for: "ide" (built in) or a device's id; the drive
                          process's name for it */
    const char *model; /* value of controller= */
    int units;         /* on a bus */
    CmdItem *replaces; /* the user's device, if all its drives are ours */
    PlanDrive *ports[PLAN_PORTS];
    int bootindex; /* -1: none */
} PlanController;

typedef struct PlanDraft {
    CmdLine *line;
    const PlanHooks *hooks;
    const char *socket_dir;
    MachineFamily machine;
    Accel accel;
    bool uefi;
    bool nodefaults;
    bool snapshot;          /* -snapshot: what QEMU's drives write is thrown away */
    CmdItem *ide_item;      /* -global spindle.controller=, or NULL */
    const char *ide_model;  /* controller= for the machine's own IDE drives */
    bool no_default_cd;     /* something taken keeps QEMU from making an empty CD drive */
    GPtrArray *drives;      /* PlanDrive */
    GPtrArray *controllers; /* PlanController */
    GPtrArray *nodes;       /* PlanArg: --object and --blockdev, in order */
    GPtrArray *notes;       /* char * */
    GPtrArray *sockets;     /* char * */
    GPtrArray *monitors;    /* PlanMonitor */
    GPtrArray *ports;       /* PlanPort */
    unsigned names;         /* counter for generated names */
} PlanDraft;

/* plan-machine.c: what kind of machine this is. False: nothing to serve here. */
bool plan_read_machine(PlanDraft *draft);

/* plan-drives.c: fills drives and nodes, drops the items. */
bool plan_take_drives(PlanDraft *draft, GError **error);

/* plan-nodes.c */

/* The -blockdev with this node name, or NULL. */
CmdItem *plan_find_node(PlanDraft *draft, const char *node_name);
/* The node and all below it are of drivers that Spindle has. */
bool plan_node_is_served(PlanDraft *draft, CmdItem *blockdev);
/* The same for a node's options; `depth` of nodes are above it. */
bool plan_options_are_served(PlanDraft *draft, Options *options, int depth);
/* Adds the node, what is below it and the objects that they need to `nodes`, drops the items. */
void plan_take_node(PlanDraft *draft, CmdItem *blockdev);
/* Keeps those of the dropped nodes that something left in QEMU's line names. */
void plan_keep_shared_nodes(PlanDraft *draft);

/* The object of this id goes to the drive process as well, behind those that it needs. */
void plan_take_object(PlanDraft *draft, const char *id);

void plan_add_node(PlanDraft *draft, Options *node, const char *node_name, const char *origin);

/* plan-source.c */

/* What a -drive, -cdrom or -hda holds. PLAN_SOURCE_OTHER: not for Spindle. */
typedef enum { PLAN_SOURCE_OTHER, PLAN_SOURCE_EMPTY, PLAN_SOURCE_NODE } PlanSource;
/* *ret_node: its block node without node name, read-only for a disc. */
PlanSource plan_drive_source(PlanDraft *draft, CmdItem *item, DriveModel model, Options **ret_node);
/* The properties that -drive options stand for (error policy, write cache), unless props has them. */
void plan_drive_props(CmdItem *item, DriveModel model, Options *props);
/* The node that the device is to use; `item`'s limits come with it. */
void plan_add_drive_node(PlanDraft *draft, CmdItem *item, Options *node, const char *node_name);

/* value of controller= that Spindle has for `name`, or NULL */
const char *plan_controller_model(const char *name);

/* plan-place.c */
bool plan_place_drives(PlanDraft *draft, GError **error);
void plan_attach_controllers(PlanDraft *draft);

/* plan-monitor.c: QMP monitors become the router's. */
void plan_take_monitors(PlanDraft *draft);
/* All secrets go to the drive process. */
void plan_take_secrets(PlanDraft *draft);

/* plan-memory.c */
void plan_share_memory(PlanDraft *draft);

/* plan-boot.c: before the controllers are attached. */
void plan_order_boot(PlanDraft *draft);

PlanArg *plan_arg_new(const char *name, char *arg, const char *origin);
void plan_note(PlanDraft *draft, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The bus name of an IDE or AHCI controller: its id ("ide" for the built-in one) and the number behind the
 * dot. False for any other bus. */
bool plan_parse_bus(PlanDraft *draft, const char *bus, char **ret_controller, int *ret_number);
/* The user's -device ahci, piix3-ide, … with this id, or NULL. *ret_model (NULL is allowed): value of
 * controller= for it. */
CmdItem *plan_find_controller(PlanDraft *draft, const char *id, const char **ret_model);
/* Drives on each bus of a controller of this model. */
int plan_model_units(const char *model);
/* How many buses the built-in controller has, and drives on each. */
int plan_ide_buses(const PlanDraft *draft);
int plan_ide_units(const PlanDraft *draft);

/* Whether any item has this id= (objects, devices, drives). */
bool plan_id_taken(PlanDraft *draft, const char *id);

/* Options as JSON text with every value a string but booleans. */
char *plan_options_to_json(const Options *options);

#endif
