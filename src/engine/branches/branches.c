/* branches.c - all histories of one run. See branches.h. */
#include "engine/branches/branches.h"

#include <string.h>

#include "base/check.h"
#include "engine/branches/history_message.h"
#include "wire/message.h"
#include "wire/presence.h"

/* ---- records ---- */

static struct history_lineage
read_lineage(struct uuid tree, STORED(BranchSpan) *const *ancestors, size_t count,
             ProtobufCBinaryData own, struct arena *arena)
{
    struct history_span *spans = arena_zalloc(arena, count + 1, sizeof *spans);
    for (size_t i = 0; i < count; i++)
        spans[i] = (struct history_span){presence_read_uuid(ancestors[i]->branch_id),
                                         ancestors[i]->next_event_id};
    spans[count] = (struct history_span){presence_read_uuid(own), HISTORY_OPEN};
    struct history_lineage lineage = {tree, spans, count + 1};
    history_lineage_check(&lineage);
    return lineage;
}

static STORED(BranchSpan) **
store_ancestors(const struct history_lineage *lineage, struct arena *arena)
{
    STORED(BranchSpan) **ancestors = arena_zalloc(arena, lineage->count, sizeof *ancestors);
    for (size_t i = 0; i + 1 < lineage->count; i++) {
        ancestors[i] = message_new(arena, STORED_TYPE(branch_span));
        ancestors[i]->branch_id = presence_make_uuid(arena, lineage->spans[i].branch);
        ancestors[i]->next_event_id = lineage->spans[i].next_event_id;
    }
    return ancestors;
}

struct history_lineage
branches_read_lineage(const STORED(RunRecord) *core, struct arena *arena)
{
    return read_lineage(presence_read_uuid(core->tree_id), core->ancestors, core->n_ancestors,
                        core->branch_id, arena);
}

struct run_branches
branches_read(const STORED(RunRecord) *core, struct arena *arena)
{
    struct uuid tree = presence_read_uuid(core->tree_id);
    size_t count = 1 + core->n_side_branches;
    struct run_branch *branch = arena_zalloc(arena, count, sizeof *branch);
    branch[0].versions = versions_read(core->versions, core->n_versions, arena);
    branch[0].lineage =
        read_lineage(tree, core->ancestors, core->n_ancestors, core->branch_id, arena);
    for (size_t i = 1; i < count; i++) {
        const STORED(RunBranch) *side = core->side_branches[i - 1];
        branch[i].versions = versions_read(side->versions, side->n_versions, arena);
        branch[i].lineage =
            read_lineage(tree, side->ancestors, side->n_ancestors, side->branch_id, arena);
    }
    return (struct run_branches){branch, count};
}

static STORED(RunBranch) *
store_side(const struct run_branch *branch, struct arena *arena)
{
    STORED(RunBranch) *side = message_new(arena, STORED_TYPE(run_branch));
    struct history_branch own = history_lineage_own(&branch->lineage);
    side->branch_id = presence_make_uuid(arena, own.branch);
    side->ancestors = store_ancestors(&branch->lineage, arena);
    side->n_ancestors = branch->lineage.count - 1;
    side->versions = versions_store(branch->versions, arena);
    side->n_versions = branch->versions.count;
    return side;
}

void
branches_store(const struct run_branches *branches, STORED(RunRecord) *core, struct arena *arena)
{
    branches_check(branches);
    const struct run_branch *current = &branches->branch[0];
    struct history_branch own = history_lineage_own(&current->lineage);
    core->tree_id = presence_make_uuid(arena, own.tree);
    core->branch_id = presence_make_uuid(arena, own.branch);
    core->ancestors = store_ancestors(&current->lineage, arena);
    core->n_ancestors = current->lineage.count - 1;
    core->versions = versions_store(current->versions, arena);
    core->n_versions = current->versions.count;
    core->n_side_branches = branches->count - 1;
    core->side_branches = arena_zalloc(arena, branches->count, sizeof core->side_branches[0]);
    for (size_t i = 1; i < branches->count; i++)
        core->side_branches[i - 1] = store_side(&branches->branch[i], arena);
}

/* ---- messages ---- */

