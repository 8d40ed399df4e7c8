/* letters.c - messages of other clusters that cannot be applied: kept in the shard of their
 * workflow id until somebody looks at them. See shard.h. */
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

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
        tenure->replicating.has_letters_counted = false;
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
