/* What a decision that schedules an activity writes, and what it may not say. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"
#include "wire/maps.h"
#include "wire/message.h"

#define BAD       FAILED_CAUSE(BAD_SCHEDULE_ACTIVITY_ATTRIBUTES)
#define DUPLICATE FAILED_CAUSE(SCHEDULE_ACTIVITY_DUPLICATE_ID)

/* The attributes of the newest ActivityTaskScheduled. */
static const API(ActivityTaskScheduledEventAttributes) *
scheduled(const struct fixture *fixture)
{
    return calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_SCHEDULED))
        ->activity_task_scheduled_event_attributes;
}

COMMAND_TEST(schedule_activity, the_event_says_all_that_was_asked_for, "A-096", "A-249")
{
    API(Decision) *decision = retried_activity_decision(fixture, "a", 3, 0);
    API(ScheduleActivityTaskDecisionAttributes) *attributes = activity_attributes(decision);
    attributes->task_list = API_NEW(fixture->arena, task_list, .name = "other",
                                    .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL));
    attributes->header = API_NEW(fixture->arena, header);
    API(Header__FieldsEntry) *field = message_new(fixture->arena, API_TYPE(header__fields_entry));
    field->key = "key";
    field->value = fixture_payload(fixture, "value");
    attributes->header->fields = &field;
    attributes->header->n_fields = 1;
    calls_begin(fixture, decision);

    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled");
    const API(ActivityTaskScheduledEventAttributes) *event = scheduled(fixture);
    EXPECT_TEXT(event->activity_id, "a");
    EXPECT_TEXT(event->activity_type->name, "act");
    EXPECT_TEXT(event->task_list->name, "other");
    EXPECT_EQ(event->task_list->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL));
    EXPECT_TEXT(fixture_payload_text(fixture, event->input), "input");
    EXPECT_EQ(event->schedule_to_close_timeout->seconds, 100);
    EXPECT_EQ(event->schedule_to_start_timeout->seconds, 100);
    EXPECT_EQ(event->start_to_close_timeout->seconds, 50);
    EXPECT_EQ(event->heartbeat_timeout->seconds, 20);
    EXPECT_EQ(event->retry_policy->maximum_attempts, 3);
    EXPECT_EQ(event->retry_policy->initial_interval->seconds, 2);
    EXPECT_EQ(event->decision_task_completed_event_id, 4);
    EXPECT_EQ(event->header->n_fields, 1);
    EXPECT_TEXT(fixture_payload_text(fixture, event->header->fields[0]->value), "value");

    struct activity_start start; /* and so does the task */
    EXPECT(fixture_poll_activity(fixture, &start));
    EXPECT_TEXT(start.activity->header->fields[0]->key, "key");
    EXPECT_TEXT(fixture_payload_text(fixture, start.activity->input), "input");
    EXPECT_TEXT(start.workflow_type->name, "type");
    EXPECT_EQ(start.activity->first_scheduled_time, fixture->context.now);
    EXPECT_EQ(start.activity->started_time, fixture->context.now);
}

/* The list in the event of an activity, of a run on a list of a kind, that asked for one. */
static const API(TaskList) *
list_chosen(struct fixture *fixture, API(TaskListKind) own, const char *name,
            API(TaskListKind) kind)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start_request(fixture);
    start->task_list->kind = own;
    EXPECT_OK(fixture_start(fixture, start));
    API(Decision) *decision =
        activity_decision(fixture, "a", (struct activity_timeouts){10, 10, 10, 0});
    activity_attributes(decision)->task_list = API_NEW(fixture->arena, task_list);
    activity_attributes(decision)->task_list->name = (char *)name;
    activity_attributes(decision)->task_list->kind = kind;
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
    return scheduled(fixture)->task_list;
}

#define LIST_KIND(name) API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_##name)

