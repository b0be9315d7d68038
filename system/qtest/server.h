/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The test program's connection (`-qtest`) and its log (`-qtest-log`). A command is carried out only when
 * nothing else is ready to be done, so that a program that polls sees what has completed. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_SERVER_H
#define SPINDLE_SYSTEM_QTEST_SERVER_H

#include "monitor/chardev.h"
#include "system/qtest/pc.h"

typedef struct QtestServer QtestServer;

/* The chardev becomes the server's. `log`: a file's name, "none" or NULL (stderr). */
QtestServer *qtest_server_new(Pc *pc, Chardev *chardev, const char *log, GError **error);

/* Connects. */
bool qtest_server_open(QtestServer *server, GError **error);

void qtest_server_free(QtestServer *server); /* NULL is allowed */

#endif
