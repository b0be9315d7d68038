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
/* The function answers. */
void vfu_fixture_check_alive(VfuFixture *f);
/* Descriptors that this process has open. */
unsigned vfu_fixture_count_fds(void);

typedef enum {
    VFU_FILE_NONE,
    VFU_FILE_MEMFD, /* 1 MiB, read and write */
    VFU_FILE_MEMFD_READ_ONLY,
    VFU_FILE_EVENTFD,
    VFU_FILE_DIRECTORY,
    VFU_FILE_NULL,
    VFU_FILE_TWO,
} VfuFixtureFile;

/* A descriptor of that kind, the caller's. For NONE and TWO it is the MEMFD's. */
int vfu_fixture_file(VfuFixtureFile file);

/* A test for each row of a table, which has a `name`; its data is the row's number. */
#define VFU_FIXTURE_ADD_ROWS(suite, table, prefix, func)                                                     \
    for (unsigned i = 0; i < G_N_ELEMENTS(table); i++) {                                                     \
        g_autofree char *name = g_strdup_printf("/" suite "/" prefix "/%s", table[i].name);                  \
        g_test_add_data_func(name, GUINT_TO_POINTER(i), func);                                               \
    }

#endif
