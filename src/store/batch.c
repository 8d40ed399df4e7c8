/* batch.c - batches as callers build them, commits as engines get them.
 *
 * A batch is a list of slices into memory of others. A commit is one block that needs nothing else:
 *
 *   struct commit | partition key | name of the partition | step step step ...
 *
 * and a step is a fixed head (verb, kind, lengths of key and value) followed by the two. It is
 * built once, when the batch is submitted; engines read it where it lies. */
#include "base/check.h"
#include "base/memory.h"
#include "store/engine.h"
#include "store/key.h"

struct step_head { /* an engine may keep it on disk: it does not change */
    uint8_t verb;
    uint8_t kind;
    uint8_t zeros[2];
    uint32_t key_length;
    uint32_t value_length;
};
_Static_assert(sizeof(struct step_head) == 12, "no gaps");

struct batch *
batch_new(struct arena *arena, struct partition partition, uint64_t guard_next)
{
    struct batch *batch = arena_make(arena, struct batch);
    batch->partition = partition;
    batch->guard_next = guard_next;
    batch->arena = arena;
    batch->last = &batch->first;
    return batch;
}

static void
batch_add(struct batch *batch, struct batch_step given)
{
    check(given.key.length <= UINT32_MAX);
    check(given.head.length + given.value.length <= UINT32_MAX);
    struct batch_step *step = arena_make(batch->arena, struct batch_step);
    *step = given;
    *batch->last = step;
    batch->last = &step->next;
    batch->count++;
    batch->bytes += given.key.length + given.head.length + given.value.length;
}

void
batch_put(struct batch *batch, enum row_kind kind, struct slice key, struct slice value)
{
    batch_put_headed(batch, kind, key, (struct slice){0}, value);
}

void
batch_put_headed(struct batch *batch, enum row_kind kind, struct slice key, struct slice head,
                 struct slice value)
{
    batch_add(batch,
              (struct batch_step){
                  .verb = BATCH_PUT, .kind = kind, .key = key, .head = head, .value = value});
}

void
batch_delete(struct batch *batch, enum row_kind kind, struct slice key)
{
    batch_add(batch, (struct batch_step){.verb = BATCH_DELETE, .kind = kind, .key = key});
}

void
batch_delete_range(struct batch *batch, enum row_kind kind, struct slice from, struct slice to)
{
    batch_add(batch, (struct batch_step){
                         .verb = BATCH_DELETE_RANGE, .kind = kind, .key = from, .value = to});
}

/* ---- commits ---- */

/* Appends bytes at *place and moves it; returns where they are now. */
static struct slice
append(uint8_t **place, const void *bytes, size_t length)
{
    uint8_t *start = *place;
    if (length > 0)
        memcpy(start, bytes, length);
    *place += length;
    return slice_of(start, length);
}

static void
append_step(uint8_t **place, const struct batch_step *step)
{
    struct step_head head;
    memset(&head, 0, sizeof head);
    head.verb = (uint8_t)step->verb;
    head.kind = (uint8_t)step->kind;
    head.key_length = (uint32_t)step->key.length;
    head.value_length = (uint32_t)(step->head.length + step->value.length);
    append(place, &head, sizeof head);
    append(place, step->key.data, step->key.length);
    append(place, step->head.data, step->head.length);
    append(place, step->value.data, step->value.length);
}

struct commit *
commit_new(struct store *store, const struct batch *batch, uint64_t guard_expected)
{
    struct slice name = batch->partition.name;
    struct slice key = partition_key(batch->partition, batch->arena);
    size_t steps_size = batch->count * sizeof(struct step_head) + batch->bytes;
    size_t size = sizeof(struct commit) + key.length + name.length + steps_size;

    struct commit *commit = memory_take(size);
    uint8_t *place = (uint8_t *)(commit + 1);
    *commit = (struct commit){.store = store, .partition = batch->partition, .bytes = size};
    list_init(&commit->message.node);
    commit->owner_loop = loop_self();
    commit->guard_expected = guard_expected;
    commit->guard_next = batch->guard_next;
    commit->step_count = batch->count;
    commit->partition_key = append(&place, key.data, key.length);
    commit->partition.name = append(&place, name.data, name.length);
    commit->steps = slice_of(place, steps_size);
    for (const struct batch_step *step = batch->first; step != NULL; step = step->next)
        append_step(&place, step);
    check(place == (uint8_t *)commit + size);
    return commit;
}

