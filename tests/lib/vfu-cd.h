/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A CD drive on an AHCI controller behind a vfio-user server in this process, with a file as its disc, and
 * the guest's driver for it, which works through the socket only. Guest memory is VFU_CD_RAM bytes from
 * address 0: command list at 0x1000, received FISes at 0x2000, command table of slot s at 0x100000 + 0x10000
 * * s, data from VFU_CD_DATA on.
 */
#ifndef SPINDLE_TESTS_LIB_VFU_CD_H
#define SPINDLE_TESTS_LIB_VFU_CD_H

#include "hw/ide/ahci.h"
#include "hw/remote/vfio-user.h"
#include "tests/lib/vfu-client.h"

#define VFU_CD_RAM  UINT64_C(0x4000000)
#define VFU_CD_DATA UINT64_C(0x800000)
#define VFU_CD_ABAR UINT64_C(0xfebf0000)
#define VFU_CD_MSI  UINT64_C(0xfee01000)

/* Register offsets in the ABAR, of port 0 from VFU_CD_PX on. */
enum {
    VFU_CD_GHC = 0x04,
    VFU_CD_IS = 0x08,
    VFU_CD_PX_CLB = 0x100,
    VFU_CD_PX_FB = 0x108,
    VFU_CD_PX_IS = 0x110,
    VFU_CD_PX_IE = 0x114,
    VFU_CD_PX_CMD = 0x118,
    VFU_CD_PX_TFD = 0x120,
    VFU_CD_PX_SIG = 0x124,
    VFU_CD_PX_SCTL = 0x12c,
    VFU_CD_PX_SERR = 0x130,
    VFU_CD_PX_CI = 0x138,
};

typedef struct VfuCdPrd {
    uint64_t addr;
    uint32_t bytes; /* 0 ends a list */
} VfuCdPrd;

typedef struct VfuCd VfuCd;
struct VfuCd {
    char *folder, *path, *disc; /* `disc` NULL: an empty drive */
    struct MmcDrive *drive;
    struct HardDisk *disk; /* in the drive's place */
    struct BlockNode *node;
    struct IdeDevice *device;
    AhciController *ahci;
    VfuServer *server;
    VfuClient *client;
};

/* A disc of `bytes` bytes; 0: none. The client has negotiated, mapped memory of `kind`, programmed the
 * function and started the port; the power-on attention is taken. */
VfuCd *vfu_cd_new(VfuDmaMode mode, VfuClientRam kind, uint64_t bytes);
/* A hard disk, not a CD drive, on the node that `options` name; `node` is there for looking at it. */
VfuCd *vfu_cd_new_disk(VfuDmaMode mode, VfuClientRam kind, const char *options);
void vfu_cd_free(VfuCd *cd);
/* The same for a controller that another process serves at `path`: only the client. */
VfuCd *vfu_cd_attach(const char *path);
/* A new client does all that again. */
void vfu_cd_reconnect(VfuCd *cd, VfuClientRam kind);
/* Only what an operating system's driver does to a port that was stopped or reset. */
void vfu_cd_port_up(VfuCd *cd);

/* Byte `at` of the disc. */
uint8_t vfu_cd_byte(uint64_t at);
/* Fails the test unless memory at `addr` holds `bytes` bytes of the disc from `from` on. */
void vfu_cd_check(VfuCd *cd, uint64_t addr, uint64_t from, uint64_t bytes);

uint32_t vfu_cd_read(VfuCd *cd, uint32_t offset);
void vfu_cd_write(VfuCd *cd, uint32_t offset, uint32_t value);

/* Puts a command into a slot and writes PxCI, posted. `fis`: 20 bytes. */
void vfu_cd_issue(VfuCd *cd, unsigned slot, const uint8_t *fis, const uint8_t *packet, const VfuCdPrd *prds);
/* PACKET by DMA (`features` 1) or PIO (0), with this byte count limit. */
void vfu_cd_packet(VfuCd *cd, unsigned slot, const uint8_t *packet, uint8_t features, uint16_t limit,
                   const VfuCdPrd *prds);
/* Waits until the slot is free or the port stands still with an error; returns PxTFD and clears PxIS. */
uint32_t vfu_cd_wait(VfuCd *cd, unsigned slot);
/* ST off and on again, after an error. */
void vfu_cd_recover(VfuCd *cd);
/* A DMA command into one buffer at VFU_CD_DATA; recovers after an error. Returns PxTFD. */
uint32_t vfu_cd_command(VfuCd *cd, const uint8_t *packet, uint32_t bytes);
/* READ(10) in the same way. */
uint32_t vfu_cd_read10(VfuCd *cd, uint32_t lba, uint16_t count);
/* 0xKKAAQQ by REQUEST SENSE. */
uint32_t vfu_cd_sense(VfuCd *cd);
/* The byte count that the controller left in the slot's command header. */
uint32_t vfu_cd_prdbc(VfuCd *cd, unsigned slot);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(VfuCd, vfu_cd_free)

#endif
