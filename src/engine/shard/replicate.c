/* replicate.c - rows for other clusters: what was decided here, for those who have the domain too.
 *
 * A step puts its rows with its own commit. Those of the last steps stay in memory with the bytes
 * that go out, made once for all who ask; older ones are read from the store (replicate_read.c). A
 * cluster says how far it needs none any more, and a row goes when all of its clusters have said
 * so; one that is away has a number here, its rows are in the store.
 *
 *   1. All rows from memory_from on that anybody needs are in memory.
 *   2. Only durable rows are told of.
 *   3. A row is deleted once, or more often: it is one that may be.
 *   4. Of an activity there is one row that nobody was given: it tells what is true then. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/ndc/versions.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define RECENT_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define TRIM_INTERVAL    NS_PER_S
#define TYPE_EVENTS      CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_EVENTS
#define TYPE_ACTIVITY    CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_ACTIVITY

static const struct cluster_group *
group_of(const struct tenure *tenure)
{
    return tenure->shard->options.group;
}

void
replicate_init(struct tenure *tenure)
{
    struct replicating *replicating = &tenure->replicating;
    const struct cluster_group *group = group_of(tenure);
    check(group == NULL || group->count <= 64);
    list_init(&replicating->recent);
    list_init(&replicating->watches);
    replicating->activities = map_new();
    replicating->bytes_max = RECENT_BYTES_MAX;
    replicating->peers =
        memory_zalloc(group == NULL ? 1 : group->count, sizeof replicating->peers[0]);
    replicating->durable = tenure->ids.next - 1; /* all of former owners is */
    replicating->memory_from = tenure->ids.next;
}

static struct slice
activity_key(const struct run_key *key, int64_t schedule_id, struct arena *arena)
{
    return slice_text(arena_format(arena, "%s/%lld", key->run_id, (long long)schedule_id));
}

static void
forget_replica(struct replicating *replicating, struct replica *replica)
{
    list_remove(&replica->node);
    replicating->bytes -= replica->task.length + sizeof *replica;
    memory_free(replica);
}

void
replicate_free(struct tenure *tenure)
{
    struct replicating *replicating = &tenure->replicating;
    check(list_is_empty(&replicating->watches));
    map_free(replicating->activities);
    list_each_safe(node, &replicating->recent)
        forget_replica(replicating, list_entry(node, struct replica, node));
    check(replicating->bytes == 0);
    vector_free(&replicating->deletes);
    memory_free(replicating->peers);
}

void
replicate_begin(struct tenure *tenure, const STORED(ShardRecord) *record)
{
    struct replicating *replicating = &tenure->replicating;
    const struct cluster_group *group = group_of(tenure);
    replicating->trimmed = record->replication_level;
    for (size_t i = 0; i < record->n_acks; i++) {
        const struct cluster *cluster = cluster_group_find(group, record->acks[i]->cluster);
        if (cluster != NULL)
            replicating->peers[cluster - group->clusters].ack = record->acks[i]->row;
    }
}

void
replicate_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena)
{
    const struct replicating *replicating = &tenure->replicating;
    const struct cluster_group *group = group_of(tenure);
    record->replication_level = replicating->trimmed;
    record->acks = arena_zalloc(arena, group->count, sizeof record->acks[0]);
    for (size_t i = 0; i < group->count; i++) {
        if (replicating->peers[i].ack == 0)
            continue;
        STORED(ReplicationAck) *ack = message_new(arena, STORED_TYPE(replication_ack));
        ack->cluster = (char *)group->clusters[i].name;
        ack->row = replicating->peers[i].ack;
        record->acks[record->n_acks++] = ack;
    }
}

bool
replicate_concerns(const struct domain *domain, const struct cluster *cluster)
{
    const API(Domain) *listed = domain->record->domain;
    for (size_t i = 0; i < listed->n_clusters; i++) {
        if (strcmp(listed->clusters[i]->cluster_name, cluster->name) == 0)
            return true;
    }
    return false;
}

static uint64_t
other_clusters(const struct tenure *tenure, const struct domain *domain)
{
    const struct cluster_group *group = group_of(tenure);
    uint64_t clusters = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        if (cluster != group->current && replicate_concerns(domain, cluster))
            clusters |= (uint64_t)1 << i;
    }
    return clusters;
}

