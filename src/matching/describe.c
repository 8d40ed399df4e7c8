/* describe.c - what is told about a list. See matching.h. */
#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

struct question {
    struct place *place;
    struct address address;
    bool has_status;
    struct arena *arena;
    API(PollerInfo) **pollers;
    size_t poller_count;
    API(TaskListStatus) *status;
};

static void
tell_pollers(struct task_list *list, struct question *question)
{
    pollers_forget_old(list);
    size_t count = map_count(list->pollers), cursor = 0;
    question->pollers = arena_zalloc(question->arena, count, sizeof *question->pollers);
    void *value;
    while (map_next(list->pollers, &cursor, NULL, &value)) {
        const struct poller *poller = value;
        API(PollerInfo) *info = message_new(question->arena, API_TYPE(poller_info));
        info->identity = arena_text(question->arena, poller->identity);
        info->rate_per_second = poller->rate;
        info->last_access_time = presence_make_timestamp(question->arena, poller->seen);
        question->pollers[question->poller_count++] = info;
    }
    check(question->poller_count == count);
}

/* All tasks up to this number came into memory. */
static int64_t
read_level(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return backlog->number_parked > backlog->read ? backlog->number_parked : backlog->read;
}

/* All tasks up to this number are done. */
static int64_t
ack_level(const struct task_list *list)
{
    int64_t level = read_level(list);
    if (!list_is_empty(&list->backlog.outstanding))
        level = list_entry(list->backlog.outstanding.next, struct outstanding, node)->number - 1;
    list_each(node, &list->waiting) {
        const struct offer *offer = list_entry(node, struct offer, node);
        if (offer->task->number <= level)
            level = offer->task->number - 1;
    }
    return level;
}

static void
tell_status(struct task_list *list, struct question *question)
{
    const struct backlog *backlog = &list->backlog;
    API(TaskListStatus) *status = message_new(question->arena, API_TYPE(task_list_status));
    status->backlog_count_hint = backlog_count(list);
    status->read_level = read_level(list);
    status->ack_level = ack_level(list);
    status->rate_per_second = list->limit.rate;
    status->empty = status->backlog_count_hint == 0;
    status->task_id_block = message_new(question->arena, API_TYPE(task_idblock));
    status->task_id_block->start_id = ((int64_t)backlog->range - 1) * TASK_BLOCK + 1;
    status->task_id_block->end_id = (int64_t)backlog->range * TASK_BLOCK;
    question->status = status;
}

/* What the store holds is a part of the answer; if it does not say, we tell what we know. */
static void
wait_loaded(struct task_list *list)
{
    list->users++;
    backlog_kick(list);
    while (!list->backlog.is_loaded && !list_is_sticky(list) && !list->place->is_drained &&
           !timer_is_pending(&list->backlog.retry)) {
        enum wake wake = fiber_cond_wait(&list->backlog.loaded, NEVER);
        if (wake != WAKE_READY)
            break;
    }
    list->users--;
}

static void
answer(void *argument)
{
    struct question *question = argument;
    struct place *place = question->place;
    struct task_list *list = list_find(place, &question->address);
    if (list == NULL && question->has_status)
        list = list_get(place, &question->address, LIST_NORMAL);
    if (list == NULL)
        return;
    if (question->has_status) {
        wait_loaded(list);
        tell_status(list, question);
    }
    tell_pollers(list, question);
}

struct error *
matching_describe(struct matching *matching, enum task_type type, const char *domain_id,
                  const char *list, bool has_status, struct arena *arena,
                  API(PollerInfo) ***pollers, size_t *poller_count, API(TaskListStatus) **status)
{
    struct address address = {domain_id, type, list, 0};
    struct question question = {.place = place_of(matching, &address),
                                .address = address,
                                .has_status = has_status,
                                .arena = arena};
    struct error *err = loop_call(place_loop(question.place), answer, &question, arena);
    if (err != NULL)
        return err;
    *pollers = question.pollers;
    *poller_count = question.poller_count;
    *status = question.status;
    return NULL;
}
