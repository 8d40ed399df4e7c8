/* cross_test.c - decisions that aim at other workflows, and what a run learns of them.
 *
 * Only one side of each is here: a parent, or a child; what goes between them is the outbox's and
 * is tested with both (api/workflow/child_test.c). */
#include "engine/command/test/activity_calls.h"
#include "engine/run/apply.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TRANSFER(name) CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_##name
#define POLICY(name)   API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)
#define FIRST_FOUR                                                                                 \
    "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted DecisionTaskCompleted"
#define NO_UUID "not-a-uuid"

enum { BAD_CANCEL = 10, BAD_SIGNAL = 15, BAD_CHILD = 16 }; /* */

static API(Decision) *
child_decision(struct fixture *fixture, const char *workflow_id)
{
    return API_DECISION(fixture->arena, start_child_workflow_execution,
                        .workflow_id = (char *)workflow_id,
                        .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "kid"));
}

static API(WorkflowExecution) *
execution(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return API_NEW(fixture->arena, workflow_execution, .workflow_id = (char *)workflow_id,
                   .run_id = (char *)run_id);
}

static API(Decision) *
signal_decision(struct fixture *fixture, const char *workflow_id, const char *run_id,
                const char *name)
{
    return API_DECISION(fixture->arena, signal_external_workflow_execution,
                        .workflow_execution = execution(fixture, workflow_id, run_id),
                        .signal_name = (char *)name);
}

static API(Decision) *
cancel_decision(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return API_DECISION(fixture->arena, request_cancel_external_workflow_execution,
                        .workflow_execution = execution(fixture, workflow_id, run_id));
}

/* --- what is refused ---- */

static void
expect_fault(API(Decision) *(*make_decision)(struct fixture *fixture), int cause, const char *text)
{
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    fixture_configure(fixture, "limit.workflowIDLength: [{value: 10}]\n");
    calls_begin(fixture, make_decision(fixture));
    calls_expect_refused(fixture, cause, text);
    EXPECT_EQ(map64_count(fixture_run(fixture)->children), 0);
    EXPECT_EQ(map64_count(fixture_run(fixture)->externals), 0);
}

static API(Decision) *
child_without_id(struct fixture *fixture)
{
    return child_decision(fixture, "");
}

static API(Decision) *
child_without_type(struct fixture *fixture)
{
    API(Decision) *decision = child_decision(fixture, "kid");
    decision->start_child_workflow_execution_decision_attributes->workflow_type = NULL;
    return decision;
}

static API(Decision) *
child_with_long_id(struct fixture *fixture)
{
    return child_decision(fixture, "0123456789a");
}

static API(Decision) *
child_on_reserved_list(struct fixture *fixture)
{
    API(Decision) *decision = child_decision(fixture, "kid");
    decision->start_child_workflow_execution_decision_attributes->task_list =
        API_NEW(fixture->arena, task_list, .name = "/__cadence_sys/x");
    return decision;
}

static API(Decision) *
signal_without_target(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, signal_external_workflow_execution);
}

static API(Decision) *
signal_without_name(struct fixture *fixture)
{
    return signal_decision(fixture, "other", "", "");
}

static API(Decision) *
signal_to_bad_run(struct fixture *fixture)
{
    return signal_decision(fixture, "other", NO_UUID, "s");
}

static API(Decision) *
cancel_without_id(struct fixture *fixture)
{
    return cancel_decision(fixture, "", "");
}

static API(Decision) *
cancel_of_bad_run(struct fixture *fixture)
{
    return cancel_decision(fixture, "other", NO_UUID);
}

static API(Decision) *
cancel_in_no_domain(struct fixture *fixture)
{
    API(Decision) *decision = cancel_decision(fixture, "other", "");
    decision->request_cancel_external_workflow_execution_decision_attributes->domain = "nowhere";
    return decision;
}

