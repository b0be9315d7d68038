/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libslow-drive.so, to be preloaded: makes one loop device or file look like an optical drive of the host to
 * the program, with a status command that takes its time and reads at the speed of a disc.
 *
 *   SLOW_DRIVE=PATH        the device
 *   SLOW_DRIVE_SHARED=FILE the state below, in memory that several processes and a controlling program map
 *
 * The drive: a transfer takes its bytes at `rate`. With `ahead` 0 the disc only turns for a request, one at a
 * time; else the drive goes on by itself up to so many bytes behind the last request and has them at hand. A
 * seek ends that. CDROM_DRIVE_STATUS and its like take `status_us`. What the program asked is counted. With
 * `format_us` it takes MMC commands: READ FORMAT CAPACITIES needs so long.
 *
 * Any thread; the state is guarded by `lock`, which is robust against nothing: no thread dies while it is
 * held.
 */
#undef _FILE_OFFSET_BITS /* both names of each function are to be replaced */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/cdrom.h>
#include <linux/fs.h>
#include <pthread.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Written by the controller, as 64-bit words in this order (tests/lib/slow_drive.py). */
typedef struct Shared {
    int64_t rate, ahead, status_us;                          /* bytes/s, bytes, microseconds */
    int64_t format_us;                                       /* see send_packet(); 0: no commands by SG_IO */
    int64_t status, ioctls, seeks, stats, reads, now, bytes; /* counts: status commands, other ioctls, … */
} Shared;

typedef ssize_t PreadvFn(int, const struct iovec *, int, off64_t);
typedef ssize_t Preadv2Fn(int, const struct iovec *, int, off64_t, int);
typedef ssize_t PreadFn(int, void *, size_t, off64_t);
typedef ssize_t ReadFn(int, void *, size_t);
typedef int IoctlFn(int, unsigned long, ...);

static Shared private_state, *shared = &private_state;
static struct stat drive;
static bool active;

/* What the disc does; under the lock. Seconds and bytes. */
static struct {
    pthread_mutex_t lock;
    double at, since; /* the head was at byte `at` at time `since` */
    double busy;      /* until then it turns for a request */
    off64_t next;     /* where the last request ended */
} disc = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = -1};

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void count(int64_t *counter, int64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("SLOW_DRIVE"), *file = getenv("SLOW_DRIVE_SHARED");
    if (!path || syscall(SYS_newfstatat, AT_FDCWD, path, &drive, 0) != 0) {
        return;
    }
    active = true;
    int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *map = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        shared = map == MAP_FAILED ? shared : map;
        close(fd);
    }
}

static bool is_drive(int fd)
{
    struct stat st;
    const int saved = errno;
    const bool good = active && fd >= 0 && syscall(SYS_fstat, fd, &st) == 0;
    errno = saved;
    if (!good) {
        return false;
    }
    return S_ISBLK(drive.st_mode) ? S_ISBLK(st.st_mode) && st.st_rdev == drive.st_rdev
                                  : st.st_dev == drive.st_dev && st.st_ino == drive.st_ino;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_until(double end)
{
    const struct timespec t = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

/* When the bytes that a request of `bytes` at `offset` wants have passed under the head. */
static double disc_ready(off64_t offset, ssize_t bytes, double begun)
{
    const double rate = (double)shared->rate;
    double end = begun;
    pthread_mutex_lock(&disc.lock);
    if (shared->ahead && offset == disc.next) {
        const double most = (double)disc.next + (double)shared->ahead;
        const double reached = disc.at + rate * (begun - disc.since);
        disc.at = reached < most ? reached : most;
        disc.since = begun;
    } else {
        disc.at = (double)offset;
        disc.since = disc.busy > begun ? disc.busy : begun;
    }
    const double left = ((double)offset + (double)bytes - disc.at) / rate;
    if (left > 0) {
        end = disc.since += left;
        disc.at = (double)(offset + bytes);
        disc.busy = end;
    }
    disc.next = offset + bytes;
    pthread_mutex_unlock(&disc.lock);
    return end;
}

/* Behind a read of the backing file that began at `begun`. */
static ssize_t take_time(off64_t offset, ssize_t bytes, double begun)
{
    count(&shared->reads, 1);
    if (bytes > 0) {
        count(&shared->bytes, bytes);
        if (shared->rate > 0) {
            wait_until(disc_ready(offset, bytes, begun));
        }
    }
    return bytes;
}

ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t offset)
{
    PreadvFn *call = (PreadvFn *)real("preadv64");
    const double begun = now();
    return is_drive(fd) ? take_time(offset, call(fd, iov, n, offset), begun) : call(fd, iov, n, offset);
}

ssize_t preadv(int fd, const struct iovec *iov, int n, off_t offset)
{
    return preadv64(fd, iov, n, offset);
}

/* A disc has nothing at hand at once. */
ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
{
    Preadv2Fn *call = (Preadv2Fn *)real("preadv64v2");
    const double begun = now();
    if (!is_drive(fd)) {
        return call(fd, iov, n, offset, flags);
    }
    if (flags & RWF_NOWAIT) {
        count(&shared->now, 1);
        errno = EAGAIN;
        return -1;
    }
    return take_time(offset, call(fd, iov, n, offset, flags), begun);
}

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
    return preadv64v2(fd, iov, n, offset, flags);
}

