/* replicate.c - rows for other clusters: what was decided here, for those who have the domain too.
 *
 * A step puts its rows with its own commit. Those of the last steps stay in memory with the bytes
 * that go out, made once for all who ask; older ones are read from the store (read.c). A
 * cluster reports up to where it is done, and a row goes when all of its clusters have done so; one
 * that is away has a number here, its rows are in the store.
 *
 *   1. All rows from memory_from on that anybody needs are in memory.
 *   2. Only durable rows are sent.
 *   3. Deleting a row again does no harm (ROW_MANY).
 *   4. At most one unsent row exists per activity; it is filled in when it is read. */
#include "engine/outgoing/replicate.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/outgoing_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RECENT_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define TRIM_INTERVAL    NS_PER_S
#define INDEX_ROWS       500

void
replicating_check(const struct replicating *replicating)
{
    check(replicating->memory_from <= replicating->durable + 1);
    check(list_is_empty(&replicating->recent) == (replicating->bytes == 0));
    check(replicating->handed <= replicating->durable); /* 2 */
    if (!CHECK_DEEPLY || replicating->bytes > CHECK_ROWS_MAX * sizeof(struct replica))
        return;
    size_t bytes = 0;
    uint64_t row = 0;
    ticket_t ticket = 0;
    list_each(node, &replicating->recent) {
        const struct replica *replica = list_entry(node, struct replica, node);
        check(replica->row > row && replica->ticket >= ticket);
        check(replica->row >= replicating->memory_from); /* 1 */
        bytes += replica->task.length + sizeof *replica;
        row = replica->row;
        ticket = replica->ticket;
    }
    check(bytes == replicating->bytes);
}

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
    fiber_cond_init(&replicating->over);
    fiber_mutex_init(&replicating->dead_letter_lock);
    replicating->activities = map_new();
    replicating->bytes_max = RECENT_BYTES_MAX;
    replicating->peers =
        memory_zalloc(group == NULL ? 1 : group->count, sizeof replicating->peers[0]);
    replicating->durable = tenure->ids.next - 1; /* all of former owners is */
    replicating->memory_from = tenure->ids.next;
}

static void
forget_replica(struct replicating *replicating, struct replica *replica)
{
    check(replicating->bytes >= replica->task.length + sizeof *replica);
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

/* The record is some batches old: the newest row since then says how many there were. */
static struct error *
find_index(struct tenure *tenure, const STORED(ShardRecord) *record, struct arena *arena)
{
    struct replicating *replicating = &tenure->replicating;
    struct rows rows = {.has_more = true};
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_REPLICATION,
                        .from = replication_key(record->replication_newest + 1, arena),
                        .rows_max = INDEX_ROWS};
    STORED(ReplicationRow) *row = NULL;
    struct error *err = NULL;
    replicating->index_next = record->replication_index > 0 ? record->replication_index : 1;
    if (group_of(tenure) == NULL || !cluster_group_has_peers(group_of(tenure)))
        return NULL;
    while (err == NULL && rows.has_more) {
        err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
        if (err != NULL || rows.count == 0)
            break;
        const struct row *last = &rows.row[rows.count - 1];
        err =
            message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(replication_row), last->value, &row);
        if (err == NULL)
            replicating->index_next = row->index + 1;
        scan.from = key_after(last->key, arena);
    }
    return err;
}

struct error *
replicate_begin(struct tenure *tenure, const STORED(ShardRecord) *record, struct arena *arena)
{
    struct replicating *replicating = &tenure->replicating;
    const struct cluster_group *group = group_of(tenure);
    replicating->trimmed = record->replication_level;
    for (size_t i = 0; i < record->n_acks; i++) {
        const struct cluster *cluster = cluster_group_find(group, record->acks[i]->cluster);
        if (cluster == NULL)
            continue;
        struct replication_peer *peer = &replicating->peers[cluster - group->clusters];
        peer->ack = record->acks[i]->row;
        peer->lost = record->acks[i]->lost;
        peer->can_resync = record->acks[i]->can_resync;
    }
    return find_index(tenure, record, arena);
}

