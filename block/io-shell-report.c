/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the io-shell prints about data and time.
 */
#include <string.h>

#include "block/io-shell-int.h"

#define USEC 1000000.0

char *io_format_size(double bytes)
{
    static const struct {
        const char *suffix;
        double unit;
    } units[] = {{" EiB", 0x1p60}, {" PiB", 0x1p50}, {" TiB", 0x1p40},
                 {" GiB", 0x1p30}, {" MiB", 0x1p20}, {" KiB", 0x1p10}};
    char *text = NULL;
    const char *suffix = " bytes";
    for (size_t i = 0; i < G_N_ELEMENTS(units) && !text; i++) {
        if (bytes >= units[i].unit) {
            suffix = units[i].suffix;
            text = g_strdup_printf("%.3f", bytes / units[i].unit);
        }
    }
    if (!text) {
        text = g_strdup_printf("%f", bytes);
    }
    char *zeros = strstr(text, ".000");
    if (zeros) {
        *zeros = '\0';
    }
    char *whole = g_strconcat(text, suffix, NULL);
    g_free(text);
    return whole;
}

static char *format_time(gint64 usec, bool machine)
{
    unsigned hundredths = usec % 1000000 / 10000;
    guint64 seconds = usec / 1000000;
    if (machine || seconds >= 60) {
        return g_strdup_printf("%u:%02u:%02u.%02u", (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60),
                               (unsigned)(seconds % 60), hundredths);
    }
    return g_strdup_printf("%02u.%02u sec", (unsigned)seconds, hundredths);
}

void io_report(IoShell *shell, const char *verb, gint64 start, uint64_t offset, uint64_t bytes, bool machine)
{
    gint64 usec = MAX(g_get_monotonic_time() - start, 1);
    double per_second = bytes * USEC / usec, ops = USEC / usec;
    g_autofree char *time = format_time(usec, machine);
    if (machine) {
        io_shell_print(shell, "%" G_GUINT64_FORMAT ",1,%s,%.3f,%.3f\n", bytes, time, per_second, ops);
        return;
    }
    g_autofree char *size = io_format_size(bytes);
    g_autofree char *rate = io_format_size(per_second);
    io_shell_print(shell,
                   "%s %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT " bytes at offset %" G_GUINT64_FORMAT "\n"
                   "%s, 1 ops; %s (%s/sec and %.4f ops/sec)\n",
                   verb, bytes, bytes, offset, size, time, rate, ops);
}

void io_dump(IoShell *shell, const uint8_t *buffer, uint64_t offset, uint64_t bytes)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint64_t at = 0; at < bytes; at += 16) {
        uint64_t n = MIN(16, bytes - at);
        g_string_append_printf(text, "%08" G_GINT64_MODIFIER "x:  ", offset + at);
        for (uint64_t i = 0; i < n; i++) {
            g_string_append_printf(text, "%02x ", buffer[at + i]);
        }
        g_string_append_c(text, ' ');
        for (uint64_t i = 0; i < n; i++) {
            char c = buffer[at + i];
            g_string_append_c(text, g_ascii_isalnum(c) ? c : '.');
        }
        g_string_append_c(text, '\n');
        if (text->len > 65536) {
            shell->print(text->str, false, shell->opaque);
            g_string_truncate(text, 0);
        }
    }
    shell->print(text->str, false, shell->opaque);
}

bool io_verify(IoShell *shell, const uint8_t *buffer, uint8_t pattern, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (buffer[i] != pattern) {
            io_shell_print(shell,
                           "Pattern verification failed at offset %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT
                           " bytes\n",
                           offset, bytes);
            return false;
        }
    }
    return true;
}
