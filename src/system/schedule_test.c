/* schedule_test.c - schedules as their users see them: created, described, fired, listed, deleted.
 * How they are steered is schedule_steer_test.c, what they do about overlaps
 * schedule_overlap_test.c. */
#include "system/test_scheduling.h"

#include "wire/maps.h"

#define NO_TOKEN ((ProtobufCBinaryData){0})

static int64_t
seconds_of(const GOOGLE(Timestamp) *time)
{
    return time == NULL ? 0 : time->seconds;
}

/* --- created and described ---- */

static API(Memo) *
memo_of(struct fixture *fixture, const char *key)
{
    API(Memo) *memo = API_NEW(fixture->arena, memo, .n_fields = 1);
    memo->fields = arena_zalloc(fixture->arena, 1, sizeof memo->fields[0]);
    memo->fields[0] = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    memo->fields[0]->key = (char *)key;
    memo->fields[0]->value = fixture_payload(fixture, "\"m\"");
    return memo;
}

static API(CreateScheduleRequest) *
make_full(struct fixture *fixture)
{
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "full", "@every 30s");
    API(ScheduleAction__StartWorkflowAction) *action = request->action->start_workflow;
    int64_t start = clock_wall() + 120 * NS_PER_S;
    request->spec->start_time = presence_make_timestamp(fixture->arena, start);
    request->spec->end_time = presence_make_timestamp(fixture->arena, start + 3600 * NS_PER_S);
    request->spec->jitter = presence_make_duration(fixture->arena, 15);
    action->input = fixture_payload(fixture, "\"hello\"");
    action->workflow_id_prefix = "prefix-";
    action->retry_policy = API_NEW(fixture->arena, retry_policy,
                                   .initial_interval = presence_make_duration(fixture->arena, 1),
                                   .backoff_coefficient = 2, .maximum_attempts = 3);
    action->memo = memo_of(fixture, "action");
    action->search_attributes = listing_attributes(fixture, "CustomKeywordField", "\"sa\"");
    request->policies->overlap_policy = OVERLAP(BUFFER);
    request->policies->catch_up_policy = CATCH_UP(ONE);
    request->policies->catch_up_window = presence_make_duration(fixture->arena, 3600);
    request->policies->pause_on_failure = true;
    request->policies->buffer_limit = 5;
    request->memo = memo_of(fixture, "schedule");
    request->search_attributes = listing_attributes(fixture, "CustomIntField", "7");
    return request;
}

static void
expect_same(struct fixture *fixture, const ProtobufCMessage *one, const ProtobufCMessage *other)
{
    EXPECT(other != NULL);
    EXPECT(slice_equal(message_encode(fixture->arena, one), message_encode(fixture->arena, other)));
}

SERVER_TEST(schedule, describe_tells_all_that_was_given_and_needs_no_decision_before, "A-271")
{
    scheduling_open(fixture);
    const API(CreateScheduleRequest) *request = make_full(fixture);
    int64_t now = clock_wall();
    scheduling_create(fixture, request);
    for (int i = 0; i < 2; i++) { /* before and after its first decision */
        const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "full");
        expect_same(fixture, &request->spec->base, &described->spec->base);
        expect_same(fixture, &request->action->base, &described->action->base);
        expect_same(fixture, &request->policies->base, &described->policies->base);
        expect_same(fixture, &request->memo->base, &described->memo->base);
        expect_same(fixture, &request->search_attributes->base,
                    &described->search_attributes->base);
        EXPECT(!described->state->paused && described->state->pause_info == NULL);
        EXPECT_EQ(described->info->total_runs, 0);
        EXPECT(seconds_of(described->info->create_time) - now / NS_PER_S <= 1);
        EXPECT_EQ(seconds_of(described->info->next_run_time),
                  (now + 120 * NS_PER_S + NS_PER_S - 1) / NS_PER_S - 1 + 30);
        EXPECT(described->info->last_run_time == NULL);
        scheduling_wait(fixture, 5);
    }
    const API(WorkflowExecutionInfo) *run = list_one(fixture, "cadence-scheduler:full");
    EXPECT_TEXT(run->type->name, "cadence-scheduler");
}

