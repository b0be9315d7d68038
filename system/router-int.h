/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The router's parts:
 *
 *   router.c        the process: start, what it has of QEMU and the drive process, end
 *   router-peer.c   a session as a client of QEMU's or the drive process's monitor
 *   router-port.c   a user's monitor: the connection, and the one with QEMU that goes with it
 *   router-call.c   one command of a user's
 *   router-route.c  which command goes where
 *   router-text.c   the same for lines of the human monitor
 *   router-console.c  a human monitor: its users, and how their lines become commands
 *   router-mux.c    a terminal that a human monitor shares with a serial line
 *   router-events.c what it is told itself: a drive that stops the machine, the end of the drive process
 *   router-merge.c  answers of both, joined
 *   router-save.c, router-load.c, router-stream.c, router-address.c   saved machines, see router-state.h
 *   router-nodes.c  block nodes and which of the two has them
 *
 * All on the loop thread.
 */
#ifndef SPINDLE_SYSTEM_ROUTER_INT_H
#define SPINDLE_SYSTEM_ROUTER_INT_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include "monitor/stream.h"
#include "system/router-config.h"

#define ROUTER_CHARDEV "spindle-monitor" /* QEMU's chardev for the router's own session */

typedef struct Router Router;
typedef struct RouterPeer RouterPeer;
typedef struct RouterPort RouterPort;
typedef struct RouterCall RouterCall;
typedef struct RouterNodes RouterNodes;
typedef struct RouterState RouterState;

struct Router {
    RouterConfig *config;
    GMainLoop *loop;
    RouterPeer *engine; /* the router's own sessions */
    RouterPeer *drives;
    GPtrArray *ports;    /* RouterPort */
    GPtrArray *consoles; /* RouterConsole */
    RouterNodes *nodes;
    RouterState *state;
    GHashTable *open_trays; /* names of drives whose medium a user is changing */
    bool ended;             /* QEMU is gone */
    bool stopped_by_error;  /* a drive's error policy has stopped the machine */
};

/* router.c */

/* Whether this is one of Spindle's drives: its id, its name as a drive, or its path. */
bool router_has_drive(const Router *router, const char *name);
/* A port has nothing left to send. */
void router_port_done(Router *router);
/* router-events.c: of the router's own sessions. */
void router_engine_event(JsonNode *event, void *opaque);
void router_drive_event(JsonNode *event, void *opaque);
/* The drive process has ended before QEMU. */
void router_drives_lost(Router *router);
/* Whether an event of QEMU's is about what users do not see. */
bool router_event_is_internal(const Router *router, const char *text, size_t len);
/* A drive has come; one that is gone for good. */
void router_device_add(Router *router, const char *id, const char *driver, const char *bus);
void router_device_remove(Router *router, const char *id, const char *path);

/* The drive process is gone. */
bool router_drives_alive(const Router *router);

/* router-peer.c */

/* `answer` has a member `return` or `error`; it stays the peer's. A peer that is gone answers with an error.
 */
typedef void RouterReply(JsonObject *answer, void *opaque);

typedef struct RouterPeerOps {
    void (*event)(JsonNode *event, void *opaque); /* may be NULL */
    void (*closed)(void *opaque);
} RouterPeerOps;

/* `what` is it, for errors: "The drive process". */
RouterPeer *router_peer_new(int fd, const char *what, const RouterPeerOps *ops, void *opaque);
/* What is outstanding is answered by an error, as is all that is asked from then on. */
void router_peer_close(RouterPeer *peer);
void router_peer_free(RouterPeer *peer); /* the same first; NULL is allowed */
bool router_peer_alive(const RouterPeer *peer);
/* `args` is copied; NULL: none. */
void router_peer_ask(RouterPeer *peer, const char *command, JsonObject *args, RouterReply *reply,
                     void *opaque);
/* A descriptor goes along, which becomes the peer's. */
void router_peer_ask_with_fd(RouterPeer *peer, const char *command, JsonObject *args, int fd,
                             RouterReply *reply, void *opaque);
void router_peer_pause(RouterPeer *peer, bool paused);

