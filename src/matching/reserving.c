/* reserving.c - reservations at the place of their shard, and the way to the list and back. See
 * reservation.c.
 *
 *     shard's place                           list
 *     matching_reserve    ── list.reserve ──▶ has a poll for it, or not
 *                         ◀─ list.reserved ── granted or refused
 *     matching_end_reservation ── list.delivered, list.released ──▶ the poll goes home or waits on
 *
 * A reservation is in the table of its place until it is ended. The shard waits for the answer but
 * a moment: then it goes on without. A poll that is granted after that is released at once. */
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "wire/message.h"

static unsigned
this_place(void)
{
    return route_place_here();
}

/* --- the end: to the list ---- */

struct reservation_end_value {
    struct route_value value;
    struct waiter shard, poll;
    struct reservation_outcome outcome;
};

static struct slice
end_encode(const struct route_value *value, struct arena *arena)
{
    const struct reservation_end_value *end =
        container_of(value, struct reservation_end_value, value);
    const struct reservation_outcome *outcome = &end->outcome;
    INTERNAL(Task) task;
    INTERNAL(ListReservationEnd) message = INTERNAL_VALUE(LIST_RESERVATION_END__INIT);
    message.place = end->shard.place;
    message.number = end->shard.number;
    message.poll_place = end->poll.place;
    message.poll_number = end->poll.number;
    if (outcome->task != NULL) {
        task = task_to_message(outcome->task);
        message.task = &task;
        message.request_id = (char *)outcome->request_id;
        message.start = start_to_message(end->value.service->context, outcome->task, outcome->start,
                                         outcome->start_bytes, arena);
    }
    return message_encode(arena, &message.base);
}

static struct reservation_end_value *
end_new(struct waiter shard, struct waiter poll)
{
    struct reservation_end_value *end = memory_zalloc(1, sizeof *end);
    end->shard = shard;
    end->poll = poll;
    return end;
}

static void
read_outcome(const INTERNAL(ListReservationEnd) * message, struct reservation_outcome *outcome)
{
    outcome->arena = arena_new(1024);
    outcome->task = task_copy_message(message->task, outcome->arena);
    outcome->request_id = arena_text(outcome->arena, message->request_id);
    outcome->start_bytes =
        arena_slice(outcome->arena, slice_of(message->start.data, message->start.len));
}

static struct route_value *
end_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    INTERNAL(ListReservationEnd) * message;
    struct error *err = message_decode_as(scratch, ERR_INTERNAL,
                                          INTERNAL_TYPE(list_reservation_end), bytes, &message);
    if (err != NULL)
        return NULL;
    struct reservation_end_value *end =
        end_new((struct waiter){message->place, message->number},
                (struct waiter){message->poll_place, message->poll_number});
    if (message->task != NULL)
        read_outcome(message, &end->outcome);
    return &end->value;
}

static void
end_free(struct route_value *value)
{
    struct reservation_end_value *end = container_of(value, struct reservation_end_value, value);
    if (end->outcome.arena != NULL)
        arena_free(end->outcome.arena);
    memory_free(end);
}

static void
end_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    struct reservation_end_value *end = container_of(value, struct reservation_end_value, value);
    struct reservation_outcome *outcome = &end->outcome;
    struct waiting_poll *poll = waiting_poll_find(loop_lists_here(matching), end->poll);
    bool is_its = poll != NULL && poll->reserved_by.place == end->shard.place &&
                  poll->reserved_by.number == end->shard.number;
    if (outcome->start_bytes.length > 0)
        outcome->start =
            start_from_message(matching, outcome->task, outcome->start_bytes, outcome->arena);
    if (is_its && outcome->task != NULL) {
        reservation_give(poll, outcome);
        outcome->arena = NULL;
    } else if (is_its) {
        reservation_release(poll);
    } else if (outcome->task != NULL) { /* it took too long: the list has its poll back */
        task_of_nobody(matching, outcome->task, outcome->start != NULL);
    }
    end_free(value);
}

/* With a task that is started. Lost: the timeouts of its run would have to find that it went to
 * nobody. So it is not lost within a cluster of one host. Twice: the poll is not reserved any more.
 */
const struct route_notice delivered_notice = {
    .name = "list.delivered",
    .encode = end_encode,
    .decode = end_decode,
    .free = end_free,
    .take = end_take,
    .may_come_twice = true,
};

/* Without one. Lost: the list takes its poll back after a time. Twice: the poll is not reserved any
 * more, or by another one. */
