/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/controller.h"
#include "block/block.h"
#include "hw/ide/ahci.h"
#include "hw/ide/pci-ide.h"

#define PLACES 6 /* of any model */

struct Controller {
    char *id;
    char *path;
    VfuDmaMode dma;
    AhciController *ahci; /* one of these two */
    PciIde *ide;
    IdeDevice *devices[PLACES]; /* bus * units + unit */
    VfuServer *server;          /* NULL until controller_listen() */
};

const char *const controller_model_names[] = {"ahci", "piix3-ide", "piix4-ide", NULL};

Controller *controller_new(ControllerModel model, const char *id, const char *path, VfuDmaMode dma)
{
    Controller *controller = g_new0(Controller, 1);

    controller->id = g_strdup(id);
    controller->path = g_strdup(path);
    controller->dma = dma;
    if (model == CONTROLLER_AHCI) {
        controller->ahci = ahci_new(AHCI_PORTS_MAX);
    } else {
        controller->ide = pci_ide_new(model == CONTROLLER_PIIX3_IDE ? PCI_IDE_PIIX3 : PCI_IDE_PIIX4, true);
    }
    return controller;
}

void controller_free(Controller *controller)
{
    if (controller) {
        controller_close(controller);
        ahci_free(controller->ahci);
        pci_ide_free(controller->ide);
        g_free(controller->id);
        g_free(controller->path);
        g_free(controller);
    }
}

const char *controller_id(const Controller *controller)
{
    return controller->id;
}

unsigned controller_buses(const Controller *controller)
{
    return controller->ahci ? AHCI_PORTS_MAX : 2;
}

unsigned controller_units(const Controller *controller)
{
    return controller->ahci ? 1 : 2;
}

IdeDevice *controller_device(const Controller *controller, unsigned bus, unsigned unit)
{
    unsigned units = controller_units(controller);

    return bus < controller_buses(controller) && unit < units ? controller->devices[bus * units + unit]
                                                              : NULL;
}

void controller_attach(Controller *controller, unsigned bus, unsigned unit, IdeDevice *device)
{
    bool ok = controller->ahci ? ahci_attach(controller->ahci, bus, device)
                               : pci_ide_attach(controller->ide, bus, unit, device);

    g_assert(ok);
    controller->devices[bus * controller_units(controller) + unit] = device;
}

void controller_detach(Controller *controller, unsigned bus, unsigned unit)
{
    if (controller->ahci) {
        ahci_detach(controller->ahci, bus);
    } else {
        pci_ide_detach(controller->ide, bus, unit);
    }
    controller->devices[bus * controller_units(controller) + unit] = NULL;
}

bool controller_hot_plugs(const Controller *controller)
{
    return controller->ahci;
}

PciDevice *controller_pci(const Controller *controller)
{
    return controller->ahci ? ahci_pci(controller->ahci) : pci_ide_pci(controller->ide);
}

bool controller_listen(Controller *controller, GError **error)
{
    controller->server = vfu_server_new(controller_pci(controller), controller->path, controller->dma, error);
    if (!controller->server) {
        return false;
    }
    vfu_server_set_deliver(controller->server, block_deliver_ready);
    return true;
}

void controller_close(Controller *controller)
{
    g_clear_pointer(&controller->server, vfu_server_free);
}

pid_t controller_client_pid(const Controller *controller)
{
    return controller->server ? vfu_server_client_pid(controller->server) : 0;
}