TEST(cross, a_bad_decision_fails_the_task_with_its_cause, "A-075")
{
    expect_fault(child_without_id, BAD_CHILD, "Required field WorkflowID is not set on decision.");
    expect_fault(child_without_type, BAD_CHILD,
                 "Required field WorkflowType is not set on decision.");
    expect_fault(child_with_long_id, BAD_CHILD, "WorkflowId exceeds length limit.");
    expect_fault(child_on_reserved_list, BAD_CHILD,
                 "task list name cannot start with reserved prefix /__cadence_sys/");
    expect_fault(signal_without_target, BAD_SIGNAL, "Execution is nil on decision.");
    expect_fault(signal_without_name, BAD_SIGNAL, "SignalName is not set on decision.");
    expect_fault(signal_to_bad_run, BAD_SIGNAL, "Invalid RunId set on decision.");
    expect_fault(cancel_without_id, BAD_CANCEL, "WorkflowId is not set on decision.");
    expect_fault(cancel_of_bad_run, BAD_CANCEL, "Invalid RunId set on decision.");
    expect_fault(cancel_in_no_domain, BAD_CANCEL,
                 "Unable to cancel workflow across domain: nowhere.");
}

COMMAND_TEST(cross, an_input_over_the_limit_fails_the_run, "A-251")
{
    fixture_configure(fixture, "limit.blobSize.error: [{value: 4}]\n");
    API(Decision) *decision = child_decision(fixture, "kid");
    decision->start_child_workflow_execution_decision_attributes->input =
        fixture_payload(fixture, "12345");
    calls_begin(fixture, decision);
    const API(Failure) *failure = calls_find_event(fixture, EVENT_KIND(WORKFLOW_EXECUTION_FAILED))
                                      ->workflow_execution_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, "DECISION_BLOB_SIZE_EXCEEDS_LIMIT");
}

/* --- other domains ---- */

struct two_domains {
    struct domain *twin, *alien;
};

static const struct domain *
find_two(const void *context, const char *name)
{
    const struct two_domains *two = context;
    return strcmp(name, "twin") == 0 ? two->twin : strcmp(name, "alien") == 0 ? two->alien : NULL;
}

static struct domain *
domain_in(struct fixture *fixture, const char *name, const char *cluster, bool is_global)
{
    STORED(DomainRecord) *record = fixture_domain_record(fixture);
    API(ClusterReplicationConfiguration) *place =
        API_NEW(fixture->arena, cluster_replication_configuration, .cluster_name = (char *)cluster);
    record->domain->clusters = arena_zalloc(fixture->arena, 1, sizeof(void *));
    record->domain->clusters[record->domain->n_clusters++] = place;
    record->domain->is_global_domain = is_global;
    record->domain->name = (char *)name;
    record->domain->id = arena_format(fixture->arena, "id-of-%s", name);
    return domain_from_record(record);
}

/* A run in a domain of cluster "east" decides this. */
static void
decide_there(struct fixture *fixture, API(Decision) *decision)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
}

static void
open_two(struct fixture *fixture, struct two_domains *two, bool is_global)
{
    struct domain *own = domain_in(fixture, "orders", "east", is_global);
    fixture_set_domain(fixture, own->record);
    domain_drop(own);
    two->twin = domain_in(fixture, "twin", "east", is_global);
    two->alien = domain_in(fixture, "alien", "west", is_global);
    fixture->context.find_domain = find_two;
    fixture->context.find_domain_context = two;
    fixture_begin(fixture);
}

static void
close_two(struct two_domains *two)
{
    domain_drop(two->twin);
    domain_drop(two->alien);
}

