/* member.c - a partition of a divided list: notifies its root of what it has, and lets its tasks
 * visit polls of other partitions. See partition_group.h.
 *
 * Notices are gathered until the end of the tick: most tasks and polls have met by then. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "wire/message.h"

/* --- notices ---------------------------------------------------------------------------------- */

struct notice_value {
    struct route_value value;
    struct list_id list_id; /* of who gets it; texts behind */
    int32_t from;
    struct notice notice;
};

static struct notice_value *
notice_new(const struct list_id *to, int32_t from, struct notice notice)
{
    size_t domain_size = strlen(to->domain_id) + 1, name_size = strlen(to->name) + 1;
    struct notice_value *post = memory_alloc(sizeof *post + domain_size + name_size);
    char *at = (char *)(post + 1);
    *post = (struct notice_value){.list_id = *to, .from = from, .notice = notice};
    post->list_id.domain_id = text_put(&at, to->domain_id, domain_size);
    post->list_id.name = text_put(&at, to->name, name_size);
    return post;
}

static struct slice
notice_encode(const struct route_value *value, struct arena *arena)
{
    const struct notice_value *post = container_of(value, struct notice_value, value);
    INTERNAL(ListId) list;
    INTERNAL(ListNotice) message = INTERNAL_VALUE(LIST_NOTICE__INIT);
    list_id_to_message(&post->list_id, &list);
    message.list = &list;
    message.from = post->from;
    message.kind = post->notice.kind;
    message.peer = post->notice.peer;
    message.count = post->notice.count;
    message.is_hungry = post->notice.is_hungry;
    message.rate = post->notice.rate;
    return message_encode(arena, &message.base);
}

static struct route_value *
notice_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListNotice) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_notice), bytes, &message);
    if (err != NULL || message->list == NULL || message->kind > NOTICE_RATE)
        return NULL;
    struct list_id to = list_id_from_message(message->list);
    struct notice notice = {.kind = (enum notice_kind)message->kind,
                            .peer = message->peer,
                            .count = message->count,
                            .is_hungry = message->is_hungry,
                            .rate = message->rate};
    return &notice_new(&to, message->from, notice)->value;
}

static void
notice_free(struct route_value *value)
{
    memory_free(container_of(value, struct notice_value, value));
}

static void member_receive(struct task_list *list, const struct notice *notice);

static void
notice_take(void *context, struct route_value *value)
{
    const struct notice_value *post = container_of(value, struct notice_value, value);
    struct loop_lists *loop_lists = loop_lists_here(context);
    if (!loop_lists->is_drained) {
        struct task_list *list = list_get(loop_lists, &post->list_id, LIST_NORMAL);
        bool is_for_root = post->notice.kind != NOTICE_INVITED && post->notice.kind != NOTICE_AWAKE;
        if (is_for_root)
            root_receive(list, post->from, &post->notice);
        else
            member_receive(list, &post->notice);
        task_list_check(list);
    }
    notice_free(value);
}

/* Lost: what polls and tasks say is sent again when the list is looked after; but a partition that
 * is woken, or was invited, is so once. So it is not lost within a cluster of one host. Twice: it
 * says what is so; where it counts polls or tasks, a visit in vain corrects that. */
const struct route_notice member_notice = {
    .name = "list.notice",
    .encode = notice_encode,
    .decode = notice_decode,
    .free = notice_free,
    .take = notice_take,
    .may_come_twice = true,
};

/* Not at once, even if the other one lives here: this one is in the middle of a step. */
void
notice_send(const struct task_list *from, int32_t to, struct notice notice)
{
    check(to >= 0 && to < PARTITIONS_MAX);
    check(loop_lists_are_here(from->loop_lists));
    struct list_id list_id = {from->domain_id, from->type, from->name, to};
    struct notice_value *post = notice_new(&list_id, from->partition, notice);
    route_tell_later(list_owner(&list_id), &from->loop_lists->matching->service, &member_notice,
                     &post->value);
}

/* --- notifying -------------------------------------------------------------------------------- */

static bool
is_member(const struct task_list *list)
{
    return list->partition > 0 || list->root != NULL;
}

static bool
has_rows(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return backlog->is_loaded && backlog->read < backlog->written;
}

/* Tasks that could go now, if there were a poll. */
static bool
has_tasks(const struct task_list *list)
{
    if (list->query_count > 0)
        return true;
    return (list->waiting_count > 0 || has_rows(list)) && !timer_is_pending(&list->throttle);
}

/* Lets tasks visit polls of the partition that it is invited to. */
static void
forward_tasks(struct task_list *list)
{
    struct member *member = &list->member;
    check(member->invited <= INVITED_MAX);
    while (member->invited > 0) {
        struct offer *offer = list_take_query(list);
        if (offer == NULL) {
            offer = list_first(list);
            if (offer == NULL || !list_has_token(list))
                break;
            list_remove_waiting(list, offer);
        }
        check(offer->task->partition == list->partition && member->invited_to != list->partition);
        list_hand_out(list, offer);
        offer_forward(offer, member->invited_to);
        member->invited--;
        probe("task_visits_a_partition");
    }
}

