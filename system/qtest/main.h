/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program `spindle` with `-accel qtest`.
 */
#ifndef SPINDLE_SYSTEM_QTEST_MAIN_H
#define SPINDLE_SYSTEM_QTEST_MAIN_H

/* Runs the machine until it is told to end; the exit status. */
int qtest_main(int argc, char **argv);

#endif
