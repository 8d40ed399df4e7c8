/* service.c - one call from bytes to bytes: find, decode, handle, encode, count. See service.h. */
#include "rpc/service.h"

#include <stdio.h>

#include "base/check.h"
#include "base/map.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "net/grpc.h"
#include "wire/message.h"
#include "wire/services.h"

/* What calls of one method about one domain are counted in. */
struct call_series {
    const char *domain;
    struct counter *requests;
    struct counter *errors;
    struct histogram *latency;
};

/* A method with its types, its door and the series of calls whose domain is not known. */
struct method_state {
    const struct rpc_method *method;
    const struct rpc_table *table; /* whose it is */
    struct wire_method wire;
    struct subject_fields subject;
    struct call_series unknown;
};

/* What belongs to one loop. */
struct service_loop {
    struct map *series; /* index of the method, name of the domain → struct call_series */
    const struct call_series **last; /* of each method: the one that was found last */
    struct arena *arena;
};

struct rpc_service {
    const struct log *log;
    struct metrics *metrics;
    struct map *by_path;                                          /* path → struct method_state */
    struct arena *arena;                                          /* of the service's own life */
    struct error *(*guard)(void *context, struct rpc_call *call); /* NULL: nobody is asked */
    void *guard_context;
    void (*ended)(void *context, struct rpc_call *call, const struct error *err); /* or NULL */
    void *ended_context;
    struct service_loop *loops;
    unsigned loop_count;
};

static const char *const service_label =
    "cadence_frontend"; /* what Cadence's dashboards look for */

#define DOMAIN_UNKNOWN "_unknown_" /* as Cadence calls it */

static struct call_series
find_series(struct metrics *metrics, const char *operation, const char *domain)
{
    const char *labels[] = {"cadence_service", service_label, "operation", operation,
                            "domain",          domain,        NULL};
    return (struct call_series){
        .domain = domain,
        .requests = metrics_counter(metrics, "cadence_requests", "Calls that arrived.", labels),
        .errors = metrics_counter(metrics, "cadence_errors",
                                  "Calls that failed by the server's fault.", labels),
        .latency = metrics_histogram(metrics, "cadence_latency",
                                     "Time from a complete request to its answer.", labels),
    };
}

static void
method_state_init(struct method_state *state, const struct rpc_method *method,
                  struct metrics *metrics)
{
    struct wire_method wire;
    bool is_known = wire_method_find(slice_text(method->path), &wire);
    check_that(is_known, "%s is in no proto", method->path);
    *state = (struct method_state){.method = method,
                                   .wire = wire,
                                   .subject = subject_fields_of(wire.request),
                                   .unknown = find_series(metrics, wire.name, DOMAIN_UNKNOWN)};
}

static void
add_table(struct rpc_service *service, const struct rpc_table *given)
{
    struct rpc_table *table = arena_make(service->arena, struct rpc_table);
    *table = *given;
    for (const struct rpc_method *method = table->methods; method->path != NULL; method++) {
        struct method_state *state = arena_make(service->arena, struct method_state);
        method_state_init(state, method, service->metrics);
        state->table = table;
        void *before = map_put(service->by_path, slice_text(method->path), state);
        check_that(before == NULL, "%s is twice in the tables", method->path);
    }
}

struct rpc_service *
rpc_service_new(const struct rpc_table *tables, size_t count, const struct log *log,
                struct metrics *metrics)
{
    struct rpc_service *service = memory_zalloc(1, sizeof *service);
    service->log = log;
    service->metrics = metrics;
    service->by_path = map_new();
    service->arena = arena_new(0);
    for (size_t i = 0; i < count; i++)
        add_table(service, &tables[i]);
    service->loop_count = loop_count();
    service->loops = arena_zalloc(service->arena, service->loop_count, sizeof *service->loops);
    return service;
}

void
rpc_service_guard(struct rpc_service *service,
                  struct error *(*guard)(void *context, struct rpc_call *call), void *context)
{
    service->guard = guard;
    service->guard_context = context;
}

void
rpc_service_watch(struct rpc_service *service,
                  void (*ended)(void *context, struct rpc_call *call, const struct error *err),
                  void *context)
{
    service->ended = ended;
    service->ended_context = context;
}

void
rpc_service_free(struct rpc_service *service)
{
    for (unsigned i = 0; i < service->loop_count; i++) {
        map_free(service->loops[i].series);
        if (service->loops[i].arena != NULL)
            arena_free(service->loops[i].arena);
    }
    map_free(service->by_path);
    arena_free(service->arena);
    memory_free(service);
}

