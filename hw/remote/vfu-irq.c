/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Interrupts by event descriptors. Semantics as of linux/vfio.h, which QEMU relies on: INTx masks itself when
 * it fires; MASK and UNMASK with DATA_EVENTFD give a descriptor that the client signals to have the action
 * done (KVM's resampling does that).
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <glib-unix.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/cleanup.h"

enum {
    EVENT_MASK,
    EVENT_UNMASK,
};

void vfu_irq_init(VfuConn *conn)
{
    for (unsigned i = 0; i < 2; i++) {
        conn->irqs.trigger_fd[i] = -1;
        conn->irqs.intx_event[i] = -1;
    }
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void irq_unwatch(VfuConn *conn, unsigned event)
{
    if (conn->irqs.source[event]) {
        g_source_destroy(conn->irqs.source[event]);
        g_source_unref(conn->irqs.source[event]);
        conn->irqs.source[event] = NULL;
    }
    close_fd(&conn->irqs.intx_event[event]);
}

void vfu_irq_clear(VfuConn *conn)
{
    for (unsigned i = 0; i < 2; i++) {
        close_fd(&conn->irqs.trigger_fd[i]);
        irq_unwatch(conn, i);
    }
}

void vfu_irq_reset(VfuConn *conn)
{
    conn->irqs.intx_masked = false;
}

bool vfu_irq_signal(VfuConn *conn, unsigned index)
{
    int fd = index <= VFU_IRQ_MSI ? conn->irqs.trigger_fd[index] : -1;
    if (fd < 0) {
        return false;
    }
    /* An eventfd at its limit would block; it has long been signalled then. */
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};
    if (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT)) {
        uint64_t one = 1;
        (void)!write(fd, &one, sizeof one);
    }
    return true;
}

void vfu_irq_update_intx(VfuConn *conn)
{
    VfuServer *server = conn->server;

    if (server->intx_level && !conn->irqs.intx_masked && !pci_intx_disabled(server->device) &&
        vfu_irq_signal(conn, VFU_IRQ_INTX)) {
        conn->irqs.intx_masked = true;
    }
}

static void intx_set_masked(VfuConn *conn, bool masked)
{
    conn->irqs.intx_masked = masked;
    vfu_irq_update_intx(conn);
}

static gboolean intx_event_ready(VfuConn *conn, unsigned event, int fd, GIOCondition condition)
{
    uint64_t count;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    if (poll(&pfd, 1, 0) != 1) {
        return G_SOURCE_CONTINUE;
    }
    if ((condition & (G_IO_ERR | G_IO_NVAL)) || read(fd, &count, sizeof count) != sizeof count) {
        return G_SOURCE_REMOVE; /* not an event descriptor after all */
    }
    intx_set_masked(conn, event == EVENT_MASK);
    return G_SOURCE_CONTINUE;
}

static gboolean intx_mask_ready(int fd, GIOCondition condition, void *opaque)
{
    return intx_event_ready(opaque, EVENT_MASK, fd, condition);
}

static gboolean intx_unmask_ready(int fd, GIOCondition condition, void *opaque)
{
    return intx_event_ready(opaque, EVENT_UNMASK, fd, condition);
}

static unsigned irq_count(const PciDevice *device, unsigned index)
{
    switch (index) {
    case VFU_IRQ_INTX:
        return device->int_pin ? 1 : 0;
    case VFU_IRQ_MSI:
        return device->msi_cap ? 1 : 0;
    default:
        return 0;
    }
}

int vfu_handle_irq_info(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuIrqInfoMsg info;
    memcpy(&info, message->payload, sizeof info);

    /* No error interrupt on a device that is not PCI Express, as in the kernel's VFIO; QEMU warns of a count
     * of 0. */
    if (info.argsz < sizeof info || info.index >= VFU_IRQS || info.index == VFU_IRQ_ERROR) {
        return -EINVAL;
    }
    info.argsz = sizeof info;
    info.count = irq_count(conn->server->device, info.index);
    info.flags =
        VFU_IRQ_INFO_EVENTFD | (info.index == VFU_IRQ_INTX ? VFU_IRQ_INFO_MASKABLE | VFU_IRQ_INFO_AUTOMASKED
                                                           : VFU_IRQ_INFO_NORESIZE);
    memcpy(vfu_out_reserve(reply, sizeof info), &info, sizeof info);
    return 0;
}

/* Event descriptors are anonymous inodes, which have no file type. A pipe or socket could block or raise
 * SIGPIPE. */
static bool is_event_fd(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == 0;
}

