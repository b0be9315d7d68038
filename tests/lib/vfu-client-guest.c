/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The guest's side of the test client: memory, the DMA service, registers, interrupts.
 */
#include "tests/lib/vfu-client-int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MSI_WINDOW UINT64_C(0xfee00000)
#define MSI_SIZE   UINT64_C(0x100000)

void client_guest_init(VfuClient *client)
{
    client->ram = g_array_new(FALSE, TRUE, sizeof(ClientRam));
    client->dma_log = g_array_new(FALSE, TRUE, sizeof(VfuClientDma));
    client->fail_at = UINT64_MAX;
    for (unsigned i = 0; i < VFU_IRQS; i++) {
        client->irq_fd[i] = -1;
    }
}

static void ram_release(ClientRam *ram)
{
    munmap(ram->memory, ram->size);
    close(ram->fd);
}

void client_guest_clear(VfuClient *client)
{
    for (guint i = 0; i < client->ram->len; i++) {
        ram_release(&g_array_index(client->ram, ClientRam, i));
    }
    for (unsigned i = 0; i < VFU_IRQS; i++) {
        if (client->irq_fd[i] >= 0) {
            close(client->irq_fd[i]);
        }
    }
    g_array_unref(client->ram);
    g_array_unref(client->dma_log);
}

/* Memory */

static ClientRam *ram_find(VfuClient *client, uint64_t address, uint64_t bytes)
{
    for (guint i = 0; i < client->ram->len; i++) {
        ClientRam *ram = &g_array_index(client->ram, ClientRam, i);
        if (address >= ram->address && bytes <= ram->size && address - ram->address <= ram->size - bytes) {
            return ram;
        }
    }
    return NULL;
}

void vfu_client_add_ram(VfuClient *client, uint64_t address, uint64_t size, VfuClientRam kind)
{
    ClientRam ram = {.address = address, .size = size};
    VfuDmaMapMsg map = {
        .argsz = sizeof map, .flags = VFU_DMA_READABLE | VFU_DMA_WRITABLE, .address = address, .size = size};

    ram.fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    g_assert_cmpint(ram.fd, >=, 0);
    g_assert_cmpint(ftruncate(ram.fd, size), ==, 0);
    if (kind == VFU_CLIENT_RAM_SEALED) {
        g_assert_cmpint(fcntl(ram.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), ==, 0);
    }
    ram.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ram.fd, 0);
    g_assert_true(ram.memory != MAP_FAILED);
    g_array_append_val(client->ram, ram);

    uint16_t id = vfu_client_send(client, VFU_DMA_MAP, 0, &map, sizeof map, &ram.fd,
                                  kind == VFU_CLIENT_RAM_NO_FD ? 0 : 1);
    g_assert_cmpint(vfu_client_await(client, id, NULL, 0), ==, 0);
}

int vfu_client_remove_ram(VfuClient *client, uint64_t address)
{
    ClientRam *ram = ram_find(client, address, 1);
    VfuDmaUnmapMsg unmap = {.argsz = sizeof unmap, .address = ram->address, .size = ram->size};
    int ret = vfu_client_call(client, VFU_DMA_UNMAP, &unmap, sizeof unmap, NULL, 0);

    if (ret >= 0) {
        g_assert_cmpint(ret, ==, sizeof unmap);
        ram_release(ram);
        g_array_remove_index(client->ram, ram - (ClientRam *)client->ram->data);
        ret = 0;
    }
    return ret;
}

uint8_t *vfu_client_ram(VfuClient *client, uint64_t address)
{
    ClientRam *ram = ram_find(client, address, 1);
    g_assert_nonnull(ram);
    return ram->memory + (address - ram->address);
}

void vfu_client_truncate_ram(VfuClient *client, uint64_t address, uint64_t size)
{
    g_assert_cmpint(ftruncate(ram_find(client, address, 1)->fd, size), ==, 0);
}

/* The DMA service, as QEMU's: in order, a posted request is answered only if it fails, a write's reply is a
 * bare header. */

static void serve_read(VfuClient *client, const VfuHeader *header, const VfuDmaAccessMsg *access)
{
    ClientRam *ram = ram_find(client, access->address, access->count);

    if (!ram || client->fail_at - access->address < access->count) {
        client_reply(client, header, EFAULT, NULL, 0);
        return;
    }
    g_autofree uint8_t *payload = g_malloc(sizeof *access + access->count);
    VfuDmaAccessMsg answer = {.address = access->address,
                              .count = access->count - MIN(client->shorten, access->count)};
    client->shorten = 0;
    memcpy(payload, &answer, sizeof answer);
    memcpy(payload + sizeof answer, ram->memory + (access->address - ram->address), answer.count);
    if (!(header->flags & VFU_NO_REPLY)) {
        client_reply(client, header, 0, payload, sizeof answer + answer.count);
    }
}

static void serve_write(VfuClient *client, const VfuHeader *header, const VfuDmaAccessMsg *access,
                        const uint8_t *data)
{
    ClientRam *ram = ram_find(client, access->address, access->count);
    bool msi = access->address >= MSI_WINDOW && access->address < MSI_WINDOW + MSI_SIZE;

    if ((!ram && !msi) || client->fail_at - access->address < access->count) {
        client_reply(client, header, EFAULT, NULL, 0);
        return;
    }
    if (ram) {
        memcpy(ram->memory + (access->address - ram->address), data, access->count);
    }
    if (!(header->flags & VFU_NO_REPLY)) {
        client_reply(client, header, 0, NULL, 0);
    }
}

