/* ledger.c - a group of commits is one row; the rows of its commits come to the tables later.
 *
 * The problem: of what a step of a workflow writes most is overwritten or deleted in a moment (the
 * row of the run, outbox, wake-up timers, rows for visibility). As a row of RocksDB each of them
 * needs a place in a memtable, and finding it takes 2 to 3 us: a fifth of the CPU of a workflow.
 *
 * So the committer writes a group as it came, in one row of the ledger, and when that is durable
 * keeps its rows in memory (fresh.c), in their newest state only, from where they are read. When a
 * generation of them is large it settles: each group takes some of its rows along, in order of
 * keys, as rows of the tables; with the last of them the generation's rows of the ledger are
 * deleted, in the same write. What was overwritten before that is not written, nor what was put
 * once and deleted.
 *
 * Large rows that are never overwritten (history) would be copied twice more for nothing: they go
 * to the tables with the group, and their keys are in its record. They are hidden until it is
 * applied.
 *
 * After a crash the ledger is read from its first row and its commits are applied again, over
 * tables that may have some of their rows already, from a settling that was not finished. That does
 * no harm: each of those rows is touched again by what is replayed, up to the state that the
 * settling wrote. Then everything settles, before the store opens.
 *
 * A row of the ledger: kind LAYOUT_LEDGER, number (7 bytes, big-endian; that of the write in the
 * database, so it only grows). Its value, for each commit:
 *
 *   length of the partition's key (4) | of the steps (4) | guard (8) | partition's key | steps
 *
 * numbers little-endian; guard 0: as it was; steps as batch.c encodes them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

#define ENTRY_HEAD   16
#define KEY_BYTES    8
#define SETTLE_LEAST (16U << 10) /* bytes that a group takes along at the least */
#define SETTLE_CHUNK (1U << 20)  /* when nobody waits for a group */
#define ROW_BYTES    64          /* what a row counts for beside its bytes, as in shelf.c */

/* A step of our own, for a row that is in the tables already. */
#define PUT_ELSEWHERE COMMIT_OWN_VERB

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

/* --- records ---------------------------------------------------------------------------------- */

/* Is the row written to the tables at once? Then only its key is in the record. */
static bool
is_large(const struct commit_step *step)
{
    return step->verb == BATCH_PUT && step->value.length >= LARGE_BYTES &&
           row_traits(step->kind)->life == ROW_ONCE_RANGE;
}

static void
append_put(struct rocks *rocks, const struct fresh_location *location,
           const struct commit_step *step)
{
    struct buffer *record = &rocks->committer.record, *key = &rocks->committer.key;
    if (!is_large(step) || !fresh_hide(rocks->fresh, location)) {
        commit_append_step(record, step);
        return;
    }
    struct commit_step elsewhere = {PUT_ELSEWHERE, step->kind, step->key, slice_of(NULL, 0)};
    commit_append_step(record, &elsewhere);
    buffer_clear(key);
    layout_append(key, step->kind, location->partition_key, step->key);
    rocksdb_writebatch_put_cf(rocks->committer.batch,
                              rocks->tables.family[layout_family(step->kind)],
                              (const char *)buffer_slice(key).data, key->length,
                              (const char *)step->value.data, step->value.length);
}

static bool
append_step(struct rocks *rocks, const struct commit *commit, const struct commit_step *step,
            struct guard *guard, char **failure)
{
    struct fresh_location location = {step->kind, commit->partition_key, step->key};
    if (step->verb == BATCH_DELETE_RANGE)
        return sweep_range(rocks, commit->partition_key, step, guard, failure);
    if (step->verb == BATCH_DELETE) {
        commit_append_step(&rocks->committer.record, step);
        return true;
    }
    sweep_note_put(guard, &location);
    append_put(rocks, &location, step);
    return true;
}

/* Can the steps be taken as they are? */
static bool
is_plain(const struct commit *commit, const struct guard *guard)
{
    struct commit_step step;
    for (struct slice steps = commit->steps; commit_next_step(&steps, &step);)
        if (step.verb == BATCH_DELETE_RANGE || is_large(&step))
            return false;
    return guard->swept == NULL;
}

bool
ledger_append(struct rocks *rocks, const struct commit *commit, struct guard *guard,
              uint64_t number, char **failure)
{
    struct buffer *record = &rocks->committer.record;
    size_t begin = record->length;
    uint8_t *head = buffer_reserve(record, ENTRY_HEAD);
    memset(head, 0, ENTRY_HEAD);
    buffer_commit(record, ENTRY_HEAD);
    buffer_append(record, commit->partition_key);
    struct commit_step step;
    if (is_plain(commit, guard))
        buffer_append(record, commit->steps);
    else
        for (struct slice steps = commit->steps; commit_next_step(&steps, &step);)
            if (!append_step(rocks, commit, &step, guard, failure))
                return false;
    size_t length = record->length - begin - ENTRY_HEAD - commit->partition_key.length;
    check(length <= UINT32_MAX);
    uint32_t lengths[2] = {(uint32_t)commit->partition_key.length, (uint32_t)length};
    memcpy(record->data + begin, lengths, sizeof lengths);
    memcpy(record->data + begin + sizeof lengths, &number, sizeof number);
    return true;
}

