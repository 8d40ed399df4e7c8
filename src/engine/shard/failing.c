/* failing.c - runs whose workers fail every decision. See shard.h.
 *
 * Such a run stands still until somebody repairs its worker, and nothing else would say so: later
 * attempts leave no events. The run's record says that it is failing (decision_failure); here the
 * shard keeps in mind which runs do, for those who ask, and tells the log once per run. It is
 * filled by the steps of the runs: a new owner of the shard knows of one when its next attempt
 * failed. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/watches.h"
#include "fiber/clock.h"

#define FAILING_MAX 1000 /* kept in mind, of one shard */
#define LINES_PER_S 1    /* of the log, of one shard */

struct failing_run {
    struct arena *arena; /* holds all of it, which is made again at each failure */
    struct failing_decision shown;
};

void
failing_init(struct tenure *tenure)
{
    tenure->failing.runs = map_new();
    limit_init(&tenure->failing.lines, LINES_PER_S, clock_monotonic());
}

void
failing_check(const struct tenure *tenure)
{
    const struct map *runs = tenure->failing.runs;
    size_t cursor = 0;
    struct slice run_id;
    void *value;
    check(map_count(runs) <= FAILING_MAX);
    if (!CHECK_DEEPLY || map_count(runs) > CHECK_ROWS_MAX)
        return;
    while (map_next(runs, &cursor, &run_id, &value)) {
        const struct failing_decision *shown = &((const struct failing_run *)value)->shown;
        check(slice_equal(run_id, slice_text(shown->run_id)));
        check(shown->attempt > 0 && shown->reason[0] != '\0'); /* a first attempt has not failed */
    }
}

static void
failing_drop(struct failing_run *failing)
{
    arena_free(failing->arena);
    memory_free(failing);
}

void
failing_free(struct tenure *tenure)
{
    void *value;
    for (size_t cursor = 0; map_next(tenure->failing.runs, &cursor, NULL, &value);)
        failing_drop(value);
    map_free(tenure->failing.runs);
}

static void
failing_fill(struct failing_run *failing, const struct run *run, const struct domain *domain)
{
    const STORED(RunRecord) *core = run->core;
    struct arena *arena = failing->arena;
    check(run_is_open(run) && core->decision_failure[0] != '\0');
    arena_reset(arena);
    failing->shown = (struct failing_decision){
        .domain_name = arena_text(arena, domain == NULL ? core->domain_id : domain->name),
        .workflow_id = arena_text(arena, core->workflow_id),
        .run_id = arena_text(arena, core->run_id),
        .workflow_type = arena_text(arena, core->workflow_type->name),
        .task_list = arena_text(arena, core->task_list->name),
        .reason = arena_text(arena, core->decision_failure),
        .attempt = core->decision == NULL ? core->decision_attempt : core->decision->attempt,
    };
}

static void
failing_log(struct tenure *tenure, const struct failing_decision *shown)
{
    if (tenure->shard->options.log == NULL)
        return;
    if (limit_take(&tenure->failing.lines, clock_monotonic()) > 0) {
        tenure->failing.left_out++;
        return;
    }
    log_warn(tenure->shard->options.log,
             "The workers of a workflow fail every decision: it is tried again after pauses of up "
             "to five minutes",
             log_text("wf-domain-name", shown->domain_name), log_text("wf-id", shown->workflow_id),
             log_text("wf-run-id", shown->run_id), log_text("wf-type", shown->workflow_type),
             log_text("wf-task-list-name", shown->task_list), log_number("attempt", shown->attempt),
             log_text("reason", shown->reason),
             log_number("lines-left-out", (int64_t)tenure->failing.left_out));
    tenure->failing.left_out = 0;
}

void
failing_note(struct tenure *tenure, const struct run *run, const struct domain *domain)
{
    bool is_failing = run_is_open(run) && run->core->decision_failure[0] != '\0';
    struct map *runs = tenure->failing.runs;
    if (!is_failing && map_count(runs) == 0)
        return;
    struct slice key = slice_text(run->core->run_id);
    struct failing_run *failing = map_get(runs, key);
    if (!is_failing) {
        if (failing != NULL)
            failing_drop(map_remove(runs, key));
        return;
    }
    bool is_new = failing == NULL;
    if (is_new && map_count(runs) >= FAILING_MAX)
        return;
    if (is_new) {
        failing = memory_zalloc(1, sizeof *failing);
        failing->arena = arena_new(256);
        map_put(runs, key, failing);
    }
    failing_fill(failing, run, domain);
    failing_check(tenure);
    if (is_new)
        failing_log(tenure, &failing->shown);
}

size_t
shard_list_failing(const struct shard *shard, struct arena *arena,
                   struct failing_decision **decisions)
{
    size_t count = 0, cursor = 0;
    void *value;
    *decisions = NULL;
    shard_check(shard);
    if (shard->tenure == NULL)
        return 0;
    const struct map *runs = shard->tenure->failing.runs;
    *decisions = arena_zalloc(arena, map_count(runs) + 1, sizeof **decisions);
    while (map_next(runs, &cursor, NULL, &value)) {
        const struct failing_decision *shown = &((const struct failing_run *)value)->shown;
        (*decisions)[count++] = (struct failing_decision){
            .domain_name = arena_text(arena, shown->domain_name),
            .workflow_id = arena_text(arena, shown->workflow_id),
            .run_id = arena_text(arena, shown->run_id),
            .workflow_type = arena_text(arena, shown->workflow_type),
            .task_list = arena_text(arena, shown->task_list),
            .reason = arena_text(arena, shown->reason),
            .attempt = shown->attempt,
        };
    }
    check(count == map_count(runs));
    return count;
}
