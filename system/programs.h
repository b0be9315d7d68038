/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The programs' entry points. One executable holds both, so that `spindle` finds its drive process wherever
 * it is installed; the name it is called by says which it is.
 */
#ifndef SPINDLE_SYSTEM_PROGRAMS_H
#define SPINDLE_SYSTEM_PROGRAMS_H

int spindle_main(int argc, char **argv);
int spindled_main(int argc, char **argv);

/* What `spindle` starts for its monitors: see system/router.h. */
int router_main(int argc, char **argv);

#endif
