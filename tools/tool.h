/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the command-line tools share: tables of options that are parsed and printed as help, `--object`,
 * numbers and sizes in qemu-img's words. One thread.
 */
#ifndef SPINDLE_TOOLS_TOOL_H
#define SPINDLE_TOOLS_TOOL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ToolOption {
    char letter;       /* 0: none */
    const char *name;  /* long name; NULL: none, the option is asked for by its letter */
    const char *value; /* what the value is called in the help; NULL: the option takes none */
    const char *help;  /* lines */
} ToolOption;

typedef struct ToolArgs ToolArgs;

typedef struct ToolCommand {
    const char *name;
    const char *summary;
    const char *usage;                /* after the name; lines */
    const ToolOption *options;        /* ends with an entry without help */
    const char *operands;             /* help on the arguments that are no options; lines */
    const char *examples;             /* lines */
    int (*run)(const ToolArgs *args); /* gives the exit status */
    bool signed_last;                 /* the last argument may be -SIZE */
    int failure;                      /* the exit status after a wrong command line; 0 stands for 1 */
} ToolCommand;

/* Common options for the tables. */
#define TOOL_OBJECT                                                                                          \
    {                                                                                                        \
        0, "object", "OBJDEF", "define an object, such as secret,id=ID,file=PATH"                            \
    }
#define TOOL_HELP                                                                                            \
    {                                                                                                        \
        'h', "help", NULL, "print this help and exit"                                                        \
    }
#define TOOL_QUIET                                                                                           \
    {                                                                                                        \
        'q', "quiet", NULL, "print nothing but errors"                                                       \
    }
#define TOOL_SHARE                                                                                           \
    {                                                                                                        \
        'U', "force-share", NULL, "open images although somebody else writes to them"                        \
    }

/* Sets the program's name, makes `--object` and messages work. */
void tool_init(const char *argv0);

/* Parses argv by the command's table and runs it. `full_name` is what messages and help call the command
 * ("spindle-img info"). Objects are created on the way. Returns the exit status. */
int tool_run(const ToolCommand *command, const char *full_name, int argc, char **argv);

/* The last value of an option ("" for one without value), or NULL when it was not given; by long name, or a
 * one-letter string. */
const char *tool_get(const ToolArgs *args, const char *name);
bool tool_has(const ToolArgs *args, const char *name);

/* All its values in order; the array is the args'. */
const GPtrArray *tool_get_all(const ToolArgs *args, const char *name);

/* The arguments that are no options. */
int tool_count(const ToolArgs *args);
const char *tool_operand(const ToolArgs *args, int index);

/* Says `message`, points to --help; gives the exit status for a wrong command line. */
int tool_wrong(const ToolArgs *args, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Creates what `--object` defines. */
bool tool_add_object(const char *definition, GError **error);

/* A size option within [min, max]: *ret stays as it is when it was not given. False after saying "Invalid
 * WHAT specified…". */
bool tool_get_size(const ToolArgs *args, const char *name, const char *what, uint64_t min, uint64_t max,
                   uint64_t *ret);
bool tool_parse_size(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *ret);

/* `--output=human|json`: sets *ret_json. False after saying what is wrong, and *ret_status. */
bool tool_get_output(const ToolArgs *args, bool *ret_json, int *ret_status);

/* "10 MiB", "2.97 MiB", "512 B"; free with g_free(). */
char *tool_format_size(uint64_t bytes);

/* Closes what is open below and gives `status`, for main(). */
int tool_exit(int status);

#endif
