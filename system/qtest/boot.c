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

static bool check_others(Options *options, GError **error)
{
    static const char *const bools[] = {"menu", "strict"}, *const numbers[] = {"splash-time",
                                                                               "reboot-timeout"};
    uint64_t number;
    bool on;

    for (size_t i = 0; i < G_N_ELEMENTS(bools); i++) {
        if (!options_get_bool(options, bools[i], false, &on, error)) {
            return false;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const char *text = options_get(options, numbers[i]);
        if (g_strcmp0(text, "-1") && !options_get_uint(options, numbers[i], 0, 0xffff, 0, &number, error)) {
            return false;
        }
    }
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
    return check_others(options, error);
}

bool boot_order_read(CmdLine *line, BoardBoot *ret, GError **error)
{
    *ret = (BoardBoot){0};
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