TEST(schedule_activity, the_list_keeps_its_kind_but_for_the_own_one_of_the_run, "A-096")
{
    static const struct {
        API(TaskListKind) own, requested, chosen;
        const char *name;
    } rows[] = {
        {LIST_KIND(NORMAL), LIST_KIND(INVALID), LIST_KIND(INVALID), "other"},
        {LIST_KIND(NORMAL), LIST_KIND(NORMAL), LIST_KIND(NORMAL), "other"},
        {LIST_KIND(INVALID), LIST_KIND(INVALID), LIST_KIND(NORMAL), ""},
        {LIST_KIND(EPHEMERAL), LIST_KIND(INVALID), LIST_KIND(EPHEMERAL), ""},
        {LIST_KIND(EPHEMERAL), LIST_KIND(INVALID), LIST_KIND(EPHEMERAL), "other"},
        {LIST_KIND(EPHEMERAL), LIST_KIND(NORMAL), LIST_KIND(EPHEMERAL), "other"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        const API(TaskList) *list =
            list_chosen(fixture, rows[i].own, rows[i].name, rows[i].requested);
        EXPECT_TEXT(list->name, rows[i].name[0] == '\0' ? "list" : rows[i].name);
        EXPECT_EQ(list->kind, rows[i].chosen);
    }
}

COMMAND_TEST(schedule_activity, without_a_list_it_goes_to_that_of_the_run)
{
    calls_begin(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10}));
    EXPECT_TEXT(scheduled(fixture)->task_list->name, "list");
    const STORED(TransferRow) *task =
        fixture_task(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY);
    EXPECT_TEXT(task->task_list->name, "list");
    EXPECT_EQ(task->schedule_id, 5);
    EXPECT_TEXT(task->list_domain_id, "");
}

/* The run lasts 100 s. */
TEST(schedule_activity, timeouts_that_are_not_given_follow_from_the_others, "A-097")
{
    static const struct {
        struct activity_timeouts given, wanted;
    } cases[] = {
        {{.schedule_to_close = 30}, {30, 30, 30, 0}},
        {{.schedule_to_close = 30, .schedule_to_start = 5}, {30, 5, 30, 0}},
        {{.schedule_to_close = 30, .start_to_close = 7, .heartbeat = 3}, {30, 30, 7, 3}},
        {{.schedule_to_start = 20, .start_to_close = 30}, {50, 20, 30, 0}},
        {{.schedule_to_start = 80, .start_to_close = 90}, {100, 80, 90, 0}},
        {{.schedule_to_close = 101,
          .schedule_to_start = 500,
          .start_to_close = 600,
          .heartbeat = 700},
         {100, 100, 100, 100}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        calls_begin(fixture, activity_decision(fixture, "a", cases[i].given));
        const API(ActivityTaskScheduledEventAttributes) *event = scheduled(fixture);
        EXPECT_EQ(event->schedule_to_close_timeout->seconds, cases[i].wanted.schedule_to_close);
        EXPECT_EQ(event->schedule_to_start_timeout->seconds, cases[i].wanted.schedule_to_start);
        EXPECT_EQ(event->start_to_close_timeout->seconds, cases[i].wanted.start_to_close);
        EXPECT_EQ(event->heartbeat_timeout->seconds, cases[i].wanted.heartbeat);
    }
}

/* Each is refused by failing the decision, and its run goes on. */
static void
expect_refused(struct activity_timeouts timeouts, const char *text)
{
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    calls_begin(fixture, activity_decision(fixture, "a", timeouts));
    calls_expect_refused(fixture, BAD, text);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskFailed");
    EXPECT(calls_activity(fixture, "a") == NULL);
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
}

TEST(schedule_activity, too_few_or_negative_timeouts_are_refused, "A-097", "A-074", "A-075")
{
    static const char missing[] = "A valid ScheduleToCloseTimeout is not set on decision.";
    static const char negative[] = "A valid timeout may not be negative.";
    expect_refused((struct activity_timeouts){0}, missing);
    expect_refused((struct activity_timeouts){.schedule_to_start = 5}, missing);
    expect_refused((struct activity_timeouts){.start_to_close = 5, .heartbeat = 5}, missing);
    expect_refused((struct activity_timeouts){.schedule_to_close = -1}, negative);
    expect_refused((struct activity_timeouts){30, 5, 5, -1}, negative);
}

TEST(schedule_activity, a_retry_policy_stretches_the_timeouts, "A-098")
{
    static const struct {
        int64_t execution, expiration;
        bool is_final;
        int64_t to_close, to_start;
    } cases[] = {
        {100, 0, false, 100, 100},        /* the run is the limit */
        {100, 80, false, 80, 80},         /* the policy is */
        {100, 20, false, 50, 50},         /* nothing is shortened */
        {10000, 9000, false, 9000, 1800}, /* no task waits longer than half an hour */
        {10000, 9000, true, 9000, 50},    /* unless waiting too long is final */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
        request->execution_start_to_close_timeout = fixture_duration(fixture, cases[i].execution);
        EXPECT_OK(fixture_start(fixture, request));
        EXPECT(fixture_poll_decision(fixture));
        API(Decision) *decision = retried_activity_decision(fixture, "a", 5, cases[i].expiration);
        char *reason = "cadenceInternal:Timeout SCHEDULE_TO_START";
        API(RetryPolicy) *policy = activity_attributes(decision)->retry_policy;
        policy->non_retryable_error_reasons = &reason;
        policy->n_non_retryable_error_reasons = cases[i].is_final;
        EXPECT_OK(fixture_complete(fixture, decision));
        EXPECT_EQ(scheduled(fixture)->schedule_to_close_timeout->seconds, cases[i].to_close);
        EXPECT_EQ(scheduled(fixture)->schedule_to_start_timeout->seconds, cases[i].to_start);
        EXPECT_EQ(scheduled(fixture)->start_to_close_timeout->seconds, 50);
    }
}

COMMAND_TEST(schedule_activity, an_id_that_is_pending_is_refused_and_one_that_is_over_is_not,
             "A-099", "A-075")
{
    calls_begin(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10}),
                activity_decision(fixture, "b", (struct activity_timeouts){10}),
                activity_decision(fixture, "a", (struct activity_timeouts){10}));
    calls_expect_refused(fixture, DUPLICATE, "");
    EXPECT(calls_activity(fixture, "b") == NULL); /* the whole list is taken back */

    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(
        fixture_complete(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10})));
    EXPECT_OK(calls_complete(fixture, calls_poll_activity(fixture)));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(
        fixture_complete(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10})));
    EXPECT(calls_activity(fixture, "a") != NULL);
}