/* --- whose calls they are ---- */

static const struct call_series *
new_series(struct service_loop *loop, struct rpc_call *call, const char *domain, struct slice key)
{
    struct call_series *series = arena_make(loop->arena, struct call_series);
    *series = find_series(call->service->metrics, call->state->wire.name,
                          arena_text(loop->arena, domain));
    map_put(loop->series, key, series);
    return series;
}

static const struct call_series *
get_series(struct service_loop *loop, struct rpc_call *call, const char *name)
{
    size_t length = strlen(name);
    uint16_t method = (uint16_t)call->state->wire.index;
    uint8_t *key = arena_alloc(call->arena, length + sizeof method);
    memcpy(key, &method, sizeof method);
    memcpy(key + sizeof method, name, length);
    struct slice bytes = slice_of(key, length + sizeof method);
    const struct call_series *series = map_get(loop->series, bytes);
    return series != NULL ? series : new_series(loop, call, name, bytes);
}

void
rpc_note_domain(struct rpc_call *call, const char *name)
{
    struct rpc_service *service = call->service;
    unsigned index = loop_index(loop_self());
    check(index < service->loop_count);
    struct service_loop *loop = &service->loops[index];
    if (call->series != NULL)
        return;
    if (loop->series == NULL) {
        loop->series = map_new();
        loop->arena = arena_new(0);
        loop->last = arena_zalloc(loop->arena, wire_method_count(), sizeof *loop->last);
    }
    const struct call_series **last = &loop->last[call->state->wire.index];
    if (*last == NULL || strcmp((*last)->domain, name) != 0)
        *last = get_series(loop, call, name);
    call->series = *last;
    counter_add(call->series->requests, 1);
}

bool
rpc_method_is_decided(const struct rpc_method *method)
{
    return method->permission != PERMISSION_UNDECIDED && method->quota != QUOTA_UNDECIDED &&
           method->list_quota != LIST_QUOTA_UNDECIDED && method->reach != REACH_UNDECIDED &&
           method->holding != HOLDING_UNDECIDED && method->auditing != AUDITING_UNDECIDED &&
           method->owner != OWNER_UNDECIDED;
}

bool
rpc_has_domain(const struct rpc_call *call)
{
    return call->series != NULL;
}

struct slice
rpc_header(const struct rpc_call *call, const char *name)
{
    return call->arrival.port->header(call->arrival.carrier, name);
}

const struct rpc_method *
rpc_method(const struct rpc_call *call)
{
    return call->state->method;
}

void
rpc_subject(const struct rpc_call *call, struct rpc_subject *subject)
{
    subject_read(&call->state->subject, call->request, subject);
}

const struct subject_fields *
rpc_subject_fields(const struct rpc_call *call)
{
    return &call->state->subject;
}

const char *
rpc_method_name(const struct rpc_call *call)
{
    return call->state->wire.name;
}

size_t
rpc_index(const struct rpc_call *call)
{
    return call->state->wire.index;
}

/* Of a call that is over. */
static const struct call_series *
series_of(struct rpc_call *call)
{
    if (call->series != NULL)
        return call->series;
    call->series = &call->state->unknown;
    counter_add(call->series->requests, 1);
    return call->series;
}

/* A path that the interface has and this server does not serve: the caller should stop, not retry.
 */
static const struct method_state not_served;

const void *
rpc_service_find(struct rpc_service *service, struct slice path)
{
    const struct method_state *state = map_get(service->by_path, path);
    struct wire_method known;
    if (state != NULL && state->method->handle != NULL)
        return state;
    return wire_method_find(path, &known) ? &not_served : NULL;
}

/* Counted by kind where clients can see the kind; made at first use, since most never happen. */
static void
count_error(struct rpc_call *call, enum error_kind kind)
{
    const struct call_series *series = series_of(call);
    int status = error_kind_status(kind);
    bool is_ours = status == GRPC_UNKNOWN || status == GRPC_INTERNAL ||
                   status == GRPC_UNAVAILABLE || status == 15;
    if (is_ours)
        counter_add(series->errors, 1);
    char name[96];
    snprintf(name, sizeof name, "cadence_errors_%s", error_kind_name(kind));
    const char *labels[] = {"cadence_service", service_label,  "operation", call->state->wire.name,
                            "domain",          series->domain, NULL};
    counter_add(metrics_counter(call->service->metrics, name, "Calls that failed so.", labels), 1);
}

