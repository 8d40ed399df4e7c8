/* finish.c - the end of a step: everything that it changed becomes rows.
 *
 *   1. The events of a step are one node, or several if they are many bytes: readers get whole
 *      nodes, and an answer has its limits. The close event is the last of its node. A node has one
 *      version: another cluster takes it as a whole.
 *   2. Numbers of events and rows rise, within the step and over all steps of the shard.
 *   3. A row is written if its record changed: the work does not grow with the run. */
#include "engine/run/inside.h"

#define NODE_BYTES_MAX ((size_t)1024 * 1024)

static uint64_t
take_number(const struct run_context *context)
{
    check_that(context->ids->next < context->ids->end, "the shard's numbers are used up");
    return context->ids->next++;
}

static struct run_key
key_of(const STORED(RunRecord) *core)
{
    return (struct run_key){core->domain_id, core->workflow_id, core->run_id};
}

/* ---- history ---- */

static void
note_version(struct run *run, int64_t event_version, int64_t event_id)
{
    STORED(RunRecord) *core = run->core;
    size_t count = core->n_versions;
    bool is_new = count == 0 || core->versions[count - 1]->event_version != event_version;
    check(count == 0 || core->versions[count - 1]->event_version <= event_version);
    check(count == 0 || core->versions[count - 1]->event_id <= event_id);
    STORED(VersionItem) *item = message_new(run->arena, STORED_TYPE(version_item));
    item->event_version = event_version;
    item->event_id = event_id;
    STORED(VersionItem) **versions =
        arena_zalloc(run->arena, count + is_new, sizeof(core->versions[0]));
    if (count > 0)
        memcpy(versions, core->versions, count * sizeof(core->versions[0]));
    core->n_versions = count + is_new;
    versions[core->n_versions - 1] = item;
    core->versions = versions;
}

void
mutation_note_versions(struct mutation *mutation)
{
    size_t count = mutation->events.count;
    for (size_t i = 0; i < count; i++) {
        const API(HistoryEvent) *event = mutation->events.items[i];
        bool is_last = i + 1 == count || mutation->events.items[i + 1]->version != event->version;
        if (is_last)
            note_version(mutation->run, event->version, event->event_id);
    }
}

/* Was the event before the i-th of the step written with the same version? Numbers of events rise
 * within a version: it is of one cluster, and each counts for itself. */
static bool
goes_on_with_version(const struct mutation *mutation, size_t i)
{
    const STORED(RunRecord) *core = mutation->run->core;
    int64_t event_version = mutation->events.items[i]->version;
    if (i > 0)
        return mutation->events.items[i - 1]->version == event_version;
    return core->n_versions > 0 &&
           core->versions[core->n_versions - 1]->event_version == event_version;
}

static void
number_events(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation->run->core;
    for (size_t i = 0; i < mutation->events.count; i++) {
        API(HistoryEvent) *event = mutation->events.items[i];
        check(event->event_id == mutation->events.items[0]->event_id + (int64_t)i);
        if (!mutation->has_replicated_events) {
            check(event->task_id == 0);
            event->task_id = (int64_t)take_number(mutation->context);
            check(event->task_id > core->last_event_task_id || !goes_on_with_version(mutation, i));
        }
        core->last_event_task_id = event->task_id;
        check_that(!event_closes_run(event->attributes_case) || i + 1 == mutation->events.count,
                   "%s behind the close event",
                   event_name(mutation->events.items[i + 1]->attributes_case));
    }
}

/* As many events from `first` on as a node should hold; one at least. */
static size_t
node_size(const struct mutation *mutation, size_t first)
{
    API(HistoryEvent) *const *events = mutation->events.items;
    size_t bytes = 0, i = first;
    for (; i < mutation->events.count; i++) {
        bytes += protobuf_c_message_get_packed_size(&events[i]->base);
        bool is_full = bytes > NODE_BYTES_MAX || events[i]->version != events[first]->version;
        if (is_full && i > first)
            break;
    }
    return i - first;
}

