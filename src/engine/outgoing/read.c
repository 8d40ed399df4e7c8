/* read.c - what another cluster is told: rows behind the one that it knows, with what
 * they are about.
 *
 * From memory as far as that reaches, else from the store: the row names its node, which is read
 * and put into the form of the wire. Rows of runs that are gone, of domains that the cluster does
 * not have, and of activities that have ended say nothing and are read over. */
#include "base/check.h"
#include "engine/branches/versions.h"
#include "engine/outgoing/replicate.h"
#include "engine/shard/inside.h"
#include "engine/shard/outgoing_state.h"
#include "fiber/probe.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_ROWS     ((size_t)100)
#define TYPE_MARKER   CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_MARKER
#define TYPE_ACTIVITY CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_ACTIVITY

/* One call. */
struct replication_scan {
    struct tenure *tenure;
    const struct replication_wanted *wanted;
    struct replication_page *page;
    struct arena *arena;
    size_t cluster;   /* its index in the group */
    uint64_t next_to; /* what was looked at */
    size_t bytes;
};

static bool
is_full(const struct replication_scan *replication_scan)
{
    return replication_scan->page->count >= replication_scan->wanted->rows_max ||
           replication_scan->bytes >= replication_scan->wanted->bytes_max;
}

static void
add_task(struct replication_scan *replication_scan, struct slice task)
{
    if (task.length == 0)
        return;
    struct replication_page *page = replication_scan->page;
    check(page->count < replication_scan->wanted->rows_max);
    if (page->tasks == NULL) /* most shards have nothing to tell, most of the time */
        page->tasks = arena_alloc(replication_scan->arena,
                                  replication_scan->wanted->rows_max * sizeof page->tasks[0]);
    page->tasks[page->count++] = task;
    replication_scan->bytes += task.length;
}

/* --- activities ---- */

struct activity_look {
    const STORED(ReplicationRow) *row;
    uint64_t number;
    struct slice task;
    struct arena *arena;
};

static GOOGLE(Timestamp) *
maybe_time(struct arena *arena, int64_t nanoseconds)
{
    return presence_make_maybe_timestamp(arena,
                                         (struct maybe_int64){nanoseconds != 0, nanoseconds});
}

static ADMIN(VersionHistory) *
send_versions(const STORED(RunRecord) *core, struct arena *arena)
{
    struct versions versions = versions_read(core->versions, core->n_versions, arena);
    ADMIN(VersionHistory) *history = message_new(arena, ADMIN_TYPE(version_history));
    history->branch_token = core->branch_id;
    history->items = versions_send(versions, arena);
    history->n_items = versions.count;
    return history;
}

ADMIN(SyncActivityTaskAttributes) *
replicate_make_activity(const struct run *run, const STORED(PendingActivity) *activity,
                        struct arena *arena)
{
    ADMIN(SyncActivityTaskAttributes) *sent =
        message_new(arena, ADMIN_TYPE(sync_activity_task_attributes));
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = run->core->workflow_id;
    execution->run_id = run->core->run_id;
    sent->domain_id = run->core->domain_id;
    sent->workflow_execution = execution;
    sent->version = activity->event_version;
    sent->scheduled_id = activity->schedule_id;
    sent->scheduled_time = maybe_time(arena, activity->scheduled_time);
    sent->started_id = activity->started_id;
    sent->started_time = maybe_time(arena, activity->started_time);
    sent->last_heartbeat_time = maybe_time(arena, activity->heartbeat_time);
    sent->details = activity->heartbeat_details;
    sent->attempt = activity->attempt;
    sent->last_failure = activity->last_failure;
    sent->last_worker_identity = activity->last_worker_identity;
    sent->version_history = send_versions(run->core, arena);
    return sent;
}

static void
look_activity(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct activity_look *look = context;
    struct arena *arena = look->arena;
    const STORED(PendingActivity) *activity = run_find_activity(run, look->row->schedule_id);
    look->task = (struct slice){0}; /* of a look before, whose shard was lost */
    if (!run_is_open(run) || activity == NULL)
        return; /* its events say all (E-063) */
    ADMIN(SyncActivityTaskAttributes) *sent = replicate_make_activity(run, activity, arena);
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_SYNC_ACTIVITY);
    task->source_task_id = (int64_t)look->number;
    task->creation_time = presence_make_timestamp(arena, look->row->created_time);
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES);
    task->sync_activity_task_attributes = sent;
    look->task = message_encode(arena, &task->base);
}

