/* client.c - calls to one address: made, waited for, ended.
 *
 * A call waits in a queue until a link has room for it. When there is no link, the first call
 * starts a fiber that connects; when connecting fails, all that wait fail at once, and so do calls
 * that come before the back-off has passed: callers know better than a client whether to wait. */
#include "net/client.h"

#include "base/check.h"
#include "base/memory.h"
#include "net/client_inside.h"

static char *
copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(memory_alloc(size), text, size);
}

/* "name:port" → "name", "[::1]:7833" → "::1" */
static char *
host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t length = colon == NULL ? strlen(address) : (size_t)(colon - address);
    bool is_bracketed = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    char *host = copy_text(is_bracketed ? address + 1 : address);
    host[is_bracketed ? length - 2 : length] = '\0';
    return host;
}

struct grpc_client *
grpc_client_new(const struct grpc_client_options *options)
{
    struct grpc_client *client = memory_zalloc(1, sizeof *client);
    client->address = copy_text(options->address);
    client->authority = copy_text(options->address);
    client->server_name =
        options->server_name == NULL ? host_of(options->address) : copy_text(options->server_name);
    client->tls = options->tls;
    client->message_max = options->message_max;
    if (client->message_max == 0)
        client->message_max = GRPC_MESSAGE_MAX_DEFAULT;
    client->connect_timeout =
        options->connect_timeout == 0 ? 5 * NS_PER_S : options->connect_timeout;
    client->keepalive = options->keepalive == 0 ? KEEPALIVE_DEFAULT : options->keepalive;
    client->is_probing = options->is_probing;
    client->live_header = options->live_header;
    client->backoff = BACKOFF_FIRST;
    client->scratch = memory_alloc(HTTP2_SCRATCH_SIZE);
    list_init(&client->links);
    list_init(&client->waiting);
    latch_init(&client->busy, 0);
    client_fields_init(client, options);
    return client;
}

/* ---- the queue ---- */

void
client_call_done(struct client_call *call, struct error *err, bool is_untouched)
{
    check(!call->is_done);
    list_remove(&call->node);
    call->stream = NULL;
    call->err = err;
    call->is_untouched = is_untouched;
    call->is_done = true;
    fiber_wake(call->fiber);
}

static void
fail_waiting(struct grpc_client *client, enum error_kind kind, const char *reason)
{
    while (!list_is_empty(&client->waiting)) {
        struct client_call *call = list_entry(client->waiting.next, struct client_call, node);
        struct error *err =
            error_new(call->arena, kind, "%s: nothing was sent: %s", client->address, reason);
        client_call_done(call, err, false);
    }
}

static void
submit_waiting(struct grpc_client *client)
{
    while (!list_is_empty(&client->waiting) && client->link != NULL &&
           link_has_room(client->link)) {
        struct client_call *call = list_entry(client->waiting.next, struct client_call, node);
        if (link_submit(client->link, call))
            list_remove(&call->node);
    }
}

void
client_drive(struct grpc_client *client)
{
    submit_waiting(client);
    bool has_nothing_to_do = list_is_empty(&client->waiting) || client->link != NULL;
    if (has_nothing_to_do || client->connecting != NULL || client->is_closing)
        return;
    if (clock_monotonic() < client->retry_at) {
        fail_waiting(client, ERR_UNAVAILABLE, client->failure);
        return;
    }
    latch_add(&client->busy, 1);
    client->connecting = fiber_start("link", client_link_run, client);
}

/* ---- a call ---- */

static struct error *
wait_for_answer(struct grpc_client *client, struct client_call *call)
{
    while (!call->is_done) {
        enum wake wake = fiber_wait(NEVER);
        if (wake == WAKE_READY || call->is_done)
            continue;
        list_remove(&call->node);
        if (call->stream != NULL)
            stream_abandon(call->stream);
        struct error *err = wake_error(wake, call->arena, "waiting for an answer");
        return error_wrap(err, "%s%s", client->address, call->request->path);
    }
    return call->err;
}

static struct error *
attempt(struct grpc_client *client, const struct grpc_request *request, struct arena *arena,
        struct slice *response, bool *is_untouched)
{
    struct client_call call = {
        .request = request,
        .arena = arena,
        .fiber = fiber_self(),
        .deadline = fiber_deadline(),
        .status = -1,
    };
    list_init(&call.node);
    list_push_back(&client->waiting, &call.node);
    client_drive(client);
    struct error *err = wait_for_answer(client, &call);
    if (err == NULL)
        err = client_result(&call, response);
    inbox_clear(&call.inbox);
    *is_untouched = call.is_untouched;
    return err;
}

struct error *
grpc_client_call(struct grpc_client *client, const struct grpc_request *request,
                 struct arena *arena, struct slice *response)
{
    check(fiber_self() != NULL);
    if (client->is_closing)
        return error_new(arena, ERR_CANCELLED, "%s: the client is closed", client->address);
    struct error *err = NULL;
    bool is_untouched = true;
    latch_add(&client->busy, 1);
    for (int i = 0; i < ATTEMPTS_MAX && is_untouched && !client->is_closing; i++)
        err = attempt(client, request, arena, response, &is_untouched);
    latch_done(&client->busy);
    return err;
}

/* ---- the end ---- */

static void
cancel_streams(struct client_link *link)
{
    list_each(node, &link->streams) {
        struct client_stream *stream = list_entry(node, struct client_stream, node);
        struct client_call *call = stream->call;
        stream->call = NULL;
        if (call != NULL)
            client_call_done(call,
                             error_new(call->arena, ERR_CANCELLED, "%s: the client is closed",
                                       link->client->address),
                             false);
    }
}

void
grpc_client_hurry(struct grpc_client *client)
{
    client->retry_at = 0;
    if (client->connecting != NULL)
        fiber_cancel(client->connecting); /* it may hang since before the server was back */
}

void
grpc_client_free(struct grpc_client *client)
{
    if (client == NULL)
        return;
    client->is_closing = true;
    fail_waiting(client, ERR_CANCELLED, "the client is closed");
    if (client->connecting != NULL)
        fiber_cancel(client->connecting);
    list_each(node, &client->links) {
        struct client_link *link = list_entry(node, struct client_link, node);
        cancel_streams(link);
        fiber_wake(link->pipe.fiber);
    }
    latch_wait(&client->busy);
    check(list_is_empty(&client->links) && list_is_empty(&client->waiting));
    memory_free(client->address);
    memory_free(client->authority);
    memory_free(client->server_name);
    memory_free(client->fields);
    memory_free(client->field_bytes);
    memory_free(client->failure);
    memory_free(client->scratch);
    memory_free(client);
}