static struct slice
encode_events(struct mutation *mutation, size_t first, size_t count)
{
    API(History) history;
    uber__cadence__api__v1__history__init(&history);
    history.n_events = count;
    history.events = mutation->events.items + first;
    return message_encode(mutation->arena, &history.base);
}

/* Do other clusters have runs of the domain? */
static bool
is_replicated(const struct mutation *mutation)
{
    const struct domain *domain = mutation->context->domain;
    return !mutation->has_replicated_events && domain != NULL &&
           domain->record->domain->is_global_domain && domain->record->domain->n_clusters > 1;
}

static void
add_replication(struct mutation *mutation, size_t first, size_t count, struct effects *effects)
{
    if (!is_replicated(mutation))
        return;
    if (effects->to_replicate == NULL)
        effects->to_replicate =
            arena_zalloc(mutation->arena, mutation->events.count, sizeof effects->to_replicate[0]);
    check(effects->to_replicate_count < mutation->events.count);
    effects->to_replicate[effects->to_replicate_count++] = (struct replication_effect){
        run_branch(mutation->run), mutation->events.items + first, count};
}

static void
put_node(struct mutation *mutation, size_t first, size_t count, struct slice events,
         struct batch *batch, struct effects *effects)
{
    STORED(RunRecord) *core = mutation->run->core;
    struct history_branch branch = run_branch(mutation->run);
    check(count > 0 && first + count <= mutation->events.count);
    const API(HistoryEvent) *last = mutation->events.items[first + count - 1];
    struct history_node node = {.first_event_id = mutation->events.items[first]->event_id,
                                .next_event_id = last->event_id + 1,
                                .range_id = mutation->context->range_id,
                                .sequence = mutation->has_replicated_events
                                                ? take_number(mutation->context)
                                                : (uint64_t)last->task_id,
                                .events = events};
    core->last_first_event_id = node.first_event_id;
    core->history_bytes += (int64_t)events.length;
    batch_add_node(batch, &branch, &node);
    effects->nodes[effects->node_count++] = node;
}

static void
put_history(struct mutation *mutation, struct batch *batch, struct effects *effects)
{
    if (mutation->events.count == 0)
        return;
    STORED(RunRecord) *core = mutation->run->core;
    number_events(mutation);
    mutation_note_versions(mutation);
    size_t count = mutation->events.count;
    struct slice all = encode_events(mutation, 0, count);
    bool is_one = mutation->events.items[0]->version == mutation->events.items[count - 1]->version;
    if (all.length <= NODE_BYTES_MAX && is_one) {
        effects->nodes = arena_alloc(mutation->arena, sizeof *effects->nodes);
        put_node(mutation, 0, count, all, batch, effects);
        add_replication(mutation, 0, count, effects);
    } else {
        effects->nodes = arena_zalloc(mutation->arena, count, sizeof *effects->nodes);
        for (size_t first = 0, size; first < count; first += size) {
            size = node_size(mutation, first);
            put_node(mutation, first, size, encode_events(mutation, first, size), batch, effects);
            add_replication(mutation, first, size, effects);
        }
    }
    const API(HistoryEvent) *last = mutation->events.items[count - 1];
    check(last->event_id + 1 == core->next_event_id);
    check(effects->node_count > 0 && effects->node_count <= count);
    if (event_closes_run(last->attributes_case))
        core->close_batch_event_id = core->last_first_event_id;
}

/* Is the activity in an event of the step? Events that end it leave no record. */
static bool
has_event(const struct mutation *mutation, uint64_t schedule_id)
{
    for (size_t i = 0; i < mutation->events.count; i++) {
        const API(HistoryEvent) *event = mutation->events.items[i];
        const void *record = records_get(mutation->run, PENDING_ACTIVITY, schedule_id, NULL);
        const STORED(PendingActivity) *activity = record;
        if (event->event_id == (int64_t)schedule_id || event->event_id == activity->started_id ||
            event->event_id == activity->cancel_requested_event_id)
            return true;
    }
    return false;
}