/* --- putting rows ---- */

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

static ProtobufCBinaryData
uuid_data(struct uuid uuid, struct arena *arena)
{
    return presence_make_bytes(arena_slice(arena, slice_of(uuid.bytes, sizeof uuid.bytes)));
}

static struct replica *
keep_replica(struct tenure *tenure, uint64_t row, uint64_t clusters, struct slice task)
{
    struct replicating *replicating = &tenure->replicating;
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
find_begun(const struct step_batch *commit, const struct node_effect *node)
{
    const API(HistoryEvent) *last = node->events[node->event_count - 1];
    if (last->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        return NULL;
    const char *run_id =
        last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    for (size_t i = 0; i < commit->count; i++) {
        const struct step_batch_run *part = &commit->runs[i];
        if (strcmp(part->run->core->run_id, run_id) == 0 && part->effects.node_count > 0)
            return part;
    }
    return NULL;
}

/* Does another run of the step tell of the first events of this one? */
static bool
is_told_by_other(const struct step_batch *commit, const struct step_batch_run *part)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct effects *effects = &commit->runs[i].effects;
        if (effects->node_count > 0 &&
            find_begun(commit, &effects->nodes[effects->node_count - 1]) == part)
            return true;
    }
    return false;
}

static STORED(ReplicatedBegin) *
make_begin(const struct run *run, const struct node_effect *node, struct arena *arena)
{
    STORED(ReplicatedBegin) *begin = message_new(arena, STORED_TYPE(replicated_begin));
    begin->run_id = run->core->run_id;
    begin->tree_id = uuid_data(node->branch.tree, arena);
    begin->branch_id = uuid_data(node->branch.branch, arena);
    begin->next_event_id = node->events[node->event_count - 1]->event_id + 1;
    return begin;
}

static void
put_node_row(const struct step_batch *commit, const struct step_batch_run *part,
             const struct node_effect *node, uint64_t clusters)
{
    struct batch *batch = commit->batch;
    struct arena *arena = batch->arena;
    const STORED(RunRecord) *core = part->run->core;
    STORED(ReplicationRow) *row = new_row(part->run, TYPE_EVENTS, arena);
    const struct step_batch_run *other = find_begun(commit, node);
    const struct node_effect *begun = other == NULL ? NULL : &other->effects.nodes[0];
    row->tree_id = uuid_data(node->branch.tree, arena);
    row->branch_id = uuid_data(node->branch.branch, arena);
    row->first_event_id = node->events[0]->event_id;
    row->next_event_id = node->events[node->event_count - 1]->event_id + 1;
    row->versions = core->versions;
    row->n_versions = core->n_versions;
    if (begun != NULL)
        row->begun = make_begin(other->run, begun, arena);
    uint64_t number = take_number(commit->tenure);
    batch_put(batch, ROW_REPLICATION, replication_key(number, arena),
              message_encode(arena, &row->base));
    keep_replica(commit->tenure, number, clusters,
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
    struct slice name = activity_key(&key, schedule_id, arena);
    const struct replica *before = map_get(replicating->activities, name);
    if (before != NULL && before->row > replicating->handed) {
        mark("activity_row_shared");
        return; /* 4 */
    }
    STORED(ReplicationRow) *row = new_row(run, TYPE_ACTIVITY, arena);
    row->schedule_id = schedule_id;
    uint64_t number = take_number(tenure);
    struct slice bytes = message_encode(arena, &row->base);
    batch_put(batch, ROW_REPLICATION, replication_key(number, arena), bytes);
    struct replica *replica = keep_replica(tenure, number, clusters, bytes);
    replica->is_activity = true;
    map_put(replicating->activities, name, replica);
}

void
replicate_put(const struct step_batch *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct step_batch_run *part = &commit->runs[i];
        const struct effects *effects = &part->effects;
        if (effects->node_count == 0 && effects->activity_count == 0)
            continue;
        uint64_t clusters = other_clusters(commit->tenure, part->domain);
        size_t first = is_told_by_other(commit, part) ? 1 : 0;
        for (size_t j = first; clusters != 0 && j < effects->node_count; j++)
            put_node_row(commit, part, &effects->nodes[j], clusters);
        for (size_t j = 0; clusters != 0 && j < effects->activity_count; j++)
            put_activity_row(commit->tenure, part->run, effects->activities[j], clusters,
                             commit->batch);
    }
}

