/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-watch.h"
#include "block/host-cdrom-guard.h"
#include "block/host-cdrom-packet.h"
#include "block/host-cdrom-poll.h"
#include "util/log.h"
#include "util/trace.h"
#include "util/uevent.h"
#include <pthread.h>
#include <string.h>

#define LOOK_AGAIN_MS 500 /* while it spins up, or is on its way back */
#define SETTLE_TIMES  6
#define LOOK_TIMES    40                   /* … for so long after it was plugged in */
#define DOUBT_US      (1 * G_USEC_PER_SEC) /* bad sectors come in crowds */
#define CHECK_US      (2 * G_USEC_PER_SEC) /* the guest's questions too */

typedef enum { MOVE_NONE, MOVE_OPEN, MOVE_CLOSE } TrayMove;

typedef enum {
    LOOK_NOT,    /* only carry out what is wanted of the tray */
    LOOK_GLANCE, /* ask for the status, and look well only if that differs */
    LOOK_WELL,
} LookKind;

/* One look, from the loop to the worker and back. */
typedef struct Look {
    CdromDevice *device; /* in: as it is, may be NULL; out: as opened anew, NULL: gone */
    LookKind kind;
    bool arm; /* have the kernel look after the drive */
    TrayMove move;
    bool set_lock, lock;
    bool nothing;     /* out: a glance that saw nothing new */
    int moved;        /* out: what the move came to */
    const char *deaf; /* out, after the first: why the kernel will not tell */
    CdromState state;
    BlockToc *toc;
} Look;

struct CdromWatch {
    gint refs;   /* atomic */
    gint doubts; /* atomic: a loop call for one is under way */
    char *filename;
    bool direct, moves_tray;
    uint32_t align;
    unsigned check_s;

    pthread_mutex_t lock; /* guards these */
    BlockNode *node;      /* NULL: closed */
    CdromDevice *device;
    CdromPoll poll;
    bool locked; /* the door, by us */

    CdromPackets *packets; /* constant */

    /* loop thread */
    UeventListener *listener;
    char devname[64];
    CdromState state; /* as told, or about to be */
    bool stopped, running, armed;
    LookKind again; /* wanted while one ran */
    bool tell;      /* the guest believes that the tray moved: tell it the truth */
    bool opened;    /* our last word to the tray: drives that cannot tell an open tray from an empty one */
    bool lock_wanted, lock_news;
    TrayMove move;
    unsigned looks_left; /* for a device that is gone */
    gint64 looked;
    guint look_timer, check_timer;

    BlockJob job;
    Look look; /* the job's while it runs */
};

static void watch_kick(CdromWatch *watch, LookKind kind);

static CdromWatch *watch_ref(CdromWatch *watch)
{
    g_atomic_int_inc(&watch->refs);
    return watch;
}

static void watch_unref(CdromWatch *watch)
{
    if (g_atomic_int_dec_and_test(&watch->refs)) {
        cdrom_device_unref(watch->device);
        pthread_mutex_destroy(&watch->lock);
        g_free(watch->filename);
        g_free(watch);
    }
}

CdromDevice *cdrom_watch_device(CdromWatch *watch)
{
    pthread_mutex_lock(&watch->lock);
    CdromDevice *device = watch->device ? cdrom_device_ref(watch->device) : NULL;
    pthread_mutex_unlock(&watch->lock);
    return device;
}

/* Worker: what the guest and the operator want of the tray. An unlock comes before, a lock behind a move. */
static void look_command(CdromWatch *watch, Look *look)
{
    const bool unlocks = look->set_lock && !look->lock;
    if (!look->device) {
        return;
    }
    if (unlocks) {
        (void)cdrom_device_lock(look->device, false);
    }
    if (look->move != MOVE_NONE) {
        look->moved = cdrom_device_move_tray(look->device, look->move == MOVE_OPEN);
    }
    if (look->set_lock && look->lock) {
        (void)cdrom_device_lock(look->device, true);
    }
    if (look->set_lock) {
        pthread_mutex_lock(&watch->lock);
        const bool news = watch->locked != look->lock;
        watch->locked = look->lock;
        pthread_mutex_unlock(&watch->lock);
        if (news) {
            (look->lock ? cdrom_guard_add : cdrom_guard_remove)(CDROM_GUARD_DOOR, watch->filename);
        }
    }
}

/* A device that came back is a new one to the kernel. */
static void look_begin_polling(CdromWatch *watch, Look *look)
{
    CdromPoll poll = {0};
    (void)cdrom_poll_begin(&poll, look->device, &look->deaf);
    pthread_mutex_lock(&watch->lock);
    const bool closed = !watch->node;
    if (!closed) {
        cdrom_poll_forget(&watch->poll);
        watch->poll = poll;
    }
    pthread_mutex_unlock(&watch->lock);
    if (closed) {
        cdrom_poll_end(&poll);
    }
}