/* Starts, heartbeats and attempts that are in no event yet. */
static void
note_activities(struct mutation *mutation, struct effects *effects)
{
    size_t count = mutation->journal.count;
    if (count == 0 || !is_replicated(mutation) || !run_is_open(mutation->run))
        return;
    effects->activities = arena_zalloc(mutation->arena, count, sizeof effects->activities[0]);
    for (size_t i = 0; i < count; i++) {
        const struct run_change *change = &mutation->journal.items[i];
        bool is_there = change->kind == PENDING_ACTIVITY && change->old != NULL &&
                        records_get(mutation->run, PENDING_ACTIVITY, change->number, NULL) != NULL;
        bool is_noted = false;
        for (size_t j = 0; is_there && j < effects->activity_count; j++)
            is_noted = is_noted || effects->activities[j] == (int64_t)change->number;
        if (is_there && !is_noted && !has_event(mutation, change->number))
            effects->activities[effects->activity_count++] = (int64_t)change->number;
    }
}

/* ---- outbox ---- */

/* Each row that was dropped, once; NULL: none was. */
static struct map64 *
collect_dropped(struct mutation *mutation)
{
    struct map64 *dropped = NULL;
    for (size_t i = 0; i < mutation->rows.count; i++) {
        if (mutation->rows.items[i].transfer != NULL)
            continue;
        if (dropped == NULL)
            dropped = map64_new();
        map64_put(dropped, mutation->rows.items[i].row, mutation);
    }
    return dropped;
}

static void
put_added(struct mutation *mutation, const struct map64 *dropped, struct batch *batch,
          struct effects *effects)
{
    effects->added = arena_zalloc(mutation->arena, mutation->rows.count, sizeof effects->added[0]);
    for (size_t i = 0; i < mutation->rows.count; i++) {
        const struct outbox_change *change = &mutation->rows.items[i];
        if (change->transfer == NULL || map64_get(dropped, change->row) != NULL)
            continue;
        effects->added[effects->added_count++] =
            (struct transfer_effect){change->row, change->transfer};
        batch_put(batch, ROW_TRANSFER, transfer_key(change->row, mutation->arena),
                  message_encode(mutation->arena, &change->transfer->base));
    }
}

/* A row that was added and dropped within the step is not written. */
static void
put_outbox(struct mutation *mutation, struct batch *batch, struct effects *effects)
{
    if (mutation->rows.count == 0)
        return;
    struct map64 *dropped = collect_dropped(mutation);
    effects->dropped =
        arena_zalloc(mutation->arena, map64_count(dropped), sizeof effects->dropped[0]);
    size_t cursor = 0;
    uint64_t row;
    while (map64_next(dropped, &cursor, &row, NULL))
        if (row < mutation->first_row)
            effects->dropped[effects->dropped_count++] = row;
    put_added(mutation, dropped, batch, effects);
    map64_free(dropped);
}

/* ---- the wake-up timer ---- */

/* A bad binary worked on the run: its wake-up timer fires at once, and the shard resets the run. */
static void
note_bad_binary(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation->run->core;
    const char *reason;
    if (core->auto_reset_time == 0 &&
        run_find_bad_point(mutation->run, mutation->context, &reason) != NULL)
        core->auto_reset_time = mutation->context->now;
}

/* What is due of the run itself and of the records that changed. */
static int64_t
changed_deadline(const struct mutation *mutation)
{
    int64_t deadline = run_core_deadline(mutation->run->core);
    for (size_t i = 0; i < mutation->journal.count; i++) {
        const struct run_change *change = &mutation->journal.items[i];
        const void *record = records_get(mutation->run, change->kind, change->number, change->text);
        if (record != NULL && change->kind == PENDING_ACTIVITY)
            deadline = deadline_earlier(deadline, activity_next_due(record).time);
        else if (record != NULL && change->kind == PENDING_TIMER)
            deadline =
                deadline_earlier(deadline, ((const STORED(PendingTimer) *)record)->fire_time);
    }
    return deadline;
}

