/* replicated_test.c - changes that other clusters made, merged: each rule alone. That the rules
 * together make all clusters agree is shown by merge_test.c. */
#include "base/test.h"
#include "domain/test/samples.h"
#include "wire/message.h"
#include "wire/presence.h"

/* What one cluster knows of "orders", and what became of the last message. */
struct replicated_fixture {
    struct arena *arena;
    struct domain_rules rules;
    struct domain *domain; /* NULL: nothing yet */
    struct domain_decision decision;
    uint64_t moment;
};

static void
replicated_fixture_drop(struct replicated_fixture *replicated_fixture)
{
    domain_drop(replicated_fixture->domain);
    arena_free(replicated_fixture->arena);
}

static struct replicated_fixture
fixture_in(int cluster)
{
    return (struct replicated_fixture){
        .arena = arena_new(0), .rules = sample_rules(cluster), .moment = 50};
}

#define FIXTURE(name, cluster)                                                                     \
    scoped(replicated_fixture_drop) struct replicated_fixture name = fixture_in(cluster)

/* Says what the change is, as this server does and Cadence does not: a failover of the domain. */
static void
replicate(struct replicated_fixture *replicated_fixture, ADMIN(DomainTaskAttributes) *task)
{
    STORED(FailoverRecord) *failover = STORED_NEW(
        replicated_fixture->arena, failover_record,
        .id = arena_format(replicated_fixture->arena, "f-%lld", (long long)task->failover_version),
        .domain_id = task->id, .failover_version = task->failover_version, .origin = "north",
        .n_cluster_failovers = 1);
    API(ClusterFailover) *move =
        API_NEW(replicated_fixture->arena, cluster_failover,
                .to_cluster = API_NEW(replicated_fixture->arena, active_cluster_info,
                                      .active_cluster_name = task->domain->active_cluster_name,
                                      .failover_version = task->failover_version));
    failover->cluster_failovers = &move;
    task->tells_failovers = true;
    task->failover_record =
        presence_make_bytes(message_encode(replicated_fixture->arena, &failover->base));
}

/* The change is not a failover, or the sender does not say so. */
static ADMIN(DomainTaskAttributes) *
loops_left(ADMIN(DomainTaskAttributes) *task, bool tells_failovers)
{
    task->tells_failovers = tells_failovers;
    task->failover_record = (ProtobufCBinaryData){0};
    return task;
}

/* A failover: versions and active cluster are all that differs between two of them. */
static ADMIN(DomainTaskAttributes) *
message(struct replicated_fixture *replicated_fixture, int64_t config_version,
        int64_t failover_version, const char *attributes)
{
    ADMIN(DomainTaskAttributes) *task =
        ADMIN_NEW(replicated_fixture->arena, domain_task_attributes,
                  .domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE),
                  .id = "id-1", .config_version = config_version,
                  .failover_version = failover_version, .previous_failover_version = -1,
                  .domain = API_NEW(
                      replicated_fixture->arena, domain, .name = "orders",
                      .status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED),
                      .description = arena_format(replicated_fixture->arena, "config %lld",
                                                  (long long)config_version),
                      .active_cluster_name = (char *)sample_names[failover_version % 10],
                      .n_clusters = 3, .clusters = sample_clusters(replicated_fixture->arena, 3)));
    if (attributes != NULL)
        task->domain->active_clusters = sample_attributes(attributes, replicated_fixture->arena);
    replicate(replicated_fixture, task);
    return task;
}

static ADMIN(DomainTaskAttributes) *
creation(struct replicated_fixture *replicated_fixture)
{
    ADMIN(DomainTaskAttributes) *task = message(replicated_fixture, 0, 0, NULL);
    task->domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    return loops_left(task, true);
}