/* router-port.c */
struct RouterPort {
    Router *router;
    const RouterConfigPort *config;
    RouterPeer *drives; /* this port's session with the drive process */
    Stream *client;     /* NULL: nobody is connected */
    Stream *engine;     /* NULL likewise, or QEMU has closed it */
    struct QmpFramer *from_client, *from_engine;
    guint watch;         /* of the listening socket */
    guint next;          /* source that takes the next command */
    bool ready;          /* capabilities are negotiated */
    bool client_over;    /* not a server: there will be no other */
    bool leaving;        /* no more commands will come than are in `queue` */
    GQueue queue;        /* RouterCall, not yet begun */
    RouterCall *current; /* under way */
    RouterCall *waiting; /* the same while QEMU has to answer it */
    GPtrArray *urgent;   /* char *: ids of out-of-band commands that QEMU has */
    GArray *fds;         /* int: came with the bytes of the next command */
    char *got_name;      /* of the getfd just before, and a copy of its descriptor, or -1 */
    int got_fd;
    int set_fd; /* a copy for the drive process while QEMU adds the descriptor to a set, or -1 */
};

RouterPort *router_port_new(Router *router, const RouterConfigPort *config);
void router_port_free(RouterPort *port);
/* QEMU is gone: no more clients. True when nothing is left to send. */
bool router_port_finish(RouterPort *port);
void router_port_send(RouterPort *port, JsonNode *message);
/* Closes the copy that getfd left. */
void router_port_forget_fd(RouterPort *port);
/* The call is over: takes the next. */
void router_port_next(RouterPort *port);

/* router-call.c */
struct RouterCall {
    RouterPort *port;
    unsigned refs;
    bool orphan; /* its client has gone */
    char *text;  /* as it came */
    size_t len;
    GArray *fds;                       /* int */
    JsonNode *request;                 /* NULL: too long for us to look at */
    const char *name;                  /* stays the request's, as the others */
    JsonObject *args;                  /* never NULL when `request` is not */
    JsonNode *id;                      /* or NULL */
    bool urgent;                       /* exec-oob */
    char *(*as_text)(JsonNode *value); /* set: the answer is the human monitor's, and this prints it */
    void (*on_engine)(RouterCall *call, JsonObject *answer); /* NULL: the answer passes as it is */
    void (*on_drives)(RouterCall *call, JsonObject *answer);
    void (*on_script)(RouterCall *call, JsonObject *failure); /* NULL: all went well */
    JsonNode *kept;                                           /* an answer, for joining */
    GPtrArray *script; /* steps still to do, see router_call_run_script() */
    struct Move *move; /* of router-nodes.c */
};

RouterCall *router_call_new(RouterPort *port, char *text, size_t len, GArray *fds);
void router_call_unref(RouterCall *call);
/* Begins it. */
void router_call_start(RouterCall *call);
/* Another command in its place, whose value is printed (see as_text) for a user of the human monitor. `args`
 * is taken over. */
void router_call_translate(RouterCall *call, const char *name, JsonObject *args,
                           char *(*as_text)(JsonNode *value));
/* To QEMU as it came. */
void router_call_pass(RouterCall *call, void (*on_engine)(RouterCall *call, JsonObject *answer));
/* QEMU's answer to what was passed. */
void router_call_engine_answered(RouterCall *call, const char *text, size_t len);
/* The same command to the drive process. */
void router_call_ask(RouterCall *call, void (*on_drives)(RouterCall *call, JsonObject *answer));
/* Answers, and ends it: with a copy of the answer's `return` or `error`; a value (taken over); an error. */
void router_call_answer(RouterCall *call, JsonObject *answer);
/* The same for what QEMU has answered to the router's own session: behind the events that it has sent to this
 * user before, such as MIGRATION's `setup`, which libvirt counts on. */
