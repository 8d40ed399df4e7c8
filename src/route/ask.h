/* ask.h - questions from one owner to another, by value: a request, and an answer or an error.
 *
 * Both are protobuf messages, so a question can go to another host; within the process nothing is
 * encoded, the owner reads the request where it lies and makes the answer in the asker's arena.
 * Neither holds a pointer to anything else, nor a function: whatever the owner needs is in the
 * request. A simulation sends both as bytes (loop_crossing).
 *
 * What if the owner is gone, or its answer? The asker gets ERR_UNAVAILABLE ("it may have been
 * done") or ERR_DEADLINE. A question that may come twice is asked again by any asker who has time;
 * any other is not, its asker decides (a client's retry with a request id, a row of the outbox). */
#ifndef CADENZA_ROUTE_ASK_H
#define CADENZA_ROUTE_ASK_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "route/owner.h"

/* One row for each question, static and const, beside what serves it. */
struct route_question {
    const char *name; /* "shard.signal": for errors and probes */
    const ProtobufCMessageDescriptor *request, *answer;
    /* Fills the answer, which is initialised. `context` is the service's, `owner` says which of its
     * owners is meant. Runs in a fiber where the owner lives, with the asker's deadline, and is
     * cancelled with it. May yield. What the answer points to lives in `arena`, or in the request,
     * or for ever. */
    struct error *(*serve)(void *context, struct owner owner, const void *request,
                           struct arena *arena, void *answer);
    /* Serving it again changes nothing, and the second answer is as good as the first. */
    bool may_come_twice;
};

/* Asks, and waits for the answer. `request` stays until this returns; `answer` is initialised (one
 * of the question's type), and what it points to lives in `arena`, or in the request. Yields.
 * Errors: those of serve; ERR_BUSY (too much is on its way there, nothing happened);
 * ERR_UNAVAILABLE, see above. */
must_use struct error *route_ask(struct owner owner, struct route_service *service,
                                 const struct route_question *question, const void *request,
                                 struct arena *arena, void *answer);

#endif
