/* put.c - rows of a step for other clusters, and what they say to them. See replicate.c.
 *
 * The first events of a run that another one goes on as are told with the last ones of that. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/branches/versions.h"
#include "engine/outgoing/replicate.h"
#include "engine/shard/inside.h"
#include "engine/shard/outgoing_state.h"
#include "engine/shard/step_batch.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define TYPE_EVENTS   CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_EVENTS
#define TYPE_MARKER   CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_MARKER
#define TYPE_ACTIVITY CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_ACTIVITY

/* The clusters of the domain but this one, a bit each. */
static uint64_t
other_clusters(const struct tenure *tenure, const struct domain *domain)
{
    const struct cluster_group *group = tenure->shard->options.group;
    uint64_t clusters = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        if (cluster != group->current && domain_has_cluster(domain->record->domain, cluster->name))
            clusters |= (uint64_t)1 << i;
    }
    return clusters;
}

struct slice
replicate_activity_key(const struct run_key *key, int64_t schedule_id, struct arena *arena)
{
    return slice_text(arena_format(arena, "%s/%lld", key->run_id, (long long)schedule_id));
}

static API(DataBlob) *
make_blob(API(HistoryEvent) *const *events, size_t count, struct arena *arena)
{
    if (count == 0)
        return NULL;
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    blob->data = presence_make_bytes(thrift_encode_kept(arena, events, count));
    return blob;
}

struct slice
replicate_encode(const STORED(ReplicationRow) *row, uint64_t number,
                 API(HistoryEvent) *const *events, size_t count, API(HistoryEvent) *const *begun,
                 size_t begun_count, struct arena *arena)
{
    ADMIN(HistoryTaskV2Attributes) *attributes =
        message_new(arena, ADMIN_TYPE(history_task_v2_attributes));
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = row->workflow_id;
    execution->run_id = row->run_id;
    struct versions versions = versions_read(row->versions, row->n_versions, arena);
    attributes->domain_id = row->domain_id;
    attributes->workflow_execution = execution;
    attributes->version_history_items = versions_send(versions, arena);
    attributes->n_version_history_items = versions.count;
    attributes->events = make_blob(events, count, arena);
    attributes->new_run_events = make_blob(begun, begun_count, arena);
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_HISTORY_V2);
    task->source_task_id = (int64_t)number;
    task->creation_time = presence_make_timestamp(arena, row->created_time);
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES);
    task->history_task_v2_attributes = attributes;
    return message_encode(arena, &task->base);
}

struct slice
replicate_encode_marker(const STORED(ReplicationRow) *row, uint64_t number, const char *source,
                        struct arena *arena)
{
    const STORED(FailoverMarker) *marker = row->marker;
    ADMIN(FailoverMarkerAttributes) *attributes =
        message_new(arena, ADMIN_TYPE(failover_marker_attributes));
    attributes->domain_id = row->domain_id;
    attributes->failover_version = marker->failover_version;
    attributes->creation_time = presence_make_timestamp(arena, marker->creation_time);
    attributes->scope = marker->scope;
    attributes->name = marker->name;
    attributes->source_cluster = (char *)source;
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_FAILOVER_MARKER);
    task->source_task_id = (int64_t)number;
    task->creation_time = presence_make_timestamp(arena, row->created_time);
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES);
    task->failover_marker_attributes = attributes;
    return message_encode(arena, &task->base);
}

static STORED(ReplicationRow) *
new_row(const struct run *run, STORED(ReplicationType) type, struct arena *arena)
{
    STORED(ReplicationRow) *row = message_new(arena, STORED_TYPE(replication_row));
    row->format = RUN_RECORD_FORMAT;
    row->type = type;
    row->domain_id = run->core->domain_id;
    row->workflow_id = run->core->workflow_id;
    row->run_id = run->core->run_id;
    row->created_time = clock_wall();
    return row;
}

