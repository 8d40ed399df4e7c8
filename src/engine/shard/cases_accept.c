/* cases_accept.c - requests that are accepted now and done later: in order for each workflow id, by
 * whoever has the shard, and not too many. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
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
doer_run(void *context, struct errand *errand, struct arena *arena)
{
    struct doer *doer = context;
    const char *request_id = errand->transfer->start->request_id;
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
take_with(struct rig *rig, struct doer *doer)
{
    rig->options.errands = (struct errand_port){.run = doer_run, .context = doer};
    rig_take(rig);
    shard_run_errands(rig->shard);
}

static struct error *
accept_one(struct rig *rig, const char *workflow_id, const char *request_id)
{
    STORED(TransferRow) *row = message_new(rig->arena, STORED_TYPE(transfer_row));
    row->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST;
    row->domain_id = (char *)rig->domain_id;
    row->workflow_id = (char *)workflow_id;
    row->start = message_new(rig->arena, API_TYPE(start_workflow_execution_request));
    row->start->request_id = (char *)request_id;
    return shard_accept(rig->shard, row, rig->arena);
}

void
case_accepted_requests_of_one_id_do_not_overtake_each_other(struct rig *rig)
{
    struct doer doer = {.arena = rig->arena, .done = "", .bad = "a1", .failures = 3};
    take_with(rig, &doer);
    EXPECT_OK(accept_one(rig, "a", "a1"));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1); /* it was durable when it was answered */
    EXPECT_OK(accept_one(rig, "a", "a2"));
    EXPECT_OK(accept_one(rig, "a", "a3"));
    EXPECT_OK(accept_one(rig, "b", "b1"));
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
    EXPECT_TEXT(doer.done, "b1 a1 a2 a3 ");
    EXPECT_EQ(rig->shard->tenure->outbox.errands.accepted_count, 0);
    EXPECT_EQ(map_count(rig->shard->tenure->outbox.errands.lines), 0);
}

void
case_accepted_requests_are_done_in_order_by_the_next_owner(struct rig *rig)
{
    struct doer doer = {.arena = rig->arena, .done = "", .is_holding = true};
    take_with(rig, &doer);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(accept_one(rig, "a", arena_format(rig->arena, "a%d", i)));
    rig_restart(rig);
    EXPECT_EQ(rig->shard->tenure->outbox.errands.accepted_count, 5);
    EXPECT_OK(accept_one(rig, "a", "a5")); /* behind what the last owner left */
    doer.is_holding = false;
    shard_run_errands(rig->shard);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
    EXPECT_TEXT(doer.done, "a0 a1 a2 a3 a4 a5 ");
}

/* While nothing can be done there is a limit; tasks of runs go on as ever. */
void
case_accepted_requests_leave_room_for_tasks(struct rig *rig)
{
    struct doer doer = {.arena = rig->arena, .done = "", .is_holding = true};
    rig->options.transfers_max = 16;
    take_with(rig, &doer);
    struct error *err = NULL;
    int accepted = 0;
    for (; err == NULL && accepted < 100; accepted += err == NULL)
        err = accept_one(rig, arena_format(rig->arena, "w%d", accepted), "r");
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_EQ(accepted, 5);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    doer.is_holding = false;
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1); /* the decision's */
    EXPECT_OK(accept_one(rig, "a", "r"));
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
}
