/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A controller of the drive process with its socket: AHCI with six buses of one unit, or PIIX3 or PIIX4 IDE
 * with two buses of two units (in native mode, as vfio-user has BARs only). Loop thread.
 */
#ifndef SPINDLE_SYSTEM_CONTROLLER_H
#define SPINDLE_SYSTEM_CONTROLLER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include "hw/ide/ide-device.h"
#include "hw/remote/vfio-user.h"

typedef enum { CONTROLLER_AHCI, CONTROLLER_PIIX3_IDE, CONTROLLER_PIIX4_IDE } ControllerModel;

/* Values of controller=, NULL-terminated, in the order of ControllerModel. */
extern const char *const controller_model_names[];

typedef struct Controller Controller;

Controller *controller_new(ControllerModel model, const char *id, const char *path, VfuDmaMode dma);
/* The devices must be off. NULL is allowed. */
void controller_free(Controller *controller);

const char *controller_id(const Controller *controller);
unsigned controller_buses(const Controller *controller);
unsigned controller_units(const Controller *controller); /* a bus */

/* NULL: free, or no such place. */
IdeDevice *controller_device(const Controller *controller, unsigned bus, unsigned unit);
/* The place must be free; the device stays the caller's. */
void controller_attach(Controller *controller, unsigned bus, unsigned unit, IdeDevice *device);
void controller_detach(Controller *controller, unsigned bus, unsigned unit);

/* Whether drives may come and go while a guest runs: on SATA. */
bool controller_hot_plugs(const Controller *controller);

/* Its PCI function; the controller's. */
PciDevice *controller_pci(const Controller *controller);

/* Lets a client connect. */
bool controller_listen(Controller *controller, GError **error);
/* Disconnects it and removes the socket. */
void controller_close(Controller *controller);
/* The client's process, 0: there is none. */
pid_t controller_client_pid(const Controller *controller);

#endif