static int irq_set_eventfd(VfuConn *conn, const VfuIrqSetMsg *set, VfuMessage *message)
{
    if (message->n_fds != 0 && message->n_fds != set->count) {
        return -EINVAL;
    }
    if (message->n_fds && !is_event_fd(message->fds[0])) {
        return -EINVAL;
    }
    /* One sub-index at most, so count is 1. */
    if (set->flags & VFU_IRQ_ACTION_TRIGGER) {
        close_fd(&conn->irqs.trigger_fd[set->index]);
        if (message->n_fds) {
            conn->irqs.trigger_fd[set->index] = steal_fd(&message->fds[0]);
        }
        if (set->index == VFU_IRQ_INTX) {
            intx_set_masked(conn, false);
        }
        return 0;
    }
    unsigned event = set->flags & VFU_IRQ_ACTION_MASK ? EVENT_MASK : EVENT_UNMASK;
    irq_unwatch(conn, event);
    if (message->n_fds) {
        int fd = steal_fd(&message->fds[0]);
        conn->irqs.intx_event[event] = fd;
        conn->irqs.source[event] = g_unix_fd_source_new(fd, G_IO_IN);
        g_source_set_callback(conn->irqs.source[event],
                              G_SOURCE_FUNC(event == EVENT_MASK ? intx_mask_ready : intx_unmask_ready), conn,
                              NULL);
        g_source_attach(conn->irqs.source[event], conn->server->context);
    }
    return 0;
}

static void irq_act(VfuConn *conn, const VfuIrqSetMsg *set)
{
    if (set->flags & VFU_IRQ_ACTION_TRIGGER) {
        (void)vfu_irq_signal(conn, set->index);
    } else {
        intx_set_masked(conn, set->flags & VFU_IRQ_ACTION_MASK);
    }
}

/* DATA_NONE with a count of 0: the whole index off. */
static int irq_disable(VfuConn *conn, const VfuIrqSetMsg *set)
{
    if (set->start != 0 || !(set->flags & VFU_IRQ_DATA_NONE) || !(set->flags & VFU_IRQ_ACTION_TRIGGER)) {
        return -EINVAL;
    }
    if (set->index <= VFU_IRQ_MSI) {
        close_fd(&conn->irqs.trigger_fd[set->index]);
    }
    if (set->index == VFU_IRQ_INTX) {
        irq_unwatch(conn, EVENT_MASK);
        irq_unwatch(conn, EVENT_UNMASK);
        conn->irqs.intx_masked = false;
    }
    return 0;
}

static bool one_bit(uint32_t v)
{
    return v && !(v & (v - 1));
}

static int irq_set_check(VfuConn *conn, const VfuIrqSetMsg *set, const VfuMessage *message)
{
    uint32_t data = set->flags & (VFU_IRQ_DATA_NONE | VFU_IRQ_DATA_BOOL | VFU_IRQ_DATA_EVENTFD);
    uint32_t action = set->flags & (VFU_IRQ_ACTION_MASK | VFU_IRQ_ACTION_UNMASK | VFU_IRQ_ACTION_TRIGGER);

    if ((set->flags & ~(data | action)) || !one_bit(data) || !one_bit(action) || set->index >= VFU_IRQS ||
        set->argsz < sizeof *set || set->argsz > message->size) {
        return -EINVAL;
    }
    if (data != VFU_IRQ_DATA_EVENTFD && message->n_fds) {
        return -EINVAL;
    }
    if ((uint64_t)set->start + set->count > irq_count(conn->server->device, set->index)) {
        return -EINVAL;
    }
    if (data == VFU_IRQ_DATA_BOOL && set->argsz - sizeof *set < set->count) {
        return -EINVAL;
    }
    /* Only INTx is maskable, and says so. */
    if (action != VFU_IRQ_ACTION_TRIGGER && set->index != VFU_IRQ_INTX) {
        return -EINVAL;
    }
    return 0;
}

int vfu_handle_set_irqs(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuIrqSetMsg set;
    memcpy(&set, message->payload, sizeof set);

    int ret = irq_set_check(conn, &set, message);
    if (ret < 0) {
        return ret;
    }
    if (set.count == 0) {
        return irq_disable(conn, &set);
    }
    if (set.flags & VFU_IRQ_DATA_EVENTFD) {
        return irq_set_eventfd(conn, &set, message);
    }
    if ((set.flags & VFU_IRQ_DATA_NONE) || message->payload[sizeof set]) {
        irq_act(conn, &set);
    }
    return 0;
}
