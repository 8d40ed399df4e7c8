/* ask.c - see ask.h. */
#include "route/ask.h"

#include <string.h>

#include "base/check.h"
#include "fiber/probe.h"
#include "route/inside.h"
#include "route/refusal.h"
#include "wire/message.h"
#include "wire/names.h"

struct asking {
    struct owner owner;
    struct route_service *service;
    const struct route_question *question;
    const void *request;
    struct arena *arena;
    void *answer;
    struct error *err;
};

static void
serve(void *argument)
{
    struct asking *asking = argument;
    check(route_is_here(asking->owner));
    asking->err = asking->question->serve(asking->service->context, asking->owner, asking->request,
                                          asking->arena, asking->answer);
}

/* --- as between hosts ---- */

static struct slice
error_encode(const struct error *err, struct arena *arena)
{
    INTERNAL(Error) message = refusal_to_message(err);
    return message_encode(arena, &message.base);
}

static struct error *
error_decode(struct slice bytes, struct arena *arena)
{
    INTERNAL(Error) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(error), bytes, &message);
    return err != NULL ? err : refusal_from_message(message, arena);
}

/* The answer, or the error, of one that was asked by bytes; in `arena`, like all that comes of it.
 */
static struct slice
serve_bytes(const struct asking *asked, struct slice request, bool *is_error, struct arena *arena)
{
    const struct route_question *question = asked->question;
    scoped(arena_drop) struct arena *there = arena_new(0);
    struct asking asking = *asked;
    ProtobufCMessage *decoded;
    struct error *err =
        message_decode_at(there, ERR_INTERNAL, question->request, request, &decoded);
    check_that(err == NULL, "%s: its request cannot be read: %s", question->name, err->message);
    asking.request = decoded;
    asking.arena = there;
    asking.answer = message_new(there, question->answer);
    serve(&asking);
    *is_error = asking.err != NULL;
    return *is_error ? error_encode(asking.err, arena) : message_encode(arena, asking.answer);
}

/* In a fiber of the owner. */
static void
serve_by_bytes(void *argument)
{
    struct asking *asking = argument;
    const struct route_question *question = asking->question;
    struct slice request = message_encode(asking->arena, asking->request);
    enum crossing crossing = loop_crossing(loop_self(), true, question->may_come_twice);
    bool is_error;
    struct slice answer = serve_bytes(asking, request, &is_error, asking->arena);
    if (crossing == CROSSING_TWICE)
        answer = serve_bytes(asking, request, &is_error, asking->arena);
    if (crossing == CROSSING_LOST) {
        asking->err = error_new(asking->arena, ERR_UNAVAILABLE,
                                "%s: no answer came, it may have been done", question->name);
        return;
    }
    if (is_error) {
        asking->err = error_decode(answer, asking->arena);
        return;
    }
    ProtobufCMessage *decoded;
    struct error *err =
        message_decode_at(asking->arena, ERR_INTERNAL, question->answer, answer, &decoded);
    check_that(err == NULL, "%s: its answer cannot be read: %s", question->name, err->message);
    memcpy(asking->answer, decoded, question->answer->sizeof_message);
}

struct error *
route_ask(struct owner owner, struct route_service *service, const struct route_question *question,
          const void *request, struct arena *arena, void *answer)
{
    check(((const ProtobufCMessage *)request)->descriptor == question->request);
    check(((const ProtobufCMessage *)answer)->descriptor == question->answer);
    struct loop *self = loop_self(), *loop = route_loop_of(owner, self);
    bool is_whole = loop_crossing(self, false, false) == CROSSING_WHOLE;
    if (is_whole && loop == self)
        return question->serve(service->context, owner, request, arena, answer);
    struct asking asking = {owner, service, question, request, arena, answer, NULL};
    struct error *err = loop_call(loop, is_whole ? serve : serve_by_bytes, &asking, arena);
    return err != NULL ? err : asking.err;
}
