/* service.h - calls with messages: from bytes to a handler and back, for every door.
 *
 * A door (api/ for clients, replication/ for clusters) has a table of methods. Here they become one
 * service, whatever carries its calls (port.h): the path is found, the request decoded into the
 * call's arena, the handler run in the call's fiber, its answer encoded, errors put in the form
 * that Cadence's clients expect, everything counted under Cadence's metric names. */
#ifndef CADENZA_RPC_SERVICE_H
#define CADENZA_RPC_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/log.h"
#include "base/metrics.h"
#include "rpc/method.h"
#include "rpc/port.h"
#include "rpc/subject.h"

/* One call on its way through a handler. */
struct rpc_call {
    void *door; /* whose table it was found in */
    struct rpc_arrival arrival;
    struct arena *arena; /* of the arrival */
    /* Decoded; of the method's request type. Its fields of bytes are those of the call: a parked
     * call loses them when its handler has returned. */
    const ProtobufCMessage *request;
    ProtobufCMessage *response; /* initialised; of the method's response type */
    /* Fields of the response that are in wire form already: they go out behind the others as they
     * are. Read when the call is answered. */
    const struct slice *pieces;
    size_t piece_count;
    void (*release)(
        void *kept); /* called with `kept` when the response is encoded; NULL: nothing is kept */
    void *kept;      /* what the response points into */
    void *noted;     /* the door's: what it found out about the call; NULL at first */
    /* rpc's own. */
    struct rpc_service *service;
    struct method_state *state;
    int64_t began; /* monotonic */
    bool is_parked;
    const struct call_series *series; /* what it is counted in; NULL: its domain is not known */
};

struct rpc_table {
    const struct rpc_method *methods;
    void *door; /* what its handlers get */
    /* Asked before a call is decoded: an error is its answer. NULL: every call is let in. No yield.
     */
    struct error *(*admit)(struct rpc_call *call);
    /* Runs the method's handler, or answers the call in another way. NULL: the handler runs. May
     * yield. */
    struct error *(*serve)(struct rpc_call *call, struct error *(*handle)(struct rpc_call *call));
    /* An error as this door says it to this caller, before rpc_error_at_door. NULL: as it is. */
    struct error *(*refine)(struct rpc_call *call, struct error *err);
};

struct rpc_service;

/* Tables are copied, what they point to is not. A path in two tables is a check. */
struct rpc_service *rpc_service_new(const struct rpc_table *tables, size_t count,
                                    const struct log *log, struct metrics *metrics);
/* When no server uses it any more, and every call has ended. */
void rpc_service_free(struct rpc_service *service);
/* Who is asked about each call, once it is decoded and before it is handled: an error is its
 * answer. Before the service is used. */
void rpc_service_guard(struct rpc_service *service,
                       struct error *(*guard)(void *context, struct rpc_call *call), void *context);
/* Notified of each call that has ended, before its answer goes out; not of those that were parked.
 * May yield. Before the service is used. */
void rpc_service_watch(struct rpc_service *service,
                       void (*ended)(void *context, struct rpc_call *call, const struct error *err),
                       void *context);
/* --- for transports ------------------------------------------------------------------------------
 */

/* What is at this path, for rpc_service_serve. NULL: the interface has no such method. No yield. */
const void *rpc_service_find(struct rpc_service *service, struct slice path);
/* Serves a call, in the call's fiber, whose deadline is the call's: answers it or parks it. Yields.
 */
void rpc_service_serve(struct rpc_service *service, const void *found,
                       const struct rpc_arrival *arrival);

/* --- answering later -----------------------------------------------------------------------------
 */

/* Keeps the call beyond its handler, which returns NULL: rpc_end answers it, on the same loop.
 * Until then the call and its arena stay, unless the caller goes away: then `on_gone` is called,
 * without a yield, after which the call does not exist any more. See port.h. */
void rpc_park(struct rpc_call *call, void (*on_gone)(void *context), void *context);
/* Answers a parked call: with its response, or with the error. */
void rpc_end(struct rpc_call *call, struct error *err);
/* A header of the request, empty if absent; `name` in lower case. */
struct slice rpc_header(const struct rpc_call *call, const char *name);
/* What is decided about the call's method. */
const struct rpc_method *rpc_method(const struct rpc_call *call);
/* What its request is about (it fills that), and where its method's requests say it. No yield. */
void rpc_subject(const struct rpc_call *call, struct rpc_subject *subject);
const struct subject_fields *rpc_subject_fields(const struct rpc_call *call);
/* The name of the method, without its service. */
const char *rpc_method_name(const struct rpc_call *call);
/* Its index in wire/services.h: tables by method are indexed by it. */
size_t rpc_index(const struct rpc_call *call);
/* The call is about this domain, which is there: it is counted as one of its calls. A call that is
 * about none, or fails before anybody knows, is counted under an unknown one. Once per call; more
 * often is harmless. */
void rpc_note_domain(struct rpc_call *call, const char *name);
/* Was its domain noted already? */
bool rpc_has_domain(const struct rpc_call *call);

/* The error as the public door says it: what clients do not know becomes UNKNOWN, as in Cadence. */
struct error *rpc_error_at_door(const struct error *err, const char *path, struct arena *arena);

#endif
