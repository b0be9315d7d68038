/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/boot.h"
#include <string.h>
#include "util/error.h"

/* Codes of the CMOS, 0: none; three of them, first one in bits 3:0. */
static bool parse_devices(const char *letters, uint16_t *ret, GError **error)
{
    static const char known[] = "abcdn";
    static const uint8_t codes[] = {1, 1, 2, 3, 4};
    uint32_t seen = 0;

    *ret = 0;
    for (const char *letter = letters; *letter; letter++) {
        const char *found = strchr(known, *letter);
        if (*letter < 'a' || *letter > 'p') {
            return error_set(error, "Invalid boot device '%c'", *letter);
        }
        if (seen & 1u << (*letter - 'a')) {
            return error_set(error, "Boot device '%c' was given twice", *letter);
        }
        seen |= 1u << (*letter - 'a');
        if (letter - letters > 2) {
            return error_set(error, "Too many boot devices for PC");
        }
        if (!found) {
            return error_set(error, "Invalid boot device for PC: '%c'", *letter);
        }
        *ret |= (uint16_t)(codes[found - known] << 4 * (letter - letters));
    }
    return true;
}

/* A number of milliseconds in 16 bits; -1 is one, too. */
static bool read_time(Options *options, const char *key, int64_t *ret, GError **error)
{
    uint64_t number;

    if (!g_strcmp0(options_get(options, key), "-1")) {
        *ret = -1;
        return true;
    }
    if (!options_get_uint(options, key, 0, 0xffff, 0, &number, error)) {
        return false;
    }
    *ret = options_has(options, key) ? (int64_t)number : *ret;
    return true;
}

static bool read_others(Options *options, BoardBoot *boot, GError **error)
{
    int64_t splash = boot->splash_time, reboot = (int32_t)boot->reboot_timeout;
    bool strict;

    if (!options_get_bool(options, "menu", boot->menu, &boot->menu, error) ||
        !options_get_bool(options, "strict", false, &strict, error) ||
        !read_time(options, "splash-time", &splash, error) ||
        !read_time(options, "reboot-timeout", &reboot, error)) {
        return false;
    }
    boot->splash_time = (int32_t)splash;
    boot->reboot_timeout = (uint32_t)reboot;
    options_get(options, "splash");
    return options_check_unused(options, error);
}

static bool read_boot(CmdItem *item, BoardBoot *boot, GError **error)
{
    Options *options = cmd_item_parse(item, "order");
    const char *order = options ? options_get(options, "order") : NULL;
    const char *once = options ? options_get(options, "once") : NULL;

    if (!options) {
        return error_set(error, "Invalid argument");
    }
    if ((order && !parse_devices(order, &boot->order, error)) ||
        (once && !parse_devices(once, &boot->once, error))) {
        return false;
    }
    boot->has_once |= once != NULL;
    return read_others(options, boot, error);
}

bool boot_order_read(CmdLine *line, BoardBoot *ret, GError **error)
{
    *ret = (BoardBoot){.reboot_timeout = UINT32_MAX, .splash_time = -1};
    parse_devices("cad", &ret->order, NULL);
    for (guint i = 0; i < line->items->len; i++) {
        CmdItem *item = cmd_line_item(line, i);
        ret->skip_floppy_check |= cmd_item_is(item, "no-fd-bootchk");
        if (cmd_item_is(item, "boot") && !read_boot(item, ret, error)) {
            g_prefix_error(error, "%s: ", item->origin);
            return false;
        }
    }
    return true;
}
