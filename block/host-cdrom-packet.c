/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-packet.h"
#include "block/block-int.h"
#include "block/host-cdrom-scsi.h"
#include "util/trace.h"
#include <errno.h>
#include <pthread.h>

struct CdromPackets {
    gint refs; /* atomic */
    void (*doubt)(void *opaque);
    void *opaque;
    GDestroyNotify release;
    pthread_mutex_t lock; /* guards these */
    GQueue queued;        /* of BlockPacket */
    bool threaded;
};

CdromPackets *cdrom_packets_new(void (*doubt)(void *opaque), void *opaque, GDestroyNotify release)
{
    CdromPackets *packets = g_new0(CdromPackets, 1);
    packets->refs = 1;
    packets->doubt = doubt;
    packets->opaque = opaque;
    packets->release = release;
    pthread_mutex_init(&packets->lock, NULL);
    g_queue_init(&packets->queued);
    return packets;
}

void cdrom_packets_unref(CdromPackets *packets)
{
    if (packets && g_atomic_int_dec_and_test(&packets->refs)) {
        packets->release(packets->opaque);
        pthread_mutex_destroy(&packets->lock);
        g_free(packets);
    }
}

/* Loop thread: the end of every packet. */
static void packet_done(void *data)
{
    BlockPacket *packet = data;
    CdromPackets *packets = packet->queue;
    CdromDevice *device = packet->device;
    trace(host_cdrom_packet, packet->cdb[0], packet->bytes, packet->result, packet->status, packet->received);
    block_drive_work_end(BLOCK_DRIVE_ASKED);
    packet->done(packet); /* it may be gone */
    cdrom_device_unref_later(device);
    cdrom_packets_unref(packets);
}

/* Not ready, or an attention: another disc, none, or the drive was reset. */
static bool is_doubtful(const BlockPacket *packet)
{
    const unsigned key = cdrom_scsi_sense_key(packet->sense, packet->sense_bytes);
    return packet->result == -ENODEV || packet->result == -ENXIO || packet->result == -EIO ||
           (packet->result == 0 && packet->status == 0x02 && (key == 0x2 || key == 0x6));
}

static void packet_run(CdromPackets *packets, BlockPacket *packet)
{
    CdromDevice *device = packet->device;
    const int fd = packet->write ? cdrom_device_write_fd(device) : device->file.fd;
    if (fd < 0) {
        packet->result = fd;
        return;
    }
    cdrom_scsi_packet(fd, packet);
    if (is_doubtful(packet)) {
        packets->doubt(packets->opaque);
    }
}

static gpointer packets_thread(gpointer opaque)
{
    CdromPackets *packets = opaque;
    GList *link;
    pthread_mutex_lock(&packets->lock);
    while ((link = g_queue_pop_head_link(&packets->queued))) {
        pthread_mutex_unlock(&packets->lock);
        packet_run(packets, link->data);
        block_call_on_loop(packet_done, link->data);
        pthread_mutex_lock(&packets->lock);
    }
    packets->threaded = false;
    pthread_mutex_unlock(&packets->lock);
    cdrom_packets_unref(packets);
    return NULL;
}

/* Under the lock. False: there is no thread to be had. */
static bool have_thread(CdromPackets *packets)
{
    if (!packets->threaded) {
        GThread *thread = g_thread_try_new("host-cdrom", packets_thread, packets, NULL);
        if (!thread) {
            return false;
        }
        g_atomic_int_inc(&packets->refs); /* it waits for the lock */
        g_thread_unref(thread);
        packets->threaded = true;
    }
    return true;
}

static void packet_abandon(BlockPacket *packet)
{
    CdromPackets *packets = packet->queue;
    pthread_mutex_lock(&packets->lock);
    const bool queued = g_queue_find(&packets->queued, packet) != NULL;
    if (queued) {
        g_queue_unlink(&packets->queued, &packet->link);
    }
    pthread_mutex_unlock(&packets->lock);
    if (queued) {
        packet->result = -ECANCELED;
        block_call_on_loop(packet_done, packet);
    }
}

void cdrom_packets_submit(CdromPackets *packets, BlockPacket *packet, CdromDevice *device)
{
    g_atomic_int_inc(&packets->refs);
    packet->abandon = packet_abandon;
    packet->queue = packets;
    packet->device = device;
    packet->link = (GList){.data = packet};
    packet->result = packet->status = packet->sense_bytes = 0;
    packet->received = 0;
    block_drive_work_begin(BLOCK_DRIVE_ASKED);
    if (!device) {
        packet->result = -ENODEV;
        block_call_on_loop(packet_done, packet);
        return;
    }
    pthread_mutex_lock(&packets->lock);
    const bool runs = have_thread(packets);
    if (runs) {
        g_queue_push_tail_link(&packets->queued, &packet->link);
    }
    pthread_mutex_unlock(&packets->lock);
    if (!runs) {
        packet->result = -EAGAIN;
        block_call_on_loop(packet_done, packet);
    }
}