/* Worker. One change of a disc may be several events to the drive, which gives one at each opening: until
 * there are no more. */
static void look_well(CdromWatch *watch, Look *look)
{
    bool changed = false;
    for (int i = 0; i < SETTLE_TIMES; i++) {
        const uint64_t sequence = look->state.sequence;
        int error;
        g_clear_pointer(&look->device, cdrom_device_unref);
        g_clear_pointer(&look->toc, block_toc_free);
        look->state = (CdromState){.status = CDROM_GONE};
        look->device = cdrom_device_open(watch->filename, watch->direct, watch->align, &error);
        if (look->device) {
            cdrom_device_ask(look->device, &look->state, &look->toc);
        }
        changed |= look->state.changed;
        if (look->state.sequence == sequence && !look->state.changed) {
            break;
        }
    }
    look->state.changed = changed;
}

/* Worker. */
static void look_run(BlockJob *job)
{
    CdromWatch *watch = (CdromWatch *)((char *)job - offsetof(CdromWatch, job));
    Look *look = &watch->look;
    look_command(watch, look);
    look->nothing = look->kind == LOOK_NOT;
    if (look->kind == LOOK_GLANCE && look->device) {
        look->nothing = cdrom_device_status(look->device) == look->state.status;
    }
    if (look->nothing) {
        return;
    }
    look_well(watch, look);
    if (look->arm && look->device) {
        look_begin_polling(watch, look);
    }
}

static gboolean look_again(gpointer opaque)
{
    CdromWatch *watch = opaque;
    watch->look_timer = 0;
    watch_kick(watch, LOOK_WELL);
    return G_SOURCE_REMOVE;
}

static void look_later(CdromWatch *watch, unsigned ms)
{
    if (!watch->look_timer && !watch->stopped) {
        watch->look_timer = g_timeout_add(ms, look_again, watch);
    }
}

static gboolean check_now(gpointer opaque)
{
    watch_kick(opaque, LOOK_WELL);
    return G_SOURCE_CONTINUE;
}

static void check_by_time(CdromWatch *watch, const char *why)
{
    if (!watch->check_timer) {
        watch->check_timer = g_timeout_add_seconds(watch->check_s, check_now, watch);
        log_warn("'%s': %s; looking for a change of the medium every %u s", watch->filename, why,
                 watch->check_s);
    }
}

/* What the node takes over on the loop thread, just before its listeners are told. */
typedef struct News {
    CdromWatch *watch; /* reference */
    CdromDevice *device;
    CdromState state;
    BlockToc *toc;
} News;

static void news_free(gpointer data)
{
    News *news = data;
    cdrom_device_unref_later(news->device);
    block_toc_free(news->toc);
    watch_unref(news->watch);
    g_free(news);
}

static void news_apply(BlockNode *node, void *data)
{
    News *news = data;
    CdromWatch *watch = news->watch;
    pthread_mutex_lock(&watch->lock);
    if (watch->node) { /* else it is closed, and its last event on its way */
        CdromDevice *old = watch->device;
        watch->device = g_steal_pointer(&news->device);
        news->device = old;
    }
    pthread_mutex_unlock(&watch->lock);
    block_toc_free(node->toc);
    node->toc = g_steal_pointer(&news->toc);
    block_node_set_size(node, news->state.size);
    block_node_set_medium(node, news->state.status == CDROM_LOADED);
}

static void watch_post(CdromWatch *watch, BlockEvent event, News *news)
{
    pthread_mutex_lock(&watch->lock); /* the node cannot be freed meanwhile */
    if (watch->node) {
        block_node_post_event(watch->node, event, news ? news_apply : NULL, news, news ? news_free : NULL);
    } else if (news) {
        pthread_mutex_unlock(&watch->lock);
        news_free(news);
        return;
    }
    pthread_mutex_unlock(&watch->lock);
}

static bool is_news(const CdromState *old, const CdromState *now)
{
    if (old->status != now->status || old->size != now->size) {
        return true;
    }
    return now->status == CDROM_LOADED && (now->changed || now->sequence != old->sequence);
}

static void watch_tell(CdromWatch *watch, Look *look)
{
    const bool gone = look->state.status == CDROM_GONE;
    News *news = g_new0(News, 1);
    trace(host_cdrom_state, watch->filename, (int)look->state.status, look->state.size, look->state.sequence);
    *news =
        (News){watch_ref(watch), g_steal_pointer(&look->device), look->state, g_steal_pointer(&look->toc)};
    watch->state = look->state;
    watch->armed &= !gone;
    if (news->device) {
        memcpy(watch->devname, news->device->devname, sizeof watch->devname);
    }
    watch_post(watch, gone ? BLOCK_EVENT_GONE : BLOCK_EVENT_MEDIUM, news);
}

