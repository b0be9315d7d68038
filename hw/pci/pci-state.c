/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/pci/pci-device.h"

#include <string.h>

#define CFG_STATUS  0x06
#define STATUS_INTX 0x08 /* follows the interrupt line */

typedef struct ConfigImage {
    uint8_t config[PCI_CONFIG_SIZE];
} ConfigImage;

static void config_capture(void *object, void *image)
{
    memcpy(((ConfigImage *)image)->config, ((PciDevice *)object)->config, PCI_CONFIG_SIZE);
}

static void config_visit(void *object, void *image, StateIo *io)
{
    const PciDevice *device = object;
    uint8_t *config = ((ConfigImage *)image)->config;

    state_bytes(io, config, PCI_CONFIG_SIZE);
    for (unsigned i = 0; i < PCI_CONFIG_SIZE && !state_failed(io); i++) {
        uint8_t free = device->wmask[i] | device->w1cmask[i] | (i == CFG_STATUS ? STATUS_INTX : 0);
        if ((config[i] ^ device->config[i]) & ~free) {
            state_fail(io, "byte 0x%02x of the PCI configuration is 0x%02x there and 0x%02x here", i,
                       config[i], device->config[i]);
        }
    }
}

static void config_commit(void *object, void *image)
{
    memcpy(((PciDevice *)object)->config, ((ConfigImage *)image)->config, PCI_CONFIG_SIZE);
}

const StateOps pci_config_state = {
    .name = "pci-config",
    .version = 1,
    .size = sizeof(ConfigImage),
    .capture = config_capture,
    .visit = config_visit,
    .commit = config_commit,
};