static struct replica *
keep_replica(struct tenure *tenure, uint64_t row, uint64_t clusters, struct slice task)
{
    struct replicating *replicating = &tenure->replicating;
    const struct list *last = replicating->recent.prev;
    check(last == &replicating->recent || list_entry(last, struct replica, node)->row < row);
    check(row > replicating->durable && row < tenure->ids.next && task.length > 0);
    struct replica *replica = memory_zalloc(1, sizeof *replica + task.length);
    replica->row = row;
    replica->ticket = writer_newest(tenure->writer) + 1;
    replica->clusters = clusters;
    replica->task = slice_of(memcpy(replica + 1, task.data, task.length), task.length);
    list_push_back(&replicating->recent, &replica->node);
    replicating->bytes += sizeof *replica + task.length;
    return replica;
}

static uint64_t
take_number(struct tenure *tenure)
{
    check(tenure->ids.next < tenure->ids.end);
    return tenure->ids.next++;
}

/* The run of the same step that the events continue theirs as, if they do; NULL: none. */
static const struct step_batch_run *
find_begun(const struct step_batch *step_batch, const struct replication_effect *node)
{
    check(node->event_count > 0);
    const API(HistoryEvent) *last = node->events[node->event_count - 1];
    if (last->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        return NULL;
    const char *run_id =
        last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    for (size_t i = 0; i < step_batch->count; i++) {
        const struct step_batch_run *part = &step_batch->runs[i];
        if (strcmp(part->run->core->run_id, run_id) == 0 && part->effects.to_replicate_count > 0)
            return part;
    }
    return NULL;
}

/* Does another run of the step tell of the first events of this one? */
static bool
is_sent_by_other(const struct step_batch *step_batch, const struct step_batch_run *part)
{
    for (size_t i = 0; i < step_batch->count; i++) {
        const struct effects *effects = &step_batch->runs[i].effects;
        if (effects->to_replicate_count > 0 &&
            find_begun(step_batch, &effects->to_replicate[effects->to_replicate_count - 1]) == part)
            return true;
    }
    return false;
}

static STORED(ReplicatedBegin) *
make_begin(const struct run *run, const struct replication_effect *node, struct arena *arena)
{
    STORED(ReplicatedBegin) *begin = message_new(arena, STORED_TYPE(replicated_begin));
    check(node->event_count > 0 && node->events[0]->event_id == 1); /* read.c reads from there */
    begin->run_id = run->core->run_id;
    begin->tree_id = presence_make_uuid(arena, node->branch.tree);
    begin->branch_id = presence_make_uuid(arena, node->branch.branch);
    begin->next_event_id = node->events[node->event_count - 1]->event_id + 1;
    return begin;
}

static void
put_node_row(const struct step_batch *step_batch, const struct step_batch_run *part,
             const struct replication_effect *node, uint64_t clusters)
{
    struct batch *batch = step_batch->batch;
    struct arena *arena = batch->arena;
    const STORED(RunRecord) *core = part->run->core;
    STORED(ReplicationRow) *row = new_row(part->run, TYPE_EVENTS, arena);
    const struct step_batch_run *other = find_begun(step_batch, node);
    const struct replication_effect *begun = other == NULL ? NULL : &other->effects.to_replicate[0];
    row->tree_id = presence_make_uuid(arena, node->branch.tree);
    row->branch_id = presence_make_uuid(arena, node->branch.branch);
    row->first_event_id = node->events[0]->event_id;
    row->next_event_id = node->events[node->event_count - 1]->event_id + 1;
    check(row->first_event_id > 0 && row->first_event_id < row->next_event_id);
    row->versions = core->versions;
    row->n_versions = core->n_versions;
    if (begun != NULL)
        row->begun = make_begin(other->run, begun, arena);
    check(other != part && clusters != 0);
    uint64_t number = take_number(step_batch->tenure);
    row->index = step_batch->tenure->replicating.index_next++;
    batch_put(batch, ROW_REPLICATION, replication_key(number, arena),
              message_encode(arena, &row->base));
    keep_replica(step_batch->tenure, number, clusters,
                 replicate_encode(row, number, node->events, node->event_count,
                                  begun == NULL ? NULL : begun->events,
                                  begun == NULL ? 0 : begun->event_count, arena));
}

static void
put_activity_row(struct tenure *tenure, const struct run *run, int64_t schedule_id,
                 uint64_t clusters, struct batch *batch)
{
    struct replicating *replicating = &tenure->replicating;
    struct arena *arena = batch->arena;
    struct run_key key = {run->core->domain_id, run->core->workflow_id, run->core->run_id};
    struct slice name = replicate_activity_key(&key, schedule_id, arena);
    const struct replica *before = map_get(replicating->activities, name);
    if (before != NULL && before->row > replicating->handed) {
        probe("activity_row_shared");
        return; /* 4 */
    }
    check(clusters != 0 && schedule_id > 0);
    STORED(ReplicationRow) *row = new_row(run, TYPE_ACTIVITY, arena);
    row->schedule_id = schedule_id;
    row->index = replicating->index_next++;
    uint64_t number = take_number(tenure);
    struct slice bytes = message_encode(arena, &row->base);
    batch_put(batch, ROW_REPLICATION, replication_key(number, arena), bytes);
    struct replica *replica = keep_replica(tenure, number, clusters, bytes);
    replica->is_activity = true;
    map_put(replicating->activities, name, replica);
}

/* What is decided here has a version of this cluster, so nobody else ever writes it; and since the
 * versions of a history rise (run/check.c), they rise strictly whenever another cluster goes on. */
static void
check_versions(const struct step_batch *step_batch, const struct replication_effect *node)
{
    const struct cluster_group *group = step_batch->tenure->shard->options.group;
    for (size_t i = 0; i < node->event_count; i++) {
        int64_t version = node->events[i]->version;
        check_that(version == FAILOVER_VERSION_LOCAL ||
                       cluster_group_of_version(group, version) == group->current,
                   "an event gets version %lld, which is not of cluster %s", (long long)version,
                   group->current->name);
    }
}

void
replicate_put(const struct step_batch *step_batch)
{
    for (size_t i = 0; i < step_batch->count; i++) {
        const struct step_batch_run *part = &step_batch->runs[i];
        const struct effects *effects = &part->effects;
        if (effects->to_replicate_count == 0 && effects->activity_count == 0)
            continue;
        uint64_t clusters = other_clusters(step_batch->tenure, part->domain);
        size_t first = is_sent_by_other(step_batch, part) ? 1 : 0;
        for (size_t j = 0; j < effects->to_replicate_count; j++)
            check_versions(step_batch, &effects->to_replicate[j]);
        for (size_t j = first; clusters != 0 && j < effects->to_replicate_count; j++)
            put_node_row(step_batch, part, &effects->to_replicate[j], clusters);
        for (size_t j = 0; clusters != 0 && j < effects->activity_count; j++)
            put_activity_row(step_batch->tenure, part->run, effects->activities[j], clusters,
                             step_batch->batch);
    }
}

void
replicate_put_marker(struct tenure *tenure, const struct domain *domain,
                     STORED(FailoverMarker) *marker, struct batch *batch)
{
    struct arena *arena = batch->arena;
    uint64_t clusters = other_clusters(tenure, domain);
    check(strcmp(marker->domain_id, domain->id) == 0);
    STORED(ReplicationRow) *row = message_new(arena, STORED_TYPE(replication_row));
    row->format = RUN_RECORD_FORMAT;
    row->type = TYPE_MARKER;
    row->domain_id = marker->domain_id;
    row->created_time = clock_wall();
    row->marker = marker;
    uint64_t number = take_number(tenure);
    batch_put(batch, ROW_REPLICATION, replication_key(number, arena),
              message_encode(arena, &row->base));
    keep_replica(
        tenure, number, clusters,
        replicate_encode_marker(row, number, tenure->shard->options.group->current->name, arena));
}