/* The look is over. */
static void look_judge(CdromWatch *watch, Look *look)
{
    CdromState *now = &look->state;
    if (now->status == CDROM_LOADED) {
        watch->opened = false;
    } else if (now->status == CDROM_EMPTY && watch->opened && now->has_tray) {
        now->status = CDROM_OPEN;
    }
    if (now->status == CDROM_SPINNING) {
        look_later(watch, LOOK_AGAIN_MS);
        if (watch->state.status == CDROM_LOADED && now->sequence == watch->state.sequence && !now->changed) {
            return; /* the same disc wakes up; reads wait for it in the kernel */
        }
    }
    if (now->status == CDROM_GONE && watch->looks_left > 0) {
        watch->looks_left--;
        look_later(watch, LOOK_AGAIN_MS);
    }
    if (watch->state.status == CDROM_GONE && now->status != CDROM_GONE) {
        watch->lock_news |= watch->lock_wanted; /* the drive that came back knows nothing of it */
    }
    if (is_news(&watch->state, now)) {
        watch_tell(watch, look);
    } else if (watch->tell) {
        watch_post(watch, BLOCK_EVENT_TRAY, NULL);
    }
    watch->tell = false;
}

static void look_done(BlockJob *job)
{
    CdromWatch *watch = (CdromWatch *)((char *)job - offsetof(CdromWatch, job));
    Look *look = &watch->look;
    block_drive_work_end(BLOCK_DRIVE_LOOK);
    watch->running = false;
    watch->tell |= look->move != MOVE_NONE;
    if (look->move != MOVE_NONE) {
        trace(host_cdrom_move, watch->filename, look->move == MOVE_OPEN, look->moved);
    }
    if (look->move != MOVE_NONE && look->moved == 0) {
        watch->opened = look->move == MOVE_OPEN;
    }
    if (!watch->stopped) {
        watch->armed |= look->arm && look->device;
        if (look->deaf) {
            check_by_time(watch, look->deaf);
        }
        if (!look->nothing && watch->move == MOVE_NONE) {
            look_judge(watch, look);
        }
    }
    cdrom_device_unref_later(g_steal_pointer(&look->device));
    g_clear_pointer(&look->toc, block_toc_free);
    if (watch->again != LOOK_NOT || watch->lock_news || watch->move != MOVE_NONE) {
        watch_kick(watch, watch->again); /* fills watch->look anew */
    }
    watch_unref(watch);
}

static void watch_kick(CdromWatch *watch, LookKind kind)
{
    if (watch->stopped || watch->running) {
        watch->again = MAX(watch->again, kind);
        return;
    }
    watch->running = true;
    watch->again = LOOK_NOT;
    watch->looked = g_get_monotonic_time();
    watch->look = (Look){
        .device = cdrom_watch_device(watch),
        .kind = watch->move != MOVE_NONE ? LOOK_WELL : kind,
        .arm = !watch->armed,
        .move = watch->move,
        .set_lock = watch->lock_news,
        .lock = watch->lock_wanted,
        .state = watch->state,
    };
    watch->move = MOVE_NONE;
    watch->lock_news = false;
    watch->job = (BlockJob){.run = look_run, .done = look_done};
    watch_ref(watch);
    block_drive_work_begin(BLOCK_DRIVE_LOOK);
    block_job_start(&watch->job);
}

/* Loop. */
static void on_uevent(const Uevent *event, void *opaque)
{
    CdromWatch *watch = opaque;
    const bool gone = watch->state.status == CDROM_GONE;
    if (!event) {
        watch_kick(watch, LOOK_WELL);
        return;
    }
    const bool ours = !strcmp(event->devname, watch->devname);
    if (!ours && !(gone && !strcmp(event->action, "add"))) {
        return;
    }
    trace(host_cdrom_event, watch->filename, event->action);
    if (gone) { /* a link to it may come later than the device */
        watch->looks_left = LOOK_TIMES;
    }
    if (uevent_get(event, "DISK_EJECT_REQUEST")) {
        watch_post(watch, BLOCK_EVENT_EJECT_REQUEST, NULL);
    }
    watch_kick(watch, LOOK_WELL);
}

static void watch_start(void *opaque)
{
    CdromWatch *watch = opaque;
    g_autoptr(GError) error = NULL;
    if (!watch->stopped) {
        watch->listener = uevent_listen(on_uevent, watch, &error);
        if (!watch->listener) {
            check_by_time(watch, error->message);
        }
        watch_kick(watch, LOOK_WELL); /* what happened before anybody listened */
    }
    watch_unref(watch);
}

