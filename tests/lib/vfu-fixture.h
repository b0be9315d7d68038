/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A fake function behind a vfio-user server in this process, and a client at the other end. Loop thread.
 */
#ifndef SPINDLE_TESTS_LIB_VFU_FIXTURE_H
#define SPINDLE_TESTS_LIB_VFU_FIXTURE_H

#include "hw/remote/vfio-user.h"
#include "tests/lib/fake-pci.h"
#include "tests/lib/vfu-client.h"

typedef struct VfuFixture {
    char *folder, *path;
    FakePci *fake;
    VfuServer *server;
    VfuClient *client;
    unsigned fds; /* open before anything was */
} VfuFixture;

/* Makes all three; the client has negotiated if `negotiate`. */
void vfu_fixture_setup(VfuFixture *f, VfuDmaMode mode, bool negotiate);
/* Frees them and checks that no descriptor is left open and no file behind. */
void vfu_fixture_teardown(VfuFixture *f);
/* Another client in the old one's place, negotiated. */
void vfu_fixture_reconnect(VfuFixture *f);
/* Command register: memory decode and bus mastering. */
void vfu_fixture_enable_bus_master(VfuFixture *f);
/* Programs the MSI capability as a guest does and gives the eventfd. */
void vfu_fixture_enable_msi(VfuFixture *f, uint64_t address, uint16_t data);
/* Descriptors that this process has open. */
unsigned vfu_fixture_count_fds(void);

#endif