void
branches_to_message(const struct run_branches *branches, struct arena *arena,
                    INTERNAL(BranchesOfRun) * message)
{
    check(branches->count > 0);
    message->n_branches = branches->count;
    message->branches = arena_zalloc(arena, branches->count, sizeof message->branches[0]);
    for (size_t i = 0; i < branches->count; i++) {
        const struct run_branch *branch = &branches->branch[i];
        INTERNAL(BranchOfRun) *sent = message_new(arena, INTERNAL_TYPE(branch_of_run));
        sent->lineage = history_lineage_to_message(&branch->lineage, arena);
        sent->versions = versions_store(branch->versions, arena);
        sent->n_versions = branch->versions.count;
        message->branches[i] = sent;
    }
}

struct run_branches
branches_from_message(const INTERNAL(BranchesOfRun) * message, struct arena *arena)
{
    struct run_branch *branch = arena_zalloc(arena, message->n_branches, sizeof *branch);
    for (size_t i = 0; i < message->n_branches; i++) {
        const INTERNAL(BranchOfRun) *sent = message->branches[i];
        branch[i].lineage = history_lineage_from_message(sent->lineage, arena);
        branch[i].versions = versions_read(sent->versions, sent->n_versions, arena);
    }
    return (struct run_branches){branch, message->n_branches};
}

/* ---- rules ---- */

static bool
holders_equal(const struct run_branch *one, const struct run_branch *other, int64_t event_id)
{
    struct history_branch mine = history_lineage_holder(&one->lineage, event_id);
    struct history_branch theirs = history_lineage_holder(&other->lineage, event_id);
    return memcmp(&mine, &theirs, sizeof mine) == 0;
}

/* At each end of a span of one, up to the newest common event, both have the same branch. Between
 * those places nothing changes, so asking in both directions covers all events. */
static void
check_shared(const struct run_branch *one, const struct run_branch *other, int64_t common)
{
    for (size_t i = 0; i < one->lineage.count; i++) {
        int64_t last = one->lineage.spans[i].next_event_id - 1;
        last = last < common ? last : common;
        check_that(holders_equal(one, other, last), "rule 2: event %lld is stored twice",
                   (long long)last);
    }
}

static void
check_pair(const struct run_branch *one, const struct run_branch *other)
{
    struct version_item common;
    bool is_common = versions_find_common(one->versions, other->versions, &common);
    check_that(is_common, "rule 2: histories without a common beginning");
    check_that(!version_item_equal(common, versions_last(one->versions)) &&
                   !version_item_equal(common, versions_last(other->versions)),
               "rule 2: a history is the beginning of another");
    check_shared(one, other, common.event_id);
    check_shared(other, one, common.event_id);
    struct history_branch mine = history_lineage_own(&one->lineage);
    struct history_branch theirs = history_lineage_own(&other->lineage);
    check_that(memcmp(&mine, &theirs, sizeof mine) != 0, "rule 3: one branch, two histories");
    check_that(!holders_equal(one, other, common.event_id + 1),
               "rule 3: two events %lld in one branch", (long long)common.event_id + 1);
}

void
branches_check(const struct run_branches *branches)
{
    check(branches->count > 0);
    int64_t highest = versions_last(branches->branch[0].versions).event_version;
    for (size_t i = 0; i < branches->count; i++) {
        const struct run_branch *branch = &branches->branch[i];
        check(versions_are_valid(branch->versions));
        history_lineage_check(&branch->lineage);
        check_that(i == 0 || versions_last(branch->versions).event_version < highest,
                   "rule 1: the current history does not have the highest version");
        for (size_t j = 0; j < i; j++)
            check_pair(branch, &branches->branch[j]);
    }
}

/* ---- questions ---- */

bool
branches_find_common(const struct run_branches *branches, struct versions other, size_t *index,
                     struct version_item *common)
{
    common->event_id = 0;
    for (size_t i = 0; i < branches->count; i++) {
        struct version_item item;
        if (!versions_find_common(branches->branch[i].versions, other, &item))
            return false;
        if (item.event_id <= common->event_id)
            continue;
        *common = item;
        *index = i;
    }
    return common->event_id > 0;
}