/* The message comes from `source`; what it changes is adopted. */
static struct error *
receive(struct replicated_fixture *replicated_fixture, const ADMIN(DomainTaskAttributes) *task,
        int source)
{
    struct domain_moment moment = sample_moment(++replicated_fixture->moment);
    const struct domain *known = replicated_fixture->domain;
    const struct domain *by_name =
        known != NULL && strcmp(known->name, task->domain->name) == 0 &&
                known->record->domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED)
            ? known
            : NULL;
    const struct domain *by_id = known != NULL && strcmp(known->id, task->id) == 0 ? known : NULL;
    struct error *err = domain_decide_replicated(
        by_name, by_id, task, sample_names[source], &replicated_fixture->rules, &moment,
        replicated_fixture->arena, &replicated_fixture->decision);
    if (err != NULL || replicated_fixture->decision.what == DOMAIN_UNCHANGED)
        return err;
    replicated_fixture->decision.next->notification_version =
        (int64_t)replicated_fixture->moment + 1;
    struct domain *next = domain_from_record(replicated_fixture->decision.next);
    domain_drop(replicated_fixture->domain); /* what was decided points into it */
    replicated_fixture->decision.next = (STORED(DomainRecord) *)next->record;
    replicated_fixture->domain = next;
    return NULL;
}

#define DOMAIN_OF(replicated_fixture) ((replicated_fixture).domain->record->domain)
#define RECORD_OF(replicated_fixture) ((replicated_fixture).domain->record)
#define PRINT_OF(replicated_fixture)                                                               \
    sample_print(DOMAIN_OF(replicated_fixture)->active_clusters, (replicated_fixture).arena)
#define NOTICED_OF(replicated_fixture)                                                             \
    ((uint64_t)RECORD_OF(replicated_fixture)->failover_notification_version)

/* D-009, D-043. */
TEST(replicated, a_created_domain_is_the_same_here, "D-009", "D-043")
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    EXPECT_EQ(west.decision.what, DOMAIN_CREATED);
    EXPECT(west.decision.failover == NULL);
    EXPECT_TEXT(west.domain->id, "id-1");
    EXPECT(DOMAIN_OF(west)->is_global_domain);
    EXPECT_EQ(DOMAIN_OF(west)->failover_version, 0);
    EXPECT_EQ(DOMAIN_OF(west)->history_archival_status,
              API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED));
    EXPECT_EQ(RECORD_OF(west)->config_version, 0);
    EXPECT_EQ(RECORD_OF(west)->previous_failover_version, -1);
    EXPECT_EQ(NOTICED_OF(west), 0);
    EXPECT_OK(receive(&west, creation(&west), EAST)); /* again */
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
    EXPECT(west.decision.failover == NULL);
}

/* D-043: a cluster that joins late, or a message that overtook. */
TEST(replicated, an_update_of_an_unknown_domain_creates_it, "D-043")
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, message(&west, 3, 12, "city.a:west=1"), NORTH));
    EXPECT_EQ(west.decision.what, DOMAIN_CREATED);
    EXPECT_EQ(RECORD_OF(west)->config_version, 3);
    EXPECT_EQ(DOMAIN_OF(west)->failover_version, 12);
    EXPECT_TEXT(PRINT_OF(west), "city.a:west=1");
    EXPECT_EQ(NOTICED_OF(west), west.moment);
    EXPECT_EQ(west.decision.failover->failover_version, 12);
    EXPECT(west.decision.failover->cluster_failovers[0]->from_cluster == NULL);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
    EXPECT(west.decision.failover == NULL);
}