static void packets_doubt(void *opaque)
{
    cdrom_watch_doubt(opaque);
}

static void packets_release(void *opaque)
{
    watch_unref(opaque);
}

CdromWatch *cdrom_watch_new(BlockNode *node, const CdromWatchConfig *config)
{
    CdromWatch *watch = g_new0(CdromWatch, 1);
    watch->refs = 1;
    watch->filename = g_strdup(node->filename);
    watch->direct = config->direct;
    watch->moves_tray = config->moves_tray;
    watch->align = node->info.align;
    watch->check_s = config->check_s;
    watch->device = config->device;
    watch->state = config->state;
    watch->node = node;
    memcpy(watch->devname, config->device->devname, sizeof watch->devname);
    watch->packets = cdrom_packets_new(packets_doubt, watch_ref(watch), packets_release);
    pthread_mutex_init(&watch->lock, NULL);
    block_call_on_loop(watch_start, watch_ref(watch));
    return watch;
}

static void watch_end(void *opaque)
{
    CdromWatch *watch = opaque;
    watch->stopped = true;
    uevent_unlisten(g_steal_pointer(&watch->listener));
    g_clear_handle_id(&watch->look_timer, g_source_remove);
    g_clear_handle_id(&watch->check_timer, g_source_remove);
    g_clear_pointer(&watch->packets, cdrom_packets_unref); /* it has a reference on us */
    watch_unref(watch);
}

void cdrom_watch_stop(CdromWatch *watch)
{
    block_drive_work_begin(BLOCK_DRIVE_CLOSING);
    pthread_mutex_lock(&watch->lock);
    CdromDevice *device = g_steal_pointer(&watch->device);
    CdromPoll poll = watch->poll;
    const bool locked = watch->locked;
    watch->poll = (CdromPoll){0};
    watch->node = NULL;
    pthread_mutex_unlock(&watch->lock);
    cdrom_poll_end(&poll);
    if (locked) { /* the kernel does it only if nobody else has the drive open */
        (void)(device && cdrom_device_lock(device, false));
        cdrom_guard_remove(CDROM_GUARD_DOOR, watch->filename);
    }
    cdrom_device_unref(device);
    block_call_on_loop(watch_end, watch);
    block_drive_work_end(BLOCK_DRIVE_CLOSING);
}

static void doubt(void *opaque)
{
    CdromWatch *watch = opaque;
    const gint64 rest = watch->looked + DOUBT_US - g_get_monotonic_time();
    g_atomic_int_set(&watch->doubts, 0);
    if (rest > 0) {
        look_later(watch, (unsigned)(rest / 1000) + 1);
    } else {
        watch_kick(watch, LOOK_WELL);
    }
    watch_unref(watch);
}

void cdrom_watch_doubt(CdromWatch *watch)
{
    if (g_atomic_int_compare_and_exchange(&watch->doubts, 0, 1)) {
        block_call_on_loop(doubt, watch_ref(watch));
    }
}

BlockTray cdrom_watch_tray(const CdromWatch *watch)
{
    if (!watch->moves_tray || !watch->state.has_tray) {
        return BLOCK_TRAY_NONE;
    }
    return watch->state.status == CDROM_OPEN       ? BLOCK_TRAY_OPEN
           : watch->state.status == CDROM_SPINNING ? BLOCK_TRAY_LOADING
                                                   : BLOCK_TRAY_CLOSED;
}

void cdrom_watch_move_tray(CdromWatch *watch, bool open)
{
    if (cdrom_watch_tray(watch) != BLOCK_TRAY_NONE) {
        watch->move = open ? MOVE_OPEN : MOVE_CLOSE;
        watch_kick(watch, LOOK_WELL);
    }
}

void cdrom_watch_lock(CdromWatch *watch, bool locked)
{
    if (watch->moves_tray && locked != watch->lock_wanted) {
        watch->lock_wanted = locked;
        watch->lock_news = true;
        watch_kick(watch, LOOK_NOT);
    }
}

void cdrom_watch_check(CdromWatch *watch)
{
    if (cdrom_watch_tray(watch) != BLOCK_TRAY_NONE && !watch->running &&
        g_get_monotonic_time() - watch->looked >= CHECK_US) {
        watch_kick(watch, LOOK_GLANCE);
    }
}

uint32_t cdrom_watch_packet_max(CdromWatch *watch)
{
    pthread_mutex_lock(&watch->lock);
    const CdromDevice *device = watch->device;
    const uint32_t max = device && device->is_mmc ? device->max_bytes : 0;
    pthread_mutex_unlock(&watch->lock);
    return max;
}

void cdrom_watch_packet(CdromWatch *watch, BlockPacket *packet)
{
    cdrom_packets_submit(watch->packets, packet, cdrom_watch_device(watch));
}
