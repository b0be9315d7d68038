/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drive process's content: secrets, block nodes, controllers with their sockets, drives, monitors. Each
 * machine_add call takes parsed options and reports the first mistake in QEMU's words. Loop thread, before
 * and while the loop runs.
 */
#ifndef SPINDLE_SYSTEM_MACHINE_H
#define SPINDLE_SYSTEM_MACHINE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include "util/options.h"

typedef struct Machine Machine;

/* `quit` is what a monitor's `quit` does. */
Machine *machine_new(void (*quit)(void *opaque), void *opaque);

/* Disconnects clients, removes the sockets, lets go of the nodes. NULL is allowed. */
void machine_free(Machine *machine);

/* Before anything is added: what is made waits for a saved state, parked, and leaves the images to the
 * process that has them still. A disc that cannot be opened leaves its drive empty. */
void machine_expect_state(Machine *machine);

/* `qom-type=secret,id=…` */
bool machine_add_object(Machine *machine, Options *options, GError **error);

/* A block node; opening may block. */
bool machine_add_node(Machine *machine, Options *options, GError **error);

/* `path=…[,id=…][,controller=ahci|piix3-ide|piix4-ide][,dma=…]`; the first controller's id is "ide" by
 * default. */
bool machine_add_controller(Machine *machine, Options *options, GError **error);

/* `driver=ide-cd,…` or `driver=ide-hd,…` */
bool machine_add_device(Machine *machine, Options *options, GError **error);

/* `backend=socket,id=…,path=…|fd=…[,server=on][,wait=off]`, for a monitor that names it. */
bool machine_add_chardev(Machine *machine, Options *options, GError **error);

/* `chardev=ID[,mode=control][,pretty=on]`: a QMP server; `mode=readline`: the human monitor. */
bool machine_add_monitor(Machine *machine, Options *options, GError **error);

/* Lets users connect to the monitors; waits for them where the chardev says so. */
bool machine_open_monitors(Machine *machine, GError **error);

/* The event SHUTDOWN; reason as QEMU's "host-signal". */
void machine_tell_shutdown(Machine *machine, const char *reason);

/* Lets clients connect to the controllers' sockets. *ret_failed: the index, in order of addition, of the
 * controller that cannot. */
bool machine_listen(Machine *machine, unsigned *ret_failed, GError **error);

/* The process of one of the present clients, 0: there is none. */
pid_t machine_client_pid(const Machine *machine);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Machine, machine_free)

#endif
