/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a word of the human monitor may become. Loop thread.
 */
#ifndef SPINDLE_MONITOR_HMP_COMPLETE_H
#define SPINDLE_MONITOR_HMP_COMPLETE_H

#include "monitor/monitor.h"

/* All words that begin with `prefix` and may stand behind `line`, the words before it; free with
 * g_strfreev(). */
char **hmp_complete(const Monitor *monitor, const char *line, const char *prefix);

/* Parts of it: adds the word if it begins with `prefix` and is not there yet; the files that do. */
void hmp_offer(GPtrArray *words, const char *word, const char *prefix);
void hmp_offer_files(GPtrArray *words, const char *prefix);

#endif
