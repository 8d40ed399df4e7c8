/* history_sample.c - version histories as texts. See history_sample.h. */
#include "engine/test/history_sample.h"

const char *
sample_text(struct versions versions, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < versions.count; i++)
        text = arena_format(arena, "%s(%lld,%lld)", text, (long long)versions.items[i].event_id,
                            (long long)versions.items[i].event_version);
    return text;
}

const char *
sample_branches(const struct run_branches *branches, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < branches->count; i++)
        text = arena_format(arena, "%s%s%s", text, i == 0 ? "" : " | ",
                            sample_text(branches->branch[i].versions, arena));
    return text;
}

struct history_branch
sample_branch(uint8_t name)
{
    struct history_branch branch = {{{0}}, {{0}}};
    branch.tree.bytes[0] = 't';
    branch.branch.bytes[0] = name;
    return branch;
}
