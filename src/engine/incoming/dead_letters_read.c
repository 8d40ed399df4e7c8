/* dead_letters_read.c - dead letters, shard by shard. See replicated.h. */
#include "base/check.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/inside.h"
#include "engine/replicated.h"
#include "store/key.h"
#include "wire/message.h"
#include "wire/presence.h"

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

/* ---- put and forgotten ---- */

static struct error *
serve_put(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    const INTERNAL(DeadLetterPut) *wanted = request;
    check(wanted->letter != NULL);
    STORED(DeadLetterRow) letter = *wanted->letter; /* the shard writes to it */
    return shard_put_dead_letter(engine_served_shard(engine, owner), wanted->source, wanted->row,
                                 &letter, arena);
}

/* Lost: the message is put again, or applied after all. Twice: the same message of the same source
 * has one row. */
static const struct route_question put_question = {
    .name = "shard.put_dead_letter",
    .request = INTERNAL_TYPE(dead_letter_put),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_put,
    .may_come_twice = true,
};

struct error *
engine_put_dead_letter(struct engine *engine, uint32_t shard, const char *source, uint64_t row,
                       const STORED(DeadLetterRow) *letter, struct arena *arena)
{
    INTERNAL(DeadLetterPut) request = INTERNAL_VALUE(DEAD_LETTER_PUT__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    request.source = presence_make_text(source);
    request.row = row;
    request.letter = (STORED(DeadLetterRow) *)(uintptr_t)letter;
    return engine_ask_shard(engine, shard, &put_question, &request, arena, &answer);
}

static struct error *
serve_forget(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    const INTERNAL(DeadLettersForget) *wanted = request;
    return shard_forget_dead_letters(engine_served_shard(engine, owner), wanted->source,
                                     wanted->from, wanted->to, arena);
}

/* Lost: the operator asks again; one that was applied, and is still there, is applied once more
 * and known. Twice: not, a message that came in between would be forgotten unseen. */
static const struct route_question forget_question = {
    .name = "shard.forget_dead_letters",
    .request = INTERNAL_TYPE(dead_letters_forget),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_forget,
};

struct error *
engine_forget_dead_letters(struct engine *engine, uint32_t shard, const char *source, uint64_t from,
                           uint64_t to, struct arena *arena)
{
    INTERNAL(DeadLettersForget) request = INTERNAL_VALUE(DEAD_LETTERS_FORGET__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    request.source = presence_make_text(source);
    request.from = from;
    request.to = to;
    return engine_ask_shard(engine, shard, &forget_question, &request, arena, &answer);
}