size_t
branches_find_event(const struct run_branches *branches, struct version_item event)
{
    size_t i = 0;
    while (i < branches->count && !versions_contain(branches->branch[i].versions, event))
        i++;
    return i;
}

/* The history that ends before `before`. */
static bool
find_range_end(const struct run_branches *branches, const struct version_item *before,
               struct branch_range *range)
{
    struct version_item end = versions_last(branches->branch[0].versions);
    end.event_id++;
    range->branch = 0;
    range->to_event_id = end.event_id;
    if (before == NULL || version_item_equal(*before, end))
        return true;
    range->branch = branches_find_event(branches, *before);
    range->to_event_id = before->event_id;
    for (size_t i = 1; range->branch == branches->count && i < branches->count; i++) {
        struct version_item last = versions_last(branches->branch[i].versions);
        last.event_id++;
        if (version_item_equal(*before, last))
            range->branch = i;
    }
    return range->branch < branches->count;
}

bool
branches_find_range(const struct run_branches *branches, const struct version_item *after,
                    const struct version_item *before, struct branch_range *range)
{
    if (!find_range_end(branches, before, range))
        return false;
    struct versions versions = branches->branch[range->branch].versions;
    struct version_item start = {0, versions.items[0].event_version};
    if (after != NULL && !version_item_equal(*after, start)) {
        size_t other = branches_find_event(branches, *after);
        if (other == branches->count)
            return false;
        start = *after;
        if (!versions_contain(versions, start) &&
            !versions_find_common(versions, branches->branch[other].versions, &start))
            return false;
    }
    range->from_event_id = start.event_id + 1;
    if (range->from_event_id > range->to_event_id)
        range->from_event_id = range->to_event_id;
    return true;
}

/* ---- growing ---- */

struct run_branches
branches_begin(const struct history_branch *branch, struct versions versions, struct arena *arena)
{
    check(versions_are_valid(versions));
    struct run_branch *first = arena_zalloc(arena, 1, sizeof *first);
    first->versions = versions_until(versions, versions_last(versions), arena);
    first->lineage = history_lineage_root(branch, arena);
    return (struct run_branches){first, 1};
}

/* A copy with room for one more. */
static struct run_branch *
copy_branches(const struct run_branches *branches, struct arena *arena)
{
    struct run_branch *copy = arena_zalloc(arena, branches->count + 1, sizeof *copy);
    memcpy(copy, branches->branch, branches->count * sizeof *copy);
    return copy;
}

/* The history at `index` has grown: is it the current one now? */
static struct run_branches
put_current_first(struct run_branch *branch, size_t count, size_t index)
{
    struct run_branch grown = branch[index];
    bool wins = versions_last(grown.versions).event_version >
                versions_last(branch[0].versions).event_version;
#ifdef CADENZA_FAULT_branch_by_length
    wins = versions_last(grown.versions).event_id > versions_last(branch[0].versions).event_id;
#endif
    if (wins) {
        branch[index] = branch[0];
        branch[0] = grown;
    }
    struct run_branches branches = {branch, count};
    branches_check(&branches);
    return branches;
}

struct run_branches
branches_append(const struct run_branches *branches, size_t index, struct version_item last,
                struct arena *arena)
{
    check(index < branches->count);
    struct run_branch *branch = copy_branches(branches, arena);
    branch[index].versions = versions_append(branch[index].versions, last, arena);
    return put_current_first(branch, branches->count, index);
}

struct run_branches
branches_fork(const struct run_branches *branches, size_t index, struct version_item base,
              struct uuid branch_id, struct version_item last, struct arena *arena)
{
    check(index < branches->count && last.event_id > base.event_id);
    const struct run_branch *from = &branches->branch[index];
    struct run_branch *branch = copy_branches(branches, arena);
    struct versions shared = versions_until(from->versions, base, arena);
    branch[branches->count].versions = versions_append(shared, last, arena);
    branch[branches->count].lineage =
        history_lineage_fork(&from->lineage, base.event_id + 1, branch_id, arena);
    return put_current_first(branch, branches->count + 1, branches->count);
}
