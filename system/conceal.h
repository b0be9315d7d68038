/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Passphrases that came on the command line do not go on to QEMU's, which anyone on the machine can read for
 * as long as the machine runs.
 */
#ifndef SPINDLE_SYSTEM_CONCEAL_H
#define SPINDLE_SYSTEM_CONCEAL_H

#include <glib.h>
#include <stdbool.h>

/* In `args` (of owned strings, NULL at the end allowed): each `-object secret,…,data=TEXT` becomes
 * `…,file=/proc/self/fd/N`, a pipe that holds the text and that this process keeps across exec. What does not
 * parse is left for QEMU to refuse. Loop thread. */
bool conceal_secrets(GPtrArray *args, GError **error);

#endif
