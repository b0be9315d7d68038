/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Named trace points. util/trace-events.def lists each as TRACE_EVENT(name, "format"); `trace(name, args…)`
 * costs one load and a branch when off. Switched by `-trace [enable=]PATTERN[,file=F]` and `-d
 * trace:PATTERN,…` (`-d help` lists them), glob patterns, several allowed, a leading `-` disables. Any
 * thread; switching: before threads start, or the loop thread.
 */
#ifndef SPINDLE_UTIL_TRACE_H
#define SPINDLE_UTIL_TRACE_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
#define TRACE_EVENT(name, format) TRACE_##name,
#include "util/trace-events.def"
#undef TRACE_EVENT
    TRACE_EVENTS,
} TraceEvent;

extern bool trace_enabled[TRACE_EVENTS + 1];

void trace_print(TraceEvent event, ...);

/* The format is the event's own; arguments are checked against it in trace-check.h's builds only through
 * tests. */
#define trace(name, ...)                                                                                     \
    do {                                                                                                     \
        if (__builtin_expect(trace_enabled[TRACE_##name], 0)) {                                              \
            trace_print(TRACE_##name, ##__VA_ARGS__);                                                        \
        }                                                                                                    \
    } while (0)

/* `-trace` argument. */
bool trace_parse(const char *arg, GError **error);

/* `-d` argument: comma-separated items `trace:PATTERN`; "help" prints the list to stdout and sets *ret_help.
 */
bool trace_parse_debug(const char *arg, bool *ret_help, GError **error);

#endif
