/* wait_values.c - see wait_values.h. Texts and bytes stand behind the struct, in its block. */
#include "engine/wait_values.h"

#include "base/memory.h"
#include "cadenza/internal/v1/watch.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

static const char *
place_text(char **place, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*place, text, size);
    *place += size;
    return copy;
}

static struct slice
place_bytes(char **place, struct slice bytes)
{
    struct slice copy = {0};
    if (bytes.length > 0)
        copy = slice_of(memcpy(*place, bytes.data, bytes.length), bytes.length);
    *place += bytes.length;
    return copy;
}

struct wait_value *
wait_value_new(const struct run_wait_for *what)
{
    size_t id_size = what->query_id == NULL ? 0 : strlen(what->query_id) + 1;
    size_t size = sizeof(struct wait_value) + strlen(what->key.domain_id) + 1 +
                  strlen(what->key.workflow_id) + 1 + strlen(what->key.run_id) + 1 + id_size +
                  what->question.length;
    struct wait_value *wait = memory_alloc(size);
    char *place = (char *)(wait + 1);
    memset(wait, 0, sizeof *wait);
    wait->what = *what;
    wait->what.key = (struct run_key){.domain_id = place_text(&place, what->key.domain_id),
                                      .workflow_id = place_text(&place, what->key.workflow_id),
                                      .run_id = place_text(&place, what->key.run_id)};
    if (what->query_id != NULL)
        wait->what.query_id = place_text(&place, what->query_id);
    wait->what.question = place_bytes(&place, what->question);
    return wait;
}

struct wait_end_value *
wait_end_value_new(uint64_t number, enum query_end end, struct slice result)
{
    struct wait_end_value *ended = memory_alloc(sizeof *ended + result.length);
    char *place = (char *)(ended + 1);
    *ended = (struct wait_end_value){
        .number = number, .end = end, .result = place_bytes(&place, result)};
    return ended;
}

/* --- as bytes ---- */

struct slice
wait_value_encode(const struct route_value *value, struct arena *arena)
{
    const struct wait_value *wait = container_of(value, struct wait_value, value);
    const struct run_wait_for *what = &wait->what;
    INTERNAL(RunWait) message = INTERNAL_VALUE(RUN_WAIT__INIT);
    INTERNAL(WaitingQuery) query = INTERNAL_VALUE(WAITING_QUERY__INIT);
    message.place = wait->place;
    message.number = wait->number;
    message.shard = wait->shard;
    message.domain_id = (char *)what->key.domain_id;
    message.workflow_id = (char *)what->key.workflow_id;
    message.run_id = (char *)what->key.run_id;
    message.next_event_id = what->next_event_id;
    if (what->query_id != NULL) {
        query.id = (char *)what->query_id;
        query.question = presence_make_bytes(what->question);
        message.query = &query;
    }
    return message_encode(arena, &message.base);
}

struct route_value *
wait_value_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(RunWait) * message;
    if (message_decode(arena, INTERNAL_TYPE(run_wait), bytes, &message) != NULL)
        return NULL;
    struct run_wait_for what = {
        .key = {message->domain_id, message->workflow_id, message->run_id},
        .next_event_id = message->next_event_id,
    };
    if (message->query != NULL) {
        what.query_id = message->query->id;
        what.question = presence_read_bytes(message->query->question);
    }
    struct wait_value *wait = wait_value_new(&what);
    wait->place = message->place;
    wait->number = message->number;
    wait->shard = message->shard;
    return &wait->value;
}

struct slice
wait_stop_encode(const struct route_value *value, struct arena *arena)
{
    const struct wait_stop_value *stop = container_of(value, struct wait_stop_value, value);
    INTERNAL(RunWaitStop) message = INTERNAL_VALUE(RUN_WAIT_STOP__INIT);
    message.number = stop->number;
    message.shard = stop->shard;
    return message_encode(arena, &message.base);
}

struct route_value *
wait_stop_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(RunWaitStop) * message;
    if (message_decode(arena, INTERNAL_TYPE(run_wait_stop), bytes, &message) != NULL)
        return NULL;
    struct wait_stop_value *stop = memory_zalloc(1, sizeof *stop);
    stop->number = message->number;
    stop->shard = message->shard;
    return &stop->value;
}

struct slice
wait_end_encode(const struct route_value *value, struct arena *arena)
{
    const struct wait_end_value *ended = container_of(value, struct wait_end_value, value);
    INTERNAL(RunWaitEnd) message = INTERNAL_VALUE(RUN_WAIT_END__INIT);
    message.number = ended->number;
    message.end = ended->end;
    message.result = presence_make_bytes(ended->result);
    return message_encode(arena, &message.base);
}

struct route_value *
wait_end_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(RunWaitEnd) * message;
    if (message_decode(arena, INTERNAL_TYPE(run_wait_end), bytes, &message) != NULL)
        return NULL;
    bool is_known = message->end <= QUERY_REFUSED; /* else of a later version: look again */
    enum query_end end = is_known ? (enum query_end)message->end : QUERY_FREE;
    return &wait_end_value_new(message->number, end, presence_read_bytes(message->result))->value;
}