static uint8_t *
append(uint8_t *end, struct slice bytes)
{
    return bytes.length == 0 ? end : mempcpy(end, bytes.data, bytes.length);
}

/* The response, and behind it the fields that are in wire form already. */
static struct slice
encode_answer(struct rpc_call *call)
{
    struct slice head = message_encode(call->arena, call->response);
    if (call->piece_count == 0)
        return head;
    size_t length = head.length;
    for (size_t i = 0; i < call->piece_count; i++)
        length += call->pieces[i].length;
    uint8_t *bytes = arena_alloc(call->arena, length), *end = append(bytes, head);
    for (size_t i = 0; i < call->piece_count; i++)
        end = append(end, call->pieces[i]);
    check(end == bytes + length);
    return slice_of(bytes, length);
}

static struct error *
run_handler(struct rpc_call *call)
{
    const struct method_state *state = call->state;
    struct error *err = state->table->admit == NULL ? NULL : state->table->admit(call);
    if (err != NULL)
        return err;
    ProtobufCMessage *request = NULL;
    err = message_decode_lent(call->arena, state->wire.request, call->arrival.bytes, &request);
    if (err != NULL)
        return err;
    call->request = request;
    call->response = message_new(call->arena, state->wire.response);
    const struct rpc_service *service = call->service;
    err = service->guard == NULL ? NULL : service->guard(service->guard_context, call);
    if (err != NULL)
        return err;
    if (state->table->serve != NULL)
        return state->table->serve(call, state->method->handle);
    return state->method->handle(call);
}

static void
answer_error(struct rpc_call *call, struct error *err)
{
    struct method_state *state = call->state;
    if (state->table->refine != NULL)
        err = state->table->refine(call, err);
    struct error *shown = rpc_error_at_door(err, state->method->path, call->arena);
    count_error(call, shown->kind);
    int status = error_kind_status(shown->kind);
    if (status == GRPC_UNKNOWN || status == GRPC_UNAVAILABLE)
        log_warn(call->service->log, "A call failed.", log_text("operation", state->wire.name),
                 log_error(err), log_text("peer", call->arrival.peer));
    call->arrival.port->fail(call->arrival.carrier, shown);
}

static void
finish(struct rpc_call *call, struct error *err)
{
    check(call->release != NULL || call->kept == NULL); /* else it would leak */
    struct slice answer = err == NULL ? encode_answer(call) : (struct slice){0};
    if (call->release != NULL)
        call->release(call->kept);
    histogram_observe(series_of(call)->latency, clock_monotonic() - call->began);
    if (err == NULL)
        call->arrival.port->reply(call->arrival.carrier, answer);
    else
        answer_error(call, err);
}

void
rpc_park(struct rpc_call *call, void (*on_gone)(void *context), void *context)
{
    check(!call->is_parked);
    call->is_parked = true;
    call->arrival.port->park(call->arrival.carrier, on_gone, context);
}

void
rpc_end(struct rpc_call *call, struct error *err)
{
    check(call->is_parked);
    finish(call, err);
}

static void
refuse_unserved(const struct rpc_arrival *arrival)
{
    struct error *err =
        error_new(arrival->arena, ERR_BAD_REQUEST, "%.*s is not served by this version of cadenza.",
                  SLICE_ARG(arrival->path));
    arrival->port->fail(arrival->carrier, err);
}

void
rpc_service_serve(struct rpc_service *service, const void *found, const struct rpc_arrival *arrival)
{
    check(found != NULL && arrival->arena != NULL && arrival->memory != NULL);
    if (found == &not_served) {
        refuse_unserved(arrival);
        return;
    }
    /* In the arena: a parked call is needed after its handler has returned. */
    struct rpc_call *call = arena_make(arrival->arena, struct rpc_call);
    call->arrival = *arrival;
    call->arena = arrival->arena;
    call->service = service;
    call->state = (struct method_state *)found; /* ours: only its series change */
    call->door = call->state->table->door;
    call->began = clock_monotonic();
    struct error *err = run_handler(call);
    check(err == NULL || !call->is_parked);
    if (call->is_parked)
        return;
    if (service->ended != NULL && call->request != NULL)
        service->ended(service->ended_context, call, err);
    finish(call, err);
}