static void serve_request(VfuClient *client, GBytes *message)
{
    gsize size;
    const uint8_t *data = g_bytes_get_data(message, &size);
    VfuHeader header;
    VfuDmaAccessMsg access;

    g_assert_cmpuint(size, >=, sizeof header + sizeof access);
    memcpy(&header, data, sizeof header);
    memcpy(&access, data + sizeof header, sizeof access);
    data += sizeof header + sizeof access;
    size -= sizeof header + sizeof access;
    VfuClientDma entry = {
        .write = header.command == VFU_DMA_WRITE,
        .posted = header.flags & VFU_NO_REPLY,
        .msi = access.address >= MSI_WINDOW && access.address < MSI_WINDOW + MSI_SIZE,
        .address = access.address,
        .bytes = access.count,
    };
    if (entry.write) {
        g_assert_cmpuint(size, ==, access.count);
        memcpy(&entry.data, data, MIN(size, sizeof entry.data));
    } else {
        g_assert_cmpuint(header.command, ==, VFU_DMA_READ);
        g_assert_cmpuint(size, ==, 0);
    }
    g_array_append_val(client->dma_log, entry);
    if (entry.write) {
        serve_write(client, &header, &access, data);
    } else {
        serve_read(client, &header, &access);
    }
}

void client_serve_requests(VfuClient *client)
{
    while (client->requests->len) {
        g_autoptr(GBytes) message = g_ptr_array_steal_index(client->requests, 0);
        serve_request(client, message);
    }
}

const VfuClientDma *vfu_client_dma_log(VfuClient *client, unsigned *ret_count)
{
    *ret_count = client->dma_log->len;
    return (const VfuClientDma *)client->dma_log->data;
}

void vfu_client_clear_dma_log(VfuClient *client)
{
    g_array_set_size(client->dma_log, 0);
}

void vfu_client_hold_dma(VfuClient *client, bool hold)
{
    client->hold_dma = hold;
}

void vfu_client_fail_dma_at(VfuClient *client, uint64_t address)
{
    client->fail_at = address;
}

void vfu_client_shorten_read(VfuClient *client, unsigned bytes)
{
    client->shorten = bytes;
}

/* Registers */

uint64_t vfu_client_read(VfuClient *client, unsigned region, uint64_t offset, unsigned size)
{
    VfuRegionAccessMsg access = {.offset = offset, .region = region, .count = size};
    uint8_t reply[sizeof access + 8] = {0};
    uint64_t value = 0;

    g_assert_cmpint(vfu_client_call(client, VFU_REGION_READ, &access, sizeof access, reply, sizeof reply), ==,
                    sizeof access + size);
    g_assert_cmpmem(reply, sizeof access, &access, sizeof access);
    memcpy(&value, reply + sizeof access, size);
    return GUINT64_FROM_LE(value);
}

static uint16_t send_write(VfuClient *client, uint32_t flags, unsigned region, uint64_t offset, unsigned size,
                           uint64_t value)
{
    VfuRegionAccessMsg access = {.offset = offset, .region = region, .count = size};
    uint8_t message[sizeof access + 8];

    value = GUINT64_TO_LE(value);
    memcpy(message, &access, sizeof access);
    memcpy(message + sizeof access, &value, size);
    return vfu_client_send(client, VFU_REGION_WRITE, flags, message, sizeof access + size, NULL, 0);
}

void vfu_client_write(VfuClient *client, unsigned region, uint64_t offset, unsigned size, uint64_t value)
{
    VfuRegionAccessMsg access;
    uint16_t id = send_write(client, 0, region, offset, size, value);

    g_assert_cmpint(vfu_client_await(client, id, &access, sizeof access), ==, sizeof access);
    g_assert_cmpuint(access.offset, ==, offset);
    g_assert_cmpuint(access.region, ==, region);
    g_assert_cmpuint(access.count, ==, size);
}

void vfu_client_post(VfuClient *client, unsigned region, uint64_t offset, unsigned size, uint64_t value)
{
    send_write(client, VFU_NO_REPLY, region, offset, size, value);
}

/* Interrupts */

int vfu_client_set_irqs(VfuClient *client, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
                        const void *data, size_t size, const int *fds, unsigned n_fds)
{
    VfuIrqSetMsg set = {
        .argsz = sizeof set + size, .flags = flags, .index = index, .start = start, .count = count};
    g_autofree uint8_t *message = g_malloc(set.argsz);

    memcpy(message, &set, sizeof set);
    if (size) {
        memcpy(message + sizeof set, data, size);
    }
    uint16_t id = vfu_client_send(client, VFU_DEVICE_SET_IRQS, 0, message, set.argsz, fds, n_fds);
    return vfu_client_await(client, id, NULL, 0);
}

void vfu_client_enable_irq(VfuClient *client, unsigned index)
{
    if (client->irq_fd[index] < 0) {
        client->irq_fd[index] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    g_assert_cmpint(vfu_client_set_irqs(client, VFU_IRQ_DATA_EVENTFD | VFU_IRQ_ACTION_TRIGGER, index, 0, 1,
                                        NULL, 0, &client->irq_fd[index], 1),
                    ==, 0);
}

uint64_t vfu_client_take_irqs(VfuClient *client, unsigned index)
{
    uint64_t count;
    return read(client->irq_fd[index], &count, sizeof count) == sizeof count ? count : 0;
}

int vfu_client_irq_action(VfuClient *client, unsigned index, uint32_t action)
{
    return vfu_client_set_irqs(client, VFU_IRQ_DATA_NONE | action, index, 0, 1, NULL, 0, NULL, 0);
}
