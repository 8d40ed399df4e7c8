/* dead_letters.c - messages of other clusters that cannot be applied: kept in the shard of their
 * workflow id until somebody looks at them. See shard.h. */
#include "base/check.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

static struct error *
commit(struct tenure *tenure, void (*fill)(void *context, struct batch *batch), void *context,
       struct arena *arena)
{
    if (tenure->is_over) /* what came before has yielded */
        return tenure_error(tenure, arena);
    if (!writer_has_room(tenure->writer))
        return error_new(arena, ERR_UNAVAILABLE, "Too many changes of shard %u are waiting.",
                         tenure->shard->options.number);
    struct batch *batch = tenure_batch(tenure, arena);
    fill(context, batch);
    tenure->replicating.are_dead_letters_counted = false;
    return tenure_wait(tenure, tenure_submit(tenure, batch), arena);
}

struct dead_letter_change {
    const char *source;
    uint64_t from, to;
    STORED(DeadLetterRow) *letter;
};

static void
put_dead_letter(void *context, struct batch *batch)
{
    const struct dead_letter_change *change = context;
    batch_put(batch, ROW_DEAD_LETTER, dead_letter_key(change->source, change->from, batch->arena),
              message_encode(batch->arena, &change->letter->base));
}

static void
delete_dead_letters(void *context, struct batch *batch)
{
    const struct dead_letter_change *change = context;
    struct slice last = dead_letter_key(change->source, change->to, batch->arena);
    batch_delete_range(batch, ROW_DEAD_LETTER,
                       dead_letter_key(change->source, change->from, batch->arena),
                       key_after(last, batch->arena));
}

/* Row numbers of two shards of the source may be the same, if it has another number of shards than
 * this cluster; and all dead letters of one re-sync share a number. So each takes the first free
 * number from its own on, or the one that it has already. */
static struct error *
find_dead_letter(const struct shard *shard, struct dead_letter_change *change, struct arena *arena)
{
    struct slice task = presence_read_bytes(change->letter->task);
    for (;; change->from++) {
        bool is_taken;
        struct slice value;
        STORED(DeadLetterRow) *known = NULL;
        struct error *err = store_get(shard->options.store, shard->partition, ROW_DEAD_LETTER,
                                      dead_letter_key(change->source, change->from, arena), arena,
                                      &is_taken, &value);
        if (err != NULL || !is_taken)
            return err;
        err = message_decode(arena, STORED_TYPE(dead_letter_row), value, &known);
        if (err != NULL)
            return err;
        if (known->source_shard == change->letter->source_shard &&
            slice_equal(presence_read_bytes(known->task), task))
            return NULL;
        probe("replication_dead_letter_moved");
    }
}

static struct error *
put_within(struct tenure *tenure, struct dead_letter_change *change, struct arena *arena)
{
    struct fiber_mutex *turn = &tenure->replicating.dead_letter_lock;
    check(change->letter != NULL && change->to == 0 && turn->owner != fiber_self());
    struct error *err = fiber_mutex_lock(turn, arena);
    if (err != NULL)
        return err;
    err = find_dead_letter(tenure->shard, change, arena);
    if (err == NULL)
        err = commit(tenure, put_dead_letter, change, arena);
    fiber_mutex_unlock(turn);
    return err;
}

struct error *
shard_put_dead_letter(struct shard *shard, const char *source, uint64_t row,
                      STORED(DeadLetterRow) *letter, struct arena *arena)
{
    struct dead_letter_change change = {.source = source, .from = row, .letter = letter};
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    probe("replication_dead_letter_kept");
    letter->format = RUN_RECORD_FORMAT;
    letter->parked_time = clock_wall();
    err = put_within(tenure, &change, arena);
    tenure_leave(tenure);
    return err;
}

struct error *
shard_forget_dead_letters(struct shard *shard, const char *source, uint64_t from, uint64_t to,
                          struct arena *arena)
{
    struct dead_letter_change change = {.source = source, .from = from, .to = to};
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    err = commit(tenure, delete_dead_letters, &change, arena);
    tenure_leave(tenure);
    return err;
}