SERVER_TEST(schedule, an_id_is_taken_until_its_schedule_is_deleted, "A-266")
{
    scheduling_open(fixture);
    scheduling_create(fixture, scheduling_new(fixture, "one", "@hourly"));
    struct error *err = scheduling_try(fixture, scheduling_new(fixture, "one", "@daily"));
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "schedule \"one\" already exists in domain \"orders\"");
    scheduling_delete(fixture, "one");
    scheduling_create(fixture, scheduling_new(fixture, "one", "@daily")); /* at once */
    EXPECT_TEXT(scheduling_describe(fixture, "one")->spec->cron_expression, "@daily");
}

/* --- refused ---- */

static void
expect_refused(struct fixture *fixture, const API(CreateScheduleRequest) *request,
               const char *sentence)
{
    struct error *err = scheduling_try(fixture, request);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, sentence);
}

SERVER_TEST(schedule, what_lacks_is_reported, "A-267")
{
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "", "@hourly");
    expect_refused(fixture, request, "ScheduleID is not set on request.");
    request->schedule_id = "bad";
    request->domain = "";
    expect_refused(fixture, request, "Domain not set on request.");
    request->domain = "orders";
    API(ScheduleSpec) *spec = request->spec;
    request->spec = NULL;
    expect_refused(fixture, request, "Spec is not set on request.");
    request->spec = spec;
    spec->cron_expression = "";
    expect_refused(fixture, request, "CronExpression is not set on request.");
    spec->cron_expression = "* * *";
    expect_refused(fixture, request,
                   "Invalid CronSchedule, failed to parse: \"* * *\", err: expected exactly 5 "
                   "fields, found 3: [* * *]");
    spec->cron_expression = "@hourly";
    API(ScheduleAction) *action = request->action;
    request->action = NULL;
    expect_refused(fixture, request, "Action.StartWorkflow is not set on request.");
    request->action = API_NEW(fixture->arena, schedule_action);
    expect_refused(fixture, request, "Action.StartWorkflow is not set on request.");
    request->action = action;
    EXPECT_OK(scheduling_try(fixture, request));
}

SERVER_TEST(schedule, what_contradicts_itself_is_refused, "A-268", "A-269", "A-270")
{
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "bad", "@hourly");
    request->spec->start_time = presence_make_timestamp(fixture->arena, 5 * NS_PER_S);
    request->spec->end_time = presence_make_timestamp(fixture->arena, 5 * NS_PER_S);
    expect_refused(fixture, request, "Spec.EndTime must be after Spec.StartTime.");
    request->spec->start_time = NULL;
    request->policies->overlap_policy = OVERLAP(SKIP_NEW);
    request->policies->catch_up_policy = CATCH_UP(ALL);
    expect_refused(fixture, request,
                   "SKIP_NEW overlap policy with CATCH_UP_ALL catch-up policy is invalid: "
                   "caught-up fires would be immediately skipped due to overlap with the previous "
                   "run.");
    request->policies->catch_up_policy = CATCH_UP(ONE);
    request->search_attributes = listing_attributes(fixture, "CadenceScheduleState", "\"active\"");
    expect_refused(fixture, request,
                   "search attribute key \"CadenceScheduleState\" is reserved for internal use");
    request->search_attributes = NULL;
    request->policies->overlap_policy = 77;
    EXPECT_KIND(scheduling_try(fixture, request), ERR_BAD_REQUEST);
}

