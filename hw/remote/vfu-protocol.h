/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The vfio-user protocol on the wire: QEMU's docs/interop/vfio-user, version 0.0. Host byte order. The
 * structures have no padding; copy them in and out of buffers, which need not be aligned. No code, any
 * thread.
 */
#ifndef SPINDLE_HW_REMOTE_VFU_PROTOCOL_H
#define SPINDLE_HW_REMOTE_VFU_PROTOCOL_H

#include <stdint.h>

typedef enum {
    VFU_VERSION = 1,
    VFU_DMA_MAP = 2,
    VFU_DMA_UNMAP = 3,
    VFU_DEVICE_GET_INFO = 4,
    VFU_DEVICE_GET_REGION_INFO = 5,
    VFU_DEVICE_GET_REGION_IO_FDS = 6,
    VFU_DEVICE_GET_IRQ_INFO = 7,
    VFU_DEVICE_SET_IRQS = 8,
    VFU_REGION_READ = 9,
    VFU_REGION_WRITE = 10,
    VFU_DMA_READ = 11,  /* server to client */
    VFU_DMA_WRITE = 12, /* server to client */
    VFU_DEVICE_RESET = 13,
    VFU_REGION_WRITE_MULTI = 15,
    VFU_DEVICE_FEATURE = 16,
    VFU_MIG_DATA_READ = 17,
    VFU_MIG_DATA_WRITE = 18,
} VfuCommand;

#define VFU_TYPE_MASK    0x0fu
#define VFU_TYPE_COMMAND 0x00u
#define VFU_TYPE_REPLY   0x01u
#define VFU_NO_REPLY     0x10u
#define VFU_ERROR        0x20u

typedef struct VfuHeader {
    uint16_t id;
    uint16_t command;
    uint32_t size; /* of the whole message */
    uint32_t flags;
    uint32_t error; /* errno, in a reply with VFU_ERROR */
} VfuHeader;

typedef struct VfuVersionMsg {
    uint16_t major;
    uint16_t minor;
    /* JSON text with its NUL */
} VfuVersionMsg;

#define VFU_DMA_READABLE  0x1u
#define VFU_DMA_WRITABLE  0x2u
#define VFU_DMA_BY_MMAP   0x4u
#define VFU_DMA_BY_FILE   0x8u
#define VFU_DMA_UNMAP_ALL 0x2u /* VFIO_DMA_UNMAP_FLAG_ALL of linux/vfio.h */

typedef struct VfuDmaMapMsg {
    uint32_t argsz;
    uint32_t flags;
    uint64_t offset;
    uint64_t address;
    uint64_t size;
} VfuDmaMapMsg;

typedef struct VfuDmaUnmapMsg {
    uint32_t argsz;
    uint32_t flags;
    uint64_t address;
    uint64_t size;
} VfuDmaUnmapMsg;

#define VFU_DEVICE_FLAG_RESET 0x1u
#define VFU_DEVICE_FLAG_PCI   0x2u

typedef struct VfuDeviceInfoMsg {
    uint32_t argsz;
    uint32_t flags;
    uint32_t num_regions;
    uint32_t num_irqs;
} VfuDeviceInfoMsg;

/* Region indexes of a PCI device: 0 to 5 are the BARs. */
enum {
    VFU_REGION_ROM = 6,
    VFU_REGION_CONFIG = 7,
    VFU_REGION_VGA = 8,
    VFU_REGIONS = 9,
};

#define VFU_REGION_FLAG_READ  0x1u
#define VFU_REGION_FLAG_WRITE 0x2u

typedef struct VfuRegionInfoMsg {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t cap_offset;
    uint64_t size;
    uint64_t offset;
} VfuRegionInfoMsg;

typedef struct VfuRegionIoFdsMsg {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t count;
} VfuRegionIoFdsMsg;

/* Interrupt indexes of a PCI device. */
enum {
    VFU_IRQ_INTX = 0,
    VFU_IRQ_MSI = 1,
    VFU_IRQ_MSIX = 2,
    VFU_IRQ_ERROR = 3,
    VFU_IRQ_REQUEST = 4,
    VFU_IRQS = 5,
};

#define VFU_IRQ_INFO_EVENTFD    0x1u
#define VFU_IRQ_INFO_MASKABLE   0x2u
#define VFU_IRQ_INFO_AUTOMASKED 0x4u
#define VFU_IRQ_INFO_NORESIZE   0x8u

typedef struct VfuIrqInfoMsg {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t count;
} VfuIrqInfoMsg;

#define VFU_IRQ_DATA_NONE      0x01u
#define VFU_IRQ_DATA_BOOL      0x02u
#define VFU_IRQ_DATA_EVENTFD   0x04u
#define VFU_IRQ_ACTION_MASK    0x08u
#define VFU_IRQ_ACTION_UNMASK  0x10u
#define VFU_IRQ_ACTION_TRIGGER 0x20u

typedef struct VfuIrqSetMsg {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t start;
    uint32_t count;
    /* uint8_t bools[count] */
} VfuIrqSetMsg;

typedef struct VfuRegionAccessMsg {
    uint64_t offset;
    uint32_t region;
    uint32_t count;
    /* data */
} VfuRegionAccessMsg;

typedef struct VfuWriteOne {
    uint64_t offset;
    uint32_t region;
    uint32_t count;
    uint8_t data[8];
} VfuWriteOne;

typedef struct VfuWriteMultiMsg {
    uint64_t count;
    /* VfuWriteOne writes[count] */
} VfuWriteMultiMsg;

typedef struct VfuDmaAccessMsg {
    uint64_t address;
    uint64_t count;
    /* data */
} VfuDmaAccessMsg;

#define VFU_DEFAULT_MAX_XFER (1024 * 1024) /* max_data_xfer_size, bytes */
#define VFU_DEFAULT_MAX_MAPS 65535

#endif