COMMAND_TEST(cross, another_domain_must_live_in_the_same_cluster, "A-100", "A-171")
{
    struct two_domains two;
    open_two(fixture, &two, false);
    API(Decision) *child = child_decision(fixture, "kid"),
                  *cancel = cancel_decision(fixture, "x", ""),
                  *signal = signal_decision(fixture, "x", "", "s");
    char **names[] = {
        &child->start_child_workflow_execution_decision_attributes->domain,
        &signal->signal_external_workflow_execution_decision_attributes->domain,
        &cancel->request_cancel_external_workflow_execution_decision_attributes->domain};
    API(Decision) *decisions[] = {child, signal, cancel};
    static const int causes[] = {BAD_CHILD, BAD_SIGNAL, BAD_CANCEL};
    *names[0] = "alien";
    decide_there(fixture, decisions[0]);
    calls_expect_refused(fixture, causes[0],
                         "cannot make cross domain call between orders and alien");
    for (int i = 0; i < 3; i++) {
        *names[i] = "twin";
        decide_there(fixture, decisions[i]);
        EXPECT_OK(fixture_signal(fixture, "next", ""));
    }
    EXPECT_EQ(map64_count(fixture_run(fixture)->children), 1);
    EXPECT_EQ(map64_count(fixture_run(fixture)->externals), 2);
    size_t cursor = 0;
    void *value;
    while (map64_next(fixture_run(fixture)->children, &cursor, NULL, &value))
        EXPECT_TEXT(((STORED(PendingChild) *)value)->domain_id, "id-of-twin");
    close_two(&two);
}

COMMAND_TEST(cross, a_child_in_another_global_domain_is_refused, "A-170")
{
    struct two_domains two;
    open_two(fixture, &two, true);
    API(Decision) *child = child_decision(fixture, "kid");
    child->start_child_workflow_execution_decision_attributes->domain = "twin";
    decide_there(fixture, child);
    calls_expect_refused(fixture, BAD_CHILD,
                         "The child workflow is trying to use domain id-of-twin but it's running "
                         "in domain id-of-orders. Cross-cluster and cross domain child workflows "
                         "are not supported for global domains");
    close_two(&two);
}

/* --- a parent ---- */

struct child_report {
    int64_t initiated_id;
    const char *run_id;
    struct child_close close;
};

static struct error *
decide_child_started(void *context, struct step *step)
{
    const struct child_report *report = context;
    return command_child_started(step, report->initiated_id, report->run_id);
}

static struct error *
decide_child_closed(void *context, struct step *step)
{
    const struct child_report *report = context;
    return command_child_closed(step, report->initiated_id, &report->close);
}

static struct child_report
child_report_of(struct fixture *fixture)
{
    API(HistoryEvent) *end = API_NEW(
        fixture->arena, history_event, .attributes_case = EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED),
        .workflow_execution_completed_event_attributes =
            API_NEW(fixture->arena, workflow_execution_completed_event_attributes));
    return (struct child_report){
        .initiated_id = 5,
        .run_id = "first-run",
        .close = {.workflow_id = "kid",
                  .run_id = "last-run",
                  .first_run_id = "first-run",
                  .event = end},
    };
}

COMMAND_TEST(cross, a_start_and_an_end_that_wait_behind_a_decision_keep_their_order, "A-084",
             "A-086")
{
    calls_begin(fixture, child_decision(fixture, "kid"));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    struct child_report report = child_report_of(fixture);
    EXPECT_OK(fixture_step(fixture, decide_child_started, &report));
    EXPECT_OK(fixture_step(fixture, decide_child_closed, &report));
    EXPECT_OK(fixture_signal(fixture, "late", ""));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
    EXPECT_HISTORY(fixture, FIRST_FOUR " StartChildWorkflowExecutionInitiated "
                                       "WorkflowExecutionSignaled DecisionTaskScheduled "
                                       "DecisionTaskStarted DecisionTaskCompleted MarkerRecorded "
                                       "ChildWorkflowExecutionStarted WorkflowExecutionSignaled "
                                       "ChildWorkflowExecutionCompleted DecisionTaskScheduled");
    const API(ChildWorkflowExecutionCompletedEventAttributes) *completed =
        fixture_event(fixture, 13)->child_workflow_execution_completed_event_attributes;
    EXPECT_EQ(completed->started_event_id, 11);
    EXPECT_EQ(completed->initiated_event_id, 5);
}

