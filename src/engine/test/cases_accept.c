/* cases_accept.c - requests that are accepted now and done later: in order for each workflow id, by
 * by any owner of the shard, and not too many. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

/* Who does them: notes the request ids in order; one of them fails for a while. */
struct doer {
    struct arena *arena;
    char *done; /* request ids, one after the other */
    const char *bad;
    unsigned failures;
    bool is_holding; /* nothing can be done now */
};

static struct error *
doer_run(void *context, struct cross_task *cross_task, struct arena *arena)
{
    struct doer *doer = context;
    const char *request_id = cross_task->transfer->start->request_id;
    struct error *err = fiber_sleep(NS_PER_MS, arena);
    if (err != NULL)
        return err;
    if (doer->is_holding)
        return error_new(arena, ERR_DOMAIN_NOT_ACTIVE, "not here");
    if (doer->failures > 0 && strcmp(request_id, doer->bad) == 0) {
        doer->failures--;
        return error_new(arena, ERR_UNAVAILABLE, "not today");
    }
    doer->done = arena_format(doer->arena, "%s%s ", doer->done, request_id);
    return NULL;
}

static void
take_with(struct shard_fixture *fixture, struct doer *doer)
{
    fixture->options.cross_tasks = (struct cross_task_port){.run = doer_run, .context = doer};
    shard_fixture_take(fixture);
    shard_run_cross_tasks(fixture->shard);
}

static struct error *
accept_one(struct shard_fixture *fixture, const char *workflow_id, const char *request_id)
{
    STORED(TransferRow) *row =
        STORED_NEW(fixture->arena, transfer_row,
                   .type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST,
                   .domain_id = (char *)fixture->domain_id, .workflow_id = (char *)workflow_id,
                   .start = API_NEW(fixture->arena, start_workflow_execution_request,
                                    .request_id = (char *)request_id));
    return shard_accept(fixture->shard, row, fixture->arena);
}

void
case_accepted_requests_of_one_id_do_not_overtake_each_other(struct shard_fixture *fixture)
{
    struct doer doer = {.arena = fixture->arena, .done = "", .bad = "a1", .failures = 3};
    take_with(fixture, &doer);
    EXPECT_OK(accept_one(fixture, "a", "a1"));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER),
              1); /* it was durable when it was answered */
    EXPECT_OK(accept_one(fixture, "a", "a2"));
    EXPECT_OK(accept_one(fixture, "a", "a3"));
    EXPECT_OK(accept_one(fixture, "b", "b1"));
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    EXPECT_TEXT(doer.done, "b1 a1 a2 a3 ");
    EXPECT_EQ(fixture->shard->tenure->outbox.cross_tasks.accepted_count, 0);
    EXPECT_EQ(map_count(fixture->shard->tenure->outbox.cross_tasks.lines), 0);
}

void
case_accepted_requests_are_done_in_order_by_the_next_owner(struct shard_fixture *fixture)
{
    struct doer doer = {.arena = fixture->arena, .done = "", .is_holding = true};
    take_with(fixture, &doer);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(accept_one(fixture, "a", arena_format(fixture->arena, "a%d", i)));
    shard_fixture_restart(fixture);
    EXPECT_EQ(fixture->shard->tenure->outbox.cross_tasks.accepted_count, 5);
    EXPECT_OK(accept_one(fixture, "a", "a5")); /* behind what the last owner left */
    doer.is_holding = false;
    shard_run_cross_tasks(fixture->shard);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    EXPECT_TEXT(doer.done, "a0 a1 a2 a3 a4 a5 ");
}

/* While nothing can be done there is a limit; tasks of runs go on as ever. */
void
case_accepted_requests_leave_room_for_tasks(struct shard_fixture *fixture)
{
    struct doer doer = {.arena = fixture->arena, .done = "", .is_holding = true};
    fixture->options.transfers_max = 16;
    take_with(fixture, &doer);
    struct error *err = NULL;
    int accepted = 0;
    for (; err == NULL && accepted < 100; accepted += err == NULL)
        err = accept_one(fixture, arena_format(fixture->arena, "w%d", accepted), "r");
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_EQ(accepted, 5);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    doer.is_holding = false;
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1); /* the decision's */
    EXPECT_OK(accept_one(fixture, "a", "r"));
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
}

void
case_accepted_requests_of_one_id_leave_room_for_others(struct shard_fixture *fixture)
{
    struct doer doer = {.arena = fixture->arena, .done = "", .is_holding = true};
    fixture->options.transfers_max = 64;
    take_with(fixture, &doer);
    struct error *err = NULL;
    int accepted = 0;
    for (; err == NULL && accepted < 100; accepted += err == NULL)
        err = accept_one(fixture, "busy", arena_format(fixture->arena, "r%d", accepted));
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_EQ(accepted, 5); /* of 17 */
    EXPECT_OK(accept_one(fixture, "calm", "r"));
    doer.is_holding = false;
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    EXPECT_OK(accept_one(fixture, "busy", "r"));
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    EXPECT_EQ(map_count(fixture->shard->tenure->outbox.cross_tasks.lines), 0);
}
