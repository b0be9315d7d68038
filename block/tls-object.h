/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The objects `tls-creds-x509` and `tls-creds-psk`: `-object tls-creds-x509,id=ID,dir=PATH[,endpoint=client]
 * [,verify-peer=on]`, `-object tls-creds-psk,id=ID,dir=PATH[,endpoint=client][,username=NAME]`, as QEMU's.
 * They say where the files are, which are read at each connection. The table is locked: any thread.
 */
#ifndef SPINDLE_BLOCK_TLS_OBJECT_H
#define SPINDLE_BLOCK_TLS_OBJECT_H

#include "util/options.h"

typedef struct TlsCreds {
    bool psk;    /* else certificates */
    char *dir;   /* ca-cert.pem, client-cert.pem, client-key.pem, ca-crl.pem; or keys.psk */
    char *user;  /* psk: whose key */
    bool client; /* endpoint */
    bool verify; /* x509: the server's certificate has to be right */
} TlsCreds;

/* Whether an object of this type is made here. */
bool tls_object_is(const char *type);

/* Makes the object from its options without `qom-type`. Errors in QEMU's words. */
bool tls_object_add(const char *type, Options *options, GError **error);

/* False: there is none with that id. What was opened with it keeps its own. */
bool tls_object_remove(const char *id);

/* Credentials of a client, the caller's; NULL and an error. */
TlsCreds *tls_object_get(const char *id, GError **error);
void tls_creds_free(TlsCreds *creds);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(TlsCreds, tls_creds_free)

#endif