void router_call_answer_behind_events(RouterCall *call, JsonObject *answer);
void router_call_return(RouterCall *call, JsonNode *value);
void router_call_fail(RouterCall *call, const char *error_class, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* A step that the router takes by itself. */
typedef struct RouterStep {
    bool engine; /* QEMU's, else the drive process's */
    char *command;
    JsonObject *args;
    bool *failed; /* NULL: it must not fail; else set when it does, and what follows is done all the same */
} RouterStep;

/* Steps one after the other up to the first that must not fail and does. */
void router_call_add_step(RouterCall *call, bool engine, const char *command, JsonObject *args, bool *failed);
void router_call_run_script(RouterCall *call, void (*done)(RouterCall *call, JsonObject *failure));

/* router-route.c */
void router_route(RouterCall *call);
/* The value of a string argument, or NULL. */
const char *router_call_arg(const RouterCall *call, const char *name);

/* The controller that `bus` is of, if it is one of Spindle's; without a bus any of them will do. */
JsonObject *router_bus_controller(const Router *router, const char *bus);

/* router-text.c */
#define ROUTER_NO_SNAPSHOTS                                                                                  \
    "Spindle's drives cannot be in snapshots of the machine: stop it and migrate to a file instead"
void router_text_route(RouterCall *call); /* human-monitor-command */

/* router-console.c: a user's human monitor, whose lines become human-monitor-command of a port of its own. */
typedef struct RouterConsole RouterConsole;
RouterConsole *router_console_new(Router *router, const RouterConfigPort *config);
/* QEMU is about to end. */
void router_console_restore(RouterConsole *console);
void router_console_free(RouterConsole *console); /* behind its port */

/* router-mux.c */
typedef struct RouterMux RouterMux;
/* `in` and `out` are the terminal's, `serial` QEMU's line; all become the mux's. *ret_console: the console's
 * end, the caller's. */
RouterMux *router_mux_new(Router *router, int in, int out, int serial, int *ret_console);
/* QEMU is about to end: the terminal is as it was from now on. */
void router_mux_restore(RouterMux *mux);
/* Writes what is left, and gives the terminal back. NULL is allowed. */
void router_mux_free(RouterMux *mux);

/* router-merge.c */
void router_merge_query_block(RouterCall *call);
void router_merge_status(RouterCall *call);
void router_merge_blockstats(RouterCall *call);
void router_merge_named_nodes(RouterCall *call);
void router_merge_chardevs(RouterCall *call);
void router_merge_qom_list(RouterCall *call);
/* human-monitor-command: text of both. */
void router_merge_text(RouterCall *call);

/* router-nodes.c */
RouterNodes *router_nodes_new(JsonArray *nodes);
void router_nodes_free(RouterNodes *nodes);
bool router_node_is_ours(const Router *router, const char *name);
void router_nodes_add(RouterCall *call);    /* blockdev-add */
void router_nodes_del(RouterCall *call);    /* blockdev-del */
void router_nodes_reopen(RouterCall *call); /* blockdev-reopen */
/* Runs `then` with the node where it is needed: moved there if it was with the other and is free. */
void router_nodes_need(RouterCall *call, const char *name, bool engine, void (*then)(RouterCall *call));
/* For QEMU to write to, copy or export: moved to QEMU, or refused as a drive of Spindle's has it in use. */
void router_nodes_take(RouterCall *call, const char *name, void (*then)(RouterCall *call));
/* The first of the call's arguments, and of a transaction's actions, that names a node which only the drive
 * process has, or NULL. */
const char *router_nodes_wanted(const RouterCall *call);
/* Whether an action of a transaction names one of Spindle's drives. */
bool router_nodes_has_drive_action(const RouterCall *call);
/* Answers that the command, or the transaction's action, is none for Spindle's drives. */
void router_call_unsupported(RouterCall *call);

/* router-save.c, router-load.c: see router-state.h */
RouterState *router_state_new(Router *router);
void router_state_free(RouterState *state);
void router_state_migrate(RouterCall *call);  /* migrate */
void router_state_incoming(RouterCall *call); /* migrate-incoming */
void router_state_cont(RouterCall *call);     /* cont */
/* QEMU's MIGRATION event. */
void router_state_migration(Router *router, const char *status);

/* Values. */
bool router_answer_failed(JsonObject *answer);
const char *router_answer_class(JsonObject *answer);
const char *router_answer_text(JsonObject *answer);

#endif
