/* divergence.c - for operators: what lost when clusters disagreed, and whether a run is what its
 * history says. See engine.h. */
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/branches/history_message.h"
#include "engine/inside.h"
#include "engine/run/rebuild.h"
#include "engine/run/run_key.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_ROWS  256
#define PAGE_BYTES ((size_t)1 << 20)

/* ---- what lost ---- */

/* The history that a row names; false: the run is gone. */
static struct error *
find_branch(struct engine *engine, const STORED(DivergenceRow) *row, struct arena *arena,
            struct run_branch *branch, bool *is_there)
{
    struct run_key key = {row->domain_id, row->workflow_id, row->run_id};
    struct run_branches branches;
    struct error *err = engine_find_branches(engine, &key, arena, &branches);
    *is_there = false;
    if (err != NULL)
        return cross_task_is_void(err) ? NULL : err;
    for (size_t i = 0; i < branches.count && !*is_there; i++) {
        struct history_branch own = history_lineage_own(&branches.branch[i].lineage);
        *branch = branches.branch[i];
        *is_there =
            slice_equal(slice_of(own.branch.bytes, 16), presence_read_bytes(row->branch_id));
    }
    return NULL;
}

static struct error *
read_events(struct engine *engine, struct divergence *divergence,
            const struct history_lineage *lineage, struct arena *arena)
{
    vector_of(API(HistoryEvent) *) events = {0};
    struct history_range range = {.shard = engine_shard_of(engine, divergence->key.workflow_id),
                                  .lineage = *lineage,
                                  .from_event_id = divergence->from_event_id,
                                  .to_event_id = divergence->next_event_id,
                                  .is_first = true,
                                  .bytes_max = PAGE_BYTES};
    struct history_page page = {0};
    struct error *err = engine_read_history(engine, &range, arena, &page); /* one page will do */
    for (size_t i = 0; err == NULL && i < page.count; i++) {
        const API(History) *history;
        err = rebuild_decode(&page.node[i], arena, &history);
        for (size_t e = 0; err == NULL && e < history->n_events; e++)
            if (history->events[e]->event_id >= divergence->from_event_id)
                vector_push_in(&events, arena, history->events[e]);
    }
    divergence->events = events.items;
    divergence->event_count = events.count;
    return err;
}

static struct error *
show_row(struct engine *engine, const struct row *stored, const struct divergence_query *query,
         struct arena *arena, struct divergence *shown, bool *is_there)
{
    STORED(DivergenceRow) *row = NULL;
    struct run_branch branch;
    *is_there = false;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(divergence_row), stored->value, &row);
    if (err == NULL)
        err = find_branch(engine, row, arena, &branch, is_there);
    if (err != NULL || !*is_there)
        return err;
    *shown = (struct divergence){
        .key = {row->domain_id, row->workflow_id, row->run_id},
        .is_of_run = row->reason == CADENZA__STORAGE__V1__DIVERGENCE_REASON__DIVERGENCE_REASON_RUN,
        .from_event_id = row->from_event_id,
        .next_event_id = versions_last(branch.versions).event_id + 1,
        .last_version = versions_last(branch.versions).event_version,
        .time = row->time,
    };
    check(row->branch_id.len == sizeof shown->branch.bytes); /* a history of the run has it */
    memcpy(shown->branch.bytes, row->branch_id.data, sizeof shown->branch.bytes);
    return query->has_events ? read_events(engine, shown, &branch.lineage, arena) : NULL;
}

static struct slice
prefix_of(const struct divergence_query *query, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    if (query->domain_id != NULL)
        key_text(&key, slice_text(query->domain_id));
    if (query->domain_id != NULL && query->workflow_id != NULL)
        key_text(&key, slice_text(query->workflow_id));
    return key_end(&key);
}

typedef vector_of(struct divergence) divergences_t;

static struct error *
list_shard(struct engine *engine, uint32_t number, const struct divergence_query *query,
           struct arena *arena, divergences_t *all)
{
    struct slice prefix = prefix_of(query, arena);
    struct scan scan = {.partition = PARTITION_OF_SHARD(number),
                        .kind = ROW_DIVERGENCE,
                        .from = prefix,
                        .rows_max = PAGE_ROWS};
    if (prefix.length > 0)
        scan.to = key_after_prefix(prefix, arena);
    bool has_more = true;
    struct error *err = NULL;
    while (err == NULL && has_more && all->count < query->count_max) {
        struct rows rows = {0};
        err = store_scan(engine->options.store, &scan, arena, &rows);
        check(err != NULL || rows.count > 0 || !rows.has_more);
        for (size_t i = 0; err == NULL && i < rows.count && all->count < query->count_max; i++) {
            struct divergence shown;
            bool is_there;
            err = show_row(engine, &rows.row[i], query, arena, &shown, &is_there);
            if (err == NULL && is_there)
                vector_push_in(all, arena, shown);
        }
        has_more = err == NULL && rows.has_more;
        if (has_more)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return err;
}

struct error *
engine_list_divergences(struct engine *engine, const struct divergence_query *query,
                        struct arena *arena, struct divergence **divergences, size_t *count)
{
    divergences_t all = {0};
    struct error *err = NULL;
    bool is_one = query->domain_id != NULL && query->workflow_id != NULL;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++)
        if (!is_one || i == engine_shard_of(engine, query->workflow_id))
            err = list_shard(engine, i, query, arena, &all);
    *divergences = all.items;
    *count = all.count;
    return err;
}

