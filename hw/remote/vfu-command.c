/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands about the device, its regions and its reset. Sizes, offsets and counts are the client's and are
 * checked here; the function sees only accesses inside its BARs.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <string.h>
#include "util/checked.h"
#include "util/trace.h"

int vfu_handle_device_info(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuDeviceInfoMsg info;
    memcpy(&info, message->payload, sizeof info);

    if (info.argsz < sizeof info) {
        return -EINVAL;
    }
    info = (VfuDeviceInfoMsg){
        .argsz = sizeof info,
        .flags = VFU_DEVICE_FLAG_RESET | VFU_DEVICE_FLAG_PCI,
        .num_regions = VFU_REGIONS,
        .num_irqs = VFU_IRQS,
    };
    memcpy(vfu_out_reserve(reply, sizeof info), &info, sizeof info);
    return 0;
}

/* 0: there is no such region. */
static uint64_t region_size(const PciDevice *device, uint32_t index)
{
    if (index < PCI_BARS) {
        return device->bars[index].size;
    }
    return index == VFU_REGION_CONFIG ? PCI_CONFIG_SIZE : 0;
}

int vfu_handle_region_info(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuRegionInfoMsg request;
    memcpy(&request, message->payload, sizeof request);

    if (request.argsz < sizeof request || request.index >= VFU_REGIONS) {
        return -EINVAL;
    }
    uint64_t size = region_size(conn->server->device, request.index);
    VfuRegionInfoMsg info = {
        .argsz = sizeof info,
        .flags = size ? VFU_REGION_FLAG_READ | VFU_REGION_FLAG_WRITE : 0,
        .index = request.index,
        .size = size,
    };
    memcpy(vfu_out_reserve(reply, sizeof info), &info, sizeof info);
    return 0;
}

/* There are no ioeventfds or ioregionfds to give: no register of an IDE controller is a doorbell. */
int vfu_handle_region_io_fds(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuRegionIoFdsMsg request;
    memcpy(&request, message->payload, sizeof request);

    if (request.argsz < sizeof request || request.flags || request.index >= VFU_REGIONS || request.count) {
        return -EINVAL;
    }
    return -ENOTSUP;
}

/* The largest access of 1, 2, 4 or 8 bytes that an access of `left` bytes at `offset` can begin with. 8 only
 * where that is the whole access, as a client's own 8-byte access is. */
static unsigned access_size(uint64_t offset, uint64_t left, bool whole)
{
    if (whole && (left == 1 || left == 2 || left == 4 || left == 8)) {
        return left;
    }
    if (left >= 4 && offset % 4 == 0) {
        return 4;
    }
    return left >= 2 && offset % 2 == 0 ? 2 : 1;
}

static void value_store(uint8_t *data, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        data[i] = value >> (8 * i);
    }
}

static uint64_t value_load(const uint8_t *data, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)data[i] << (8 * i);
    }
    return value;
}

static unsigned region_access_size(uint32_t region, uint64_t offset, uint64_t left, bool whole)
{
    unsigned size = access_size(offset, left, whole);
    return region == VFU_REGION_CONFIG ? MIN(size, 4) : size;
}

static void region_read(PciDevice *device, uint32_t region, uint64_t offset, uint8_t *data, uint32_t count)
{
    for (uint32_t done = 0, size; done < count; done += size) {
        size = region_access_size(region, offset + done, count - done, done == 0);
        uint64_t value = region == VFU_REGION_CONFIG
                             ? pci_config_read(device, offset + done, size)
                             : device->ops->bar_read(device, region, offset + done, size);
        trace(vfu_region_read, region, (unsigned)(offset + done), size, value);
        value_store(data + done, value, size);
    }
}

static void region_write(VfuConn *conn, uint32_t region, uint64_t offset, const uint8_t *data, uint32_t count)
{
    PciDevice *device = conn->server->device;

    for (uint32_t done = 0, size; done < count; done += size) {
        size = region_access_size(region, offset + done, count - done, done == 0);
        uint64_t value = value_load(data + done, size);
        trace(vfu_region_write, region, (unsigned)(offset + done), size, value);
        if (region == VFU_REGION_CONFIG) {
            pci_config_write(device, offset + done, size, value);
        } else {
            device->ops->bar_write(device, region, offset + done, size, value);
        }
    }
    if (region == VFU_REGION_CONFIG) {
        vfu_irq_update_intx(conn); /* the guest may have enabled it */
    }
}

static int region_check(VfuConn *conn, uint32_t region, uint64_t offset, uint64_t count, uint64_t most)
{
    if (region >= VFU_REGIONS || count == 0 || count > most ||
        !range_inside(offset, count, region_size(conn->server->device, region))) {
        return -EINVAL;
    }
    return 0;
}

int vfu_handle_region_read(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuRegionAccessMsg access;
    memcpy(&access, message->payload, sizeof access);

    int ret = region_check(conn, access.region, access.offset, access.count, conn->max_xfer);
    if (ret < 0) {
        return ret;
    }
    uint8_t *p = vfu_out_reserve(reply, sizeof access + access.count);
    memcpy(p, &access, sizeof access);
    region_read(conn->server->device, access.region, access.offset, p + sizeof access, access.count);
    return 0;
}

int vfu_handle_region_write(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuRegionAccessMsg access;
    memcpy(&access, message->payload, sizeof access);

    if (message->size - sizeof access != access.count) {
        return -EINVAL;
    }
    int ret = region_check(conn, access.region, access.offset, access.count, conn->max_xfer);
    if (ret < 0) {
        return ret;
    }
    region_write(conn, access.region, access.offset, message->payload + sizeof access, access.count);
    memcpy(vfu_out_reserve(reply, sizeof access), &access, sizeof access);
    return 0;
}

int vfu_handle_write_multi(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuWriteMultiMsg multi;
    memcpy(&multi, message->payload, sizeof multi);
    const uint8_t *entries = message->payload + sizeof multi;
    size_t room = (message->size - sizeof multi) / sizeof(VfuWriteOne);
    VfuWriteOne one;

    if (multi.count > room || message->size != sizeof multi + multi.count * sizeof one) {
        return -EINVAL;
    }
    /* All or nothing: a bad entry must not leave half of the writes done. */
    for (uint64_t i = 0; i < multi.count; i++) {
        memcpy(&one, entries + i * sizeof one, sizeof one);
        int ret = region_check(conn, one.region, one.offset, one.count, sizeof one.data);
        if (ret < 0) {
            return ret;
        }
    }
    for (uint64_t i = 0; i < multi.count; i++) {
        memcpy(&one, entries + i * sizeof one, sizeof one);
        region_write(conn, one.region, one.offset, one.data, one.count);
    }
    memcpy(vfu_out_reserve(reply, sizeof multi), &multi, sizeof multi);
    return 0;
}

int vfu_handle_reset(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    vfu_server_reset_device(conn->server);
    return 0;
}
