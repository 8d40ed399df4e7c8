/* values.c - what goes between the places of shards and the feeder, as bytes.
 *
 * Contracts. All of them may come twice: updates that were taken are known by their rows, levels
 * only rise, and what was flushed is gone. */
#include "base/memory.h"
#include "cadenza/internal/v1/visibility.pb-c.h"
#include "fiber/clock.h"
#include "visibility/feed/inside.h"
#include "wire/message.h"
#include "wire/names.h"

/* --- updates ---------------------------------------------------------------------------------- */

struct visibility_batch *
visibility_batch_new(unsigned place)
{
    struct visibility_batch *batch = memory_zalloc(1, sizeof *batch);
    list_init(&batch->node);
    list_init(&batch->updates);
    batch->place = place;
    return batch;
}

void
visibility_batch_free(struct visibility_batch *batch)
{
    for (struct list *node; (node = list_pop_front(&batch->updates)) != NULL;)
        memory_free(list_entry(node, struct visibility_update, node));
    memory_free(batch);
}

static void
updates_free(struct route_value *value)
{
    visibility_batch_free(container_of(value, struct visibility_batch, value));
}

static INTERNAL(VisibilityUpdate) *
    update_to_message(const struct visibility_update *update, struct arena *arena)
{
    const struct visible_change *change = &update->change;
    INTERNAL(VisibilityUpdate) *message = INTERNAL_NEW(
        arena, visibility_update, .shard = change->shard, .row = change->row,
        .after = update->after, .is_beginning = change->is_beginning,
        .num_clusters = change->num_clusters, .age_nanoseconds = clock_monotonic() - update->time);
    message->info =
        (ProtobufCBinaryData){change->info.length, (uint8_t *)(uintptr_t)change->info.data};
    if (change->is_beginning)
        return message;
    message->domain_id = (char *)change->domain_id;
    message->workflow_id = (char *)change->workflow_id;
    message->run_id = (char *)change->run_id;
    return message;
}

static struct visibility_update *
update_from_message(const INTERNAL(VisibilityUpdate) * message)
{
    struct visible_change change = {.shard = message->shard,
                                    .row = message->row,
                                    .is_beginning = message->is_beginning,
                                    .info = slice_of(message->info.data, message->info.len),
                                    .num_clusters = message->num_clusters};
    if (!message->is_beginning) {
        change.domain_id = message->domain_id;
        change.workflow_id = message->workflow_id;
        change.run_id = message->run_id;
    }
    struct visibility_update *update = visibility_update_new(&change);
    update->after = message->after;
    update->time = clock_monotonic() - message->age_nanoseconds;
    return update;
}

static struct slice
updates_encode(const struct route_value *value, struct arena *arena)
{
    const struct visibility_batch *batch = container_of(value, struct visibility_batch, value);
    INTERNAL(VisibilityUpdates) *message =
        INTERNAL_NEW(arena, visibility_updates, .place = batch->place, .end = batch->end);
    size_t count = 0;
    list_each(node, &batch->updates)
        count++;
    message->updates = arena_zalloc(arena, count, sizeof *message->updates);
    list_each(node, &batch->updates)
        message->updates[message->n_updates++] =
            update_to_message(list_entry(node, struct visibility_update, node), arena);
    return message_encode(arena, &message->base);
}

static struct route_value *
updates_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(VisibilityUpdates) * message;
    if (message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(visibility_updates), bytes,
                          &message) != NULL)
        return NULL;
    struct visibility_batch *batch = visibility_batch_new(message->place);
    batch->end = message->end;
    for (size_t i = 0; i < message->n_updates; i++) {
        struct visibility_update *update = update_from_message(message->updates[i]);
        list_push_back(&batch->updates, &update->node);
        batch->bytes += update->size;
    }
    return &batch->value;
}

/* Lost: the rows are in the store. Later updates of the shard are refused, since the one before
 * them is missing, and the shard, which hears of no progress, asks for the level a few seconds
 * later and goes on behind it. */
const struct route_notice visibility_updates_notice = {
    .name = "visibility.updates",
    .encode = updates_encode,
    .decode = updates_decode,
    .free = updates_free,
    .take = feeder_take_updates,
    .may_be_lost = true,
    .may_come_twice = true,
};

/* --- levels ----------------------------------------------------------------------------------- */

struct visibility_levels *
visibility_levels_new(size_t count)
{
    struct visibility_levels *levels =
        memory_zalloc(1, sizeof *levels + count * sizeof levels->level[0]);
    levels->count = count;
    return levels;
}

static void
levels_free(struct route_value *value)
{
    memory_free(container_of(value, struct visibility_levels, value));
}

static struct slice
levels_encode(const struct route_value *value, struct arena *arena)
{
    const struct visibility_levels *levels = container_of(value, struct visibility_levels, value);
    INTERNAL(VisibilityLevels) *message =
        INTERNAL_NEW(arena, visibility_levels, .done = levels->done);
    message->levels = arena_zalloc(arena, levels->count, sizeof *message->levels);
    for (; message->n_levels < levels->count; message->n_levels++) {
        const struct visibility_level *level = &levels->level[message->n_levels];
        message->levels[message->n_levels] = INTERNAL_NEW(
            arena, visibility_level, .shard = level->shard, .fed = level->fed, .safe = level->safe);
    }
    return message_encode(arena, &message->base);
}

static struct route_value *
levels_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(VisibilityLevels) * message;
    if (message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(visibility_levels), bytes, &message) !=
        NULL)
        return NULL;
    struct visibility_levels *levels = visibility_levels_new(message->n_levels);
    levels->done = message->done;
    for (size_t i = 0; i < message->n_levels; i++)
        levels->level[i] = (struct visibility_level){.shard = message->levels[i]->shard,
                                                     .fed = message->levels[i]->fed,
                                                     .safe = message->levels[i]->safe};
    return &levels->value;
}

/* Lost: the next ones say the same and more; a shard that waits for some asks for the level. */
const struct route_notice visibility_levels_notice = {
    .name = "visibility.levels",
    .encode = levels_encode,
    .decode = levels_decode,
    .free = levels_free,
    .take = place_take_levels,
    .may_be_lost = true,
    .may_come_twice = true,
};

/* --- the end ---------------------------------------------------------------------------------- */

static struct slice
flush_encode(const struct route_value *value, struct arena *arena)
{
    return slice_of(NULL, 0);
}

static struct route_value *
flush_decode(struct slice bytes)
{
    struct visibility_flush *flush = memory_zalloc(1, sizeof *flush);
    return &flush->value;
}

static void
flush_free(struct route_value *value)
{
    memory_free(container_of(value, struct visibility_flush, value));
}

/* Not lost: the feeder of a process tells its own places that it ends, and waits for that. */
const struct route_notice visibility_flush_notice = {
    .name = "visibility.flush",
    .encode = flush_encode,
    .decode = flush_decode,
    .free = flush_free,
    .take = place_take_flush,
    .may_come_twice = true,
};