void
replicate_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena)
{
    const struct replicating *replicating = &tenure->replicating;
    const struct cluster_group *group = group_of(tenure);
    record->replication_level = replicating->trimmed;
    record->replication_index = replicating->index_next;
    record->replication_newest = tenure->ids.next - 1;
    record->acks = arena_zalloc(arena, group->count, sizeof record->acks[0]);
    for (size_t i = 0; i < group->count; i++) {
        const struct replication_peer *peer = &replicating->peers[i];
        if (peer->ack == 0 && peer->lost == 0 && !peer->can_resync)
            continue;
        STORED(ReplicationAck) *ack = message_new(arena, STORED_TYPE(replication_ack));
        ack->cluster = (char *)group->clusters[i].name;
        ack->row = peer->ack;
        ack->lost = peer->lost > peer->ack ? peer->lost : 0;
        ack->can_resync = peer->can_resync;
        record->acks[record->n_acks++] = ack;
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
    struct slice name = replicate_activity_key(&key, row->schedule_id, arena);
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
        check(!list_is_empty(&replicating->recent));
        struct replica *oldest = list_entry(replicating->recent.next, struct replica, node);
        if (oldest->row > replicating->durable)
            return;
        replicating->memory_from = oldest->row + 1;
        drop_replica(tenure, oldest);
        probe("replication_left_to_store");
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
    check(durable <= writer_durable(tenure->writer));
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
    check(newest >= replicating->durable && newest < tenure->ids.next);
    replicating->durable = newest;
    bound_memory(tenure);
    fire_watches(tenure, clusters);
}

void
replicate_lose(struct tenure *tenure)
{
    check(tenure->is_over);
    for (struct list *node; (node = list_pop_front(&tenure->replicating.watches)) != NULL;) {
        struct replication_watch *watch = list_entry(node, struct replication_watch, node);
        watch->fire(watch);
    }
    fiber_cond_broadcast(&tenure->replicating.over);
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
    const struct cluster_group *group = shard->options.group;
    shard_check(shard);
    check(list_is_empty(&watch->node));
    check(watch->cluster >= group->clusters && watch->cluster < group->clusters + group->count);
    if (tenure == NULL || has_rows_behind(tenure, watch))
        watch->fire(watch);
    else
        list_push_back(&tenure->replicating.watches, &watch->node);
}

/* --- what nobody needs any more ---- */

uint64_t
replicate_level(const struct tenure *tenure, size_t cluster)
{
    check(cluster < group_of(tenure)->count);
    const struct replication_peer *peer = &tenure->replicating.peers[cluster];
    return peer->ack > peer->lost ? peer->ack : peer->lost;
}

/* What every cluster that takes part has said. */
static uint64_t
lowest_ack(const struct tenure *tenure)
{
    const struct cluster_group *group = group_of(tenure);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < group->count; i++) {
        uint64_t ack = replicate_level(tenure, i);
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
        if (is_for_it && replicate_level(tenure, i) < replica->row)
            return true;
    }
    return false;
}

/* Forgets what nobody waits for any more, of rows up to this one. */
static void
forget_unneeded(struct tenure *tenure, uint64_t row)
{
    struct replicating *replicating = &tenure->replicating;
    uint64_t lowest = lowest_ack(tenure);
    check(row <= replicating->durable); /* else its step would be heard of by nobody */
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
replicate_ack(struct tenure *tenure, size_t cluster, uint64_t row)
{
    struct replicating *replicating = &tenure->replicating;
    struct replication_peer *peer = &replicating->peers[cluster];
    check(cluster < group_of(tenure)->count);
    if (row > replicating->durable)
        row = replicating->durable;
    if (row <= peer->ack)
        return;
    peer->ack = row;
    forget_unneeded(tenure, row);
}

void
replicate_drop(struct tenure *tenure, size_t cluster)
{
    struct replicating *replicating = &tenure->replicating;
    check(cluster < group_of(tenure)->count);
    check(replicating->peers[cluster].can_resync);
    replicating->peers[cluster].lost = replicating->durable;
    replicating->trim_time = 0;
    tenure->is_record_due = true;
    probe("replication_rows_dropped");
    forget_unneeded(tenure, replicating->durable);
}

bool
replicate_leap(struct tenure *tenure)
{
    struct replicating *replicating = &tenure->replicating;
    const struct list *last = replicating->recent.prev;
    if (last != &replicating->recent &&
        list_entry(last, struct replica, node)->row > replicating->durable)
        return false;
    tenure_renew_range(tenure);
    replicating->durable = tenure->ids.next++;
    return true;
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
    check(lowest <= replicating->durable); /* nobody has more than was sent (2) */
    batch_delete_range(batch, ROW_REPLICATION,
                       replication_key(replicating->trimmed + 1, batch->arena),
                       replication_key(lowest + 1, batch->arena));
    replicating->trimmed = lowest;
    replicating->trim_time = now + TRIM_INTERVAL;
    tenure->is_record_due = true;
    probe("replication_rows_trimmed");
}
