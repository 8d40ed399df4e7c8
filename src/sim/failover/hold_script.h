/* hold_script.h - calls that come while a domain drains, each in a fiber of its own. Only tests
 * include it. */
#ifndef CADENZA_SIM_FAILOVER_HOLD_SCRIPT_H
#define CADENZA_SIM_FAILOVER_HOLD_SCRIPT_H

#include "fiber/sync.h"
#include "sim/scripts/script.h"

#define DRAIN      (5 * NS_PER_S) /* what one takes where no shard hands over */
#define LONG       (20 * NS_PER_S)
#define CALLS_MAX  64
#define NO_MARKERS "system.enableGracefulFailover: [{value: false}]\n"

/* A call in a fiber of its own. */
struct caller {
    struct script *script;
    unsigned cluster;
    ProtobufCMessage *request;
    int64_t timeout;
    ProtobufCMessage *response;
    struct error *err;
    int64_t answered; /* monotonic; 0: not yet */
    struct latch *latch;
};

struct callers {
    struct caller items[CALLS_MAX];
    size_t count;
    struct latch latch;
};

void callers_init(struct callers *callers);
/* Nobody calls yet; workflow "w" runs in cluster 0, and begin_drain. The monotonic end of that. */
int64_t callers_begin(struct callers *callers, struct script *script);
/* Calls, and goes on a moment later, so that calls arrive in this order. */
#define call_later(callers, script, cluster, request)                                              \
    call_later_at((callers), (script), (cluster), (ProtobufCMessage *)&(request)->base)
struct caller *call_later_at(struct callers *callers, struct script *script, unsigned cluster,
                             ProtobufCMessage *request);
/* Waits for all answers: none is an error, and none came before that. */
void callers_expect_ok(struct callers *callers, int64_t not_before);
/* None has waited long so far; all are answered well when the drain has come to this end. */
void callers_expect_held(struct callers *callers, int64_t end);

/* Calls of that kind. */
void signal_later(struct callers *callers, struct script *script, unsigned cluster, const char *id,
                  const char *name);
/* Signals s0, s1 and so on, at each of the two clusters in turn. */
void signals_later(struct callers *callers, struct script *script, const char *id, unsigned count);
void start_later(struct callers *callers, struct script *script, unsigned cluster, const char *id);
void signal_with_start_later(struct callers *callers, struct script *script, unsigned cluster,
                             const char *id);
void cancel_later(struct callers *callers, struct script *script, unsigned cluster, const char *id);
void terminate_later(struct callers *callers, struct script *script, unsigned cluster,
                     const char *id);

/* Has the domain begin to move to that cluster. */
void ask_for_drain(struct script *script, unsigned to, int64_t seconds);
/* It moves to cluster 1, which takes DRAIN. The monotonic end. */
int64_t begin_drain(struct script *script);
/* Once it is over a signal reaches workflow "w", and none has before. */
void expect_first_signal(struct script *script);
/* The names of the signals of a run, in order, with blanks between. */
const char *signals_of(struct script *script, unsigned cluster, const char *id);
/* The kind of the last event of a run. */
int last_event(struct script *script, unsigned cluster, const char *id);

API(WorkflowExecution) *execution_of(struct script *script, const char *id);

#endif