const struct route_notice released_notice = {
    .name = "list.released",
    .encode = end_encode,
    .decode = end_decode,
    .free = end_free,
    .take = end_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

static void
send_end(struct matching *matching, struct owner list, struct reservation_end_value *end)
{
    end->value.service = &matching->service;
    route_tell_surely(list, &matching->service,
                      end->outcome.task == NULL ? &released_notice : &delivered_notice,
                      &end->value);
}

/* --- the answer: to the shard's place ---- */

struct reservation_answer {
    struct route_value value;
    uint64_t number;
    bool is_granted;
    struct owner list;
    struct waiter poll;
    char identity[]; /* of who polls */
};

static struct reservation_answer *
answer_new(uint64_t number, struct owner list, const char *identity)
{
    size_t size = identity == NULL ? 0 : strlen(identity) + 1;
    struct reservation_answer *answer = memory_alloc(sizeof *answer + size);
    *answer =
        (struct reservation_answer){.number = number, .is_granted = identity != NULL, .list = list};
    if (size > 0)
        memcpy(answer->identity, identity, size);
    return answer;
}

static struct slice
answer_encode(const struct route_value *value, struct arena *arena)
{
    const struct reservation_answer *answer = container_of(value, struct reservation_answer, value);
    INTERNAL(ListReserved) message = INTERNAL_VALUE(LIST_RESERVED__INIT);
    message.number = answer->number;
    message.is_granted = answer->is_granted;
    message.identity = answer->is_granted ? (char *)answer->identity : "";
    message.poll_place = answer->poll.place;
    message.poll_number = answer->poll.number;
    message.list = answer->list.number;
    return message_encode(arena, &message.base);
}

static struct route_value *
answer_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListReserved) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_reserved), bytes, &message);
    if (err != NULL)
        return NULL;
    struct reservation_answer *answer = answer_new(message->number, owner_of_list(message->list),
                                                   message->is_granted ? message->identity : NULL);
    answer->poll = (struct waiter){message->poll_place, message->poll_number};
    return &answer->value;
}

static void
answer_free(struct route_value *value)
{
    memory_free(container_of(value, struct reservation_answer, value));
}

static void
reservation_close(struct loop_lists *loop_lists, struct reservation *reservation)
{
    void *removed = map64_remove(loop_lists->reservations, reservation->number);
    check(removed == reservation);
    timer_stop(&reservation->timer);
    reservation->number = 0;
}

/* Nobody waits for it any more. */
static void
release_late(struct matching *matching, const struct reservation_answer *answer)
{
    probe("reservation_granted_too_late");
    struct waiter shard = {this_place(), answer->number};
    send_end(matching, answer->list, end_new(shard, answer->poll));
}

static void
note_grant(struct reservation *reservation, struct reservation_answer *answer)
{
    timer_stop(&reservation->timer);
    reservation->answer = answer;
    reservation->identity = answer->identity;
    reservation->owner = answer->list;
    reservation->poll_place = answer->poll.place;
    reservation->poll_number = answer->poll.number;
}

static void
answer_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    struct loop_lists *loop_lists = loop_lists_here(matching);
    struct reservation_answer *answer = container_of(value, struct reservation_answer, value);
    struct reservation *reservation = map64_get(loop_lists->reservations, answer->number);
    bool is_open = reservation != NULL && reservation->answer == NULL;
    bool is_again = reservation != NULL && !is_open && answer->is_granted &&
                    reservation->poll_place == answer->poll.place &&
                    reservation->poll_number == answer->poll.number;
    if (!is_open && answer->is_granted && !is_again)
        release_late(matching, answer);
    if (is_open && answer->is_granted)
        note_grant(reservation, answer);
    else
        answer_free(value);
    if (!is_open)
        return;
    if (reservation->identity == NULL)
        reservation_close(loop_lists, reservation);
    if (!reservation->is_asking)
        reservation->answered(reservation);
}

/* Lost: the shard goes on without, and the list takes the poll back after a time. Twice: it is the
 * same poll; after the end of the reservation it is released once more. */
