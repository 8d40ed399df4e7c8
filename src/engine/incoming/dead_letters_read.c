/* dead_letters_read.c - dead letters, shard by shard. See replicated.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/replicated.h"
#include "route/route.h"
#include "store/key.h"
#include "wire/message.h"

static struct error *
read_dead_letter(const struct row *row, struct arena *arena, struct dead_letter *letter)
{
    struct slice key = row->key, source;
    STORED(DeadLetterRow) *stored = NULL;
    if (!key_take_text(&key, arena, &source) || !key_take_u64(&key, &letter->row))
        return error_new(arena, ERR_CORRUPT, "the key of a dead letter cannot be read");
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(dead_letter_row), row->value, &stored);
    letter->source = arena_text_of(arena, source);
    letter->letter = stored;
    return err;
}

struct error *
engine_read_dead_letters(struct engine *engine, uint32_t shard, const char *source, uint64_t after,
                         uint64_t to, size_t count_max, struct arena *arena,
                         struct dead_letters *letters)
{
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(shard), .kind = ROW_DEAD_LETTER, .rows_max = count_max};
    if (source != NULL) {
        scan.from = dead_letter_key(source, after + 1, arena);
        scan.to = key_after(dead_letter_key(source, to, arena), arena);
    }
    struct rows rows;
    *letters = (struct dead_letters){0};
    struct error *err = store_scan(engine->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    check(count_max == 0 || rows.count <= count_max);
    letters->letters = arena_zalloc(arena, rows.count, sizeof letters->letters[0]);
    letters->count = rows.count;
    letters->has_more = rows.has_more;
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = read_dead_letter(&rows.row[i], arena, &letters->letters[i]);
    return err;
}

struct forget_call {
    struct shard *shard;
    const char *source;
    uint64_t from, to;
    struct arena *arena;
    struct error *err;
};

static void
forget_on_loop(void *argument)
{
    struct forget_call *call = argument;
    call->err =
        shard_forget_dead_letters(call->shard, call->source, call->from, call->to, call->arena);
}

struct error *
engine_forget_dead_letters(struct engine *engine, uint32_t shard, const char *source, uint64_t from,
                           uint64_t to, struct arena *arena)
{
    check(shard < engine->options.shard_count);
    struct forget_call call = {engine->shards[shard], source, from, to, arena, NULL};
    struct error *err = route_to_shard(shard, forget_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}
