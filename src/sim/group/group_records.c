/* group_records.c - do the histories tell what was written? See group_history.h. */
#include "base/check.h"
#include "sim/group/group_history.h"

struct judging {
    struct group_load *load;
    const struct group_records *all_records;
    const bool *is_there;
    struct group_events made; /* in all clusters */
};

/* --- the ledger against the log of the cluster that answered ------------------------------------
 */

static bool
has_written(const struct group_records *records, unsigned number,
            const struct group_failover *failover)
{
    for (size_t i = 0; i < records->write_count; i++) {
        const struct group_write *write = &records->writes[i];
        if (write->domain == number && write->is_made_here &&
            write->after[MOVES_DOMAIN] == failover->domain_version &&
            write->after[failover->what] == failover->failover_version)
            return true;
    }
    return false;
}

/* A failover to where the domain is already changes nothing: the answer shows a version that
 * another cluster made, or that came about when two versions met. What was trimmed cannot say. */
static bool
was_asked_to_stay(const struct group_records *records, unsigned number,
                  const struct group_failover *failover)
{
    if (failover->what != MOVES_DOMAIN || !records->is_whole[number])
        return failover->what == MOVES_DOMAIN;
    for (size_t i = 0; i < records->write_count; i++) {
        const struct group_write *write = &records->writes[i];
        if (write->domain == number && write->after[MOVES_DOMAIN] == failover->domain_version)
            return !write->is_made_here;
    }
    return false;
}

/* A domain with attributes has a version of its own for each failover. One without is where it was
 * told to be, no matter who moved it there; where it was registered needs no failover. */
static bool
has_reported(const struct group_records *records, unsigned number,
             const struct group_domain *domain, const struct group_failover *failover)
{
    int64_t version = failover->domain_version;
    if (failover->what == MOVES_DOMAIN && version < SIM_GROUP_INCREMENT &&
        sim_group_of_version(version) == (int)domain->first_active)
        return true;
    for (size_t i = 0; i < records->history.count; i++) {
        const struct group_event *event = &records->history.all[i];
        if (event->domain != number || event->failover_version != version ||
            (domain->is_active_active && event->origin != failover->cluster))
            continue;
        int64_t to = event->to[failover->what];
        return to == failover->failover_version || (failover->what == MOVES_DOMAIN && to < 0);
    }
    return false;
}

static void
judge_ledger(struct judging *judging, unsigned number)
{
    const struct group_domain *domain = &judging->load->domains[number];
    for (unsigned i = 0; i < domain->failover_count; i++) {
        const struct group_failover *failover = &domain->failovers[i];
        const struct group_records *records = &judging->all_records[failover->cluster];
        if (was_asked_to_stay(records, number, failover)) {
            judging->load->stays += domain->is_active_active;
            continue;
        }
        bool is_written = !records->is_whole[number] || has_written(records, number, failover);
        if (!is_written || !has_reported(records, number, domain, failover))
            verdict_violate(&judging->load->verdict,
                            "cluster%u did not %s version %lld of %s (%u), which it acknowledged",
                            failover->cluster, is_written ? "keep" : "write",
                            (long long)failover->failover_version, domain->name, failover->what);
    }
}

/* --- what was made, in every history ------------------------------------------------------------
 */

static void
count_made(struct group_load *load, const struct group_event *event)
{
    if (!load->domains[event->domain].is_active_active)
        return;
    bool has_attribute = false;
    for (unsigned i = MOVES_FIRST_ATTRIBUTE; i < MOVES_END; i++)
        has_attribute = has_attribute || event->to[i] >= 0;
    load->own_moves += event->to[MOVES_DOMAIN] >= 0;
    if (event->to[MOVES_DOMAIN] < 0 && !has_attribute)
        verdict_violate(&load->verdict, "version %lld of %s, made in cluster%d, moved nothing",
                        (long long)event->failover_version, load->domains[event->domain].name,
                        event->origin);
}

/* Every cluster has it, and says the same of it. */
static void
judge_everywhere(struct judging *judging, const struct group_event *event)
{
    struct group_load *load = judging->load;
    const char *name = load->domains[event->domain].name;
    for (unsigned i = 0; i < load->sim->count; i++) {
        const struct group_event *reported =
            group_events_find(&judging->all_records[i].history, event);
        if (reported == NULL)
            verdict_violate(&load->verdict,
                            "the history of %s in cluster%u lacks version %lld, made in cluster%d",
                            name, i, (long long)event->failover_version, event->origin);
        else if (!group_event_is_same_move(reported, event))
            verdict_violate(&load->verdict,
                            "the history of %s in cluster%u does not say what version %lld moved "
                            "in cluster%d",
                            name, i, (long long)event->failover_version, event->origin);
    }
}

/* --- what a history tells -----------------------------------------------------------------------
 */

/* Does the record that was written show something that the failover moved, where it moved it to?
 * One that moved nothing made a version of the domain all the same. */
static bool
is_in_effect(const struct group_event *event, const struct group_write *write)
{
    bool moves_nothing = true;
    for (unsigned i = 0; i < MOVES_END; i++) {
        if (event->to[i] >= 0 &&
            event->to[i] == (i == MOVES_DOMAIN ? write->moved : write->after[i]))
            return true;
        moves_nothing = moves_nothing && event->to[i] < 0;
    }
    return moves_nothing && event->failover_version == write->after[MOVES_DOMAIN];
}