static void
change_nothing(API(ScheduleActivityTaskDecisionAttributes) *attributes)
{
    attributes->activity_id = "";
}

static void
change_type(API(ScheduleActivityTaskDecisionAttributes) *attributes)
{
    attributes->activity_type = NULL;
}

static void
change_policy(API(ScheduleActivityTaskDecisionAttributes) *attributes)
{
    attributes->retry_policy->backoff_coefficient = 0.5;
}

static void
change_list(API(ScheduleActivityTaskDecisionAttributes) *attributes)
{
    static API(TaskList) list;
    list = (API(TaskList))UBER__CADENCE__API__V1__TASK_LIST__INIT;
    list.name = "/__cadence_sys/mine";
    attributes->task_list = &list;
}

static void
change_domain(API(ScheduleActivityTaskDecisionAttributes) *attributes)
{
    attributes->domain = "nowhere";
}

TEST(schedule_activity, names_and_policies_are_checked, "A-074", "A-254")
{
    static const struct {
        void (*change)(API(ScheduleActivityTaskDecisionAttributes) *attributes);
        const char *text;
    } cases[] = {
        {change_nothing, "ActivityId is not set on decision."},
        {change_type, "ActivityType is not set on decision."},
        {change_policy, "BackoffCoefficient cannot be less than 1 on retry policy."},
        {change_list, "task list name cannot start with reserved prefix /__cadence_sys/"},
        {change_domain, "Unable to schedule activity across domain nowhere."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(Decision) *decision = retried_activity_decision(fixture, "a", 3, 0);
        cases[i].change(activity_attributes(decision));
        calls_begin(fixture, decision);
        calls_expect_refused(fixture, BAD, cases[i].text);
    }
}

TEST(schedule_activity, names_longer_than_the_limit_are_refused, "A-037")
{
    char name[1002];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    calls_begin(fixture, activity_decision(fixture, name, (struct activity_timeouts){10}));
    calls_expect_refused(fixture, BAD, "ActivityID exceeds length limit.");
    EXPECT(fixture_poll_decision(fixture));
    name[1000] = '\0';
    EXPECT_OK(fixture_complete(fixture,
                               activity_decision(fixture, name, (struct activity_timeouts){10})));
    EXPECT(calls_activity(fixture, name) != NULL);
}

/* Domains that the fixture's is asked about: "twin" has the clusters it has, "alien" another. */
struct two_domains {
    struct domain *twin, *alien;
};

static const struct domain *
find_two(const void *context, const char *name)
{
    const struct two_domains *two = context;
    return strcmp(name, "twin") == 0 ? two->twin : strcmp(name, "alien") == 0 ? two->alien : NULL;
}

static STORED(DomainRecord) *
record_in(struct fixture *fixture, const char *name, const char *const *clusters, size_t count)
{
    STORED(DomainRecord) *record = fixture_domain_record(fixture);
    record->domain->n_clusters = count;
    record->domain->clusters =
        arena_zalloc(fixture->arena, count, sizeof record->domain->clusters[0]);
    for (size_t i = 0; i < count; i++) {
        record->domain->clusters[i] = API_NEW(fixture->arena, cluster_replication_configuration,
                                              .cluster_name = (char *)clusters[i]);
    }
    if (name != NULL) {
        record->domain->name = (char *)name;
        record->domain->id = arena_format(fixture->arena, "id-of-%s", name);
    }
    return record;
}

static void
schedule_in(struct fixture *fixture, const char *domain)
{
    API(Decision) *decision = activity_decision(fixture, "a", (struct activity_timeouts){10});
    activity_attributes(decision)->domain = (char *)domain;
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
}

/* One cluster each: the same one is needed. */
TEST(schedule_activity, another_domain_must_live_in_the_same_cluster, "A-100")
{
    static const char *const here[] = {"east"}, *const there[] = {"west"};
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    fixture_set_domain(fixture, record_in(fixture, NULL, here, 1));
    struct two_domains two = {
        .twin = domain_from_record(record_in(fixture, "twin", here, 1)),
        .alien = domain_from_record(record_in(fixture, "alien", there, 1)),
    };
    fixture->context.find_domain = find_two;
    fixture->context.find_domain_context = &two;
    fixture_begin(fixture);
    schedule_in(fixture, "alien");
    calls_expect_refused(fixture, BAD, "cannot make cross domain call between orders and alien");
    schedule_in(fixture, "twin");
    const STORED(TransferRow) *task =
        fixture_task(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY);
    EXPECT_TEXT(task->list_domain_id, "id-of-twin"); /* its task is on that domain's list */
    EXPECT_TEXT(scheduled(fixture)->domain, "twin");
    domain_drop(two.twin);
    domain_drop(two.alien);
}

/* Several clusters: the same set is needed, and the setting. */
TEST(schedule_activity, another_global_domain_needs_the_same_clusters_and_the_setting, "A-100")
{
    static const char *const here[] = {"east", "west"}, *const swapped[] = {"west", "east"},
                             *const there[] = {"east", "north"};
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    fixture_set_domain(fixture, record_in(fixture, NULL, here, 2));
    struct two_domains two = {
        .twin = domain_from_record(record_in(fixture, "twin", swapped, 2)),
        .alien = domain_from_record(record_in(fixture, "alien", there, 2)),
    };
    fixture->context.find_domain = find_two;
    fixture->context.find_domain_context = &two;
    fixture_begin(fixture);
    schedule_in(fixture, "twin");
    calls_expect_refused(fixture, BAD, "cannot make cross domain call between orders and twin");
    fixture_configure(fixture, "history.enableCrossClusterOperations: [{value: true}]\n");
    schedule_in(fixture, "alien");
    EXPECT(calls_activity(fixture, "a") == NULL);
    schedule_in(fixture, "twin");
    EXPECT(calls_activity(fixture, "a") != NULL);
    domain_drop(two.twin);
    domain_drop(two.alien);
}

COMMAND_TEST(schedule_activity, too_many_pending_fail_the_run_where_that_is_asked_for, "A-121")
{
    fixture_configure(fixture, "limit.pendingActivityCount.enabled: [{value: true}]\n"
                               "limit.pendingActivityCount.error: [{value: 2}]\n");
    calls_begin(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10}),
                activity_decision(fixture, "b", (struct activity_timeouts){10}),
                activity_decision(fixture, "c", (struct activity_timeouts){10}));
    EXPECT(!run_is_open(fixture_run(fixture)));
    const API(Failure) *failure = calls_find_event(fixture, EVENT_KIND(WORKFLOW_EXECUTION_FAILED))
                                      ->workflow_execution_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, "PENDING_ACTIVITY_EXCEEDS_LIMIT");
}

COMMAND_TEST(schedule_activity, an_input_over_the_limit_fails_the_run, "A-251")
{
    fixture_configure(fixture, "limit.blobSize.error: [{value: 4}]\n");
    calls_begin(fixture, activity_decision(fixture, "a", (struct activity_timeouts){10}));
    const API(Failure) *failure = calls_find_event(fixture, EVENT_KIND(WORKFLOW_EXECUTION_FAILED))
                                      ->workflow_execution_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, "DECISION_BLOB_SIZE_EXCEEDS_LIMIT");
}
