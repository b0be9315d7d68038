/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * -device ahci, ich9-ahci, piix3-ide and piix4-ide: controllers beside the machine's own. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_CONTROLLERS_H
#define SPINDLE_SYSTEM_QTEST_CONTROLLERS_H

#include "system/qtest/machine.h"
#include "util/options.h"

bool controller_is(const char *driver);

/* At `addr=`, or at the first free slot. False with QEMU's message. */
bool controller_add(QtestMachine *machine, PcModel model, Options *options, GError **error);

#endif