static bool
was_in_effect(const struct group_records *records, const struct group_event *event)
{
    for (size_t i = 0; i < records->write_count; i++) {
        const struct group_write *write = &records->writes[i];
        if (write->domain == event->domain && is_in_effect(event, write))
            return true;
    }
    return false;
}

/* Superseded is what never took effect in this cluster. It may have done so unseen, as a part of
 * another cluster's record, before it was told: then either is right, unless it still has it. */
static void
judge_superseded(struct judging *judging, unsigned cluster, const struct group_event *event)
{
    const struct group_records *records = &judging->all_records[cluster];
    size_t newest = records->newest[event->domain];
    if (!records->is_whole[event->domain])
        return;
    check(newest > 0);
    bool is_now = is_in_effect(event, &records->writes[newest - 1]);
    bool is_wrong = event->is_superseded ? is_now || event->origin == (int)cluster
                                         : !was_in_effect(records, event);
    if (is_wrong)
        verdict_violate(&judging->load->verdict,
                        "the history of %s in cluster%u has version %lld of cluster%d as %s",
                        judging->load->domains[event->domain].name, cluster,
                        (long long)event->failover_version, event->origin,
                        event->is_superseded ? "superseded" : "one that took effect");
}

static void
judge_reported(struct judging *judging, unsigned cluster, const struct group_event *event)
{
    struct group_load *load = judging->load;
    if (judging->all_records[event->origin].is_whole[event->domain] &&
        group_events_find(&judging->made, event) == NULL)
        verdict_violate(&load->verdict,
                        "the history of %s in cluster%u has version %lld, which cluster%d never "
                        "made",
                        load->domains[event->domain].name, cluster,
                        (long long)event->failover_version, event->origin);
    judge_everywhere(judging, event);
    judge_superseded(judging, cluster, event);
}

/* Each once. */
static void
judge_history(struct judging *judging, unsigned cluster)
{
    const struct group_events *history = &judging->all_records[cluster].history;
    for (size_t i = 0; i < history->count; i++) {
        const struct group_event *event = &history->all[i];
        if (!judging->is_there[event->domain])
            continue;
        judge_reported(judging, cluster, event);
        if (i > 0 && event->domain == event[-1].domain && event->origin == event[-1].origin &&
            event->failover_version == event[-1].failover_version)
            verdict_violate(&judging->load->verdict,
                            "the history of %s in cluster%u has version %lld of cluster%d twice",
                            judging->load->domains[event->domain].name, cluster,
                            (long long)event->failover_version, event->origin);
    }
}

/* --- where the domain itself is ----------------------------------------------------------------
 */

/* The greatest version that moved it; -1: nothing did. */
static int64_t
newest_move(const struct judging *judging, unsigned number)
{
    int64_t newest = -1;
    for (size_t i = 0; i < judging->made.count; i++) {
        const struct group_event *event = &judging->made.all[i];
        if (event->domain == number && event->to[MOVES_DOMAIN] > newest)
            newest = event->to[MOVES_DOMAIN];
    }
    return newest;
}

/* If the log of each cluster shows all of its moves. */
static void
judge_active_cluster(struct judging *judging, unsigned number)
{
    struct group_load *load = judging->load;
    int64_t newest = newest_move(judging, number);
    int active_cluster =
        newest < 0 ? (int)load->domains[number].first_active : sim_group_of_version(newest);
    for (unsigned i = 0; i < load->sim->count; i++) {
        if (!judging->all_records[i].is_whole[number])
            return;
    }
    for (unsigned i = 0; i < load->sim->count; i++) {
        const struct group_records *records = &judging->all_records[i];
        check(records->newest[number] > 0);
        int64_t shown = records->writes[records->newest[number] - 1].after[MOVES_DOMAIN];
        if (sim_group_of_version(shown) != active_cluster)
            verdict_violate(&load->verdict,
                            "cluster%u has %s with version %lld, but %lld moved it last", i,
                            load->domains[number].name, (long long)shown, (long long)newest);
    }
}

void
group_records_audit(struct group_load *load, const struct group_records *all_records,
                    const bool is_there[GROUP_DOMAINS_MAX], struct arena *arena)
{
    struct judging judging = {.load = load, .all_records = all_records, .is_there = is_there};
    for (unsigned i = 0; i < load->sim->count; i++)
        group_records_made(load, i, &all_records[i], arena, &judging.made);
    group_events_sort(&judging.made);
    for (unsigned i = 0; i < load->domain_count; i++) {
        if (!is_there[i])
            continue;
        judge_ledger(&judging, i);
        judge_active_cluster(&judging, i);
    }
    for (size_t i = 0; i < judging.made.count; i++) {
        if (!is_there[judging.made.all[i].domain])
            continue;
        judge_everywhere(&judging, &judging.made.all[i]);
        count_made(load, &judging.made.all[i]);
    }
    for (unsigned i = 0; i < load->sim->count; i++)
        judge_history(&judging, i);
}