/* D-042, every combination of older, equal and newer. */
TEST(replicated, settings_and_active_cluster_count_each_by_their_own_version, "D-040", "D-042")
{
    for (int64_t config = 4; config <= 6; config++) {
        for (int64_t step = -1; step <= 1; step++) {
            FIXTURE(west, WEST);
            EXPECT_OK(receive(&west, message(&west, 5, 20, NULL), NORTH));
            uint64_t noticed = NOTICED_OF(west);
            int64_t version = step < 0 ? 12 : step == 0 ? 20 : 21;
            EXPECT_OK(receive(&west, message(&west, config, version, NULL), NORTH));
            bool has_config = config == 6, has_moved = step > 0;
            EXPECT_EQ(west.decision.what,
                      has_config || has_moved ? DOMAIN_UPDATED : DOMAIN_UNCHANGED);
            EXPECT_EQ(RECORD_OF(west)->config_version, has_config ? 6 : 5);
            EXPECT_TEXT(DOMAIN_OF(west)->description, has_config ? "config 6" : "config 5");
            EXPECT_EQ(DOMAIN_OF(west)->failover_version, has_moved ? 21 : 20);
            EXPECT_TEXT(DOMAIN_OF(west)->active_cluster_name, has_moved ? "west" : "east");
            EXPECT_EQ(NOTICED_OF(west), has_moved ? west.moment : noticed); /* D-040 */
            EXPECT(west.decision.failover->is_superseded == (step < 0));
        }
    }
}

/* Two clusters move different attributes at the same time: neither move may be lost, whichever of
 * the two has the greater version for the domain. */
TEST(replicated, attributes_are_merged_one_by_one_whatever_the_domain_says, "G-033", "G-035")
{
    static const int64_t versions[] = {12, 20, 21}; /* older, equal, newer */
    for (size_t i = 0; i < array_length(versions); i++) {
        FIXTURE(west, WEST);
        EXPECT_OK(receive(&west, message(&west, 0, 20, "city.a:north=22,city.b:east=0"), NORTH));
        ADMIN(DomainTaskAttributes) *task =
            message(&west, 0, versions[i], "city.a:east=10,city.b:west=11,city.c:west=1");
        EXPECT_OK(receive(&west, loops_left(task, false), NORTH)); /* of another make */
        EXPECT_EQ(west.decision.what, DOMAIN_UPDATED);
        EXPECT_TEXT(PRINT_OF(west), "city.a:north=22,city.b:west=11,city.c:west=1");
        EXPECT_EQ(DOMAIN_OF(west)->failover_version, versions[i] > 20 ? versions[i] : 20);
        EXPECT_EQ(NOTICED_OF(west), west.moment);
        const STORED(FailoverRecord) *entry = west.decision.failover;
        EXPECT_EQ(entry->failover_version, versions[i]);
        EXPECT(!entry->is_superseded);
        EXPECT_TEXT(entry->origin, "north");
        size_t first = entry->n_cluster_failovers - 2;
        EXPECT_EQ(first, versions[i] == 21); /* before it, the domain if it went elsewhere */
        EXPECT_TEXT(entry->cluster_failovers[first]->cluster_attribute->name, "b");
        EXPECT_TEXT(entry->cluster_failovers[first + 1]->cluster_attribute->name, "c");
    }
}

/* An older failover leaves a trace; an older message that only set something does not. */
TEST(replicated, a_failover_that_comes_too_late_is_remembered_as_superseded)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, message(&west, 5, 20, NULL), NORTH));
    ADMIN(DomainTaskAttributes) *late = message(&west, 5, 11, NULL);
    EXPECT_OK(receive(&west, late, NORTH));
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
    EXPECT(west.decision.next == NULL);
    EXPECT(west.decision.failover->is_superseded);
    EXPECT_EQ(west.decision.failover->failover_version, 11);
    EXPECT_TEXT(west.decision.failover->domain_id, "id-1");
    EXPECT_TEXT(west.decision.failover->cluster_failovers[0]->to_cluster->active_cluster_name,
                "west");
    EXPECT_OK(receive(&west, loops_left(late, true), EAST)); /* settings only */
    EXPECT(west.decision.failover == NULL);

    FIXTURE(south, WEST); /* the first that it hears of the domain, by a cluster that knew better */
    ADMIN(DomainTaskAttributes) *passed_on = message(&south, 5, 20, NULL);
    passed_on->failover_record = message(&south, 5, 11, NULL)->failover_record;
    EXPECT_OK(receive(&south, passed_on, NORTH));
    EXPECT_EQ(south.decision.what, DOMAIN_CREATED);
    EXPECT(south.decision.failover->is_superseded);
}