static struct error *
hydrate_activity(struct tenure *tenure, const STORED(ReplicationRow) *row, uint64_t number,
                 struct arena *arena, struct slice *task)
{
    struct run_key key = {row->domain_id, row->workflow_id, row->run_id};
    struct activity_look look = {.row = row, .number = number, .arena = arena};
    struct error *err = shard_look(tenure->shard, &key, look_activity, &look, arena);
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        err = NULL;
    *task = look.task;
    return err;
}

/* --- events ---- */

static struct error *
find_run(struct tenure *tenure, const STORED(ReplicationRow) *row, struct arena *arena,
         bool *is_there)
{
    struct shard *shard = tenure->shard;
    struct run_key key = {row->domain_id, row->workflow_id, row->run_id};
    struct slice value;
    STORED(RunRecord) *core = NULL;
    struct slice row_key = run_row_key(&key, arena);
    struct error *err = store_get(shard->options.store, shard->partition, ROW_RUN, row_key, arena,
                                  is_there, &value);
    if (err == NULL && *is_there)
        err = run_read_row(row_key, value, arena, &core);
    *is_there = err == NULL && core != NULL && !core->is_deleting;
    return err;
}

struct events_read {
    API(HistoryEvent) **events;
    size_t count;
};

static struct error *
read_node(struct tenure *tenure, const struct history_branch *branch, int64_t first, int64_t next,
          struct arena *arena, struct events_read *read)
{
    struct shard *shard = tenure->shard;
    struct history_page page;
    API(History) *history = NULL;
    struct error *err = store_read_history_on(shard->options.store, shard->partition, branch, first,
                                              next, 0, arena, &page);
    if (err == NULL && page.count != 1)
        err = error_new(arena, ERR_CORRUPT, "events %lld to %lld are not one batch",
                        (long long)first, (long long)next - 1);
    if (err == NULL)
        err =
            message_decode_as(arena, ERR_CORRUPT, API_TYPE(history), page.node[0].events, &history);
    if (err == NULL)
        *read = (struct events_read){history->events, history->n_events};
    return err;
}

static struct error *
read_begun(struct tenure *tenure, const STORED(ReplicatedBegin) *begun, struct arena *arena,
           struct events_read *read)
{
    if (begun == NULL)
        return NULL;
    struct history_branch branch = {presence_read_uuid(begun->tree_id),
                                    presence_read_uuid(begun->branch_id)};
    struct error *err = read_node(tenure, &branch, 1, begun->next_event_id, arena, read);
    if (err != NULL && err->kind == ERR_CORRUPT) { /* it is gone: so it began long ago */
        *read = (struct events_read){0};
        err = NULL;
    }
    return err;
}

static struct error *
hydrate_events(struct tenure *tenure, const STORED(ReplicationRow) *row, uint64_t number,
               struct arena *arena, struct slice *task)
{
    bool is_there;
    struct error *err = find_run(tenure, row, arena, &is_there);
    if (err != NULL || !is_there)
        return err;
    struct history_branch branch = {presence_read_uuid(row->tree_id),
                                    presence_read_uuid(row->branch_id)};
    struct events_read read = {0}, begun = {0};
    err = read_node(tenure, &branch, row->first_event_id, row->next_event_id, arena, &read);
    if (err == NULL)
        err = read_begun(tenure, row->begun, arena, &begun);
    if (err == NULL) {
        *task = replicate_encode(row, number, read.events, read.count, begun.events, begun.count,
                                 arena);
        return NULL;
    }
    struct error *again = find_run(tenure, row, arena, &is_there);
    return again != NULL ? again : is_there ? err : NULL; /* it went meanwhile */
}

static struct error *
hydrate(struct tenure *tenure, const STORED(ReplicationRow) *row, uint64_t number,
        struct arena *arena, struct slice *task)
{
    *task = (struct slice){0};
    if (row->type == TYPE_MARKER) {
        if (row->marker != NULL)
            *task = replicate_encode_marker(row, number,
                                            tenure->shard->options.group->current->name, arena);
        return NULL;
    }
    bool is_activity = row->type == TYPE_ACTIVITY;
    return (is_activity ? hydrate_activity : hydrate_events)(tenure, row, number, arena, task);
}

