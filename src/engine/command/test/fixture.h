/* fixture.h - a small world for tests of commands: one workflow id, its runs in memory, a clock
 * that stands still until it is told to go on. No store, no loops, no matching.
 *
 *   COMMAND_TEST(complete, a_run_ends_with_its_result, "A-060")
 *   {
 *       fixture_begin(fixture);                                    a run starts
 *       EXPECT(fixture_poll_decision(fixture));                    as matching would
 *       EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
 *       EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled "
 *                               "DecisionTaskStarted DecisionTaskCompleted "
 *                               "WorkflowExecutionCompleted");
 *   }
 *
 * After every step the world checks what is always true: ids without gaps, times that never go
 * back, task ids that rise over all runs, nothing behind a close event, no task of a closed run. */
#ifndef CADENZA_ENGINE_COMMAND_TEST_FIXTURE_H
#define CADENZA_ENGINE_COMMAND_TEST_FIXTURE_H

#include "base/test.h"
#include "engine/command/command.h"
#include "wire/message.h"

#define FIXTURE_SECOND   ((int64_t)1000000000)
#define FIXTURE_RUNS_MAX 8

struct fixture_task {
    uint64_t row;
    STORED(TransferRow) *transfer;
};

struct fixture_run {
    struct run *run;
    vector_of(API(HistoryEvent) *) events; /* the stored history, in the fixture's arena */
    vector_of(size_t) batches;             /* how many events each batch has */
};

struct fixture {
    struct arena *arena; /* everything but the runs */
    struct dynamic *dynamic;
    struct domain *domain;
    struct random random;
    struct row_ids ids;
    struct run_context context;     /* context.now is the clock */
    STORED(CurrentRecord) *current; /* NULL: the id was never used */
    struct fixture_run runs[FIXTURE_RUNS_MAX];
    size_t run_count;
    int64_t last_task_id;                 /* of all events so far */
    vector_of(struct fixture_task) tasks; /* in the outbox, the oldest first */
    uint64_t request_count;
    size_t inherited; /* events that the next run begins with: the first ones of the newest run */
    /* What the last call answered. */
    struct start_answer started;
    struct decision_start decision; /* the newest that was polled or relayed */
    struct complete_answer completed;
};

