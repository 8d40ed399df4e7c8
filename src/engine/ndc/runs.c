/* runs.c - which run of a workflow id is the current one. See runs.h. */
#include "engine/ndc/runs.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"

static bool
text_is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static const API(ClusterAttribute) *
attribute_of(const STORED(RunRecord) *run)
{
    const API(ActiveClusterSelectionPolicy) *policy = run->active_cluster_selection_policy;
    return policy == NULL ? NULL : policy->cluster_attribute;
}

static bool
belong_together(const STORED(RunRecord) *one, const STORED(RunRecord) *other)
{
    const API(ClusterAttribute) *mine = attribute_of(one), *theirs = attribute_of(other);
#ifdef CADENZA_PLANT_regions_compared
    return true;
#endif
    if (mine == NULL || theirs == NULL)
        return mine == theirs;
    return text_is(mine->scope, theirs->scope) && text_is(mine->name, theirs->name);
}

static int64_t
last_version(const STORED(RunRecord) *run)
{
    check(run->n_versions > 0);
    return run->versions[run->n_versions - 1]->event_version;
}

bool
run_is_newer(const STORED(RunRecord) *one, const STORED(RunRecord) *other)
{
    if (!belong_together(one, other)) {
        if (one->start_time != other->start_time)
            return one->start_time > other->start_time;
        return strcmp(one->run_id, other->run_id) > 0;
    }
    int64_t mine = last_version(one), theirs = last_version(other);
    if (mine != theirs)
        return mine > theirs;
    return one->last_event_task_id > other->last_event_task_id;
}

static bool
is_open(const STORED(RunRecord) *run)
{
    return run->state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED ||
           run->state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING;
}

struct run_contest
run_decide_current(const STORED(RunRecord) *target, const STORED(RunRecord) *current, bool is_ours)
{
    if (current == NULL || text_is(target->run_id, current->run_id))
        return (struct run_contest){true, RUN_STAYS};
    if (!run_is_newer(target, current))
        return (struct run_contest){false, RUN_STAYS};
    if (!is_open(current))
        return (struct run_contest){true, RUN_STAYS};
    return (struct run_contest){true, is_ours ? RUN_IS_TERMINATED : RUN_BECOMES_ZOMBIE};
}
