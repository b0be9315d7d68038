/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive of the host that answers MMC commands: this library's ioctl() takes the place of the C library's in
 * the program and plays the drive, on a loop device for instance, which then holds the user data. Commands
 * come on worker threads.
 */
#ifndef SPINDLE_TESTS_LIB_FAKE_SG_H
#define SPINDLE_TESTS_LIB_FAKE_SG_H

#include <glib.h>
#include <scsi/sg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Written while nothing is under way, but for the atomic ones. */
typedef struct FakeSg {
    bool on;
    int status;           /* CDS_… */
    unsigned max_sectors; /* of 512 bytes: the host's limit of a transfer */
    int eject_errno;
    int (*packet)(int fd, struct sg_io_hdr *io); /* SG_IO: as ioctl() */
    gint ejects, closes, lockdoors, too_large;   /* atomic counts */
    gint gone; /* atomic: errno of everything that is asked; 0: it is there */
} FakeSg;

extern FakeSg fake_sg;

/* Answers of a `packet`; both return 0. A CHECK CONDITION transfers nothing. */
int fake_sg_answer(struct sg_io_hdr *io, const void *data, size_t bytes);
int fake_sg_check(struct sg_io_hdr *io, uint8_t key, uint8_t asc, uint8_t ascq);

#endif