ssize_t pread64(int fd, void *buf, size_t bytes, off64_t offset)
{
    PreadFn *call = (PreadFn *)real("pread64");
    const double begun = now();
    return is_drive(fd) ? take_time(offset, call(fd, buf, bytes, offset), begun)
                        : call(fd, buf, bytes, offset);
}

ssize_t pread(int fd, void *buf, size_t bytes, off_t offset)
{
    return pread64(fd, buf, bytes, offset);
}

ssize_t read(int fd, void *buf, size_t bytes)
{
    ReadFn *call = (ReadFn *)real("read");
    if (!is_drive(fd)) {
        return call(fd, buf, bytes);
    }
    const off64_t offset = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    const double begun = now();
    return take_time(offset, call(fd, buf, bytes), begun);
}

off64_t lseek64(int fd, off64_t offset, int whence)
{
    if (is_drive(fd)) {
        count(&shared->seeks, 1);
    }
    return syscall(SYS_lseek, fd, offset, whence);
}

off_t lseek(int fd, off_t offset, int whence)
{
    return lseek64(fd, offset, whence);
}

int fstat(int fd, struct stat *st)
{
    if (is_drive(fd)) {
        count(&shared->stats, 1);
    }
    return (int)syscall(SYS_fstat, fd, st);
}

int fstat64(int fd, struct stat64 *st)
{
    return fstat(fd, (struct stat *)st);
}

static int slow_status(int result)
{
    count(&shared->status, 1);
    if (shared->status_us > 0) {
        wait_until(now() + (double)shared->status_us / 1e6);
    }
    return result;
}

/* INQUIRY, the slow command, and no other. */
static int send_packet(struct sg_io_hdr *io)
{
    static const uint8_t inquiry[36] = {5, 0x80}, refusal[18] = {0x70, 0, 5, [7] = 10, [12] = 0x20};
    const uint8_t opcode = io->cmdp[0];
    io->status = io->host_status = io->driver_status = io->sb_len_wr = 0;
    io->resid = 0;
    if (opcode == 0x12 && io->dxfer_len >= sizeof inquiry) {
        memcpy(io->dxferp, inquiry, sizeof inquiry);
    } else if (opcode == 0x23) {
        wait_until(now() + (double)shared->format_us / 1e6);
    } else {
        memcpy(io->sbp, refusal, sizeof refusal);
        io->sb_len_wr = sizeof refusal;
        io->status = 2;
        io->resid = (int)io->dxfer_len;
    }
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    IoctlFn *call = (IoctlFn *)real("ioctl");
    if (!is_drive(fd)) {
        return call(fd, request, arg);
    }
    switch (request) {
    case CDROM_DRIVE_STATUS:
        return slow_status(CDS_DISC_OK);
    case CDROM_MEDIA_CHANGED:
        return slow_status(0);
    case CDROM_DISC_STATUS:
        return slow_status(CDS_DATA_1);
    }
    count(&shared->ioctls, 1);
    if (request == SG_IO && shared->format_us > 0) {
        return send_packet(arg);
    }
    switch (request) {
    case CDROM_GET_CAPABILITY:
        return CDC_CLOSE_TRAY | CDC_OPEN_TRAY | CDC_LOCK | CDC_MEDIA_CHANGED | CDC_DRIVE_STATUS | CDC_DVD;
    case CDROMEJECT:
    case CDROMCLOSETRAY:
    case CDROM_LOCKDOOR:
        return 0;
    default:
        return call(fd, request, arg);
    }
}