TEST(replicated, a_failover_is_among_the_recent_ones_here_too)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    EXPECT_OK(receive(&west, message(&west, 0, 1, NULL), NORTH));
    EXPECT_EQ(RECORD_OF(west)->n_recent_failovers, 1);
    EXPECT_TEXT(RECORD_OF(west)->recent_failovers[0]->from_cluster, "east");
    EXPECT_TEXT(RECORD_OF(west)->recent_failovers[0]->to_cluster, "west");
}

static ADMIN(DomainTaskAttributes) *
deletion(struct replicated_fixture *replicated_fixture, char *id)
{
    ADMIN(DomainTaskAttributes) *task = message(replicated_fixture, 1, 0, NULL);
    task->domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
    task->id = id;
    return task;
}

TEST(replicated, a_delete_goes_by_name_and_spares_a_newer_domain_of_that_name)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, deletion(&west, ""), EAST)); /* nothing there */
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    struct domain_moment moment = sample_moment(++west.moment);
    EXPECT_OK(domain_decide_replicated(west.domain, NULL, deletion(&west, "id-0"), "east",
                                       &west.rules, &moment, west.arena, &west.decision));
    EXPECT_TEXT(west.decision.next->domain->id, "id-0"); /* the one that had the name before */
    EXPECT_OK(receive(&west, deletion(&west, ""), EAST));
    EXPECT_EQ(west.decision.what, DOMAIN_DELETED);
    EXPECT_TEXT(west.decision.next->domain->id, "id-1");
}

/* A message about it may be parked here, or on its way through a third cluster. */
TEST(replicated, a_domain_that_was_deleted_before_it_was_known_never_comes)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, deletion(&west, "id-1"), EAST));
    EXPECT_EQ(west.decision.what, DOMAIN_DELETED);
    EXPECT_TEXT(west.decision.next->domain->id, "id-1");
    EXPECT_EQ(west.decision.next->domain->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED));
    EXPECT_OK(receive(&west, creation(&west), NORTH));
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
}

/* Another cluster did not know of the delete yet when it failed the domain over. */
TEST(replicated, a_deleted_domain_does_not_come_back)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    EXPECT_OK(receive(&west, deletion(&west, "id-1"), EAST));
    EXPECT_EQ(west.decision.what, DOMAIN_DELETED);
    ADMIN(DomainTaskAttributes) *late[] = {message(&west, 7, 12, "city.a:west=1"), creation(&west),
                                           deletion(&west, "id-1")};
    for (size_t i = 0; i < array_length(late); i++) {
        EXPECT_OK(receive(&west, late[i], NORTH));
        EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
        EXPECT(west.decision.failover == NULL);
    }
}

static void
expect_dead_lettered(struct replicated_fixture *replicated_fixture,
                     const ADMIN(DomainTaskAttributes) *task, const char *says)
{
    struct error *err = receive(replicated_fixture, task, EAST);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    if (strstr(err->message, says) == NULL)
        TEST_FAIL("'%s' is not in '%s'", says, err->message);
}

/* D-043: what can never be applied says why, so that a person can decide. */
TEST(replicated, a_name_or_id_that_belongs_to_another_domain_is_an_error, "D-043")
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, creation(&west), EAST));
    ADMIN(DomainTaskAttributes) *task = creation(&west);
    task->id = "id-2";
    expect_dead_lettered(&west, task,
                         "The name orders belongs to domain id-1 here, and to domain id-2");
    task->domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    expect_dead_lettered(&west, task, "The name orders belongs to domain id-1 here");
    task = creation(&west);
    task->domain->name = "other";
    expect_dead_lettered(&west, task, "The id id-1 belongs to domain orders here");
    ((STORED(DomainRecord) *)RECORD_OF(west))->domain->is_global_domain = false;
    expect_dead_lettered(&west, message(&west, 1, 1, NULL), "Domain orders is local here");
    expect_dead_lettered(&west, deletion(&west, ""), "cannot delete it");
}