COMMAND_TEST(cross, a_parent_that_hears_of_the_end_first_hears_of_both)
{
    calls_begin(fixture, child_decision(fixture, "kid"));
    struct child_report report = child_report_of(fixture);
    EXPECT_OK(fixture_step(fixture, decide_child_closed, &report));
    EXPECT_OK(fixture_step(fixture, decide_child_started, &report)); /* too late */
    EXPECT_OK(fixture_step(fixture, decide_child_closed, &report));  /* a repeat */
    EXPECT_HISTORY(fixture, FIRST_FOUR " StartChildWorkflowExecutionInitiated "
                                       "ChildWorkflowExecutionStarted "
                                       "ChildWorkflowExecutionCompleted DecisionTaskScheduled");
    const API(ChildWorkflowExecutionStartedEventAttributes) *started =
        fixture_event(fixture, 6)->child_workflow_execution_started_event_attributes;
    EXPECT_TEXT(started->workflow_execution->run_id, "first-run");
    const API(ChildWorkflowExecutionCompletedEventAttributes) *completed =
        fixture_event(fixture, 7)->child_workflow_execution_completed_event_attributes;
    EXPECT_TEXT(completed->workflow_execution->run_id, "last-run");
    EXPECT_EQ(completed->started_event_id, 6);
}

COMMAND_TEST(cross, news_for_a_closed_parent_are_refused)
{
    calls_begin(fixture, child_decision(fixture, "kid"));
    EXPECT_OK(fixture_terminate(fixture));
    struct child_report report = child_report_of(fixture);
    EXPECT_KIND(fixture_step(fixture, decide_child_started, &report), ERR_ALREADY_COMPLETED);
    EXPECT_KIND(fixture_step(fixture, decide_child_closed, &report), ERR_ALREADY_COMPLETED);
}

/* --- rows ---- */

COMMAND_TEST(cross, a_close_leaves_rows_for_the_children_that_do_not_live_on)
{
    API(Decision) *abandoned = child_decision(fixture, "free");
    abandoned->start_child_workflow_execution_decision_attributes->parent_close_policy =
        POLICY(ABANDON);
    calls_begin(fixture, child_decision(fixture, "kid"), abandoned);
    struct child_report report = child_report_of(fixture);
    EXPECT_OK(fixture_step(fixture, decide_child_started, &report));
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT(fixture_task(fixture, TRANSFER(END_CHILDREN)) != NULL);
    EXPECT(fixture_task(fixture, TRANSFER(START_CHILD)) != NULL); /* "free" is not started yet */
    EXPECT(fixture_task(fixture, TRANSFER(TELL_PARENT)) == NULL);
}

struct external_report {
    int64_t initiated_id;
    enum external_end end;
};

static struct error *
decide_end_external(void *context, struct step *step)
{
    const struct external_report *report = context;
    return command_end_external(step, report->initiated_id, report->end);
}

COMMAND_TEST(cross, a_signal_on_its_way_is_a_record_and_a_row_until_its_end)
{
    calls_begin(fixture, signal_decision(fixture, "other", "", "s"),
                cancel_decision(fixture, "other", ""));
    const STORED(PendingExternal) *signal = run_find_external(fixture_run(fixture), 5),
                                  *cancel = run_find_external(fixture_run(fixture), 6);
    EXPECT(signal != NULL && cancel != NULL && cancel->is_cancel);
    struct uuid uuid;
    EXPECT(uuid_parse(slice_text(signal->request_id), &uuid));
    EXPECT(strcmp(signal->request_id, cancel->request_id) != 0);
    struct external_report report = {5, EXTERNAL_DELIVERED};
    EXPECT_OK(fixture_step(fixture, decide_end_external, &report));
    EXPECT_OK(fixture_step(fixture, decide_end_external, &report)); /* a repeat */
    EXPECT_EQ(fixture_task(fixture, TRANSFER(EXTERNAL))->schedule_id, 6);
    EXPECT_OK(fixture_terminate(fixture)); /* nobody waits for it any more */
    EXPECT(fixture_task(fixture, TRANSFER(EXTERNAL)) == NULL);
    EXPECT_HISTORY(fixture, FIRST_FOUR " SignalExternalWorkflowExecutionInitiated "
                                       "RequestCancelExternalWorkflowExecutionInitiated "
                                       "ExternalWorkflowExecutionSignaled DecisionTaskScheduled "
                                       "WorkflowExecutionTerminated");
}