/* The shard does not look below its read level. */
static int64_t
not_before(const struct run_context *context, int64_t deadline)
{
    return deadline != 0 && deadline < context->wakeup_time_min ? context->wakeup_time_min
                                                                : deadline;
}

/* When the wake-up timer has to fire; 0: never. Nothing was due before the old one, so if that is
 * still in the future only what changed can need an earlier one: no need to look at all that is
 * pending. */
static int64_t
wanted_wakeup(struct mutation *mutation)
{
    const STORED(RunRecord) *core = mutation->run->core;
    const struct run_context *context = mutation->context;
    bool is_set = run_is_open(mutation->run) && core->alarm_row != 0;
    if (run_is_zombie(mutation->run))
        return 0;
#ifdef CADENZA_FAULT_wakeup_after_deadline
    if (is_set)
        return core->alarm_time;
#endif
    if (is_set && core->alarm_time > context->now)
        return not_before(context, deadline_earlier(core->alarm_time, changed_deadline(mutation)));
    int64_t deadline = mutation_next_deadline(mutation);
    /* A timer that is due is about to fire, and then does all that is due. If every step of a busy
     * run moved it, it would never fire. */
    return is_set && deadline <= context->now ? core->alarm_time : not_before(context, deadline);
}

/* Where there are workers, a decision that waits is started soon. If a row is written anyway it is
 * set early enough for the timeout of that start: then the start, and mostly all that follows until
 * the run closes, needs no other row. The price: it fires once for nothing if the decision waits
 * longer than it may take. */
static int64_t
foresee_decision_start(const struct mutation *mutation, int64_t wanted)
{
    const struct run_context *context = mutation->context;
    int64_t foreseen = run_foreseen_deadline(mutation->run->core);
    bool is_ahead = wanted != 0 && foreseen > context->now;
    return is_ahead ? not_before(context, deadline_earlier(wanted, foreseen)) : wanted;
}

/* Does an open run have its wake-up timer no later than what is due next, or now, or than where the
 * shard looks? */
static bool
wakeup_is_in_time(const struct mutation *mutation)
{
    const STORED(RunRecord) *core = mutation->run->core;
    int64_t deadline = run_next_deadline(mutation->run), now = mutation->context->now;
    int64_t latest = not_before(mutation->context, deadline > now ? deadline : now);
    return !run_is_open(mutation->run) || deadline == 0 ||
           (core->alarm_row != 0 && core->alarm_time <= latest);
}

/* A wake-up timer that is too early is left to fire: the step that it causes sets the next one. */
static void
set_wakeup(struct mutation *mutation, struct effects *effects)
{
    STORED(RunRecord) *core = mutation->run->core;
    int64_t wanted = wanted_wakeup(mutation);
    if (core->alarm_row == 0 || core->alarm_time != wanted) {
        core->alarm_time = foresee_decision_start(mutation, wanted);
        core->alarm_row = wanted == 0 ? 0 : take_number(mutation->context);
    }
    check((core->alarm_row == 0) == (core->alarm_time == 0));
    check(!CHECK_DEEPLY || wakeup_is_in_time(mutation));
    if (core->alarm_row == mutation->before.alarm_row)
        return;
    effects->alarm_row_old = mutation->before.alarm_row;
    effects->alarm_time_old = mutation->before.alarm_time;
    effects->alarm_row = core->alarm_row;
    effects->alarm_time = core->alarm_time;
}

/* ---- visibility ---- */

/* Did the run begin or end, or is there something else to find it by? Times and lengths that change
 * with every step of an open run are not worth a row each. */
static bool
looks_new(const struct mutation *mutation)
{
    const STORED(RunRecord) *before = &mutation->before, *now = mutation->run->core;
    bool is_begun = before->last_updated_time == 0;
    return is_begun || before->close_status != now->close_status || before->memo != now->memo ||
           before->search_attributes != now->search_attributes ||
           (before->first_decision_time == 0) != (now->first_decision_time == 0);
}