static ADMIN(DomainTaskAttributes) *
message_of_moon(struct replicated_fixture *replicated_fixture, int64_t config_version,
                int64_t failover_version, const char *attributes)
{
    ADMIN(DomainTaskAttributes) *task = message(replicated_fixture, config_version, 0, attributes);
    task->domain->active_cluster_name = "moon";
    task->failover_version = failover_version;
    return loops_left(task, true);
}

/* The group had a cluster moon, whose versions end with 4; here it is gone already, elsewhere not
 * yet. Changes of a domain that was active there are facts: they are applied, and so is the move
 * away. */
TEST(replicated, a_change_that_names_a_cluster_which_left_the_group_is_applied)
{
    FIXTURE(west, WEST);
    EXPECT_OK(receive(&west, message_of_moon(&west, 1, 4, "city.a:moon=14,city.b:east=0"), EAST));
    EXPECT_TEXT(RECORD_OF(west)->domain->active_cluster_name, "moon");
    EXPECT_EQ(RECORD_OF(west)->domain->failover_version, 4);
    EXPECT_OK(receive(&west, message_of_moon(&west, 2, 14, "city.a:moon=14,city.b:west=1"), EAST));
    EXPECT_EQ(RECORD_OF(west)->config_version, 2);
    EXPECT_EQ(RECORD_OF(west)->domain->failover_version, 14);
    EXPECT_OK(receive(&west, message(&west, 2, 20, "city.a:west=21,city.b:west=1"), EAST));
    EXPECT_TEXT(RECORD_OF(west)->domain->active_cluster_name, "east");
    EXPECT_TEXT(sample_print(RECORD_OF(west)->domain->active_clusters, west.arena),
                "city.a:west=21,city.b:west=1");
    EXPECT_OK(receive(&west, message_of_moon(&west, 2, 4, NULL), EAST)); /* late */
    EXPECT_TEXT(RECORD_OF(west)->domain->active_cluster_name, "east");
}

TEST(replicated, a_message_that_makes_no_sense_is_an_error)
{
    FIXTURE(west, WEST);
    ADMIN(DomainTaskAttributes) *task = message(&west, 0, 0, NULL);
    task->domain->active_cluster_name = "moon";
    expect_dead_lettered(&west, task, "failover version 0 does not belong to cluster moon");
    task->domain->active_cluster_name = "";
    expect_dead_lettered(&west, task, "names no active cluster");
    task->domain->active_cluster_name = "west";
    expect_dead_lettered(&west, task, "failover version 0 does not belong to cluster west");
    expect_dead_lettered(&west, message(&west, 0, 0, "city.a:moon=1"),
                         "failover version 1 does not");
    expect_dead_lettered(&west, message(&west, 0, 0, "city.a:west=2"),
                         "failover version 2 does not");
    task = message(&west, 0, 0, NULL);
    task->failover_version = FAILOVER_VERSION_LOCAL;
    expect_dead_lettered(&west, task, "failover version -24 does not belong to cluster east");
    task = message(&west, 0, 0, NULL);
    task->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    expect_dead_lettered(&west, task, "status that no domain has: 3");
    task = message(&west, 0, 0, NULL);
    task->id = "";
    expect_dead_lettered(&west, task, "does not have its id");
    task->domain->name = "";
    expect_dead_lettered(&west, task, "names no domain");
    task->domain_operation = 0;
    expect_dead_lettered(&west, task, "operation that is not known: 0");
    EXPECT(west.domain == NULL);
}