const struct route_notice reserved_notice = {
    .name = "list.reserved",
    .encode = answer_encode,
    .decode = answer_decode,
    .free = answer_free,
    .take = answer_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

/* --- the request: to the list ---- */

struct reservation_request {
    struct route_value value;
    struct waiter shard;
    struct owner list;
    struct list_id list_id; /* texts behind */
};

static struct reservation_request *
request_new(const struct list_id *list_id, struct waiter shard)
{
    size_t domain_size = strlen(list_id->domain_id) + 1, name_size = strlen(list_id->name) + 1;
    struct reservation_request *request = memory_alloc(sizeof *request + domain_size + name_size);
    char *at = (char *)(request + 1);
    *request = (struct reservation_request){
        .shard = shard, .list = list_owner(list_id), .list_id = *list_id};
    request->list_id.domain_id = text_put(&at, list_id->domain_id, domain_size);
    request->list_id.name = text_put(&at, list_id->name, name_size);
    return request;
}

static struct slice
request_encode(const struct route_value *value, struct arena *arena)
{
    const struct reservation_request *request =
        container_of(value, struct reservation_request, value);
    INTERNAL(ListId) list;
    list_id_to_message(&request->list_id, &list);
    INTERNAL(ListReserve) message = INTERNAL_VALUE(LIST_RESERVE__INIT);
    message.place = request->shard.place;
    message.number = request->shard.number;
    message.list = &list;
    return message_encode(arena, &message.base);
}

static struct route_value *
request_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListReserve) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_reserve), bytes, &message);
    if (err != NULL || message->list == NULL)
        return NULL;
    struct list_id list_id = list_id_from_message(message->list);
    return &request_new(&list_id, (struct waiter){message->place, message->number})->value;
}

static void
request_free(struct route_value *value)
{
    memory_free(container_of(value, struct reservation_request, value));
}

static void
request_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    const struct reservation_request *request =
        container_of(value, struct reservation_request, value);
    struct waiting_poll *poll =
        reservation_grant(loop_lists_here(matching), &request->list_id, request->shard);
    struct reservation_answer *answer =
        answer_new(request->shard.number, request->list, poll == NULL ? NULL : poll->identity);
    if (poll != NULL)
        answer->poll = poll->caller;
    route_tell_surely(owner_at_place(request->shard.place), &matching->service, &reserved_notice,
                      &answer->value);
    request_free(value);
}

/* Lost: the shard goes on without. Twice: a second poll is granted to a reservation that has one,
 * and released. */
const struct route_notice reserve_notice = {
    .name = "list.reserve",
    .encode = request_encode,
    .decode = request_decode,
    .free = request_free,
    .take = request_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

/* --- the interface ---- */

static void
no_answer_came(struct timer *timer)
{
    struct reservation *reservation = container_of(timer, struct reservation, timer);
    check(reservation->identity == NULL && reservation->answer == NULL);
    probe("reservation_not_answered");
    reservation_close(reservation->loop_lists, reservation);
    reservation->answered(reservation);
}

static struct list_id
list_of(struct loop_lists *loop_lists, const struct reservation *reservation)
{
    struct task task = {.type = reservation->type,
                        .kind = reservation->kind,
                        .domain_id = reservation->domain_id,
                        .list = reservation->list};
    return (struct list_id){.domain_id = reservation->domain_id,
                            .type = reservation->type,
                            .name = reservation->list,
                            .partition = partition_group_choose_write(loop_lists, &task)};
}

enum reservation_end
matching_reserve(struct matching *matching, struct reservation *reservation)
{
    struct loop_lists *loop_lists = loop_lists_here(matching);
    check(reservation->number == 0 && reservation->identity == NULL);
    if (atomic_load(&matching->is_shutting_down))
        return RESERVATION_REFUSED;
    struct list_id list_id = list_of(loop_lists, reservation);
    reservation->loop_lists = loop_lists;
    reservation->number = ++loop_lists->reservation_newest;
    timer_init(&reservation->timer, no_answer_came);
    map64_put(loop_lists->reservations, reservation->number, reservation);
    struct waiter shard = {this_place(), reservation->number};
    struct reservation_request *request = request_new(&list_id, shard);
    reservation->is_asking = true;
    bool is_asked = route_tell(request->list, &matching->service, &reserve_notice, &request->value);
    reservation->is_asking = false;
    if (!is_asked) {
        request_free(&request->value);
        reservation_close(loop_lists, reservation);
    }
    if (reservation->number == 0)
        return RESERVATION_REFUSED;
    if (reservation->identity != NULL)
        return RESERVATION_GRANTED;
    timer_start(&reservation->timer, clock_monotonic() + RESERVE_PATIENCE);
    return RESERVATION_REQUESTED;
}

void
matching_end_reservation(struct matching *matching, struct reservation *reservation)
{
    struct loop_lists *loop_lists = loop_lists_here(matching);
    check(reservation->identity != NULL && reservation->answer != NULL);
    struct waiter shard = {this_place(), reservation->number};
    struct waiter poll = {reservation->poll_place, reservation->poll_number};
    struct reservation_end_value *end = end_new(shard, poll);
    end->outcome = (struct reservation_outcome){.task = reservation->task,
                                                .request_id = reservation->request_id,
                                                .start = reservation->start,
                                                .arena = reservation->arena};
    struct owner list = reservation->owner;
    reservation_close(loop_lists, reservation);
    memory_free(reservation->answer);
    memory_free(reservation);
    send_end(matching, list, end);
}
