/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/controllers.h"
#include <string.h>
#include "monitor/objects.h"
#include "util/error.h"

#define FIRST_SLOT 2 /* behind what the machines have themselves */
#define SLOTS      32

/* By what they are called, and what QEMU's messages call them. */
static const struct {
    const char *name, *type;
} drivers[] = {{"ahci", "ich9-ahci"},
               {"ich9-ahci", "ich9-ahci"},
               {"piix3-ide", "piix3-ide"},
               {"piix4-ide", "piix4-ide"}};

static const char *type_of(const char *driver)
{
    for (size_t i = 0; i < G_N_ELEMENTS(drivers); i++) {
        if (!strcmp(drivers[i].name, driver)) {
            return drivers[i].type;
        }
    }
    return NULL;
}

bool controller_is(const char *driver)
{
    return type_of(driver) != NULL;
}

/* "SLOT[.FUNCTION]", both hexadecimal. */
static bool parse_place(const char *text, unsigned *ret_slot, unsigned *ret_function)
{
    char *end;
    guint64 slot = g_ascii_strtoull(text, &end, 16), function = 0;

    if (end == text || !g_ascii_isxdigit(text[0])) {
        return false;
    }
    if (*end == '.') {
        const char *second = end + 1;
        function = g_ascii_strtoull(second, &end, 16);
        if (end == second || !g_ascii_isxdigit(second[0])) {
            return false;
        }
    }
    *ret_slot = (unsigned)MIN(slot, SLOTS);
    *ret_function = (unsigned)MIN(function, 8);
    return !*end && slot < SLOTS && function < 8;
}

/* Those of every PCI device that have no effect here. */
static bool check_idle_props(Options *options, GError **error)
{
    bool on;

    options_get(options, "romfile");
    options_get(options, "rombar");
    return options_get_bool(options, "multifunction", false, &on, error);
}

static bool check(QtestMachine *machine, PcModel model, Options *options, const char *type, GError **error)
{
    const char *id = options_get(options, "id"), *bus = options_get(options, "bus");
    const char *own = model == PC_Q35 ? "pcie.0" : "pci.0";

    if (id && !options_is_id(id)) {
        return error_set(error, "Parameter 'id' expects an identifier");
    }
    if (id && qtest_machine_find_controller(machine, id)) {
        return error_set(error, "Duplicate ID '%s' for device", id);
    }
    if (model == PC_NONE) {
        return error_set(error, bus ? "Bus '%s' not found" : "No 'PCI' bus found for device '%s'",
                         bus ? bus : type);
    }
    if (bus && strcmp(bus, own) != 0) {
        return error_set(error, "Bus '%s' not found", bus);
    }
    if (!check_idle_props(options, error)) {
        return false;
    }
    const char *key = options_first_unused(options);
    return !key || error_set(error, "Property '%s.%s' not found", type, key);
}

bool controller_add(QtestMachine *machine, PcModel model, Options *options, GError **error)
{
    const char *type = type_of(options_get(options, "driver"));
    const char *addr = options_get(options, "addr"), *id = options_get(options, "id");
    unsigned slot = FIRST_SLOT, function = 0;

    if (addr && !parse_place(addr, &slot, &function)) {
        return error_set(error, "Property '%s.addr' doesn't take value '%s'", type, addr);
    }
    if (!check(machine, model, options, type, error)) {
        return false;
    }
    PciBus *bus = pc_pci_bus(machine->pc);
    while (!addr && slot < SLOTS - 1 && pci_bus_find(bus, slot, 0)) {
        slot++;
    }
    AhciController *ahci = strcmp(type, "ich9-ahci") ? NULL : ahci_new(AHCI_PORTS_MAX);
    PciIde *ide = ahci ? NULL : pci_ide_new(strcmp(type, "piix4-ide") ? PCI_IDE_PIIX3 : PCI_IDE_PIIX4, false);
    if (!pci_bus_add(bus, slot, function, ahci ? ahci_pci(ahci) : pci_ide_pci(ide))) {
        pci_ide_free(ide);
        ahci_free(ahci);
        return error_set(error, "PCI: slot %u function %u not available for %s, in use", slot, function,
                         type);
    }
    qtest_machine_add_controller(machine, id ? id : "", ide, ahci);
    return true;
}
