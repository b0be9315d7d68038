/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/conceal.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "util/cleanup.h"
#include "util/error.h"
#include "util/options.h"
#include "util/secret.h"

/* A descriptor to read the text from, for the program to come: a pipe, of which nothing is left once it has
 * been read, or for what may not fit one a file in memory. -1 and errno. */
static int text_fd(const char *text)
{
    size_t size = strlen(text);
    int ends[2];

    if (size > PIPE_BUF) {
        auto_fd fd = memfd_create("secret", 0);
        return fd >= 0 && write(fd, text, size) == (ssize_t)size ? steal_fd(&fd) : -1;
    }
    if (pipe(ends) < 0) {
        return -1;
    }
    ssize_t n = write(ends[1], text, size);
    close(ends[1]);
    if (n != (ssize_t)size) {
        close(ends[0]);
        return -1;
    }
    return ends[0];
}

/* The same object with a file in the place of its data, or NULL when there is nothing to conceal. */
static Options *secret_with_data(const char *text)
{
    g_autoptr(Options) options = options_parse(text, "qom-type", NULL);
    bool secret = options && !g_strcmp0(options_get(options, "qom-type"), "secret") &&
                  options_has(options, "data") && !options_has(options, "file");

    return secret ? g_steal_pointer(&options) : NULL;
}

static bool conceal_one(char **text, GError **error)
{
    g_autoptr(Options) options = secret_with_data(*text);

    if (!options) {
        return true;
    }
    int fd = text_fd(options_get(options, "data"));
    if (fd < 0) {
        return error_set_errno(error, errno, "Could not hand the secret '%s' on to QEMU",
                               options_has(options, "id") ? options_get(options, "id") : "");
    }
    g_autofree char *file = g_strdup_printf("/proc/self/fd/%d", fd);
    options_remove(options, "data");
    options_set(options, "file", file);
    secret_wipe(*text, strlen(*text));
    g_free(*text);
    *text = options_to_string(options);
    return true;
}

bool conceal_secrets(GPtrArray *args, GError **error)
{
    for (guint i = 0; i + 1 < args->len; i++) {
        const char *word = g_ptr_array_index(args, i);
        char **value = (char **)&g_ptr_array_index(args, i + 1);
        bool object = !g_strcmp0(word, "-object") || !g_strcmp0(word, "--object");

        if (object && *value && !conceal_one(value, error)) {
            return false;
        }
    }
    return true;
}
