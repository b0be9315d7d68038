/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/programs.h"
#include <glib.h>
#include <string.h>

int main(int argc, char **argv)
{
    g_autofree char *name = g_path_get_basename(argc > 0 ? argv[0] : "spindle");

    if (!strcmp(name, "spindle-router")) {
        return router_main(argc, argv);
    }
    return strcmp(name, "spindled") ? spindle_main(argc, argv) : spindled_main(argc, argv);
}