struct ledger_entry {
    struct slice partition_key;
    uint64_t guard;
    struct slice steps;
};

/* Takes the next entry from the front of the record. False: it is at its end, or no record. */
static bool
entry_take(struct slice *record, struct ledger_entry *ledger_entry)
{
    uint32_t lengths[2];
    if (record->length < ENTRY_HEAD)
        return false;
    memcpy(lengths, record->data, sizeof lengths);
    memcpy(&ledger_entry->guard, record->data + sizeof lengths, sizeof ledger_entry->guard);
    struct slice rest = slice_skip(*record, ENTRY_HEAD);
    if (rest.length < (uint64_t)lengths[0] + lengths[1])
        return false;
    ledger_entry->partition_key = slice_of(rest.data, lengths[0]);
    ledger_entry->steps = slice_of(rest.data + lengths[0], lengths[1]);
    *record = slice_skip(rest, (size_t)lengths[0] + lengths[1]);
    return true;
}

static bool
is_record(struct slice record)
{
    struct ledger_entry ledger_entry;
    while (entry_take(&record, &ledger_entry))
        if (ledger_entry.partition_key.length == 0 || !commit_are_steps(ledger_entry.steps))
            return false;
    return record.length == 0;
}

static struct slice
ledger_key(uint8_t room[KEY_BYTES], uint64_t number)
{
    room[0] = LAYOUT_LEDGER;
    for (int i = 1; i < KEY_BYTES; i++)
        room[i] = (uint8_t)(number >> (8 * (KEY_BYTES - 1 - i)));
    return slice_of(room, KEY_BYTES);
}

/* --- applying --------------------------------------------------------------------------------- */

static void
apply_step(struct fresh *fresh, const struct fresh_location *location,
           const struct commit_step *step)
{
    if (step->verb == BATCH_PUT)
        fresh_put(fresh, location, step->value);
    else if (step->verb == BATCH_DELETE)
        fresh_delete(fresh, location);
    else if (step->verb == BATCH_DELETE_RANGE)
        fresh_delete_range(fresh, location, step->value);
    else
        fresh_reveal(fresh, location);
}

/* All changes of a commit at once. */
static void
apply_entry(struct fresh *fresh, const struct ledger_entry *ledger_entry)
{
    struct fresh_location location = {LAYOUT_GUARD, ledger_entry->partition_key, slice_of(NULL, 0)};
    uint8_t guard[8];
    struct commit_step step;
    layout_guard_write(guard, ledger_entry->guard);
    fresh_change_begin(fresh);
    if (ledger_entry->guard != 0)
        fresh_put(fresh, &location, fresh_keep(fresh, slice_of(guard, sizeof guard)));
    for (struct slice steps = ledger_entry->steps; commit_next_step(&steps, &step);) {
        location.kind = step.kind;
        location.key = step.key;
        apply_step(fresh, &location, &step);
    }
    fresh_change_end(fresh);
}

static void
apply_record(struct fresh *fresh, struct slice record)
{
    struct ledger_entry ledger_entry;
    struct slice rest = fresh_keep(fresh, record);
    while (entry_take(&rest, &ledger_entry))
        apply_entry(fresh, &ledger_entry);
    check(rest.length == 0);
}

/* --- settling --------------------------------------------------------------------------------- */

/* A ONCE row was put once and is deleted once: SingleDelete lets RocksDB forget the pair as soon as
 * they meet, where a plain delete would stay until the last level. Two puts must not meet it. */
static void
settle_row(struct rocks *rocks, const struct fresh_row *row)
{
    rocksdb_writebatch_t *batch = rocks->committer.batch;
    unsigned kind = row->key.data[0];
    rocksdb_column_family_handle_t *handle = rocks->tables.family[layout_family_of(row->key)];
    const char *key = (const char *)row->key.data;
    bool is_once = kind != LAYOUT_GUARD && row_traits(kind)->life == ROW_ONCE;
    if (is_once && row->is_below)
        rocksdb_writebatch_singledelete_cf(batch, handle, key, row->key.length);
#ifndef CADENZA_FAULT_settled_delete_lost
    else if (row->is_gone)
        rocksdb_writebatch_delete_cf(batch, handle, key, row->key.length);
#endif
    if (!row->is_gone)
        rocksdb_writebatch_put_cf(batch, handle, key, row->key.length,
                                  (const char *)row->value.data, row->value.length);
}

/* The rows of the ledger that the old generation came from are not needed any more. */
static void
forget_numbers(struct rocks *rocks)
{
    rocksdb_column_family_handle_t *family = rocks->tables.family[FAMILY_FORWARD];
    vector_each(number, &rocks->committer.old_numbers) {
        uint8_t room[KEY_BYTES];
        struct slice key = ledger_key(room, *number);
        rocksdb_writebatch_singledelete_cf(rocks->committer.batch, family, (const char *)key.data,
                                           key.length);
    }
    vector_clear(&rocks->committer.old_numbers);
}

