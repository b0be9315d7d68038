/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The private folder of the sockets of one machine. Several processes use it; whoever ends last, after the
 * emulator, removes it. Any thread.
 */
#ifndef SPINDLE_SYSTEM_FOLDER_H
#define SPINDLE_SYSTEM_FOLDER_H

/* Removes it with the sockets in it; anything else in it stays, and the folder then too. */
void folder_remove(const char *path);

/* What a machine whose processes were killed left in `place`: folders of this user's named FOLDER_PREFIX and
 * the id of a process that is gone, in which no socket takes connections. */
void folder_remove_stale(const char *place);

#define FOLDER_PREFIX "spindle-"

#endif