/* --- the message -------------------------------------------------------------------------------
 */

static const ADMIN(DomainTaskAttributes) *
task_of(STORED(DomainRecord) *record, int operation, struct arena *arena)
{
    STORED(DomainChange) *change =
        STORED_NEW(arena, domain_change, .operation = operation, .record = record);
    ADMIN(ReplicationTask) *task = domain_replication_task(change, arena);
    EXPECT_EQ(task->task_type, ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_DOMAIN));
    EXPECT_EQ(task->source_task_id, record->notification_version);
    EXPECT_EQ(task->attributes_case,
              ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES));
    return task->domain_task_attributes;
}

/* The form that servers of other make expect: what stands beside the domain is not in it. */
TEST(replicated, a_message_has_the_versions_beside_the_domain)
{
    FIXTURE(east, EAST);
    EXPECT_OK(receive(&east, message(&east, 4, 11, "city.a:west=1"), NORTH));
    STORED(DomainRecord) *record = east.decision.next;
    const ADMIN(DomainTaskAttributes) *task =
        task_of(record, ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE), east.arena);
    EXPECT_TEXT(task->id, "id-1");
    EXPECT_TEXT(task->domain->id, "");
    EXPECT_TEXT(task->domain->name, "orders");
    EXPECT_EQ(task->domain->failover_version, 0);
    EXPECT(!task->domain->is_global_domain);
    EXPECT_EQ(task->config_version, 4);
    EXPECT_EQ(task->failover_version, 11);
    EXPECT_EQ(task->previous_failover_version, -1);
    EXPECT_TEXT(sample_print(task->domain->active_clusters, east.arena), "city.a:west=1");
    EXPECT(record->domain->is_global_domain); /* the record itself is as it was */

    record->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    task = task_of(record, ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE), east.arena);
    EXPECT_EQ(task->domain->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED));
}

/* A cluster that passes a failover on passes it on as it came, also with a creation: one that heard
 * of the domain by it. */
TEST(replicated, a_message_tells_the_failover_that_its_change_was)
{
    FIXTURE(east, EAST);
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(receive(&east, message(&east, 4 + round, 11 + 10 * round, NULL), NORTH));
        STORED(DomainChange) change = CADENZA__STORAGE__V1__DOMAIN_CHANGE__INIT;
        change.operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
        change.record = east.decision.next;
        change.failover = east.decision.failover;
        change.failover->is_superseded = true; /* each cluster's own: not told */
        const ADMIN(DomainTaskAttributes) *task =
            domain_replication_task(&change, east.arena)->domain_task_attributes;
        STORED(FailoverRecord) *told = NULL;
        EXPECT(task->tells_failovers);
        EXPECT_OK(message_decode(east.arena, STORED_TYPE(failover_record),
                                 presence_read_bytes(task->failover_record), &told));
        EXPECT_TEXT(told->id, round == 0 ? "f-11" : "f-21");
        EXPECT_TEXT(told->origin, "north");
        EXPECT(!told->is_superseded);
    }
    EXPECT_OK(receive(&east, loops_left(message(&east, 6, 21, NULL), true), NORTH));
    EXPECT_EQ(east.decision.what, DOMAIN_UPDATED);
    EXPECT(east.decision.failover == NULL);
}

/* It is parked, and changes nothing. */
TEST(replicated, a_message_that_tells_the_failover_of_another_domain_is_refused)
{
    FIXTURE(west, WEST);
    ADMIN(DomainTaskAttributes) *task = message(&west, 0, 11, NULL);
    task->id = "id-2";
    EXPECT_KIND(receive(&west, task, NORTH), ERR_BAD_REQUEST);
    task = message(&west, 0, 11, NULL);
    task->failover_record.len--;
    EXPECT_KIND(receive(&west, task, NORTH), ERR_BAD_REQUEST);
    EXPECT(west.domain == NULL);
}
