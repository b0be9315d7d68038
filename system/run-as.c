/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/run-as.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>
#include "util/error.h"
#include "util/options.h"

/* "UID:GID", both whole numbers that are ids. */
static bool parse_ids(const char *text, RunAs *as)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    guint64 uid, gid;

    if (g_strv_length(parts) != 2 ||
        !g_ascii_string_to_unsigned(parts[0], 10, 0, UINT32_MAX - 1, &uid, NULL) ||
        !g_ascii_string_to_unsigned(parts[1], 10, 0, UINT32_MAX - 1, &gid, NULL)) {
        return false;
    }
    as->uid = (uid_t)uid;
    as->gid = (gid_t)gid;
    return true;
}

RunAs *run_as_new(const char *arg, GError **error)
{
    g_autoptr(Options) options = options_parse(arg, "user", error);
    g_autoptr(RunAs) as = g_new0(RunAs, 1);
    const char *user = options ? options_get(options, "user") : NULL;

    if (!options || !options_check_unused(options, error)) {
        return NULL;
    }
    if (!user) {
        error_set(error, "Parameter 'user' is missing");
        return NULL;
    }
    const struct passwd *entry = getpwnam(user);
    if (entry) {
        as->name = g_strdup(user);
        as->uid = entry->pw_uid;
        as->gid = entry->pw_gid;
    } else if (!parse_ids(user, as)) {
        error_set(error, "User \"%s\" doesn't exist (and is not <uid>:<gid>)", user);
        return NULL;
    }
    return g_steal_pointer(&as);
}

bool run_as_from_argv(const char *const *argv, RunAs **ret_as, GError **error)
{
    g_autoptr(RunAs) as = NULL;

    for (; argv[0] && argv[1]; argv++) {
        const char *word = argv[0][0] == '-' && argv[0][1] == '-' ? argv[0] + 1 : argv[0];
        bool old = !strcmp(word, "-runas");
        if (!old && strcmp(word, "-run-with")) {
            continue;
        }
        g_autoptr(Options) options = old ? NULL : options_parse(argv[1], NULL, NULL);
        const char *user = old ? argv[1] : options ? options_get(options, "user") : NULL;
        if (user) {
            g_autoptr(Options) alone = options_new();
            options_set(alone, "user", user);
            g_autofree char *text = options_to_string(alone);
            g_clear_pointer(&as, run_as_free);
            as = run_as_new(text, error);
            if (!as) {
                g_prefix_error(error, "%s %s: ", argv[0], argv[1]);
                return false;
            }
        }
    }
    *ret_as = g_steal_pointer(&as);
    return true;
}

char *run_as_text(const RunAs *as)
{
    return as->name ? g_strdup(as->name) : g_strdup_printf("%u:%u", as->uid, as->gid);
}

void run_as_free(RunAs *as)
{
    if (as) {
        g_free(as->name);
        g_free(as);
    }
}

bool run_as_enter(const RunAs *as, GError **error)
{
    int ret = as->name ? initgroups(as->name, as->gid) : setgroups(1, &as->gid);

    if (ret < 0 || setgid(as->gid) < 0 || setuid(as->uid) < 0) {
        return error_set_errno(error, errno, "Could not go on as user %u, group %u", as->uid, as->gid);
    }
    if (as->uid != 0 && setuid(0) == 0) {
        return error_set(error, "Could not give up the rights of root");
    }
    return true;
}
