/* cases_marker.c - a domain drains to another cluster: what a shard tells of that, and when. */
#include "domain/samples.h"
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

#define TYPE_MARKER CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_MARKER
#define TYPE_EVENTS CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_EVENTS

/* Another cluster says that the domain drains to there. */
static int64_t
drain_to(struct rig *rig, struct domains *domains, int cluster)
{
    struct arena *arena = rig->arena;
    const struct domain *domain = domains_find_name(domains, "moving");
    STORED(DomainRecord) *record = message_copy(arena, &domain->record->base);
    STORED(DomainChange) *change = message_new(arena, STORED_TYPE(domain_change));
    STORED(Drain) *drain = message_new(arena, STORED_TYPE(drain));
    const struct cluster_group *group = sample_group(EAST);
    int64_t before = record->domain->failover_version;
    int64_t after;
    EXPECT(cluster_group_next_version(group, cluster_group_find(group, sample_names[cluster]),
                                      before, &after));
    drain->source_cluster = record->domain->active_cluster_name;
    drain->failover_version = after;
    drain->previous_failover_version = before;
    drain->waits_for = &drain->source_cluster;
    drain->n_waits_for = 1;
    record->domain->active_cluster_name = (char *)sample_names[cluster];
    record->domain->failover_version = after;
    record->moved_version = NULL; /* that one */
    record->previous_failover_version = before;
    record->drains = &drain;
    record->n_drains = 1;
    change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    change->record = record;
    EXPECT_OK(domains_apply(domains, sample_names[cluster], domain_replication_task(change, arena),
                            arena));
    return after;
}

/* The rows for other clusters, as they stand in the store. */
struct told {
    unsigned events, markers;
    bool is_marker_last;
};

static struct told
read_told(struct rig *rig, int64_t failover_version)
{
    struct told told = {0};
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_SHARD(rig->options.number),
                        .kind = ROW_REPLICATION};
    EXPECT_OK(store_scan(rig->store, &scan, rig->arena, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        STORED(ReplicationRow) *row = NULL;
        EXPECT_OK(message_decode_as(rig->arena, ERR_CORRUPT, STORED_TYPE(replication_row),
                                    rows.row[i].value, &row));
        told.is_marker_last = row->type == TYPE_MARKER;
        told.events += row->type == TYPE_EVENTS;
        told.markers += row->type == TYPE_MARKER;
        if (row->type != TYPE_MARKER)
            continue;
        EXPECT_TEXT(row->marker->domain_id, rig->domain_id);
        EXPECT_EQ(row->marker->failover_version, failover_version);
    }
    return told;
}

static size_t
due_in_store(struct rig *rig)
{
    return case_stored_record(rig)->n_markers;
}

/* A run whose decision is started, and what came meanwhile. */
static void
begin_buffered(struct rig *rig)
{
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
}

void
case_a_drain_is_told_behind_the_last_event(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    begin_buffered(rig);
    struct told before = read_told(rig, 0);
    EXPECT_EQ(before.markers, 0);
    int64_t failover_version = drain_to(rig, rig->domains, WEST);
    rig_wait(read_told(rig, failover_version).markers == 1);
    struct told told = read_told(rig, failover_version);
    EXPECT(told.is_marker_last);
    EXPECT(told.events > before.events); /* what had waited for the decision */
    EXPECT_EQ(due_in_store(rig), 0);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
    rig_restart(rig);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
    rig_sleep(100 * NS_PER_MS);
    told = read_told(rig, failover_version);
    EXPECT(told.markers == 1 && told.is_marker_last);
}

static void
close_shard(void *argument)
{
    shard_close(argument);
}

/* Somebody is busy with the run, so the walk is not through when the shard is closed. */
void
case_a_marker_that_is_due_is_put_by_the_next_owner(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    begin_buffered(rig);
    struct tenure *tenure;
    struct run_key key = {rig->domain_id, "wf", ""};
    struct workflow *workflow;
    EXPECT_OK(tenure_enter(rig->shard, 0, rig->arena, &tenure));
    EXPECT_OK(workflow_lock(tenure, &key, rig->arena, &workflow));
    int64_t failover_version = drain_to(rig, rig->domains, WEST);
    rig_wait(due_in_store(rig) == 1);
    rig_spawn(rig, close_shard, rig->shard);
    rig_wait(tenure->is_over);
    workflow_unlock(tenure, workflow);
    tenure_leave(tenure);
    rig_join(rig);
    EXPECT_EQ(read_told(rig, failover_version).markers, 0);
    EXPECT_EQ(due_in_store(rig), 1);
    rig_take(rig);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
    rig_wait(due_in_store(rig) == 0);
    struct told told = read_told(rig, failover_version);
    EXPECT(told.markers == 1 && told.is_marker_last);
}

void
case_a_drain_that_nobody_heard_is_told_by_who_takes_the_shard(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    begin_buffered(rig);
    shard_close(rig->shard);
    int64_t failover_version = drain_to(rig, rig->domains, WEST);
    for (int i = 0; i < 3; i++) {
        rig_take(rig);
        rig_wait(read_told(rig, failover_version).markers == 1 && due_in_store(rig) == 0);
        EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
        EXPECT(read_told(rig, failover_version).is_marker_last);
        if (i < 2)
            shard_close(rig->shard);
    }
}

void
case_a_marker_of_what_moved_again_is_not_put(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    shard_close(rig->shard);
    drain_to(rig, rig->domains, WEST);
    case_move_to(rig->domains, EAST, rig->arena);
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(due_in_store(rig) == 0);
    EXPECT_EQ(read_told(rig, 0).markers, 0);
}

/* Another host has the shard, hears of the drain and tells of it; this one knows older domains. */
void
case_no_event_follows_a_marker_on_a_host_with_older_domains(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    begin_buffered(rig);
    struct case_host other = case_open_host(rig);
    int64_t failover_version = drain_to(rig, other.domains, WEST);
    rig_wait(read_told(rig, failover_version).markers == 1);
    EXPECT(domains_notification_version(rig->domains) <
           domains_notification_version(other.domains));
    case_expect_not_active(rig);
    rig_sleep(100 * NS_PER_MS);
    struct told told = read_told(rig, failover_version);
    EXPECT(told.markers == 1 && told.is_marker_last);
    case_close_host(&other);
}