static void
freeze(struct rocks *rocks)
{
    check(rocks->committer.old_numbers.count == 0);
    fresh_freeze(rocks->fresh);
    struct ledger_numbers empty = rocks->committer.old_numbers;
    rocks->committer.old_numbers = rocks->committer.ledger_numbers;
    rocks->committer.ledger_numbers = empty;
}

/* Adds about so many bytes of rows of the old generation to the batch. */
static void
settle(struct rocks *rocks, size_t bytes)
{
    struct fresh_row row;
    size_t done = 0;
#ifdef CADENZA_FAULT_ledger_dropped_early
    forget_numbers(rocks);
#endif
    while (done < bytes) {
        if (!fresh_next_old(rocks->fresh, &row)) {
            forget_numbers(rocks);
            rocks->committer.has_settled = true;
            return;
        }
        settle_row(rocks, &row);
        done += row.key.length + row.value.length + ROW_BYTES;
    }
}

/* --- the committer ---------------------------------------------------------------------------- */

void
ledger_begin(struct rocks *rocks)
{
    check(!rocks->committer.has_settled); /* ledger_tidy has dropped it */
    rocksdb_writebatch_clear(rocks->committer.batch);
    buffer_clear(&rocks->committer.record);
    if (!fresh_has_old(rocks->fresh) && fresh_bytes(rocks->fresh) >= rocks->committer.fresh_max)
        freeze(rocks);
}

void
ledger_end(struct rocks *rocks)
{
    struct slice record = buffer_slice(&rocks->committer.record);
    uint8_t room[KEY_BYTES];
    uint64_t number = rocksdb_get_latest_sequence_number(rocks->tables.db) + 1;
    struct slice key = ledger_key(room, number);
    rocksdb_writebatch_put_cf(rocks->committer.batch, rocks->tables.family[FAMILY_FORWARD],
                              (const char *)key.data, key.length, (const char *)record.data,
                              record.length);
    struct ledger_numbers *numbers = &rocks->committer.ledger_numbers;
    check(numbers->count == 0 || vector_at(numbers, numbers->count - 1) < number);
    vector_push(numbers, number);
    /* Twice what the last group brought: it ends before the next generation is as large. */
    size_t bytes = fresh_bytes(rocks->fresh), before = rocks->committer.fresh_before;
    size_t grown = bytes >= before ? bytes - before : bytes;
    if (fresh_has_old(rocks->fresh))
        settle(rocks, SETTLE_LEAST + 2 * grown);
    rocks->committer.fresh_before = bytes;
}

void
ledger_written(struct rocks *rocks)
{
    apply_record(rocks->fresh, buffer_slice(&rocks->committer.record));
}

void
ledger_tidy(struct rocks *rocks)
{
    check(!rocks->committer.has_settled || rocks->committer.old_numbers.count == 0);
    if (rocks->committer.has_settled)
        fresh_drop_old(rocks->fresh);
    rocks->committer.has_settled = false;
    check(rocks->committer.old_numbers.count == 0 || fresh_has_old(rocks->fresh));
}

bool
ledger_settle_all(struct rocks *rocks, char **failure)
{
    while (fresh_has_old(rocks->fresh) || fresh_bytes(rocks->fresh) > 0) {
        if (!fresh_has_old(rocks->fresh))
            freeze(rocks);
        ledger_begin(rocks);
        settle(rocks, SETTLE_CHUNK);
        if (!committer_write(rocks, failure))
            return false;
        ledger_tidy(rocks);
    }
    return true;
}

/* --- after a crash ---------------------------------------------------------------------------- */

/* What RocksDB might say, and freed as if it had: see guards.c. */
static char *
ledger_failure(uint64_t number)
{
    static const size_t room = 120;
    char *text = memory_alloc(room);
    snprintf(text, room, "Corruption: row %" PRIu64 " of the ledger is not a group of commits",
             number);
    return text;
}

bool
ledger_replay(const struct tables *tables, struct fresh *fresh,
              void (*on_number)(void *context, uint64_t number), void *context, char **failure)
{
    uint8_t begin[KEY_BYTES], end = LAYOUT_LEDGER + 1;
    struct slice from = ledger_key(begin, 0);
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)&end, 1);
    rocksdb_iterator_t *rows =
        rocksdb_create_iterator_cf(tables->db, options, tables->family[FAMILY_FORWARD]);
    rocksdb_iter_seek(rows, (const char *)from.data, from.length);
    for (; *failure == NULL && rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
        struct slice key, value;
        key.data = (const uint8_t *)rocksdb_iter_key(rows, &key.length);
        value.data = (const uint8_t *)rocksdb_iter_value(rows, &value.length);
        uint64_t number = 0;
        for (size_t i = 1; i < key.length; i++)
            number = number << 8 | key.data[i];
        if (key.length != KEY_BYTES || !is_record(value)) {
            *failure = ledger_failure(number);
            break;
        }
        fresh_expect_below(fresh);
        apply_record(fresh, value);
        if (on_number != NULL)
            on_number(context, number);
    }
    if (*failure == NULL)
        rocksdb_iter_get_error(rows, failure);
    rocksdb_iter_destroy(rows);
    rocksdb_readoptions_destroy(options);
    return *failure == NULL;
}
