/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/drive-options.h"
#include <string.h>
#include "util/error.h"

static const struct {
    const char *name;
    DriveOptionKind kind;
    bool has_arg;
} option_table[] = {
    {"blockdev", DRIVE_OPTION_BLOCKDEV, true},
    {"chardev", DRIVE_OPTION_CHARDEV, true},
    {"daemonize", DRIVE_OPTION_DAEMONIZE, false},
    {"d", DRIVE_OPTION_DEBUG, true},
    {"D", DRIVE_OPTION_DEBUG_FILE, true},
    {"device", DRIVE_OPTION_DEVICE, true},
    {"help", DRIVE_OPTION_HELP, false},
    {"h", DRIVE_OPTION_HELP, false},
    {"incoming", DRIVE_OPTION_INCOMING, false},
    {"lifeline", DRIVE_OPTION_LIFELINE, true},
    {"monitor", DRIVE_OPTION_MONITOR, true},
    {"object", DRIVE_OPTION_OBJECT, true},
    {"pidfile", DRIVE_OPTION_PIDFILE, true},
    {"sandbox", DRIVE_OPTION_SANDBOX, true},
    {"run-with", DRIVE_OPTION_RUN_WITH, true},
    {"trace", DRIVE_OPTION_TRACE, true},
    {"T", DRIVE_OPTION_TRACE, true},
    {"version", DRIVE_OPTION_VERSION, false},
    {"V", DRIVE_OPTION_VERSION, false},
    {"vfio-user", DRIVE_OPTION_VFIO_USER, true},
};

static const char help_text[] =
    "Usage: spindled [options]\n"
    "CD/DVD drives and hard disks in a process of their own, for virtual machines that attach them over "
    "vfio-user\n"
    "\n"
    "  -h, --help             display this help and exit\n"
    "  -T, --trace [[enable=]<pattern>][,file=<file>]\n"
    "                         specify tracing options\n"
    "  -V, --version          output version information and exit\n"
    "\n"
    "  --blockdev [driver=]<driver>[,node-name=<N>][,discard=ignore|unmap]\n"
    "             [,cache.direct=on|off][,cache.no-flush=on|off]\n"
    "             [,read-only=on|off][,auto-read-only=on|off]\n"
    "             [,force-share=on|off][,detect-zeroes=on|off|unmap]\n"
    "             [,driver specific parameters...]\n"
    "                         configure a block backend\n"
    "\n"
    "  --chardev socket,id=<id>,path=<file>|fd=<fd>|host=<host>,port=<port>\n"
    "            [,server=on|off][,wait=on|off]\n"
    "                         a connection for --monitor. server=on: listens there, for one\n"
    "                         client at a time; wait=off: does not wait for the first one\n"
    "\n"
    "  --daemonize            daemonize the process, and have the parent exit\n"
    "                         once startup is complete\n"
    "\n"
    "  -d <item>,...          enable logging of the items (`-d help` lists them)\n"
    "  -D <file>              traces go to <file> instead of standard error\n"
    "\n"
    "  --device ide-cd[,drive=<node-name>][,bus=<controller>.<bus>][,unit=<unit>][,id=<id>]\n"
    "           [,serial=<text>][,model=<text>][,ver=<text>][,wwn=<number>]\n"
    "           [,passthrough=off|safe|burn]\n"
    "                         add a CD/DVD drive; without `drive` it is empty. QEMU's other\n"
    "                         properties of ide-cd are taken and need not be set\n"
    "  --device ide-hd,drive=<node-name>[,...][,write-cache=on|off][,werror=<action>]\n"
    "           [,rerror=<action>][,logical_block_size=<size>][,physical_block_size=<size>]\n"
    "           [,rotation_rate=<rpm>][,cyls=<n>,heads=<n>,secs=<n>][,bios-chs-trans=<how>]\n"
    "                         add a hard disk, with QEMU's properties of ide-hd\n"
    "  --device help, --device ide-cd,help\n"
    "                         list the devices, or the properties of one\n"
    "\n"
    "  --incoming             the devices wait for a saved state (QMP load-state); until `cont`\n"
    "                         the images are left to the process that has them\n"
    "\n"
    "  --lifeline [fd=]<fd>[,folder=<folder>][,quiet=on|off]\n"
    "                         for a program that starts this one: <fd> is one end of a UNIX\n"
    "                         socket pair. When ready, or when it cannot start, the process\n"
    "                         writes a line there; when the other end is closed, it ends and\n"
    "                         removes <folder>. quiet=on: no messages once it is ready\n"
    "\n"
    "  --monitor [chardev=]<id>[,mode=control|readline][,pretty=on|off]\n"
    "                         serve QMP on a --chardev: change media, open and close trays, add\n"
    "                         and delete nodes, query. mode=readline: the human monitor; `stdio`\n"
    "                         is that on this terminal. The option may be given several times\n"
    "\n"
    "  --object secret,id=<id>,(data=<text>|file=<file>)[,format=raw|base64]\n"
    "           [,keyid=<id>,iv=<base64>]\n"
    "                         create a secret for encrypted images and remote sources\n"
    "  --object throttle-group,id=<id>[,limits.bps-total=<bytes>][,...]\n"
    "                         create a group of limits for the driver `throttle`\n"
    "\n"
    "  --pidfile <file>       write process ID to a file after startup\n"
    "\n"
    "  --run-with user=<name>|<uid>:<gid>\n"
    "                         go on as that user once everything is open\n"
    "\n"
    "  --sandbox on|off       keep the process from starting programs, gaining rights and the\n"
    "                         like, whatever a disc or a guest makes of it (default: on)\n"
    "\n"
    "  --vfio-user [path=]<file>[,id=<id>][,controller=ahci|piix3-ide|piix4-ide]\n"
    "              [,dma=auto|mmap|message]\n"
    "                         serve a controller on a UNIX socket: AHCI with six ports, or IDE\n"
    "                         with two buses of two drives. The first one's id is `ide` by\n"
    "                         default; its buses are `ide.0`, `ide.1`, …. dma: how guest\n"
    "                         memory is written; by message where the guest runs without KVM\n"
    "                         (auto: finds out)\n"
    "\n"
    "An option's argument may also be a JSON object. Attach a controller to QEMU 10.1 or newer,\n"
    "whose memory should be shared, with\n"
    "  -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"<file>\"}}'\n"
    "\n"
    "SIGTERM and SIGINT end the process; it removes its sockets and its pidfile.\n";

