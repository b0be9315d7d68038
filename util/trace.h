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

/* Never called: lets the compiler check a trace point's arguments against its event's format. */
static inline void trace_check(const char *format, ...) G_GNUC_PRINTF(1, 2);
static inline void trace_check(const char *format, ...)
{
    (void)format;
}

#define TRACE_EVENT(name, format) static const char trace_format_##name[] G_GNUC_UNUSED = format;
#include "util/trace-events.def"
#undef TRACE_EVENT

#define trace(name, ...)                                                                                     \
    do {                                                                                                     \
        if (__builtin_expect(__atomic_load_n(&trace_enabled[TRACE_##name], __ATOMIC_RELAXED), 0)) {          \
            trace_print(TRACE_##name, ##__VA_ARGS__);                                                        \
        }                                                                                                    \
        if (0) {                                                                                             \
            trace_check(trace_format_##name, ##__VA_ARGS__);                                                 \
        }                                                                                                    \
    } while (0)

/* The event's name, as written in the .def. */
const char *trace_get_name(TraceEvent event);

/* Whether there is an event of this name. */
bool trace_exists(const char *name);

/* Switches all events that match the glob; returns how many there are. */
unsigned trace_set_enabled(const char *pattern, bool on);

/* True when `arg` is "help" or "?"; the list of events is then on stdout. */
bool trace_print_help(const char *arg);

/* `-trace` argument. */
bool trace_parse(const char *arg, GError **error);

/* `-d` argument: comma-separated items `trace:PATTERN`; "help" prints the list to stdout and sets *ret_help.
 */
bool trace_parse_debug(const char *arg, bool *ret_help, GError **error);

#endif