SERVER_TEST(schedule, one_that_is_not_there_is_not_found_but_can_be_deleted, "A-282", "A-280")
{
    static const char *const text = "schedule \"nobody\" not found in domain \"orders\"";
    API(DescribeScheduleRequest) *describe = API_NEW(fixture->arena, describe_schedule_request);
    API(PauseScheduleRequest) *pause = API_NEW(fixture->arena, pause_schedule_request);
    API(UnpauseScheduleRequest) *unpause = API_NEW(fixture->arena, unpause_schedule_request);
    API(UpdateScheduleRequest) *update = scheduling_update(fixture, "nobody");
    describe->domain = pause->domain = unpause->domain = "orders";
    describe->schedule_id = pause->schedule_id = unpause->schedule_id = "nobody";
    update->policies = API_NEW(fixture->arena, schedule_policies);
    const ProtobufCMessage *const calls[] = {&describe->base, &pause->base, &unpause->base,
                                             &update->base,
                                             &scheduling_backfill(fixture, "nobody", 10, 5)->base};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct error *err = fixture_call_at(fixture, calls[i], NULL);
        EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
        EXPECT_TEXT(err->message, text);
    }
    scheduling_delete(fixture, "nobody");
}

/* --- firing ---- */

static void
fires(struct fixture *fixture)
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "five", "@every 5s");
    request->action->start_workflow->workflow_id_prefix = "shop";
    request->action->start_workflow->search_attributes =
        listing_attributes(fixture, "CustomKeywordField", "\"mine\"");
    scheduling_create(fixture, request);
    int64_t created = seconds_of(scheduling_describe(fixture, "five")->info->create_time);
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_TEXT(task->workflow_type->name, "order");
    EXPECT_EQ(strncmp(task->workflow_execution->workflow_id, "shop-20", 7), 0);
    scheduling_wait(fixture, 1);
    EXPECT(clock_wall() / NS_PER_S - created <= 8); /* on time */
    const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "five");
    EXPECT_EQ(described->info->total_runs, 1);
    EXPECT_EQ(seconds_of(described->info->last_run_time), created + 5);
    EXPECT_EQ(seconds_of(described->info->next_run_time), created + 10);
    EXPECT_EQ(described->info->running_workflow_count, 1);
    EXPECT_EQ(scheduling_count_where(
                  fixture, "CadenceScheduleID = 'five' and CadenceScheduleIsBackfill = false and "
                           "CustomKeywordField = 'mine' and CloseTime = missing"),
              1);
    const API(WorkflowExecutionInfo) *run =
        list_one(fixture, task->workflow_execution->workflow_id);
    const API(SearchAttributes__IndexedFieldsEntry) *time =
        wire_map_find(run->search_attributes->indexed_fields,
                      run->search_attributes->n_indexed_fields, "CadenceScheduleTime");
    EXPECT(time != NULL);
    const char *text = arena_text_of(fixture->arena, presence_read_payload(time->value).bytes);
    EXPECT_TEXT(arena_format(fixture->arena, "\"%s\"",
                             task->workflow_execution->workflow_id + strlen("shop-")),
                text);
    EXPECT_EQ(scheduling_count_where(fixture, "CadenceScheduleBackfillID = missing and "
                                              "CadenceScheduleID = 'five'"),
              1);
}

TEST(schedule, a_schedule_starts_its_workflow_on_time_and_marks_it, "A-272", "A-273")
{
    fixture_run(fires);
}

SERVER_TEST(schedule, jitter_delays_each_fire_and_the_end_time_is_the_last, "A-284")
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "late", "* * * * *");
    int64_t minute = clock_wall() / (60 * NS_PER_S) * 60;
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    request->spec->jitter = presence_make_duration(fixture->arena, 50);
    request->spec->end_time =
        presence_make_timestamp(fixture->arena, (minute + 300) * NS_PER_S + 1);
    scheduling_create(fixture, request);
    bool is_delayed = false;
    for (int i = 0; i < 5; i++) {
        const API(PollForDecisionTaskResponse) *task = NULL;
        do
            task = poll_decision(fixture, "work");
        while (task->task_token.len == 0);
        int64_t late = clock_wall() / NS_PER_S - (minute + 60 * (i + 1));
        EXPECT(late >= 0 && late <= 52);
        is_delayed |= late > 2;
        run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    }
    EXPECT(is_delayed);
    scheduling_wait(fixture, 600);
    EXPECT_EQ(scheduling_count(fixture, "late"), 5);
    EXPECT_EQ(scheduling_list(fixture, 0, NO_TOKEN)->n_schedules, 0); /* it has come to its end */
}

