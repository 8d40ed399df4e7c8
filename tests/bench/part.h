/* part.h - one loop of the generator of workflows, with one connection: what its starters
 * (workflows.c) and its workers (workers.c) share. */
#ifndef CADENZA_TESTS_BENCH_PART_H
#define CADENZA_TESTS_BENCH_PART_H

#include "fiber/fiber.h"
#include "fiber/sync.h"
#include "net/load.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "uber/cadence/api/v1/tasklist.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "workflows.h"

#define SERVICE(name) "/uber.cadence.api.v1." name
#define DOMAIN_NAME   "bench-workflows"
#define CALL_TIMEOUT  (20 * NS_PER_S)
#define POLL_TIMEOUT  (70 * NS_PER_S)

/* What all parts share, and what comes out. Changed on loop 0 alone. */
struct all_parts {
    const struct workflows_options *options;
    char *list;            /* name of the task list */
    uint8_t *payload;      /* at random */
    struct part **by_loop; /* the parts; workflow n is of part n modulo their number */
    unsigned count;
    struct latch going;
};

/* One loop with one connection. */
struct part {
    struct all_parts *all;
    const struct workflows_options *options;
    unsigned index;
    struct grpc_client *client;
    unsigned number_next;    /* of the next workflow */
    struct fiber **starters; /* by workflow; who waits for its end */
    bool *is_finished;
    struct load_histogram starts, ends;
    struct latch working, polling;
    struct fiber **pollers;
    unsigned poller_count;
    bool is_over;
    uint64_t done, failures, repeats;
    char first_error[256];
};

/* Counts a failure; NULL is none. */
void part_note(struct part *part, const struct error *err);
/* One call over the part's connection. Yields. */
struct error *part_call_at(struct part *part, const char *path, int64_t timeout,
                           const ProtobufCMessage *request, struct arena *arena,
                           const ProtobufCMessageDescriptor *type, ProtobufCMessage **response);
#define part_call(part, path, timeout, request, arena, type, response)                             \
    part_call_at((part), SERVICE(path), (timeout), &(request)->base, (arena), API_TYPE(type),      \
                 (ProtobufCMessage **)(response))

/* The list of all parts, and what workflows and activities are given and give back. */
API(TaskList) *part_list(struct part *part, struct arena *arena);
API(Payload) *part_payload(struct part *part, struct arena *arena);

/* workers.c: fibers that poll, work and answer until the part is over; struct part as argument. */
void part_poll_decisions(void *argument);
void part_poll_sticky(void *argument);
void part_poll_activities(void *argument);

#endif
