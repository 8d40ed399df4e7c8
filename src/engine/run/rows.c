/* rows.c - a run as rows: their keys, and reading them back.
 *
 * The rows of a run begin with the same key, so that one scan reads all that is pending:
 *
 *   current-run   domain id, workflow id
 *   run           domain id, workflow id, run id
 *   pending       domain id, workflow id, run id, kind, then a number or a text
 *   transfer      row number
 *   visible       row number
 *   replication   row number
 *   dead letter   name of the source cluster, row number there */
#include "engine/run/inside.h"
#include "store/key.h"

#define SCAN_ROWS_MAX ((size_t)1000)

struct slice
current_key(const char *domain_id, const char *workflow_id, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(domain_id));
    key_text(&key, slice_text(workflow_id));
    return key_end(&key);
}

static void
begin_run_key(struct key_writer *writer, const struct run_key *key, struct arena *arena)
{
    check(key->run_id[0] != '\0');
    key_begin(writer, arena);
    key_text(writer, slice_text(key->domain_id));
    key_text(writer, slice_text(key->workflow_id));
    key_text(writer, slice_text(key->run_id));
}

struct slice
run_row_key(const struct run_key *key, struct arena *arena)
{
    struct key_writer writer;
    begin_run_key(&writer, key, arena);
    return key_end(&writer);
}

struct slice
pending_key_number(const struct run_key *key, enum pending_kind kind, uint64_t number,
                   struct arena *arena)
{
    check(kind != PENDING_TIMER && kind != PENDING_SIGNAL_REQUEST);
    struct key_writer writer;
    begin_run_key(&writer, key, arena);
    key_u64(&writer, kind);
    key_u64(&writer, number);
    return key_end(&writer);
}

struct slice
pending_key_text(const struct run_key *key, enum pending_kind kind, const char *id,
                 struct arena *arena)
{
    check(kind == PENDING_TIMER || kind == PENDING_SIGNAL_REQUEST);
    struct key_writer writer;
    begin_run_key(&writer, key, arena);
    key_u64(&writer, kind);
    key_text(&writer, slice_text(id));
    return key_end(&writer);
}

struct slice
divergence_key(const struct run_key *key, struct uuid branch, struct arena *arena)
{
    struct key_writer writer;
    begin_run_key(&writer, key, arena);
    key_uuid(&writer, branch);
    return key_end(&writer);
}

struct slice
replication_key(uint64_t row, struct arena *arena)
{
    return transfer_key(row, arena);
}

struct slice
dead_letter_key(const char *cluster, uint64_t row, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(cluster));
    key_u64(&key, row);
    return key_end(&key);
}

struct slice
transfer_key(uint64_t row, struct arena *arena)
{
    check(row != 0);
    return key_of_number(row, arena);
}

struct slice
visible_key(uint64_t row, struct arena *arena)
{
    check(row != 0);
    return key_of_number(row, arena);
}

void
visible_put_row(struct batch *batch, const struct run_key *key, uint64_t row)
{
    STORED(VisibleRow) visible;
    cadenza__storage__v1__visible_row__init(&visible);
    visible.format = RUN_RECORD_FORMAT;
    visible.domain_id = (char *)key->domain_id;
    visible.workflow_id = (char *)key->workflow_id;
    visible.run_id = (char *)key->run_id;
    batch_put(batch, ROW_VISIBLE, visible_key(row, batch->arena),
              message_encode(batch->arena, &visible.base));
}

/* ---- reading ---- */

static const ProtobufCMessageDescriptor *
pending_type(uint64_t kind)
{
    static const ProtobufCMessageDescriptor *const types[PENDING_KIND_END] = {
        [PENDING_ACTIVITY] = STORED_TYPE(pending_activity),
        [PENDING_TIMER] = STORED_TYPE(pending_timer),
        [PENDING_BUFFERED] = STORED_TYPE(buffered_event),
        [PENDING_SIGNAL_REQUEST] = STORED_TYPE(signal_request),
        [PENDING_CHILD] = STORED_TYPE(pending_child),
        [PENDING_EXTERNAL] = STORED_TYPE(pending_external),
        [PENDING_BIRTH] = API_TYPE(workflow_execution_started_event_attributes),
    };
    return kind < PENDING_KIND_END ? types[kind] : NULL;
}

/* Puts a record where its own fields say; false: something is there already. */
static bool
adopt_record(struct run *run, enum pending_kind kind, void *record)
{
    uint64_t number = 0;
    const char *text = NULL;
    if (kind == PENDING_ACTIVITY)
        number = (uint64_t)((STORED(PendingActivity) *)record)->schedule_id;
    else if (kind == PENDING_BUFFERED)
        number = ((STORED(BufferedEvent) *)record)->number;
    else if (kind == PENDING_CHILD)
        number = (uint64_t)((STORED(PendingChild) *)record)->initiated_id;
    else if (kind == PENDING_EXTERNAL)
        number = (uint64_t)((STORED(PendingExternal) *)record)->initiated_id;
    else if (kind == PENDING_TIMER)
        text = ((STORED(PendingTimer) *)record)->timer_id;
    else if (kind == PENDING_SIGNAL_REQUEST)
        text = ((STORED(SignalRequest) *)record)->request_id;
    if (records_get(run, kind, number, text) != NULL)
        return false;
    if (kind == PENDING_ACTIVITY &&
        run_find_activity_id(run, ((STORED(PendingActivity) *)record)->activity_id) != NULL)
        return false;
    records_set(run, kind, number, text, record);
    return true;
}