struct commit *
commit_new_confirmation(struct store *store, struct partition partition, uint64_t guard)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct commit *commit = commit_new(store, batch_new(arena, partition, guard), guard);
    commit->is_confirmation = true;
    return commit;
}

bool
commit_next_step(struct slice *steps, struct commit_step *step)
{
    if (steps->length == 0)
        return false;
    struct step_head head;
    check(steps->length >= sizeof head);
    memcpy(&head, steps->data, sizeof head);
    struct slice rest = slice_skip(*steps, sizeof head);
    check(rest.length >= (size_t)head.key_length + head.value_length);
    *step = (struct commit_step){.verb = (enum batch_verb)head.verb,
                                 .kind = (enum row_kind)head.kind,
                                 .key = slice_of(rest.data, head.key_length)};
    rest = slice_skip(rest, head.key_length);
    step->value = slice_of(rest.data, head.value_length);
    *steps = slice_skip(rest, head.value_length);
    return true;
}

void
commit_append_step(struct buffer *buffer, const struct commit_step *step)
{
    struct step_head head = {.verb = (uint8_t)step->verb,
                             .kind = (uint8_t)step->kind,
                             .key_length = (uint32_t)step->key.length,
                             .value_length = (uint32_t)step->value.length};
    buffer_append(buffer, slice_of(&head, sizeof head));
    buffer_append(buffer, step->key);
    buffer_append(buffer, step->value);
}

bool
commit_are_steps(struct slice steps)
{
    struct step_head head;
    while (steps.length >= sizeof head) {
        memcpy(&head, steps.data, sizeof head);
        steps = slice_skip(steps, sizeof head);
        size_t length = (size_t)head.key_length + head.value_length;
        if (head.verb > COMMIT_OWN_VERB || row_traits(head.kind) == NULL || length > steps.length)
            return false;
        steps = slice_skip(steps, length);
    }
    return steps.length == 0;
}

bool
commit_is_doomed(struct commit *commit)
{
    const struct commit_stream *stream = commit->stream;
    if (stream == NULL || !stream->is_broken)
        return false;
    commit->failed = true;
    commit->outcome = stream->outcome;
    commit->guard_found = stream->guard_found;
    return true;
}

void
commit_fail(struct commit *commit, enum error_kind outcome, uint64_t guard_found)
{
    check(outcome == ERR_FENCED || outcome == ERR_OUTCOME_UNKNOWN || outcome == ERR_UNAVAILABLE);
    commit->failed = true;
    commit->outcome = outcome;
    commit->guard_found = guard_found;
    struct commit_stream *stream = commit->stream;
    if (stream == NULL || stream->is_broken)
        return;
    stream->is_broken = true;
    stream->outcome = outcome;
    stream->guard_found = guard_found;
}

static void
deliver(struct loop_message *message)
{
    struct commit *commit = container_of(message, struct commit, message);
    check(commit->owner_loop == loop_self());
    commit->done(commit);
}

void
commit_answer(struct commit *commit)
{
    commit->message.deliver = deliver;
    loop_post_answer(commit->owner_loop, &commit->message);
}

/* Those of one loop go together. */
void
commit_answer_all(struct list *commits)
{
    while (!list_is_empty(commits)) {
        struct loop *owner_loop =
            list_entry(commits->next, struct commit, message.node)->owner_loop;
        struct list messages = LIST_INIT(messages);
        list_each_safe(node, commits) {
            struct commit *commit = list_entry(node, struct commit, message.node);
            if (commit->owner_loop != owner_loop)
                continue;
            commit->message.deliver = deliver;
            list_remove(node);
            list_push_back(&messages, node);
        }
        loop_post_answers(owner_loop, &messages);
    }
}
