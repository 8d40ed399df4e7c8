/* server_handle.c - what handlers may ask of a call and do with it: the second half of server.h. */
#include "base/check.h"
#include "net/server_inside.h"

struct arena *
grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

struct slice
grpc_call_path(const struct grpc_call *call)
{
    return call->headers->path;
}

struct slice
grpc_call_request(const struct grpc_call *call)
{
    return slice_of(call->inbox.bytes, call->inbox.length);
}

struct slice
grpc_call_header(const struct grpc_call *call, const char *name)
{
    if (strcmp(name, "grpc-timeout") == 0)
        return slice_of(call->timeout, call->timeout_length);
    return header_find(call->headers, slice_text(name));
}

const struct call_header *
grpc_call_headers(const struct grpc_call *call, struct arena *arena, size_t *count)
{
    return header_list(call->headers, arena, count);
}

int64_t
grpc_call_deadline(const struct grpc_call *call)
{
    return call->deadline;
}

bool
grpc_call_has_timeout(const struct grpc_call *call)
{
    return call->has_timeout;
}

const char *
grpc_call_peer(const struct grpc_call *call)
{
    return call->session->peer;
}

struct call_memory *
grpc_call_memory(const struct grpc_call *call)
{
    return &call->session->memory;
}

/* False: it was answered already, or the caller has gone. */
static bool
may_answer(const struct grpc_call *call)
{
    if (call->is_expired || call->state == CALL_GONE)
        return false;
    check_that(call->state == CALL_RUNNING || call->state == CALL_PARKED,
               "call %d of %s is answered twice", call->stream_id, call->session->peer);
    return true;
}

void
grpc_reply_kept(struct grpc_call *call, struct slice message)
{
    const struct session *session = call->session;
    if (!may_answer(call))
        return;
    size_t room = session->owner_loop->server->options.connection_bytes_max;
    bool fits = session->answer_bytes <= room && message.length <= room - session->answer_bytes;
    if (fits)
        answer_message(call, message);
    else
        call_refuse(call, GRPC_RESOURCE_EXHAUSTED,
                    "too many bytes wait to be sent on this connection");
}

void
grpc_reply(struct grpc_call *call, struct slice message)
{
    if (may_answer(call))
        grpc_reply_kept(call, arena_slice(call->arena, message));
}

void
grpc_fail(struct grpc_call *call, const struct error *err)
{
    check(err != NULL);
    if (may_answer(call))
        answer_status(call, error_kind_status(err->kind), err->message,
                      error_kind_detail(err->kind), err->detail);
}

void
grpc_park(struct grpc_call *call, void (*on_gone)(void *context), void *context)
{
    check(!call->is_parked && call->fiber != NULL);
    call->is_parked = true;
    call->on_gone = on_gone;
    call->gone_context = context;
    if (call->state == CALL_RUNNING)
        call_move(call, CALL_PARKED);
}
