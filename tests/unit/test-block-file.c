/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=file` on real files: opening, reading, writing, locks.
 */
#include "block/block-int.h"
#include "block/fd-io.h"
#include "tests/unit/block-test.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE   1000077 /* a multiple of nothing */
#define NOBODY 65534

static BlockNode *open_file(const char *path, const char *more)
{
    g_autofree char *options = g_strdup_printf("driver=file,filename=%s%s", path, more);
    return open_node(options);
}

static void test_refuse_missing(void)
{
    assert_refused("driver=file,filename=%s", "Could not open '%s': No such file or directory",
                   "/nonexistent/x.iso");
    assert_refused("driver=host_device,filename=%s", "Could not open '%s': No such file or directory",
                   "/dev/nonexistent");
}

static void test_refuse_no_filename(void)
{
    assert_refused("driver=file", "Parameter 'filename' is missing", "");
    assert_refused("driver=raw,file.driver=file", "Parameter 'file.filename' is missing", "");
    assert_refused("driver=file,filename=", "The 'file' block driver requires a file name", "");
    assert_refused("driver=host_device,filename=", "The 'host_device' block driver requires a file name", "");
}

static void test_refuse_wrong_kind(void)
{
    char *path = make_file("x", 1);
    g_autofree char *directory = g_path_get_dirname(path), *fifo = g_build_filename(directory, "fifo", NULL);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    assert_refused("driver=file,filename=%s", "'file' driver requires '%s' to be a regular file", directory);
    assert_refused("driver=file,filename=%s", "'file' driver requires '%s' to be a regular file", fifo);
    assert_refused("driver=file,filename=%s", "'file' driver requires '%s' to be a regular file",
                   "/dev/null");
    assert_refused("driver=host_device,filename=%s",
                   "'host_device' driver requires '%s' to be a block device", path);
    assert_refused("driver=host_device,filename=%s",
                   "'host_device' driver requires '%s' to be a block device", "/dev/null");
    remove(fifo);
    remove_file(path);
}

static void test_refuse_options(void)
{
    char *path = make_file("x", 1);
    assert_refused("driver=file,filename=%s,aio=zork", "Parameter 'aio' does not accept value 'zork'", path);
    assert_refused("driver=file,filename=%s,locking=zork", "Parameter 'locking' does not accept value 'zork'",
                   path);
    assert_refused("driver=file,filename=%s,zork=1", "Parameter 'zork' is unexpected", path);
    assert_refused("driver=file,filename=%s,aio=native",
                   "aio=native was specified, but it requires cache.direct=on, which was not specified.",
                   path);
    remove_file(path);
}

static void test_accept_options(void)
{
    static const char *const options[] = {
        "",
        ",aio=threads",
        ",aio=io_uring",
        ",aio=native,cache.direct=on",
        ",locking=on",
        ",locking=off",
        ",locking=auto,force-share=on,read-only=on",
        ",discard=unmap,detect-zeroes=unmap",
        ",cache.no-flush=on,cache.direct=off,auto-read-only=on,aio-max-batch=4,drop-cache=off",
        NULL,
    };
    char *path = make_file("xy", 2);
    for (const char *const *o = options; *o; o++) {
        BlockNode *node = open_file(path, *o);
        g_assert_cmpuint(block_info(node)->size, ==, 2);
        g_assert_cmpstr(block_info(node)->filename, ==, path);
        finish(node);
    }
    remove_file(path);
}

/* A file in a directory that everybody can enter, with that mode; and we are nobody. False when we cannot be.
 */
static bool become_nobody(const char *path, mode_t mode)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_assert_cmpint(chmod(path, mode), ==, 0);
    g_assert_cmpint(chmod(directory, 0755), ==, 0);
    return geteuid() != 0 || seteuid(NOBODY) == 0;
}

static void become_root(void)
{
    if (getuid() == 0) {
        g_assert_cmpint(seteuid(0), ==, 0);
    }
}

static void test_refuse_unreadable(void)
{
    char *path = make_file("x", 1);
    g_assert_true(become_nobody(path, 0));
    assert_refused("driver=file,filename=%s", "Could not open '%s': Permission denied", path);
    assert_refused("driver=file,filename=%s,read-only=on", "Could not open '%s': Permission denied", path);
    assert_refused("driver=file,filename=%s,auto-read-only=on", "Could not open '%s': Permission denied",
                   path);
    become_root();
    remove_file(path);
}

static void test_auto_read_only(void)
{
    char *path = make_file("x", 1);
    g_assert_true(become_nobody(path, 0444));
    assert_refused("driver=file,filename=%s", "Could not open '%s': Permission denied", path);
    BlockNode *node = open_file(path, ",auto-read-only=on");
    g_autofree char *raw_options =
        g_strdup_printf("driver=raw,auto-read-only=on,file.driver=file,file.filename=%s", path);
    BlockNode *raw = open_node(raw_options);
    become_root();
    g_assert_true(block_info(node)->read_only);
    g_assert_true(block_info(raw)->read_only);
    g_assert_cmpint(block_pwrite(node, 0, "y", 1, 0), ==, -EROFS);
    g_assert_cmpint(block_pwrite(raw, 0, "y", 1, 0), ==, -EROFS);
    block_unref(raw);
    finish(node);
    remove_file(path);
}

static void test_read_only(void)
{
    char *path = make_file("x", 1);
    BlockNode *node = open_file(path, ",read-only=on,node-name=ro");
    g_assert_true(block_info(node)->read_only);
    g_assert_cmpint(block_pwrite(node, 0, "y", 1, 0), ==, -EROFS);
    g_assert_cmpint(block_write_zeroes(node, 0, 1, 0), ==, -EROFS);
    g_assert_cmpint(block_discard(node, 0, 1), ==, -EROFS);
    g_assert_cmpint(block_flush(node), ==, 0);
    GError *error = NULL;
    g_assert_cmpint(block_resize(node, 5, &error), ==, -EROFS);
    g_assert_cmpstr(error->message, ==, "Block node 'ro' is read-only");
    g_clear_error(&error);
    g_assert_cmpint(block_status(node, 0, 1, &(uint64_t){0}, &(unsigned){0}), ==, 0);
    g_autofree char *message = open_message("driver=raw,file=ro");
    g_assert_cmpstr(message, ==, "Block node 'ro' is read-only");
    finish(node);
    remove_file(path);
}

/* Every kind of place, through the page cache and around it. */
static void test_read(gconstpointer more)
{
    g_autofree uint8_t *data = make_data(SIZE), *buf = g_malloc(SIZE + 4096);
    char *path = make_file(data, SIZE);
    BlockNode *node = open_file(path, more);
    g_assert_cmpuint(block_info(node)->size, ==, SIZE);
    g_assert_cmpint(block_pread(node, 0, buf, SIZE), ==, 0);
    g_assert_true(memcmp(buf, data, SIZE) == 0);
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    for (int i = 0; i < 500; i++) {
        uint64_t offset = g_rand_int_range(rand, 0, SIZE);
        uint64_t bytes = g_rand_int_range(rand, 1, 20000);
        bytes = MIN(bytes, SIZE - offset);
        uint8_t *memory = buf + g_rand_int_range(rand, 0, 600);
        g_assert_cmpint(block_pread(node, offset, memory, bytes), ==, 0);
        g_assert_true(memcmp(memory, data + offset, bytes) == 0);
    }
    g_assert_cmpint(block_pread(node, SIZE - 1, buf, 1), ==, 0);
    g_assert_cmpint(buf[0], ==, data[SIZE - 1]);
    g_assert_cmpint(block_pread(node, SIZE - 1, buf, 2), ==, -EINVAL);
    finish(node);
    remove_file(path);
}

/* Changes a file through the node and looks at it from outside. */
static void test_write(gconstpointer more)
{
    g_autofree uint8_t *data = make_data(SIZE), *noise = make_data(SIZE + 77);
    char *path = make_file(data, SIZE);
    BlockNode *node = open_file(path, more);
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    for (int i = 0; i < 200; i++) {
        uint64_t offset = i % 10 ? (uint64_t)g_rand_int_range(rand, 0, SIZE) : SIZE - 100;
        uint64_t bytes = g_rand_int_range(rand, 1, 20000);
        bytes = MIN(bytes, SIZE - offset);
        const uint8_t *memory = noise + g_rand_int_range(rand, 0, 77);
        if (i % 7 == 0) {
            memset(data + offset, 0, bytes);
            g_assert_cmpint(block_write_zeroes(node, offset, bytes, i & 3), ==, 0);
        } else {
            bytes = MIN(bytes, (uint64_t)(noise + SIZE + 77 - memory));
            memcpy(data + offset, memory, bytes);
            g_assert_cmpint(block_pwrite(node, offset, memory, bytes, i & 1 ? BLOCK_FUA : 0), ==, 0);
        }
    }
    g_assert_cmpint(block_flush(node), ==, 0);
    g_autofree char *content = NULL;
    gsize size;
    g_assert_true(g_file_get_contents(path, &content, &size, NULL));
    g_assert_cmpuint(size, ==, SIZE);
    g_assert_true(memcmp(content, data, SIZE) == 0);
    g_assert_cmpint(block_pread(node, 0, content, SIZE), ==, 0);
    g_assert_true(memcmp(content, data, SIZE) == 0);
    finish(node);
    remove_file(path);
}

/* More pieces than the kernel takes in one call. */
static void test_many_iovecs(void)
{
    enum { PIECES = 3000 };
    g_autofree uint8_t *data = make_data(PIECES * 7), *buf = g_malloc(PIECES * 7);
    char *path = make_file(data, PIECES * 7);
    BlockNode *node = open_file(path, "");
    g_autofree struct iovec *iov = g_new(struct iovec, PIECES);
    for (int i = 0; i < PIECES; i++) {
        iov[i] = (struct iovec){buf + (PIECES - 1 - i) * 7, 7}; /* backwards */
    }
    g_assert_cmpint(block_node_preadv(node, 0, PIECES * 7, iov, PIECES), ==, 0);
    for (int i = 0; i < PIECES; i++) {
        g_assert_cmpmem(iov[i].iov_base, 7, data + i * 7, 7);
    }
    g_assert_cmpint(block_node_pwritev(node, 0, PIECES * 7, iov, PIECES, 0), ==, 0);
    finish(node);
    remove_file(path);
}

/* A file that shrinks while it is open: the missing part is an error, never zeroes; the rest stays readable.
 */
static void test_truncated_under_us(gconstpointer more)
{
    g_autofree uint8_t *data = make_data(SIZE), *buf = g_malloc(SIZE);
    char *path = make_file(data, SIZE);
    BlockNode *node = open_file(path, more);
    g_assert_cmpint(block_pread(node, 0, buf, SIZE), ==, 0);
    g_assert_cmpint(truncate(path, 100000), ==, 0);
    /* Up to the last byte; directly, up to the last whole block. */
    uint64_t end = 100000 / block_info(node)->align * block_info(node)->align;
    g_assert_cmpint(block_pread(node, 90000, buf, end - 90000), ==, 0);
    g_assert_true(memcmp(buf, data + 90000, end - 90000) == 0);
    static const struct {
        uint64_t offset, bytes;
    } missing[] = {{99000, 1001}, {100000, 1}, {100352, 512}, {0, SIZE}, {SIZE - 1, 1}, {98304, 4096}};
    for (guint i = 0; i < G_N_ELEMENTS(missing); i++) {
        struct iovec iov = {buf, missing[i].bytes};
        g_assert_cmpint(block_node_read_now(node, missing[i].offset, missing[i].bytes, &iov, 1), ==, -EAGAIN);
        g_assert_cmpint(block_pread(node, missing[i].offset, buf, missing[i].bytes), ==, -EIO);
    }
    finish(node);
    remove_file(path);
}

static void test_read_now(void)
{
    g_autofree uint8_t *data = make_data(SIZE);
    uint8_t buf[2048];
    struct iovec iov = {buf, sizeof buf};
    char *path = make_file(data, SIZE);
    int fd = open(path, O_RDONLY);
    bool supported = preadv2(fd, &iov, 1, 4096, RWF_NOWAIT) == sizeof buf;
    close(fd);
    BlockNode *node = open_file(path, "");
    if (supported) {
        g_assert_cmpint(block_node_read_now(node, 777, sizeof buf, &iov, 1), ==, 0);
        g_assert_cmpmem(buf, sizeof buf, data + 777, sizeof buf);
    } else {
        g_assert_cmpint(block_node_read_now(node, 777, sizeof buf, &iov, 1), ==, -EAGAIN);
        g_test_message("this file system has no RWF_NOWAIT: only the refusal was tested");
    }
    finish(node);
    remove_file(path);
}

static void test_past_4_gib(void)
{
    const uint64_t at[] = {4294967295u, 4294967296u, 8589934592u - 5, 26843545599u - 4};
    char *path = make_file("", 0);
    g_assert_cmpint(truncate(path, 26843545600), ==, 0);
    BlockNode *node = open_file(path, "");
    g_assert_cmpuint(block_info(node)->size, ==, 26843545600u);
    for (guint i = 0; i < G_N_ELEMENTS(at); i++) {
        uint64_t back = 0;
        g_assert_cmpint(block_pwrite(node, at[i], &at[i], 4, 0), ==, 0);
        g_assert_cmpint(block_pread(node, at[i], &back, 4), ==, 0);
        g_assert_cmpmem(&back, 4, &at[i], 4);
    }
    finish(node);
    remove_file(path);
}

/* Once the kernel has said that it lost something, no later flush may claim otherwise. */
static void test_failed_flush_stays_failed(void)
{
    int pipe_fds[2];
    g_assert_cmpint(pipe(pipe_fds), ==, 0);
    char *path = make_file("x", 1);
    FdFile file;
    fd_file_init(&file, pipe_fds[0]);
    g_assert_cmpint(fd_file_flush(&file), ==, -EINVAL); /* a pipe cannot be flushed */
    int fd = open(path, O_RDWR);
    g_assert_cmpint(dup2(fd, pipe_fds[0]), ==, pipe_fds[0]); /* from now on it can */
    g_assert_cmpint(fd_file_flush(&file), ==, -EINVAL);
    g_assert_cmpint(fd_file_pwritev(&file, 0, 1, &(struct iovec){(char[]){'y'}, 1}, 1, false), ==, 0);
    g_assert_cmpint(fd_file_flush(&file), ==, -EINVAL);
    fd_file_close(&file);
    close(fd);
    close(pipe_fds[1]);
    remove_file(path);
}

/* Any number of readers; one writer, and then no reader that came before may still be told otherwise. */
static void test_locks(void)
{
    char *path = make_file("xyz", 3);
    BlockNode *reader = open_file(path, ",read-only=on"), *writer = open_file(path, "");
    g_autofree char *expected_write =
        g_strdup_printf("Failed to get \"write\" lock\nIs another process using the image [%s]?", path);
    g_autofree char *expected_read = g_strdup_printf(
        "Failed to get shared \"write\" lock\nIs another process using the image [%s]?", path);
    GError *error = NULL;
    g_assert_false(block_claim_write(writer, &error));
    g_assert_cmpstr(error->message, ==, expected_write);
    g_clear_error(&error);
    g_assert_cmpint(block_pwrite(writer, 0, "a", 1, 0), ==, -EBUSY);
    block_unref(reader);
    g_assert_true(block_shutdown(10000)); /* closed by now */
    g_assert_true(block_claim_write(writer, &error));
    g_assert_no_error(error);
    g_assert_cmpint(block_pwrite(writer, 0, "a", 1, 0), ==, 0);
    g_autofree char *options = g_strdup_printf("driver=file,filename=%s,read-only=on", path);
    g_autofree char *message = open_message(options);
    g_assert_cmpstr(message, ==, expected_read);
    BlockNode *shared = open_file(path, ",read-only=on,force-share=on");
    BlockNode *unlocked = open_file(path, ",locking=off");
    g_assert_cmpint(block_pwrite(unlocked, 1, "b", 1, 0), ==, 0);
    block_unref(shared);
    block_unref(unlocked);
    finish(writer);
    finish(open_file(path, ",read-only=on")); /* the locks went with the writer */
    remove_file(path);
}

/* Where the file system has no O_DIRECT: a warning that names the file, and reading works. */
static void test_direct_fallback(void)
{
    if (g_test_subprocess()) {
        BlockNode *node = open_node("driver=file,filename=/proc/version,read-only=on,cache.direct=on");
        g_assert_cmpuint(block_info(node)->align, ==, 1);
        finish(node);
        return;
    }
    int fd = open("/proc/version", O_RDONLY | O_DIRECT);
    if (fd >= 0) {
        close(fd);
        g_test_skip("/proc has O_DIRECT on this kernel");
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*warning: '/proc/version': the file system does not support O_DIRECT*");
}

static void test_direct_alignment(void)
{
    g_autofree uint8_t *data = make_data(SIZE);
    char *path = make_file(data, SIZE);
    int fd = open(path, O_RDONLY | O_DIRECT);
    if (fd < 0) {
        g_test_skip("the file system of the temporary directory has no O_DIRECT");
    } else {
        close(fd);
        BlockNode *node = open_file(path, ",cache.direct=on");
        g_assert_cmpuint(block_info(node)->align, >=, 512);
        g_assert_cmpuint(block_info(node)->align, <=, 4096);
        finish(node);
    }
    remove_file(path);
}

/* Eight threads read the same node. */
typedef struct Reader {
    BlockNode *node;
    const uint8_t *data;
} Reader;

static gpointer reader_run(gpointer opaque)
{
    Reader *reader = opaque;
    g_autofree uint8_t *buf = g_malloc(9000);
    for (uint64_t at = 0; at + 9000 < SIZE; at += 4567) {
        g_assert_cmpint(block_pread(reader->node, at, buf, 9000), ==, 0);
        g_assert_true(memcmp(buf, reader->data + at, 9000) == 0);
    }
    return NULL;
}

static void test_parallel_readers(gconstpointer more)
{
    g_autofree uint8_t *data = make_data(SIZE);
    char *path = make_file(data, SIZE);
    Reader reader = {open_file(path, more), data};
    GThread *threads[8];
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++) {
        threads[i] = g_thread_new("reader", reader_run, &reader);
    }
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++) {
        g_thread_join(threads[i]);
    }
    finish(reader.node);
    remove_file(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/file/refuse/missing", test_refuse_missing);
    g_test_add_func("/block/file/refuse/no-filename", test_refuse_no_filename);
    g_test_add_func("/block/file/refuse/wrong-kind", test_refuse_wrong_kind);
    g_test_add_func("/block/file/refuse/options", test_refuse_options);
    g_test_add_func("/block/file/refuse/unreadable", test_refuse_unreadable);
    g_test_add_func("/block/file/accept-options", test_accept_options);
    g_test_add_func("/block/file/auto-read-only", test_auto_read_only);
    g_test_add_func("/block/file/read-only", test_read_only);
    g_test_add_data_func("/block/file/read/buffered", "", test_read);
    g_test_add_data_func("/block/file/read/direct", ",cache.direct=on", test_read);
    g_test_add_data_func("/block/file/write/buffered", "", test_write);
    g_test_add_data_func("/block/file/write/direct", ",cache.direct=on", test_write);
    g_test_add_data_func("/block/file/write/discard", ",discard=unmap,detect-zeroes=unmap", test_write);
    g_test_add_func("/block/file/many-iovecs", test_many_iovecs);
    g_test_add_data_func("/block/file/truncated-under-us/buffered", "", test_truncated_under_us);
    g_test_add_data_func("/block/file/truncated-under-us/direct", ",cache.direct=on",
                         test_truncated_under_us);
    g_test_add_func("/block/file/read-now", test_read_now);
    g_test_add_func("/block/file/past-4-gib", test_past_4_gib);
    g_test_add_func("/block/file/failed-flush-stays-failed", test_failed_flush_stays_failed);
    g_test_add_func("/block/file/locks", test_locks);
    g_test_add_func("/block/file/direct/fallback", test_direct_fallback);
    g_test_add_func("/block/file/direct/alignment", test_direct_alignment);
    g_test_add_data_func("/block/file/parallel-readers/buffered", "", test_parallel_readers);
    g_test_add_data_func("/block/file/parallel-readers/direct", ",cache.direct=on", test_parallel_readers);
    return g_test_run();
}