/* ---- rebuilding ---- */

/* A run as its shard has it. */
struct stored_run {
    struct run_key key;
    struct history_lineage lineage;
    int64_t next_event_id;
    bool is_comparable;
    uint64_t checksum;
};

static void
look_stored(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    INTERNAL(StoredRun) *answer = look->answer;
    struct history_lineage lineage = run_lineage(run, look->arena);
    answer->run_id = arena_text(look->arena, run->core->run_id);
    answer->lineage = history_lineage_to_message(&lineage, look->arena);
    answer->next_event_id = run->core->next_event_id;
    answer->is_comparable = !run_has_buffered(run);
    answer->checksum = answer->is_comparable ? run_checksum(run) : 0;
}

static struct error *
serve_stored(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    return engine_serve_look(engine, owner, request, look_stored, arena, answer);
}

/* Lost: the operator asks again. Twice: it only reads. */
static const struct route_question stored_question = {
    .name = "shard.stored_run",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(stored_run),
    .serve = serve_stored,
    .may_come_twice = true,
};

static struct error *
find_stored(struct engine *engine, const struct run_key *key, struct arena *arena,
            struct stored_run *stored)
{
    INTERNAL(StoredRun) answer = INTERNAL_VALUE(STORED_RUN__INIT);
    struct error *err = engine_ask_look(engine, key, &stored_question, arena, &answer);
    if (err != NULL)
        return err;
    *stored = (struct stored_run){
        .key = {key->domain_id, key->workflow_id, answer.run_id},
        .lineage = history_lineage_from_message(answer.lineage, arena),
        .next_event_id = answer.next_event_id,
        .is_comparable = answer.is_comparable,
        .checksum = answer.checksum,
    };
    return NULL;
}

static const struct domain *
find_domain(const void *context, const char *name)
{
    return domains_find_name(context, name);
}

/* A run of its own, from its history alone. */
static struct error *
rebuild_run(struct engine *engine, const struct stored_run *stored, struct arena *arena,
            struct run *run)
{
    const struct engine_options *options = &engine->options;
    struct run_context context = {.domain =
                                      domains_find_id(options->domains, stored->key.domain_id),
                                  .dynamic = options->dynamic,
                                  .find_domain = find_domain,
                                  .find_domain_context = options->domains};
    run->core->format = RUN_RECORD_FORMAT;
    run->core->domain_id = run_keep_text(run, stored->key.domain_id);
    run->core->workflow_id = run_keep_text(run, stored->key.workflow_id);
    run->core->run_id = run_keep_text(run, stored->key.run_id);
    /* Its versions come with the events; any will do to name the lineage. */
    struct version_item any = {1, 1};
    struct run_branch branch = {.versions = {&any, 1}, .lineage = stored->lineage};
    branches_store(&(struct run_branches){&branch, 1}, run->core, run->arena);
    run->core->n_versions = 0;
    uint32_t shard = engine_shard_of(engine, stored->key.workflow_id);
    return run_rebuild(options->store, PARTITION_OF_SHARD(shard), stored->next_event_id, PAGE_BYTES,
                       &context, run, arena);
}

struct error *
engine_verify(struct engine *engine, const struct run_key *key, struct arena *arena,
              struct run_verification *verification)
{
    struct stored_run stored;
    struct error *err = find_stored(engine, key, arena, &stored);
    if (err != NULL)
        return err;
    *verification = (struct run_verification){.run_id = stored.key.run_id,
                                              .is_comparable = stored.is_comparable,
                                              .stored = stored.checksum};
    if (!stored.is_comparable)
        return NULL;
    struct run *run = run_new();
    err = rebuild_run(engine, &stored, arena, run);
    if (err == NULL)
        verification->rebuilt = run_checksum(run);
    run_free(run);
    return err;
}

static struct error *
serve_rebuild(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    const INTERNAL(RunLook) *wanted = request;
    INTERNAL(RunRebuilt) *rebuilt = answer;
    struct run_key key = run_key_from_message(wanted->key);
    struct run_rebuilt outcome = {0};
    struct error *err = shard_rebuild(engine_served_shard(engine, owner), &key, arena, &outcome);
    rebuilt->run_id = presence_make_text(outcome.run_id);
    rebuilt->before = outcome.before;
    rebuilt->after = outcome.after;
    return err;
}

/* Lost: the operator asks again, and hears that nothing was different. Twice: the same, so the
 * answer would not say what was wrong. */
static const struct route_question rebuild_question = {
    .name = "shard.rebuild",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(run_rebuilt),
    .serve = serve_rebuild,
};

struct error *
engine_rebuild(struct engine *engine, const struct run_key *key, struct arena *arena,
               struct run_rebuilt *outcome)
{
    INTERNAL(RunRebuilt) answer = INTERNAL_VALUE(RUN_REBUILT__INIT);
    struct error *err = engine_ask_look(engine, key, &rebuild_question, arena, &answer);
    *outcome = (struct run_rebuilt){answer.run_id, answer.before, answer.after};
    return err;
}
