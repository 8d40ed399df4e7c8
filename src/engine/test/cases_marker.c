/* cases_marker.c - a domain drains to another cluster: what a shard tells of that, and when. */
#include "domain/test/samples.h"
#include "engine/shard/inside.h"
#include "engine/shard/workflows.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

#define TYPE_MARKER CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_MARKER
#define TYPE_EVENTS CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_EVENTS

/* Another cluster says that the domain drains to there. */
static int64_t
drain_to(struct shard_fixture *fixture, struct domains *domains, int cluster)
{
    struct arena *arena = fixture->arena;
    const struct domain *domain = domains_find_name(domains, "moving");
    STORED(DomainRecord) *record = message_copy(arena, &domain->record->base);
    STORED(DomainChange) *change = STORED_NEW(arena, domain_change);
    STORED(Drain) *drain = STORED_NEW(arena, drain);
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
struct sent_rows {
    unsigned events, markers;
    bool is_marker_last;
};

static struct sent_rows
read_sent(struct shard_fixture *fixture, int64_t failover_version)
{
    struct sent_rows sent_rows = {0};
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_SHARD(fixture->options.number),
                        .kind = ROW_REPLICATION};
    EXPECT_OK(store_scan(fixture->store, &scan, fixture->arena, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        STORED(ReplicationRow) *row = NULL;
        EXPECT_OK(message_decode_as(fixture->arena, ERR_CORRUPT, STORED_TYPE(replication_row),
                                    rows.row[i].value, &row));
        sent_rows.is_marker_last = row->type == TYPE_MARKER;
        sent_rows.events += row->type == TYPE_EVENTS;
        sent_rows.markers += row->type == TYPE_MARKER;
        if (row->type != TYPE_MARKER)
            continue;
        EXPECT_TEXT(row->marker->domain_id, fixture->domain_id);
        EXPECT_EQ(row->marker->failover_version, failover_version);
    }
    return sent_rows;
}

static size_t
due_in_store(struct shard_fixture *fixture)
{
    return case_stored_record(fixture)->n_markers;
}

/* A run whose decision is started, and what came meanwhile. */
static void
begin_buffered(struct shard_fixture *fixture)
{
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
}

void
case_a_drain_is_told_behind_the_last_event(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    begin_buffered(fixture);
    struct sent_rows before = read_sent(fixture, 0);
    EXPECT_EQ(before.markers, 0);
    int64_t failover_version = drain_to(fixture, fixture->domains, WEST);
    shard_fixture_wait(read_sent(fixture, failover_version).markers == 1);
    struct sent_rows sent_rows = read_sent(fixture, failover_version);
    EXPECT(sent_rows.is_marker_last);
    EXPECT(sent_rows.events > before.events); /* what had waited for the decision */
    EXPECT_EQ(due_in_store(fixture), 0);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_DOMAIN_NOT_ACTIVE);
    shard_fixture_restart(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_DOMAIN_NOT_ACTIVE);
    shard_fixture_sleep(100 * NS_PER_MS);
    sent_rows = read_sent(fixture, failover_version);
    EXPECT(sent_rows.markers == 1 && sent_rows.is_marker_last);
}

static void
close_shard(void *argument)
{
    shard_close(argument);
}

/* Somebody is busy with the run, so the walk is not through when the shard is closed. */
void
case_a_marker_that_is_due_is_put_by_the_next_owner(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    begin_buffered(fixture);
    struct tenure *tenure;
    struct run_key key = {fixture->domain_id, "wf", ""};
    struct workflow *workflow;
    EXPECT_OK(tenure_enter(fixture->shard, 0, fixture->arena, &tenure));
    EXPECT_OK(workflow_lock(tenure, &key, fixture->arena, &workflow));
    int64_t failover_version = drain_to(fixture, fixture->domains, WEST);
    shard_fixture_wait(due_in_store(fixture) == 1);
    shard_fixture_spawn(fixture, close_shard, fixture->shard);
    shard_fixture_wait(tenure->is_over);
    workflow_unlock(tenure, workflow);
    tenure_leave(tenure);
    shard_fixture_join(fixture);
    EXPECT_EQ(read_sent(fixture, failover_version).markers, 0);
    EXPECT_EQ(due_in_store(fixture), 1);
    shard_fixture_take(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_DOMAIN_NOT_ACTIVE);
    shard_fixture_wait(due_in_store(fixture) == 0);
    struct sent_rows sent_rows = read_sent(fixture, failover_version);
    EXPECT(sent_rows.markers == 1 && sent_rows.is_marker_last);
}

void
case_a_drain_that_nobody_heard_is_told_by_who_takes_the_shard(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    begin_buffered(fixture);
    shard_close(fixture->shard);
    int64_t failover_version = drain_to(fixture, fixture->domains, WEST);
    for (int i = 0; i < 3; i++) {
        shard_fixture_take(fixture);
        shard_fixture_wait(read_sent(fixture, failover_version).markers == 1 &&
                           due_in_store(fixture) == 0);
        EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_DOMAIN_NOT_ACTIVE);
        EXPECT(read_sent(fixture, failover_version).is_marker_last);
        if (i < 2)
            shard_close(fixture->shard);
    }
}

void
case_a_marker_of_what_moved_again_is_not_put(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    shard_close(fixture->shard);
    drain_to(fixture, fixture->domains, WEST);
    case_move_to(fixture->domains, EAST, fixture->arena);
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(due_in_store(fixture) == 0);
    EXPECT_EQ(read_sent(fixture, 0).markers, 0);
}

/* Another host has the shard, hears of the drain and tells of it; this one knows older domains. */
void
case_no_event_follows_a_marker_on_a_host_with_older_domains(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    begin_buffered(fixture);
    struct case_host other = case_open_host(fixture);
    int64_t failover_version = drain_to(fixture, other.domains, WEST);
    shard_fixture_wait(read_sent(fixture, failover_version).markers == 1);
    EXPECT(domains_notification_version(fixture->domains) <
           domains_notification_version(other.domains));
    case_expect_not_active(fixture);
    shard_fixture_sleep(100 * NS_PER_MS);
    struct sent_rows sent_rows = read_sent(fixture, failover_version);
    EXPECT(sent_rows.markers == 1 && sent_rows.is_marker_last);
    case_close_host(&other);
}