static void
put_visible(struct mutation *mutation, struct batch *batch, struct effects *effects)
{
    const STORED(RunRecord) *core = mutation->run->core;
    if (!looks_new(mutation))
        return;
    effects->visible_row = take_number(mutation->context);
#ifdef CADENZA_FAULT_visible_row_not_written
    return;
#endif
    struct run_key key = key_of(core);
    visible_put_row(batch, &key, effects->visible_row);
}

/* ---- records ---- */

static struct slice
run_change_key(const struct mutation *mutation, const struct run_change *change)
{
    struct run_key key = key_of(mutation->run->core);
    return change->text != NULL
               ? pending_key_text(&key, change->kind, change->text, mutation->arena)
               : pending_key_number(&key, change->kind, change->number, mutation->arena);
}

/* Is the record of the change stored in the row of the run, or was until it went? */
static bool
is_aboard(const struct run_change *change, int64_t aboard_before, int64_t aboard,
          const void *record)
{
    int64_t id = record != NULL ? aboard : aboard_before;
    return change->kind == PENDING_ACTIVITY && (int64_t)change->number == id;
}

static struct slice
encode_record(const struct mutation *mutation, const struct run_change *change,
              ProtobufCMessage *record)
{
    if (change->kind == PENDING_ACTIVITY)
        record = &input_leave((STORED(PendingActivity) *)record, mutation->arena)->base;
    return message_encode(mutation->arena, record);
}

/* One put or delete per record that changed, but for what is aboard. */
static void
put_records(struct mutation *mutation, struct batch *batch)
{
    const struct run *run = mutation->run;
    int64_t aboard_before = run->aboard;
    if (mutation->journal.count == 0)
        return;
    aboard_choose(mutation);
    struct map *seen = NULL;
    for (size_t i = 0; i < mutation->journal.count; i++) {
        const struct run_change *change = &mutation->journal.items[i];
        ProtobufCMessage *record = records_get(run, change->kind, change->number, change->text);
        if (record != NULL)
            run_check_record(run, change->kind, record);
        if (is_aboard(change, aboard_before, run->aboard, record))
            continue;
        if (seen == NULL)
            seen = map_new();
        struct slice key = run_change_key(mutation, change);
        if (map_put(seen, key, mutation) != NULL)
            continue;
        if (record != NULL)
            batch_put(batch, ROW_PENDING, key, encode_record(mutation, change, record));
        else if (change->old != NULL) /* it was there before the step */
            batch_delete(batch, ROW_PENDING, key);
    }
    map_free(seen);
}

void
mutation_finish(struct mutation *mutation, struct batch *batch, struct effects *effects)
{
    mutation_check(mutation);
    check(!mutation->is_holding);
    *effects = (struct effects){0};
    struct run *run = mutation->run;
    STORED(RunRecord) *core = run->core;
    if (!run_is_open(run))
        mutation_drop_buffered(mutation);
    else if (run_has_buffered(run) && !run_has_started_decision(run))
        mutation_flush_buffered(mutation);
    dues_note(mutation);
    note_bad_binary(mutation);
    set_wakeup(mutation, effects);
    effects->has_new_events = mutation->events.count > 0;
    effects->is_closed_now =
        core->close_status != CLOSE_NONE && mutation->before.close_status == CLOSE_NONE;
    if (mutation_is_empty(mutation)) {
        mutation->is_over = true;
        return;
    }
    put_visible(mutation, batch, effects);
    core->format = RUN_RECORD_FORMAT;
    core->last_updated_time = mutation->context->now;
    put_history(mutation, batch, effects);
    note_activities(mutation, effects);
    put_outbox(mutation, batch, effects);
    put_records(mutation, batch);
    run_check_core(run);
    if (CHECK_DEEPLY)
        run_check(run);
    run_put_row(batch, run);
    mutation->is_over = true;
}
