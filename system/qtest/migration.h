/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The machine behind `-accel qtest` moves to another process of its kind: QMP's migrate and what belongs to
 * it, with QEMU's states and events. The machine stands still while it is sent. Loop thread.
 *
 *   out:  setup --connected--> active --all sent--> completed      in:  setup --> active --> completed
 *           |                    |                                         |
 *           '--- failed, cancelled: the machine goes on as before ---      '--> failed: the program ends
 */
#ifndef SPINDLE_SYSTEM_QTEST_MIGRATION_H
#define SPINDLE_SYSTEM_QTEST_MIGRATION_H

#include "monitor/monitor.h"
#include "system/device-set.h"
#include "system/qtest/machine.h"

Migration *migration_new(QtestMachine *machine);
/* What is under way is broken off. NULL is allowed. */
void migration_free(Migration *migration);

/* MonitorMachine's. */
bool migration_start(Migration *migration, const char *uri, GError **error);
bool migration_incoming(Migration *migration, const char *uri, bool exit_on_error, GError **error);
void migration_cancel(Migration *migration);
JsonObject *migration_query(const Migration *migration);
MonitorMigrateSettings *migration_settings(Migration *migration);

/* -incoming: with a URI, or NULL for `defer`. The machine waits; -S: it stands still afterwards. */
bool migration_expect(Migration *migration, const char *uri, bool paused, GError **error);

/* The machine is to run, or not, when it has come. False: it is not about to come. */
bool migration_set_autostart(Migration *migration, bool on);

/* Before the machine runs: takes the images back, lets loaded commands go on. */
bool migration_before_run(Migration *migration, GError **error);
void migration_after_run(Migration *migration);

#endif