static struct error *
load_pending_row(struct run *run, const struct row *row, size_t prefix, struct arena *arena)
{
    uint64_t kind;
    struct slice rest = slice_skip(row->key, prefix);
    if (!key_take_u64(&rest, &kind) || pending_type(kind) == NULL)
        return error_new(arena, ERR_CORRUPT, "a pending row of an unknown kind");
    ProtobufCMessage *record = NULL;
    struct error *err =
        message_decode_at(run->arena, ERR_CORRUPT, pending_type(kind), row->value, &record);
    if (err != NULL)
        return error_copy(arena, err);
    if (!adopt_record(run, (enum pending_kind)kind, record))
        return error_new(arena, ERR_CORRUPT, "two pending rows of kind %d are the same", (int)kind);
    return NULL;
}

static struct error *
load_pending(struct store *store, struct partition shard, struct slice prefix, struct run *run,
             struct arena *arena)
{
    struct scan scan = {.partition = shard,
                        .kind = ROW_PENDING,
                        .from = prefix,
                        .to = key_after_prefix(prefix, arena),
                        .rows_max = SCAN_ROWS_MAX};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(store, &scan, arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = load_pending_row(run, &rows.row[i], prefix.length, arena);
        if (err != NULL)
            return err;
        check(rows.count > 0 || !rows.has_more);
        if (rows.has_more)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

static struct error *
load_core(struct slice row_key, struct slice value, struct run *run, struct arena *arena)
{
    struct error *err = run_read_row(row_key, value, run->arena, &run->core);
    if (err != NULL)
        return error_copy(arena, err);
    return aboard_leave(run) ? NULL : error_new(arena, ERR_CORRUPT, "no activity is aboard");
}

/* One try at reading the rows; *guard is that of the last row, NULL: not wanted. *is_torn: another
 * owner of the shard wrote between the reads, so that they do not belong together; then *run is
 * NULL. */
static struct error *
load_once(struct store *store, struct partition shard, struct slice row_key, struct arena *arena,
          struct run **run, uint64_t *guard, bool *is_torn)
{
    bool found, is_still_there = false;
    struct slice value, value_again;
    *is_torn = false;
    struct error *err =
        store_get_guarded(store, shard, ROW_RUN, row_key, arena, &found, &value, guard);
    if (err != NULL || !found)
        return err;
    struct run *loaded = run_new();
    err = load_core(row_key, value, loaded, arena);
    if (err == NULL)
        err = load_pending(store, shard, row_key, loaded, arena);
    const char *fault = err == NULL ? run_find_fault(loaded) : NULL;
    if (fault != NULL)
        err = error_new(arena, ERR_CORRUPT, "it breaks %s", fault);
    if (err == NULL)
        err = inputs_return(store, shard, loaded, arena);
    /* What does not fit together may belong together no more, such as an activity that was aboard
     * and has a row now. */
    struct error *unread = store_get_guarded(store, shard, ROW_RUN, row_key, arena, &is_still_there,
                                             &value_again, guard);
    *is_torn = unread == NULL && !(is_still_there && slice_equal(value, value_again));
    err = err == NULL ? unread : err;
    if (err != NULL || *is_torn) {
        run_free(loaded);
        return *is_torn ? NULL : err;
    }
    *run = loaded;
    return NULL;
}

struct error *
run_load(struct store *store, struct partition shard, const struct run_key *key,
         struct arena *arena, struct run **run, uint64_t *guard)
{
    *run = NULL;
    bool is_torn = true;
    struct slice row_key = run_row_key(key, arena);
    struct error *err = NULL;
    while (is_torn && err == NULL)
        err = load_once(store, shard, row_key, arena, run, guard, &is_torn);
    if (err != NULL)
        return error_wrap(err, "load run %s of workflow %s", key->run_id, key->workflow_id);
    if (*run != NULL)
        (*run)->arena_bytes_after_compact = arena_footprint((*run)->arena);
    return NULL;
}

struct error *
current_load(struct store *store, struct partition shard, const char *domain_id,
             const char *workflow_id, struct arena *arena, STORED(CurrentRecord) **current,
             uint64_t *guard)
{
    *current = NULL;
    bool found;
    struct slice value;
    struct error *err =
        store_get_guarded(store, shard, ROW_CURRENT, current_key(domain_id, workflow_id, arena),
                          arena, &found, &value, guard);
    if (err != NULL || !found)
        return err;
    err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(current_record), value, current);
    return err == NULL ? NULL : error_wrap(err, "load the current run of %s", workflow_id);
}
