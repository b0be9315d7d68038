/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A loop device of its own for a test, with a device node in a folder of the test: a stand-in for a drive
 * whose media come and go, with the kernel's own events. Needs root. Any thread.
 */
#ifndef SPINDLE_TESTS_LIB_LOOP_DEVICE_H
#define SPINDLE_TESTS_LIB_LOOP_DEVICE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct LoopDevice {
    int number;
    char *folder;
    char *path; /* the node */
} LoopDevice;

/* Nothing in it. NULL where there are no loop devices to be had (*ret_why, static). */
LoopDevice *loop_device_new(const char **ret_why);
void loop_device_free(LoopDevice *loop);

/* A file in the loop's folder with `bytes` bytes, each loop_device_byte() of its place; returns its path. */
char *loop_device_make_medium(LoopDevice *loop, const char *name, uint64_t bytes);
uint8_t loop_device_byte(const char *name, uint64_t at);

/* Read-only, so that it may be changed. 0 or -errno. */
int loop_device_insert(LoopDevice *loop, const char *path);
/* Another file of the same size. */
int loop_device_change(LoopDevice *loop, const char *path);
/* After the file's size was changed; nothing is left: no medium. */
int loop_device_resized(LoopDevice *loop);

/* The node goes, and is there again. */
void loop_device_unplug(LoopDevice *loop);
void loop_device_plug(LoopDevice *loop);

#endif