struct error *
shard_hydrate(struct shard *shard, const STORED(ReplicationRow) *row, uint64_t number,
              struct arena *arena, struct slice *task)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    err = hydrate(tenure, row, number, arena, task);
    tenure_leave(tenure);
    return err;
}

/* --- from the store ---- */

static struct error *
read_row(struct replication_scan *replication_scan, const struct row *stored)
{
    struct tenure *tenure = replication_scan->tenure;
    struct slice key = stored->key, task = {0};
    uint64_t number;
    STORED(ReplicationRow) *row = NULL;
    struct error *err = message_decode_as(replication_scan->arena, ERR_CORRUPT,
                                          STORED_TYPE(replication_row), stored->value, &row);
    if (err != NULL)
        return err;
    if (!key_take_u64(&key, &number))
        return error_new(replication_scan->arena, ERR_CORRUPT,
                         "the key of a row for clusters is wrong");
    check(number > replication_scan->next_to); /* in order, each once */
    const struct domain *domain = domains_find_id(tenure->shard->options.domains, row->domain_id);
    if (domain != NULL &&
        domain_has_cluster(domain->record->domain, replication_scan->wanted->cluster->name))
        err = hydrate(tenure, row, number, replication_scan->arena, &task);
    if (err != NULL)
        return err;
    add_task(replication_scan, task);
    replication_scan->next_to = number;
    return NULL;
}

/* Up to where memory begins. */
static struct error *
read_stored(struct replication_scan *replication_scan)
{
    struct tenure *tenure = replication_scan->tenure;
    const struct replicating *replicating = &tenure->replicating;
    uint64_t end = replicating->memory_from;
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_REPLICATION,
                        .from =
                            replication_key(replication_scan->next_to + 1, replication_scan->arena),
                        .to = replication_key(end, replication_scan->arena),
                        .rows_max = PAGE_ROWS};
    struct error *err =
        store_scan(tenure->shard->options.store, &scan, replication_scan->arena, &rows);
    if (err != NULL)
        return err;
    if (rows.count > 0)
        probe("replication_rows_read_back");
    for (size_t i = 0; err == NULL && i < rows.count && !is_full(replication_scan); i++) {
        err = read_row(replication_scan, &rows.row[i]);
        if (err == NULL && tenure->is_over)
            err = tenure_error(tenure, replication_scan->arena);
    }
    if (err == NULL && !rows.has_more && !is_full(replication_scan))
        replication_scan->next_to = end - 1;
    return err;
}

/* --- from memory ---- */

/* The first in memory behind what was looked at; the list's head: none. */
static struct list *
find_recent(const struct replication_scan *replication_scan)
{
    struct list *head = &replication_scan->tenure->replicating.recent, *node = head;
    while (node->prev != head &&
           list_entry(node->prev, struct replica, node)->row > replication_scan->next_to)
        node = node->prev;
    return node;
}

/* An activity, to be told of as it is now. */
struct owed {
    size_t index; /* of the task */
    uint64_t number;
    struct slice row;
};
struct owed_list {
    vector_of(struct owed) list;
};

/* Takes copies, without a yield: what is in memory may go. */
static void
copy_recent(struct replication_scan *replication_scan, struct owed_list *owed)
{
    const struct replicating *replicating = &replication_scan->tenure->replicating;
    const struct list *head = &replicating->recent;
    struct list *node = find_recent(replication_scan);
    for (; node != head && !is_full(replication_scan); node = node->next) {
        const struct replica *replica = list_entry(node, struct replica, node);
        if (replica->row > replicating->durable) /* 2 */
            break;
        check(replica->row > replication_scan->next_to);
        replication_scan->next_to = replica->row;
        if ((replica->clusters >> replication_scan->cluster & 1) == 0)
            continue;
        struct slice bytes = arena_slice(replication_scan->arena, replica->task);
        if (replica->is_activity) {
            struct owed one = {replication_scan->page->count, replica->row, bytes};
            vector_push_in(&owed->list, replication_scan->arena, one);
        }
        add_task(replication_scan, bytes);
    }
    if (!is_full(replication_scan))
        replication_scan->next_to = replicating->durable;
}

/* Those that have nothing to say leave a place that is closed. */
static void
close_places(struct replication_page *page)
{
    size_t kept = 0;
    for (size_t i = 0; i < page->count; i++) {
        if (page->tasks[i].length > 0)
            page->tasks[kept++] = page->tasks[i];
    }
    page->count = kept;
}