/* A registered domain, default settings, no run. */
struct fixture *fixture_new(void);
/* The same with a run whose first decision has begun. */
struct fixture *fixture_new_deciding(void);
void fixture_drop(struct fixture **fixture);
/* Runs the body in that world, then drops it. */
void fixture_play(struct fixture *fixture, void (*body)(struct fixture *fixture));
/* A test in such a world, or in one that a test's own function makes. */
#define COMMAND_TEST_IN(suite, title, world, ...)                                                  \
    TEST_IN(suite, title, struct fixture *fixture, fixture_play(world, body), ##__VA_ARGS__)
#define COMMAND_TEST(suite, title, ...) COMMAND_TEST_IN(suite, title, fixture_new(), ##__VA_ARGS__)
/* Settings, in the file's format: "history.stickyTTL: [{value: 1h}]\n". Replaces all. */
void fixture_configure(struct fixture *fixture, const char *yaml);
/* The domain as a record that may be changed (a status, a bad binary) before fixture_set_domain. */
STORED(DomainRecord) *fixture_domain_record(struct fixture *fixture);
void fixture_set_domain(struct fixture *fixture, const STORED(DomainRecord) *record);

/* --- runs ----------------------------------------------------------------------------------------
 */

/* The newest run; one by its number from 0. */
struct run *fixture_run(const struct fixture *fixture);
struct run *fixture_run_at(const struct fixture *fixture, size_t index);
/* Closed runs are forgotten, all but the newest: for chains that are longer than the room. */
void fixture_forget_closed(struct fixture *fixture);
/* A stored event of the newest run, by its id; the test fails if there is none. */
API(HistoryEvent) *fixture_event(const struct fixture *fixture, int64_t event_id);
API(HistoryEvent) *fixture_event_of(const struct fixture *fixture, size_t index, int64_t event_id);
/* ns */
int64_t fixture_event_time(const API(HistoryEvent) *event);
/* "WorkflowExecutionStarted DecisionTaskScheduled": the stored history of a run. */
const char *fixture_history(const struct fixture *fixture, size_t index);
#define EXPECT_HISTORY(fixture, names)                                                             \
    EXPECT_TEXT(fixture_history((fixture), (fixture)->run_count - 1), (names))
#define EXPECT_HISTORY_OF(fixture, index, names)                                                   \
    EXPECT_TEXT(fixture_history((fixture), (index)), (names))

/* The run as its history says it is; the caller frees it. What it needs is in the arena. */
struct run *fixture_rebuild(const struct fixture *fixture, size_t index, struct arena *arena);
/* Fails the test unless the run is what its history says, but for what no event tells. */
void fixture_expect_rebuilt(const struct fixture *fixture, size_t index);

/* --- steps ---------------------------------------------------------------------------------------
 */

/* Decides on the newest run (or none) and finishes the step, or takes it back when refused. */
must_use struct error *fixture_step(struct fixture *fixture,
                                    struct error *(*decide)(void *context, struct step *step),
                                    void *context);
/* The same on another run. */
must_use struct error *fixture_step_on(struct fixture *fixture, size_t index,
                                       struct error *(*decide)(void *context, struct step *step),
                                       void *context);
/* Moves the clock. Wake-up timers fire on the way, each at its time; a moment before it nothing is
 * due. */
void fixture_advance(struct fixture *fixture, int64_t seconds);

/* --- clients -------------------------------------------------------------------------------------
 */

/* A request id that was not used before. */
char *fixture_request_id(struct fixture *fixture);
/* A good request: workflow "wf" of type "type" on list "list", 100 s, decisions 10 s, duplicates
 * allowed; the test changes what it is about. */
API(StartWorkflowExecutionRequest) *fixture_start_request(struct fixture *fixture);
must_use struct error *fixture_start(struct fixture *fixture,
                                     const API(StartWorkflowExecutionRequest) *request);
/* Starts a good one. */
void fixture_begin(struct fixture *fixture);
must_use struct error *fixture_signal_with_start(struct fixture *fixture,
                                                 const API(StartWorkflowExecutionRequest) *request,
                                                 const char *name);
/* `request_id` may be "". */
must_use struct error *fixture_signal(struct fixture *fixture, const char *name,
                                      const char *request_id);
must_use struct error *fixture_request_cancel(struct fixture *fixture, const char *request_id);
must_use struct error *fixture_terminate(struct fixture *fixture);
GOOGLE(Duration) *fixture_duration(struct fixture *fixture, int64_t seconds);
API(Payload) *fixture_payload(struct fixture *fixture, const char *text);
const char *fixture_payload_text(struct fixture *fixture, const API(Payload) *payload);

/* --- workers
 * -------------------------------------------------------------------------------------- */

/* Takes the oldest decision task from the outbox and starts it. False: there is none. */
bool fixture_poll_decision(struct fixture *fixture);
/* Starts the decision that `task` names. */
must_use struct error *fixture_start_decision(struct fixture *fixture, const struct task_name *task,
                                              const char *request_id);
/* What the newest decision's token names. */
struct task_name fixture_decision_name(const struct fixture *fixture);
/* Takes the oldest activity task from the outbox and starts it. False: there is none. */
bool fixture_poll_activity(struct fixture *fixture, struct activity_start *start);
/* The oldest task in the outbox of this type; NULL: none. */
const STORED(TransferRow) *fixture_task(const struct fixture *fixture, STORED(TransferType) type);

/* A completion of the newest decision by "worker", without decisions. */
API(RespondDecisionTaskCompletedRequest) *fixture_completion(struct fixture *fixture);
must_use struct error *fixture_respond(struct fixture *fixture,
                                       const API(RespondDecisionTaskCompletedRequest) *request);
/* The same with these decisions. */
must_use struct error *fixture_complete_list(struct fixture *fixture, API(Decision) **decisions,
                                             size_t count);
#define fixture_complete(fixture, ...)                                                             \
    fixture_complete_list(                                                                         \
        (fixture), (API(Decision) *[]){NULL, ##__VA_ARGS__} + 1,                                   \
        sizeof((API(Decision) *[]){NULL, ##__VA_ARGS__}) / sizeof(API(Decision) *) - 1)
/* A failure of the newest decision by "worker", with details "broken". */
must_use struct error *fixture_fail_decision(struct fixture *fixture);
must_use struct error *fixture_fail_decision_with(struct fixture *fixture,
                                                  API(DecisionTaskFailedCause) cause);

/* A decision of this kind (an arm of Decision), its attributes there and all unset. */
API(Decision) *fixture_decision(struct fixture *fixture, API(Decision__AttributesCase) kind);
API(Decision) *fixture_complete_run(struct fixture *fixture);
API(Decision) *fixture_fail_run(struct fixture *fixture, const char *reason);
API(Decision) *fixture_cancel_run(struct fixture *fixture);
API(Decision) *fixture_continue_as_new(struct fixture *fixture);
API(Decision) *fixture_marker(struct fixture *fixture, const char *name);
API(Decision) *fixture_timer(struct fixture *fixture, const char *timer_id, int64_t seconds);

#endif
