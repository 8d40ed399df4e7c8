/* repair_test.c - a run whose rows cannot be right is removed when an operator says so; no other
 * one is (E-077). */
#include "api/test/fixture.h"
#include "engine/run/run.h"
#include "store/key.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

/* Was it corrupt, and is gone? */
static bool
repair(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    ADMIN(MaintainCorruptWorkflowResponse) *response =
        ADMIN_OK(fixture, maintain_corrupt_workflow, .domain = "orders",
                 .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id));
    EXPECT(response->executions_deleted || !response->history_deleted);
    EXPECT_EQ(response->visibility_deleted, response->executions_deleted);
    return response->executions_deleted;
}

static int64_t
count_runs(struct fixture *fixture)
{
    API(CountWorkflowExecutionsRequest) *request =
        API_NEW(fixture->arena, count_workflow_executions_request, .domain = "orders");
    EXPECT_OK(engine_visibility_wait(atomic_load(&fixture->engine), fixture->arena));
    API(CountWorkflowExecutionsResponse) *response = fixture_ok(fixture, request);
    return response->count;
}

/* --- damage ---- */

enum damage {
    BAD_RECORD,
    BAD_PENDING,
    BAD_CURRENT,
    NO_RECORD,
    NO_CURRENT,
    NO_FIRST_EVENT,
    DAMAGES
};

static struct run_key
key_of(struct fixture *fixture, const char *run_id)
{
    const struct domain *domain = domains_find_name(fixture->domains, "orders");
    return (struct run_key){arena_text(fixture->arena, domain->id), "wf", run_id};
}

static void
put_damage(struct fixture *fixture, const struct run_key *key, enum damage damage,
           struct batch *batch)
{
    struct arena *arena = fixture->arena;
    struct slice bad = slice_text("\xff\xff\xff"), record = run_row_key(key, arena);
    struct slice current = current_key(key->domain_id, key->workflow_id, arena);
    struct uuid tree;
    struct key_writer history;
    EXPECT(uuid_parse(slice_text(key->run_id), &tree));
    key_begin(&history, arena);
    key_uuid(&history, tree);
    if (damage == BAD_RECORD)
        batch_put(batch, ROW_RUN, record, bad);
    if (damage == BAD_PENDING)
        batch_put(batch, ROW_PENDING, pending_key_text(key, PENDING_TIMER, "t", arena), bad);
    if (damage == BAD_CURRENT)
        batch_put(batch, ROW_CURRENT, current, bad);
    if (damage == NO_RECORD)
        batch_delete(batch, ROW_RUN, record);
    if (damage == NO_CURRENT)
        batch_delete(batch, ROW_CURRENT, current);
    if (damage == NO_FIRST_EVENT)
        batch_delete_range(batch, ROW_HISTORY, key_end(&history),
                           key_after_prefix(key_end(&history), arena));
}

/* Does it behind the server's back, which then reads the shard again. */
static void
harm(struct fixture *fixture, const char *run_id, enum damage damage)
{
    struct run_key key = key_of(fixture, run_id);
    uint32_t shard = engine_shard_of(atomic_load(&fixture->engine), "wf");
    struct partition partition = PARTITION_OF_SHARD(shard);
    uint64_t guard;
    EXPECT_OK(store_guard(fixture->store, partition, fixture->arena, &guard));
    struct batch *batch = batch_new(fixture->arena, partition, guard);
    put_damage(fixture, &key, damage, batch);
    EXPECT_OK(store_commit(fixture->store, batch, guard, fixture->arena));
    EXPECT_OK(engine_close_shard(atomic_load(&fixture->engine), shard, fixture->arena));
}

/* Rows that are left in the shard, of all kinds that a run has. */
static size_t
count_rows(struct fixture *fixture)
{
    static const enum row_kind kinds[] = {ROW_RUN, ROW_PENDING, ROW_CURRENT, ROW_HISTORY};
    uint32_t shard = engine_shard_of(atomic_load(&fixture->engine), "wf");
    size_t count = 0;
    for (size_t i = 0; i < array_length(kinds); i++) {
        struct scan scan = {
            .partition = PARTITION_OF_SHARD(shard), .kind = kinds[i], .rows_max = 100};
        struct rows rows;
        EXPECT_OK(store_scan(fixture->store, &scan, fixture->arena, &rows));
        count += rows.count;
    }
    return count;
}

static void
corrupt(struct fixture *fixture)
{
    for (enum damage damage = 0; damage < DAMAGES; damage++) {
        const char *run_id = run_start(fixture, "wf");
        EXPECT_EQ(count_runs(fixture), 1);
        EXPECT(!repair(fixture, "wf", ""));
        harm(fixture, run_id, damage);
        EXPECT(repair(fixture, "wf", run_id));
        EXPECT_KIND(run_try_describe(fixture, "wf", run_id), ERR_ENTITY_NOT_EXISTS);
        EXPECT_KIND(run_try_describe(fixture, "wf", ""), ERR_ENTITY_NOT_EXISTS);
        EXPECT_EQ(count_runs(fixture), 0);
        EXPECT_EQ(count_rows(fixture), 0);
        EXPECT(!repair(fixture, "wf", run_id)); /* it is gone */
    }
    EXPECT_OK(run_try_describe(fixture, "wf", run_start(fixture, "wf"))); /* the id is free */
}

TEST(repair, a_corrupt_run_goes_with_all_its_rows_and_its_id_is_free, "E-077")
{
    fixture_run(corrupt);
}

SERVER_TEST(repair, a_run_that_is_well_is_left_alone, "E-077")
{
    const char *first = run_start(fixture, "wf");
    run_signal(fixture, "wf", "again");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(!repair(fixture, "wf", first));
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
    EXPECT(!repair(fixture, "wf", first));
    terminate_run(fixture, "wf");
    EXPECT(!repair(fixture, "wf", first)); /* closed */
    const char *second = run_start(fixture, "wf");
    EXPECT(!repair(fixture, "wf", first)); /* and not the current one */
    EXPECT(!repair(fixture, "wf", second));
    EXPECT(!repair(fixture, "wf", ""));
    EXPECT(!repair(fixture, "nobody", ""));
    EXPECT_OK(run_try_describe(fixture, "wf", first));
    EXPECT_OK(run_try_describe(fixture, "wf", second));
    EXPECT_EQ(count_runs(fixture), 2);
}

/* A reset goes on in the tree of its base: of a base that cannot be read nobody knows which part of
 * the tree is its own. */
SERVER_TEST(repair, a_run_that_was_reset_from_a_corrupt_one_keeps_its_history, "E-077")
{
    const char *base = run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
    API(ResetWorkflowExecutionResponse) *reset =
        API_OK(fixture, reset_workflow_execution, .domain = "orders",
               .workflow_execution = fixture_execution(fixture, "wf"),
               .decision_finish_event_id = 4, .request_id = fixture_uuid(fixture));
    harm(fixture, base, BAD_RECORD);
    EXPECT(repair(fixture, "wf", base));
    EXPECT_KIND(run_try_describe(fixture, "wf", base), ERR_ENTITY_NOT_EXISTS);
    EXPECT(!repair(fixture, "wf", reset->run_id)); /* has all of its history */
    EXPECT_OK(run_try_describe(fixture, "wf", ""));
}