static void
answer_invitation(struct task_list *list)
{
    struct member *member = &list->member;
    forward_tasks(list);
    bool may_have_rows = !list->backlog.is_loaded || has_rows(list);
    if (member->invited > 0 && list->waiting_count == 0 && may_have_rows) {
        list->polled = clock_monotonic(); /* so they are read, and this goes on */
        backlog_kick(list);
        return;
    }
    size_t unused = member->invited;
    member->invited = 0;
    member->is_hungry_reported = has_tasks(list) && list->poll_count == 0;
    notice_send(list, 0,
                (struct notice){.kind = NOTICE_ANSWERED,
                                .peer = member->invited_to,
                                .count = unused,
                                .is_hungry = member->is_hungry_reported});
}

static void
report(struct deferred *deferred)
{
    struct member *member = container_of(deferred, struct member, report);
    struct task_list *list = container_of(member, struct task_list, member);
    check(is_member(list));
    if (list->loop_lists->is_drained)
        return;
    if (member->invited > 0)
        answer_invitation(list);
    bool is_hungry = list->poll_count == 0 && has_tasks(list);
    if (is_hungry && !member->is_hungry_reported && member->invited == 0) {
        member->is_hungry_reported = true;
        notice_send(list, 0, (struct notice){.kind = NOTICE_HUNGRY});
    }
    if (list->waiting_count == 0 && list->poll_count > member->idle_reported) {
        member->idle_reported = list->poll_count;
        notice_send(list, 0, (struct notice){.kind = NOTICE_IDLE, .count = list->poll_count});
    }
    task_list_check(list);
}

void
member_request_rate(struct task_list *list, double rate)
{
    if (list->partition == 0 && list->rate_requested != rate)
        list->member.refreshed = 0; /* all partitions are told */
    list->rate_requested = rate;
    const struct partition_group *partition_group =
        list->partition == 0 ? NULL : partition_group_of(list);
    if (partition_group != NULL && partition_group->rate_requested != rate)
        notice_send(list, 0, (struct notice){.kind = NOTICE_RATE, .rate = rate});
}

double
member_rate(const struct task_list *list, double rate)
{
    const struct partition_group *partition_group =
        is_member(list) ? partition_group_of(list) : NULL;
    check(partition_group == NULL || partition_group->division.writes > 0);
    return partition_group == NULL ? rate : rate / (double)partition_group->division.writes;
}

void
member_init(struct task_list *list)
{
    list->member.report = (struct deferred)DEFERRED_INIT(list->member.report, report);
    timer_init(&list->member.scaler.timer, root_scale);
}

void
member_free(struct task_list *list)
{
    loop_undefer(&list->member.report);
    timer_stop(&list->member.scaler.timer);
    root_free(list);
}

void
member_changed(struct task_list *list)
{
    if (is_member(list) && !list->loop_lists->is_drained)
        loop_defer(&list->member.report);
}

static bool
is_drained(const struct task_list *list)
{
    const struct partition_group *partition_group = partition_group_of(list);
    if (list->partition == 0 || (partition_group != NULL &&
                                 division_has_write(&partition_group->division, list->partition)))
        return false;
    return list->backlog.is_loaded && backlog_count(list) == 0 && list->backlog.rows == 0;
}

void
member_tend(struct task_list *list)
{
    if (!is_member(list) || list->loop_lists->is_drained)
        return;
    list->member.idle_reported = 0;
    list->member.is_hungry_reported = false;
    member_changed(list);
    if (is_drained(list))
        notice_send(list, 0, (struct notice){.kind = NOTICE_EMPTY});
}

bool
member_is_wanted_elsewhere(const struct task_list *list)
{
    return is_member(list);
}

/* --- being notified --------------------------------------------------------------------------- */

static void
member_receive(struct task_list *list, const struct notice *notice)
{
    struct member *member = &list->member;
    if (notice->kind == NOTICE_AWAKE) { /* by a root that knows nothing yet */
        member->idle_reported = member->invited = 0;
        member->is_hungry_reported = false;
        backlog_kick(list);
        member_changed(list);
        return;
    }
    check(notice->kind == NOTICE_INVITED && notice->count > 0 && notice->count <= INVITED_MAX);
    check(notice->peer != list->partition);
    member->invited = notice->count;
    member->invited_to = notice->peer;
    answer_invitation(list);
}

void
member_take_forwarded(struct task_list *list, struct offer *offer)
{
    struct member *member = &list->member;
    check(offer->offer_action == OFFER_FORWARD && offer->host == list->partition);
    check(offer->task->partition != list->partition);
    list->used = clock_monotonic();
    struct waiting_poll *poll = list_choose_poll(list, offer, true);
    if (poll != NULL) {
        member->idle_reported -= member->idle_reported > 0;
        list_give(list, offer, poll);
        return;
    }
    probe("task_visited_in_vain");
#ifdef CADENZA_FAULT_visitor_forgotten
    offer_free(offer);
    return;
#endif
    if (!list->loop_lists->is_drained)
        notice_send(list, 0, (struct notice){.kind = NOTICE_IDLE, .count = 0});
    member->idle_reported = list->poll_count; /* those that are there may get nothing */
    offer->offer_action = OFFER_RETURN;
    offer_send(offer);
}