/* --- what is durable ---- */

static void
forget_activity(struct tenure *tenure, const struct replica *replica)
{
    struct arena *arena = arena_new(0);
    STORED(ReplicationRow) *row = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(replication_row), replica->task, &row);
    check(err == NULL);
    struct run_key key = {row->domain_id, row->workflow_id, row->run_id};
    struct slice name = activity_key(&key, row->schedule_id, arena);
    if (map_get(tenure->replicating.activities, name) == replica)
        map_remove(tenure->replicating.activities, name);
    arena_free(arena);
}

static void
drop_replica(struct tenure *tenure, struct replica *replica)
{
    if (replica->is_activity)
        forget_activity(tenure, replica);
    forget_replica(&tenure->replicating, replica);
}

/* Memory is for those who follow closely. */
static void
bound_memory(struct tenure *tenure)
{
    struct replicating *replicating = &tenure->replicating;
    while (replicating->bytes > replicating->bytes_max) {
        struct replica *oldest = list_entry(replicating->recent.next, struct replica, node);
        if (oldest->row > replicating->durable)
            return;
        replicating->memory_from = oldest->row + 1;
        drop_replica(tenure, oldest);
        mark("replication_left_to_store");
    }
}

static void
fire_watches(struct tenure *tenure, uint64_t clusters)
{
    const struct cluster *first = group_of(tenure)->clusters;
    list_each_safe(node, &tenure->replicating.watches) {
        struct replication_watch *watch = list_entry(node, struct replication_watch, node);
        if ((clusters >> (watch->cluster - first) & 1) == 0)
            continue;
        list_remove(&watch->node);
        watch->fire(watch);
    }
}

void
replicate_release(struct tenure *tenure, ticket_t durable)
{
    struct replicating *replicating = &tenure->replicating;
    uint64_t clusters = 0, newest = replicating->durable;
    for (struct list *node = replicating->recent.prev; node != &replicating->recent;
         node = node->prev) {
        const struct replica *replica = list_entry(node, struct replica, node);
        if (replica->row <= replicating->durable)
            break;
        if (replica->ticket > durable)
            continue;
        newest = replica->row > newest ? replica->row : newest;
        clusters |= replica->clusters;
    }
    if (clusters == 0)
        return;
    replicating->durable = newest;
    bound_memory(tenure);
    fire_watches(tenure, clusters);
}

void
replicate_lose(struct tenure *tenure)
{
    for (struct list *node; (node = list_pop_front(&tenure->replicating.watches)) != NULL;) {
        struct replication_watch *watch = list_entry(node, struct replication_watch, node);
        watch->fire(watch);
    }
}

static bool
has_rows_behind(const struct tenure *tenure, const struct replication_watch *watch)
{
    const struct replicating *replicating = &tenure->replicating;
    size_t bit = (size_t)(watch->cluster - group_of(tenure)->clusters);
    if (watch->after + 1 < replicating->memory_from)
        return true; /* there may be, in the store */
    for (struct list *node = replicating->recent.prev; node != &replicating->recent;
         node = node->prev) {
        const struct replica *replica = list_entry(node, struct replica, node);
        if (replica->row <= watch->after)
            return false;
        if (replica->row <= replicating->durable && (replica->clusters >> bit & 1) != 0)
            return true;
    }
    return false;
}

void
shard_watch_replication(struct shard *shard, struct replication_watch *watch)
{
    struct tenure *tenure = shard->tenure;
    if (tenure == NULL || has_rows_behind(tenure, watch))
        watch->fire(watch);
    else
        list_push_back(&tenure->replicating.watches, &watch->node);
}

/* --- what nobody needs any more ---- */