static struct error *
read_recent(struct replication_scan *replication_scan)
{
    struct tenure *tenure = replication_scan->tenure;
    struct replicating *replicating = &tenure->replicating;
    struct owed_list owed = {0};
    check(replication_scan->next_to + 1 >= replicating->memory_from); /* the rest is in memory */
    copy_recent(replication_scan, &owed);
    struct replication_peer *peer = &replicating->peers[replication_scan->cluster];
    peer->handed = replication_scan->next_to;
    if (peer->handed > replicating->handed)
        replicating->handed = peer->handed;
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < owed.list.count; i++) {
        const struct owed *one = &owed.list.items[i];
        STORED(ReplicationRow) *row = NULL;
        err = message_decode_as(replication_scan->arena, ERR_CORRUPT, STORED_TYPE(replication_row),
                                one->row, &row);
        if (err == NULL)
            err = hydrate(tenure, row, one->number, replication_scan->arena,
                          &replication_scan->page->tasks[one->index]);
    }
    close_places(replication_scan->page);
    return err;
}

/* --- all of it ---- */

/* Where to begin. A cluster that knows more than there is has known a store that this one is an
 * older copy of: it begins at what it acknowledged. */
static uint64_t
begin_after(const struct tenure *tenure, const struct replication_scan *replication_scan)
{
    const struct replicating *replicating = &tenure->replicating;
    int64_t after = replication_scan->wanted->after;
    uint64_t ack = replicating->peers[replication_scan->cluster].ack;
    return after < 0 || (uint64_t)after > replicating->durable ? ack : (uint64_t)after;
}

static struct error *
read_all(struct replication_scan *replication_scan)
{
    struct tenure *tenure = replication_scan->tenure;
    struct replicating *replicating = &tenure->replicating;
    struct error *err = NULL;
    while (err == NULL && !is_full(replication_scan) && !tenure->is_over &&
           replication_scan->next_to + 1 < replicating->memory_from)
        err = read_stored(replication_scan);
    if (err == NULL && tenure->is_over)
        return tenure_error(tenure, replication_scan->arena);
    if (replication_scan->next_to > replicating->handed)
        replicating->handed = replication_scan->next_to;
    if (err == NULL && !is_full(replication_scan))
        err = read_recent(replication_scan);
    replication_scan->page->last = replication_scan->next_to;
    replication_scan->page->has_more = replication_scan->next_to < replicating->durable;
    return err;
}

/* Rows that it has not read are gone: it gets none before it has read the runs. */
static struct error *
report_lost(struct replication_scan *replication_scan, const struct replication_peer *peer,
            uint64_t begin)
{
    if (!peer->can_resync)
        return error_new(replication_scan->arena, ERR_UNAVAILABLE,
                         "Changes that cluster %s has not read were dropped when it could read the "
                         "runs instead, and now it cannot.",
                         replication_scan->wanted->cluster->name);
    *replication_scan->page = (struct replication_page){.last = begin, .resync_to = peer->lost};
    return NULL;
}

struct error *
shard_read_replication(struct shard *shard, const struct replication_wanted *wanted,
                       struct arena *arena, struct replication_page *page)
{
    struct tenure *tenure;
    check(wanted->rows_max > 0); /* one row comes at least */
    check(wanted->cluster >= shard->options.group->clusters &&
          wanted->cluster < shard->options.group->clusters + shard->options.group->count);
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    *page = (struct replication_page){0};
    struct replication_scan replication_scan = {
        .tenure = tenure,
        .wanted = wanted,
        .page = page,
        .arena = arena,
        .cluster = (size_t)(wanted->cluster - shard->options.group->clusters),
    };
    struct replication_peer *peer = &tenure->replicating.peers[replication_scan.cluster];
    tenure->is_record_due = tenure->is_record_due || peer->can_resync != wanted->can_resync;
    peer->can_resync = wanted->can_resync;
    peer->has_asked = true;
    if (wanted->acknowledged > 0)
        replicate_ack(tenure, replication_scan.cluster, (uint64_t)wanted->acknowledged);
    uint64_t begin = replication_scan.next_to = begin_after(tenure, &replication_scan);
    err = read_all(&replication_scan);
    if (err == NULL && begin < peer->lost) /* perhaps only since we began */
        err = report_lost(&replication_scan, peer, begin);
    tenure_leave(tenure);
    return err;
}