const char *drive_options_help(void)
{
    return help_text;
}

/* The part of `text` that is an option's name, without dashes; *ret_arg what follows `=`, or NULL. */
static char *split_word(const char *text, const char **ret_arg)
{
    const char *name = text + (text[1] == '-' ? 2 : 1);
    const char *equals = text[1] == '-' ? strchr(name, '=') : NULL;

    *ret_arg = equals ? equals + 1 : NULL;
    return equals ? g_strndup(name, equals - name) : g_strdup(name);
}

static int find_option(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(option_table); i++) {
        if (!strcmp(option_table[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

GArray *drive_options_parse(int argc, char **argv, GError **error)
{
    g_autoptr(GArray) options = g_array_new(false, false, sizeof(DriveOption));

    for (int i = 1; i < argc; i++) {
        const char *arg = NULL;
        g_autofree char *name = argv[i][0] == '-' ? split_word(argv[i], &arg) : NULL;
        int found = name ? find_option(name) : -1;
        DriveOption option = {.index = i, .word = argv[i], .arg = arg};

        if (!name) {
            error_set(error, "Unexpected argument: %s", argv[i]);
            return NULL;
        }
        if (found < 0 || (arg && !option_table[found].has_arg)) {
            error_set(error, "%s: invalid option", argv[i]);
            return NULL;
        }
        option.kind = option_table[found].kind;
        if (option_table[found].has_arg && !arg) {
            if (i + 1 == argc) {
                error_set(error, "%s: requires an argument", argv[i]);
                return NULL;
            }
            option.arg = argv[++i];
        }
        g_array_append_val(options, option);
    }
    return g_steal_pointer(&options);
}
