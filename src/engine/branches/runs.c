/* runs.c - which run of a workflow id is the current one. See runs.h. */
#include "engine/branches/runs.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "wire/message.h"

static bool
text_is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static bool
belong_together(const API(ClusterAttribute) *mine, const API(ClusterAttribute) *theirs)
{
#ifdef CADENZA_FAULT_regions_compared
    return true;
#endif
    if (mine == NULL || theirs == NULL)
        return mine == theirs;
    return text_is(mine->scope, theirs->scope) && text_is(mine->name, theirs->name);
}

/* ---- orders ---- */

/* Of two runs of one group. */
static bool
is_newer(const STORED(Contender) *one, const STORED(Contender) *other)
{
    if (one->last_write_version != other->last_write_version)
        return one->last_write_version > other->last_write_version;
    return one->last_event_task_id > other->last_event_task_id;
}

/* Of two groups, by the run of each that began last. */
static bool
leads(const STORED(Contender) *one, const STORED(Contender) *other)
{
    if (one->start_time != other->start_time)
        return one->start_time > other->start_time;
    return strcmp(one->start_run_id, other->start_run_id) > 0;
}

/* ---- groups ---- */

static STORED(Contender) *
find(const struct candidates *candidates, const API(ClusterAttribute) *attribute)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (belong_together(candidates->item[i]->cluster_attribute, attribute))
            return candidates->item[i];
    }
    return NULL;
}

void
candidates_check(const struct candidates *candidates)
{
    check((candidates->item != NULL) || candidates->count == 0);
    for (size_t i = 0; CHECK_DEEPLY && i < candidates->count; i++) {
        const STORED(Contender) *one = candidates->item[i];
        check(one->run_id[0] != '\0' && one->start_run_id[0] != '\0');
        check(find(candidates, one->cluster_attribute) == one);
    }
}

static void
append(struct candidates *candidates, STORED(Contender) *one, struct arena *arena)
{
    STORED(Contender) **grown = arena_zalloc(arena, candidates->count + 1, sizeof *grown);
    for (size_t i = 0; i < candidates->count; i++)
        grown[i] = candidates->item[i];
    grown[candidates->count++] = one;
    candidates->item = grown;
}

/* Puts one run, as a group of its own, into the group that it belongs to. */
static void
join(struct candidates *candidates, STORED(Contender) *one, struct arena *arena)
{
    STORED(Contender) *group = find(candidates, one->cluster_attribute);
    if (group == NULL) {
        append(candidates, one, arena);
        return;
    }
    if (leads(one, group)) {
        group->start_time = one->start_time;
        group->start_run_id = one->start_run_id;
    }
    if (is_newer(one, group)) {
        group->run_id = one->run_id;
        group->last_write_version = one->last_write_version;
        group->last_event_task_id = one->last_event_task_id;
    }
    check(!leads(one, group) && !is_newer(one, group)); /* joining it again changes nothing */
}

struct candidates
candidates_read(const STORED(CurrentRecord) *current, struct arena *arena)
{
    struct candidates candidates = {0};
    for (size_t i = 0; current != NULL && i < current->n_contenders; i++) {
        STORED(Contender) *one = message_new(arena, STORED_TYPE(contender));
        *one = *current->contenders[i];
        append(&candidates, one, arena);
    }
    if (current == NULL || candidates.count > 0)
        return candidates;
    STORED(Contender) *one = message_new(arena, STORED_TYPE(contender));
    one->cluster_attribute = current->cluster_attribute;
    one->run_id = one->start_run_id = current->run_id;
    one->last_write_version = current->last_write_version;
    one->last_event_task_id = current->last_event_task_id;
    one->start_time = current->start_time;
    append(&candidates, one, arena);
    return candidates;
}

/* A run that a reset begins has the events of another one; the reset itself has always come with
 * them or after them. */
static bool
has_begun(const STORED(RunRecord) *run)
{
    return run->original_execution_run_id[0] == '\0' ||
           text_is(run->original_execution_run_id, run->run_id) ||
           text_is(run->reset_run_id, run->run_id);
}

void
candidates_add(struct candidates *candidates, const STORED(RunRecord) *run, struct arena *arena)
{
    check(run->n_versions > 0 && run->run_id[0] != '\0');
    if (!has_begun(run))
        return;
    const API(ActiveClusterSelectionPolicy) *policy = run->active_cluster_selection_policy;
    STORED(Contender) *one = message_new(arena, STORED_TYPE(contender));
    one->cluster_attribute = policy == NULL ? NULL : policy->cluster_attribute;
    one->run_id = one->start_run_id = run->run_id;
    one->last_write_version = run->versions[run->n_versions - 1]->event_version;
    one->last_event_task_id = run->last_event_task_id;
    one->start_time = run->start_time;
    join(candidates, one, arena);
    candidates_check(candidates);
}

void
candidates_drop(struct candidates *candidates, const char *run_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        if (!text_is(candidates->item[i]->run_id, run_id))
            candidates->item[kept++] = candidates->item[i];
    }
    candidates->count = kept;
    candidates_check(candidates);
}

static const STORED(Contender) *
find_leader(const struct candidates *candidates)
{
    const STORED(Contender) *leader = NULL;
    for (size_t i = 0; i < candidates->count; i++) {
        if (leader == NULL || leads(candidates->item[i], leader))
            leader = candidates->item[i];
    }
    check((leader == NULL) == (candidates->count == 0));
    return leader;
}

const char *
candidates_leader(const struct candidates *candidates)
{
    const STORED(Contender) *leader = find_leader(candidates);
    return leader == NULL ? NULL : leader->run_id;
}

int64_t
candidates_latest_start(const struct candidates *candidates)
{
    const STORED(Contender) *leader = find_leader(candidates);
    return leader == NULL ? INT64_MIN : leader->start_time;
}

const STORED(Contender) *
candidates_find(const struct candidates *candidates, const API(ClusterAttribute) *attribute)
{
    return find(candidates, attribute);
}

/* ---- in the current-run record ---- */

void
candidates_store(const struct candidates *candidates, STORED(CurrentRecord) *current)
{
    candidates_check(candidates);
    bool is_alone = candidates->count == 1 &&
                    text_is(candidates->item[0]->run_id, current->run_id) &&
                    text_is(candidates->item[0]->start_run_id, current->run_id);
    current->contenders = is_alone ? NULL : candidates->item;
    current->n_contenders = is_alone ? 0 : candidates->count;
}

static bool
says_same(const STORED(Contender) *one, const STORED(Contender) *other, const char *current_run_id)
{
    if (!belong_together(one->cluster_attribute, other->cluster_attribute) ||
        !text_is(one->run_id, other->run_id) || !text_is(one->start_run_id, other->start_run_id) ||
        one->start_time != other->start_time)
        return false;
    return text_is(one->run_id, current_run_id) ||
           (one->last_write_version == other->last_write_version &&
            one->last_event_task_id == other->last_event_task_id);
}

bool
candidates_equal(const STORED(CurrentRecord) *one, const STORED(CurrentRecord) *other)
{
    if (one->n_contenders != other->n_contenders)
        return false;
    for (size_t i = 0; i < one->n_contenders; i++) {
        if (!says_same(one->contenders[i], other->contenders[i], one->run_id))
            return false;
    }
    return true;
}
