/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The short forms of NBD's names, as QEMU's: `nbd:HOST:PORT[:exportname=E]`, `nbd:unix:PATH[:exportname=E]`,
 * `nbd://HOST[:PORT]/[E]` (nbd+tcp), `nbd+unix:///[E]?socket=PATH`.
 */
#include <string.h>

#include "block/nbd.h"
#include "util/error.h"

#define PORT_DEFAULT "10809"

static Options *options_of(const char *path, const char *host, const char *port, const char *export_name)
{
    Options *options = options_new();
    options_set(options, "driver", "nbd");
    options_set(options, "server.type", path ? "unix" : "inet");
    if (path) {
        options_set(options, "server.path", path);
    } else {
        options_set(options, "server.host", host);
        options_set(options, "server.port", port);
    }
    if (export_name && export_name[0]) {
        options_set(options, "export", export_name);
    }
    return options;
}

static Options *from_url(const char *filename, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(filename, G_URI_FLAGS_NONE, NULL);
    if (!uri) {
        error_set(error, "Invalid NBD URL '%s'", filename);
        return NULL;
    }
    const char *path = g_uri_get_path(uri), *host = g_uri_get_host(uri), *query = g_uri_get_query(uri);
    const char *export_name = path[0] == '/' ? path + 1 : path;
    const bool is_unix = !strcmp(g_uri_get_scheme(uri), "nbd+unix");
    g_autoptr(GHashTable) params = query ? g_uri_parse_params(query, -1, "&", G_URI_PARAMS_NONE, NULL) : NULL;
    const char *socket = params ? g_hash_table_lookup(params, "socket") : NULL;
    const guint count = params ? g_hash_table_size(params) : 0;
    if (is_unix ? (!socket || count != 1 || (host && host[0])) : (query || !host || !host[0])) {
        error_set(error, "Invalid NBD URL '%s'", filename);
        return NULL;
    }
    g_autofree char *port =
        g_uri_get_port(uri) > 0 ? g_strdup_printf("%d", g_uri_get_port(uri)) : g_strdup(PORT_DEFAULT);
    return options_of(socket, host, port, export_name);
}

Options *nbd_options_from_filename(const char *filename, GError **error)
{
    if (strstr(filename, "://")) {
        return from_url(filename, error);
    }
    if (!g_str_has_prefix(filename, "nbd:")) {
        error_set(error, "File name string for new protocols must start with 'nbd:'");
        return NULL;
    }
    const char *text = filename + strlen("nbd:");
    const char *mark = strstr(text, ":exportname=");
    g_autofree char *place = mark ? g_strndup(text, mark - text) : g_strdup(text);
    const char *export_name = mark ? mark + strlen(":exportname=") : NULL;
    if (g_str_has_prefix(place, "unix:")) {
        return options_of(place + strlen("unix:"), NULL, NULL, export_name);
    }
    char *colon = strrchr(place, ':');
    if (!colon || colon == place || !colon[1]) {
        error_set(error, "The nbd address '%s' needs a host and a port", place);
        return NULL;
    }
    *colon = '\0';
    const size_t n = strlen(place);
    if (place[0] == '[' && n > 2 && place[n - 1] == ']') {
        place[n - 1] = '\0';
        return options_of(NULL, place + 1, colon + 1, export_name);
    }
    return options_of(NULL, place, colon + 1, export_name);
}
