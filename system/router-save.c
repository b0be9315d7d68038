/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `migrate` of a machine that stands still: the drives' state is written first.
 */
#include "system/router-state.h"
#include "util/error.h"

static void fail(StateJob *job, const char *text)
{
    router_call_fail(job->call, "GenericError", "%s", text);
    router_job_free(job);
}

static void engine_replied(JsonObject *answer, void *opaque)
{
    StateJob *job = opaque;

    router_call_answer_behind_events(job->call, answer);
    router_job_free(job);
}

static void on_written(StateJob *job, GError *error)
{
    if (error) {
        fail(job, error->message);
        g_error_free(error);
    } else if (job->ours) {
        router_stream_hand_over(job, "migrate", engine_replied);
    } else {
        RouterCall *call = job->call;
        router_job_free(job); /* its end would not be seen while we had it */
        router_call_pass(call, NULL);
    }
}

static void on_saved(JsonObject *answer, void *opaque)
{
    StateJob *job = opaque;
    JsonNode *value = json_object_get_member(answer, "return");
    const char *text =
        value && JSON_NODE_HOLDS_OBJECT(value)
            ? json_object_get_string_member_with_default(json_node_get_object(value), "data", NULL)
            : NULL;
    gsize size;

    if (!text) {
        fail(job, router_answer_failed(answer) ? router_answer_text(answer) : "The drives have no state");
        return;
    }
    job->state->parked = true;
    guchar *bytes = g_base64_decode(text, &size);
    job->data = g_bytes_new_take(bytes, size);
    router_stream_write(job, on_written);
}

/* Not before it is known that the machine stands still: a file is emptied. */
static void open_target(StateJob *job)
{
    RouterCall *call = job->call;
    GError *error = NULL;

    job->ours = router_stream_connects_late(job->uri);
    if (!job->ours) {
        job->fd =
            router_stream_open(call->port, job->state->router->config, job->uri, false, &job->ours, &error);
    }
    if (error) {
        fail(job, error->message);
        g_error_free(error);
    } else {
        router_peer_ask(call->port->drives, "save-state", NULL, on_saved, job);
    }
}

static void on_status(JsonObject *answer, void *opaque)
{
    StateJob *job = opaque;
    JsonNode *value = json_object_get_member(answer, "return");

    if (value && JSON_NODE_HOLDS_OBJECT(value) &&
        json_object_get_boolean_member_with_default(json_node_get_object(value), "running", false)) {
        fail(job, "A machine with Spindle's drives can be saved or moved only while it stands still: stop it "
                  "first");
    } else {
        open_target(job);
    }
}

void router_state_migrate(RouterCall *call)
{
    Router *router = call->port->router;
    StateJob *job = g_new0(StateJob, 1);

    job->state = router->state;
    job->call = call;
    job->uri = g_strdup(router_call_arg(call, "uri"));
    job->fd = -1;
    router_peer_ask(router->engine, "query-status", NULL, on_status, job);
}
