/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QEMU's qtest protocol: a command a line, an answer a line (`OK…`, `FAIL…`), and `IRQ raise N`, `IRQ lower
 * N` whenever an intercepted line changes. Values are numbers in C's notation; memory is hexadecimal digits
 * or base64. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_PROTOCOL_H
#define SPINDLE_SYSTEM_QTEST_PROTOCOL_H

#include "system/qtest/pc.h"

#define QTEST_LINE_MAX (64 * 1024 * 1024) /* bytes of a command */

typedef struct QtestProtocol QtestProtocol;

/* `send` gets complete lines. The machine stays the caller's. */
QtestProtocol *qtest_protocol_new(Pc *pc, void (*send)(const char *line, void *opaque), void *opaque);
void qtest_protocol_free(QtestProtocol *protocol); /* NULL is allowed */

/* One command without its line end; the text is changed. The answer has been sent when it returns. */
void qtest_protocol_run(QtestProtocol *protocol, char *line);

/* A new client: nothing is intercepted. */
void qtest_protocol_reset(QtestProtocol *protocol);

#endif
