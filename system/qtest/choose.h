/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Who runs a command line with `-accel qtest`: Spindle's own PC, or QEMU where it names what that PC has not.
 * Pure but for a look at /dev/kvm. Any thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_CHOOSE_H
#define SPINDLE_SYSTEM_QTEST_CHOOSE_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    QTEST_NOT,    /* a machine with a CPU */
    QTEST_OWN,    /* Spindle's own PC */
    QTEST_ENGINE, /* QEMU, with the command line as it is */
} QtestChoice;

/* argv without argv[0]. As with QEMU the accelerators are tried in order: qtest is wanted when it is the
 * first that can be had. With QTEST_ENGINE *ret_reason is what the PC has not ("-device floppy"), the
 * caller's. */
QtestChoice qtest_choose(const char *const *argv, char **ret_reason);

/* Whether the PC knows the option; its name without dashes. */
bool qtest_knows_option(const char *name);

#endif