/* --- a child ---- */

static struct error *
start_as_child(void *context, struct step *step)
{
    struct fixture *fixture = context;
    API(ParentExecutionInfo) *parent = API_NEW(
        fixture->arena, parent_execution_info, .domain_name = "orders",
        .workflow_execution = execution(fixture, "parent", "parent-run"), .initiated_id = 7);
    struct start_command command = {.request = fixture_start_request(fixture), .parent = parent};
    return command_start(step, &command, &fixture->started);
}

static struct error *
decide_parent_knows(void *context, struct step *step)
{
    return command_parent_knows(step, context);
}

static struct fixture *
waiting_child(void)
{
    struct fixture *fixture = fixture_new();
    EXPECT_OK(fixture_step(fixture, start_as_child, fixture));
    EXPECT(fixture_run(fixture)->core->waits_for_parent);
    return fixture;
}

COMMAND_TEST_IN(cross, a_child_has_no_decision_until_its_parent_knows_it, waiting_child(), "A-159")
{
    EXPECT_OK(fixture_signal(fixture, "early", "")); /* it waits too */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled");
    struct origin stranger = {
        .workflow_id = "parent", .run_id = "another-run", .is_child_only = true};
    EXPECT_KIND(fixture_step(fixture, decide_parent_knows, &stranger), ERR_ENTITY_NOT_EXISTS);
    struct origin other_child = {
        .workflow_id = "parent", .run_id = "parent-run", .is_child_only = true, .child_id = 8};
    EXPECT_KIND(fixture_step(fixture, decide_parent_knows, &other_child), ERR_ENTITY_NOT_EXISTS);
    struct origin parent = {
        .workflow_id = "parent", .run_id = "parent-run", .is_child_only = true, .child_id = 7};
    EXPECT_OK(fixture_step(fixture, decide_parent_knows, &parent));
    EXPECT_OK(fixture_step(fixture, decide_parent_knows, &parent)); /* a repeat */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled "
                            "DecisionTaskScheduled");
}

COMMAND_TEST_IN(cross, a_child_that_is_cancelled_does_not_wait, waiting_child())
{
    EXPECT_OK(fixture_request_cancel(fixture, "c"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionCancelRequested "
                            "DecisionTaskScheduled");
    EXPECT(!fixture_run(fixture)->core->waits_for_parent);
}

/* What is at stake: nobody comes back to a child that was started too late. */
COMMAND_TEST_IN(cross, a_child_that_waits_long_asks_its_parent_less_and_less_often, waiting_child())
{
    fixture_advance(fixture, 9);
    EXPECT(fixture_task(fixture, TRANSFER(ASK_PARENT)) == NULL);
    fixture_advance(fixture, 1);
    EXPECT_EQ(fixture_task(fixture, TRANSFER(ASK_PARENT))->schedule_id, 7);
    EXPECT_EQ(fixture->tasks.count, 1);
    fixture_advance(fixture, 85); /* at 20, 40, 80 */
    EXPECT_EQ(fixture->tasks.count, 4);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted");
}

COMMAND_TEST_IN(cross, a_close_tells_the_parent_and_going_on_does_not, waiting_child(), "A-165")
{
    struct origin parent = {.workflow_id = "parent", .run_id = "parent-run"};
    EXPECT_OK(fixture_step(fixture, decide_parent_knows, &parent));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_continue_as_new(fixture)));
    EXPECT(fixture_task(fixture, TRANSFER(TELL_PARENT)) == NULL);
    EXPECT_OK(fixture_terminate(fixture)); /* the run that it has gone on as */
    const STORED(TransferRow) *row = fixture_task(fixture, TRANSFER(TELL_PARENT));
    EXPECT(row != NULL);
    EXPECT_EQ(row->schedule_id, 7);
    EXPECT_TEXT(row->parent->workflow_execution->run_id, "parent-run");
    EXPECT_TEXT(row->first_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT_EQ(row->close_event->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
}
