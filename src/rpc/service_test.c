/* service_test.c - calls of a service, carried by no network at all.
 *
 * Method: a transport of a page that keeps what it is given. What the service promises of a call
 * holds for it as it does for gRPC: headers and facts of the arrival reach the handler, each call
 * is answered once, a parked one later, and one whose caller has gone is not answered any more. */
#include "fiber/linux/linux.h"

#include "base/metrics.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "rpc/service.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define HEALTH_CALL "/uber.cadence.api.v1.MetaAPI/Health"

/* --- the transport ---- */

/* A call as its caller sees it. */
struct caller {
    struct arena *arena;
    struct call_header headers[1];
    struct call_memory memory;
    unsigned answers;
    struct slice answer;
    bool is_refused;
    enum error_kind refusal;
    void (*on_gone)(void *context);
    void *gone_context;
};

static struct slice
get_header(const void *carrier, const char *name)
{
    const struct caller *caller = carrier;
    bool is_it = slice_equal(caller->headers[0].name, slice_text(name));
    return is_it ? caller->headers[0].value : (struct slice){0};
}

static const struct call_header *
get_headers(const void *carrier, struct arena *arena, size_t *count)
{
    const struct caller *caller = carrier;
    *count = 1;
    return caller->headers;
}

static void
reply(void *carrier, struct slice message)
{
    struct caller *caller = carrier;
    caller->answers++;
    caller->answer = arena_slice(caller->arena, message);
}

static void
fail(void *carrier, const struct error *err)
{
    struct caller *caller = carrier;
    caller->answers++;
    caller->is_refused = true;
    caller->refusal = err->kind;
}

static void
park(void *carrier, void (*on_gone)(void *context), void *context)
{
    struct caller *caller = carrier;
    caller->on_gone = on_gone;
    caller->gone_context = context;
}

static const struct rpc_port port = {
    .header = get_header, .headers = get_headers, .reply = reply, .fail = fail, .park = park};

/* --- the door ---- */

struct door {
    bool parks;
    struct rpc_call *parked;
    unsigned gone;
};

static void
on_gone(void *context)
{
    struct door *door = context;
    door->gone++;
    door->parked = NULL;
}

/* Says who asks, from where. */
static struct error *
handle_health(struct rpc_call *call)
{
    struct door *door = call->door;
    API(HealthResponse) *response = (API(HealthResponse) *)call->response;
    response->ok = call->arrival.has_timeout && call->arrival.deadline > clock_monotonic();
    response->message = arena_format(call->arena, "%.*s at %s", SLICE_ARG(rpc_header(call, "name")),
                                     call->arrival.peer);
    call->arrival.memory->bits++;
    if (door->parks) {
        door->parked = call;
        rpc_park(call, on_gone, door);
    }
    return NULL;
}

static const struct rpc_method methods[] = {{HEALTH_CALL, handle_health}, {NULL}};

struct fixture {
    struct arena *arena;
    struct metrics *metrics;
    struct rpc_service *service;
    struct door door;
    struct caller caller;
};

static void
fixture_open(struct fixture *fixture)
{
    *fixture = (struct fixture){.arena = arena_new(0), .metrics = metrics_new()};
    struct rpc_table table = {.methods = methods, .door = &fixture->door};
    fixture->service = rpc_service_new(&table, 1, NULL, fixture->metrics);
    fixture->caller.arena = fixture->arena;
    fixture->caller.headers[0] = (struct call_header){slice_text("name"), slice_text("ann")};
}

static void
fixture_close(struct fixture *fixture)
{
    rpc_service_free(fixture->service);
    metrics_free(fixture->metrics);
    arena_free(fixture->arena);
}

static void
ask(struct fixture *fixture, const char *path, struct slice bytes)
{
    struct slice name = slice_text(path);
    const void *found = rpc_service_find(fixture->service, name);
    EXPECT(found != NULL);
    rpc_service_serve(fixture->service, found,
                      &(struct rpc_arrival){.port = &port,
                                            .carrier = &fixture->caller,
                                            .arena = fixture->arena,
                                            .path = name,
                                            .bytes = bytes,
                                            .deadline = clock_monotonic() + NS_PER_S,
                                            .has_timeout = true,
                                            .peer = "the next room",
                                            .memory = &fixture->caller.memory});
}

static void
expect_health(struct fixture *fixture)
{
    API(HealthResponse) *response = NULL;
    EXPECT(fixture->caller.answers == 1 && !fixture->caller.is_refused);
    EXPECT_OK(message_decode(fixture->arena, API_TYPE(health_response), fixture->caller.answer,
                             &response));
    EXPECT(response->ok);
    EXPECT_TEXT(response->message, "ann at the next room");
}

/* --- what is expected ---- */

static void
play_answered(void *argument)
{
    struct fixture fixture;
    fixture_open(&fixture);
    ask(&fixture, HEALTH_CALL, (struct slice){0});
    expect_health(&fixture);
    EXPECT(fixture.caller.memory.bits == 1);
    fixture_close(&fixture);
}

static void
play_parked(void *argument)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.door.parks = true;
    ask(&fixture, HEALTH_CALL, (struct slice){0});
    EXPECT(fixture.caller.answers == 0 && fixture.door.parked != NULL);
    rpc_end(fixture.door.parked, NULL);
    expect_health(&fixture);
    fixture_close(&fixture);
}

static void
play_gone(void *argument)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.door.parks = true;
    ask(&fixture, HEALTH_CALL, (struct slice){0});
    EXPECT(fixture.caller.on_gone != NULL);
    fixture.caller.on_gone(fixture.caller.gone_context);
    EXPECT(fixture.door.gone == 1 && fixture.door.parked == NULL && fixture.caller.answers == 0);
    fixture_close(&fixture);
}

static void
play_refused(void *argument)
{
    struct fixture fixture;
    fixture_open(&fixture);
    EXPECT(rpc_service_find(fixture.service, slice_text("/no.Such/Method")) == NULL);
    ask(&fixture, "/uber.cadence.api.v1.DomainAPI/DescribeDomain", (struct slice){0});
    EXPECT(fixture.caller.answers == 1 && fixture.caller.refusal == ERR_BAD_REQUEST);
    fixture.caller.answers = 0;
    fixture.caller.is_refused = false;
    ask(&fixture, HEALTH_CALL, slice_text("\377 is not of protobuf"));
    EXPECT(fixture.caller.answers == 1 && fixture.caller.is_refused);
    fixture_close(&fixture);
}

static void
play(void (*main)(void *argument))
{
    linux_run(&(struct linux_options){.loops = 1}, main, NULL);
}

TEST(service, a_call_that_no_network_carries_is_answered_by_its_handler)
{
    play(play_answered);
}

TEST(service, a_parked_call_is_answered_later)
{
    play(play_parked);
}

TEST(service, a_parked_call_whose_caller_has_gone_is_not_answered)
{
    play(play_gone);
}

TEST(service, what_is_not_served_or_not_readable_is_refused_before_a_handler)
{
    play(play_refused);
}
