/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which QEMU to become.
 */
#ifndef SPINDLE_SYSTEM_ENGINE_H
#define SPINDLE_SYSTEM_ENGINE_H

#include <glib.h>
#include <stdbool.h>

/* The path of the emulator: $SPINDLE_QEMU; else the one named when Spindle was built; else, when this program
 * stands in its source tree, what scripts/engine prints; else qemu-system-x86_64 in PATH, which has to have
 * vfio-user-pci if `needs_vfio_user`. The caller's; NULL and an error that says what to do. May run programs.
 */
char *engine_find(bool needs_vfio_user, GError **error);

#endif
