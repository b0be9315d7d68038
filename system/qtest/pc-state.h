/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SPINDLE_SYSTEM_QTEST_PC_STATE_H
#define SPINDLE_SYSTEM_QTEST_PC_STATE_H

#include <string.h>
#include "system/qtest/pc.h"
#include "util/state.h"

/* Object: Pc. */
extern const StateOps pc_state;

#endif
