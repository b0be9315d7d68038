/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What becomes of a request that failed: `werror=` and `rerror=` of a drive.
 */
#ifndef SPINDLE_HW_BLOCK_ON_ERROR_H
#define SPINDLE_HW_BLOCK_ON_ERROR_H

#include <errno.h>

/* QEMU's error policies; ENOSPC, for writes only, stops when space ran out and reports anything else. */
typedef enum { ON_ERROR_REPORT, ON_ERROR_IGNORE, ON_ERROR_STOP, ON_ERROR_ENOSPC } OnError;

/* What the policy makes of a negative errno: REPORT, IGNORE or STOP. */
static inline OnError on_error_action(OnError policy, int error)
{
    if (policy == ON_ERROR_ENOSPC) {
        return error == -ENOSPC ? ON_ERROR_STOP : ON_ERROR_REPORT;
    }
    return policy;
}

#endif