/* What every cluster that takes part has said. */
static uint64_t
lowest_ack(const struct tenure *tenure)
{
    const struct cluster_group *group = group_of(tenure);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < group->count; i++) {
        uint64_t ack = tenure->replicating.peers[i].ack;
        bool counts = &group->clusters[i] != group->current && group->clusters[i].is_enabled;
        if (counts && ack < lowest)
            lowest = ack;
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

static bool
is_needed(const struct tenure *tenure, const struct replica *replica)
{
    for (size_t i = 0; i < group_of(tenure)->count; i++) {
        bool is_for_it = (replica->clusters >> i & 1) != 0;
        if (is_for_it && tenure->replicating.peers[i].ack < replica->row)
            return true;
    }
    return false;
}

void
replicate_ack(struct tenure *tenure, size_t cluster, uint64_t row)
{
    struct replicating *replicating = &tenure->replicating;
    struct replication_peer *peer = &replicating->peers[cluster];
    if (row > replicating->durable)
        row = replicating->durable;
    if (row <= peer->ack)
        return;
    peer->ack = row;
    uint64_t lowest = lowest_ack(tenure);
    list_each_safe(node, &replicating->recent) {
        struct replica *replica = list_entry(node, struct replica, node);
        if (replica->row > row)
            break;
        if (is_needed(tenure, replica))
            continue;
        if (replica->row > lowest) /* a cluster that does not have the domain is behind */
            vector_push(&replicating->deletes, replica->row);
        drop_replica(tenure, replica);
    }
}

void
replicate_fill(struct tenure *tenure, struct batch *batch)
{
    struct replicating *replicating = &tenure->replicating;
    for (size_t i = 0; i < replicating->deletes.count; i++)
        batch_delete(batch, ROW_REPLICATION,
                     replication_key(replicating->deletes.items[i], batch->arena));
    replicating->deletes.count = 0;
    int64_t now = clock_monotonic();
    uint64_t lowest = now < replicating->trim_time ? 0 : lowest_ack(tenure);
    if (lowest <= replicating->trimmed)
        return;
    batch_delete_range(batch, ROW_REPLICATION,
                       replication_key(replicating->trimmed + 1, batch->arena),
                       replication_key(lowest + 1, batch->arena));
    replicating->trimmed = lowest;
    replicating->trim_time = now + TRIM_INTERVAL;
    tenure->is_record_due = true;
    mark("replication_rows_trimmed");
}

/* --- dead letters ---- */

static struct error *
commit(struct shard *shard, void (*fill)(void *context, struct batch *batch), void *context,
       struct arena *arena)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    if (writer_has_room(tenure->writer)) {
        struct batch *batch = tenure_batch(tenure, arena);
        fill(context, batch);
        err = tenure_wait(tenure, tenure_submit(tenure, batch), arena);
    } else {
        err = error_new(arena, ERR_UNAVAILABLE, "Too many changes of shard %u are waiting.",
                        shard->options.number);
    }
    tenure_leave(tenure);
    return err;
}

struct letter_change {
    const char *source;
    uint64_t from, to;
    STORED(DeadLetterRow) *letter;
};

static void
put_letter(void *context, struct batch *batch)
{
    const struct letter_change *change = context;
    batch_put(batch, ROW_DEAD_LETTER, dead_letter_key(change->source, change->from, batch->arena),
              message_encode(batch->arena, &change->letter->base));
}

static void
delete_letters(void *context, struct batch *batch)
{
    const struct letter_change *change = context;
    struct slice last = dead_letter_key(change->source, change->to, batch->arena);
    batch_delete_range(batch, ROW_DEAD_LETTER,
                       dead_letter_key(change->source, change->from, batch->arena),
                       key_after(last, batch->arena));
}

struct error *
shard_park(struct shard *shard, const char *source, uint64_t row, STORED(DeadLetterRow) *letter,
           struct arena *arena)
{
    mark("replication_task_parked");
    letter->format = RUN_RECORD_FORMAT;
    letter->parked_time = clock_wall();
    struct letter_change change = {.source = source, .from = row, .to = row, .letter = letter};
    return commit(shard, put_letter, &change, arena);
}

struct error *
shard_unpark(struct shard *shard, const char *source, uint64_t from, uint64_t to,
             struct arena *arena)
{
    struct letter_change change = {.source = source, .from = from, .to = to};
    return commit(shard, delete_letters, &change, arena);
}