SERVER_TEST(schedule, a_domain_may_have_its_schedules_switched_off, "A-285")
{
    fixture_set(fixture, "worker.enableScheduler: [{value: false, constraints: {domainName: "
                         "orders}}]\n");
    scheduling_open(fixture);
    scheduling_create(fixture, scheduling_new(fixture, "off", "@every 10s"));
    scheduling_wait(fixture, 120);
    EXPECT_EQ(scheduling_describe(fixture, "off")->info->total_runs, 0);
    EXPECT_EQ(scheduling_count(fixture, "off"), 0);
    fixture_set(fixture, "worker.enableScheduler: [{value: true, constraints: {domainName: "
                         "orders}}]\n");
    scheduling_wait(fixture, 60);
    EXPECT(scheduling_describe(fixture, "off")->info->total_runs > 0);
}

/* --- lists ---- */

static void
lists(struct fixture *fixture)
{
    scheduling_open(fixture);
    for (int i = 0; i < 12; i++)
        scheduling_create(fixture,
                          scheduling_new(fixture, arena_format(fixture->arena, "s%02d", i),
                                         i == 3 ? "CRON_TZ=Europe/Paris 0 5 * * *" : "@hourly"));
    run_start(fixture, "other");
    const API(ListSchedulesResponse) *first = scheduling_list(fixture, 0, NO_TOKEN);
    EXPECT_EQ(first->n_schedules, 10);
    const API(ListSchedulesResponse) *second = scheduling_list(fixture, 0, first->next_page_token);
    EXPECT_EQ(second->n_schedules, 2);
    EXPECT_EQ(second->next_page_token.len, 0);
    const API(ListSchedulesResponse) *all = scheduling_list(fixture, 50, NO_TOKEN);
    EXPECT_EQ(all->n_schedules, 12);
    for (size_t i = 0; i < all->n_schedules; i++) {
        const API(ScheduleListEntry) *entry = all->schedules[i];
        EXPECT_TEXT(entry->workflow_type->name, "order");
        EXPECT(!entry->state->paused);
        EXPECT_TEXT(entry->cron_expression, strcmp(entry->schedule_id, "s03") == 0
                                                ? "CRON_TZ=Europe/Paris 0 5 * * *"
                                                : "@hourly");
    }
    scheduling_delete(fixture, "s03");
    scheduling_wait(fixture, 2);
    EXPECT_EQ(scheduling_list(fixture, 50, NO_TOKEN)->n_schedules, 11);
    EXPECT_TEXT(list_closed_ids(fixture), "cadence-scheduler:s03");
}

TEST(schedule, lists_show_schedules_that_are_there_and_nothing_else, "A-281", "A-280")
{
    fixture_run(lists);
}

/* --- deleted ---- */

SERVER_TEST(schedule, a_deleted_schedule_closes_its_run_and_starts_nothing_more, "A-280")
{
    scheduling_open(fixture);
    scheduling_create(fixture, scheduling_new(fixture, "gone", "@every 10s"));
    scheduling_wait(fixture, 15);
    scheduling_delete(fixture, "gone");
    scheduling_wait(fixture, 2);
    EXPECT_EQ(scheduling_list(fixture, 0, NO_TOKEN)->n_schedules, 0);
    EXPECT_EQ(scheduling_count_where(fixture, "WorkflowID = 'cadence-scheduler:gone' and "
                                              "CloseStatus = 'COMPLETED'"),
              1);
    scheduling_wait(fixture, 60);
    EXPECT_EQ(scheduling_count(fixture, "gone"), 1);
    scheduling_delete(fixture, "gone");
}
