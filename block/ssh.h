/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=ssh` and the module that holds libssh.
 */
#ifndef SPINDLE_BLOCK_SSH_H
#define SPINDLE_BLOCK_SSH_H

#include "block/remote.h"
#include "util/secret.h"

#define SSH_MODULE_SYMBOL "spindle_ssh_module"

typedef enum { SSH_CHECK_KNOWN_HOSTS, SSH_CHECK_NONE, SSH_CHECK_HASH } SshCheck;

typedef struct SshConfig {
    const char *host, *user, *path;
    unsigned port;
    SshCheck check;
    int hash_type;           /* place in ssh_hash_names */
    const char *hash;        /* hexadecimal, colons between or not */
    const char *known_hosts; /* file, or NULL: the user's */
    const char *identity;    /* file with a private key, or NULL: the agent's and the user's */
    const Secret *password;  /* or NULL */
    unsigned timeout_s;
} SshConfig;

#define SSH_HASH_NAMES                                                                                       \
    {                                                                                                        \
        "md5", "sha1", "sha256", NULL                                                                        \
    }

/* `ssh://[USER@]HOST[:PORT]/PATH[?host_key_check=…]` into options. NULL and an error. */
Options *ssh_options_from_filename(const char *filename, GError **error);

#endif
