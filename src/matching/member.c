/* member.c - a partition of a divided list: tells its root what it has, and lets its tasks visit
 * polls of other partitions. See family.h.
 *
 * What is told is gathered until the end of the tick: most tasks and polls have met by then. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"

/* --- notes ---------------------------------------------------------------------------------------
 */

struct note_letter {
    struct letter letter;
    struct matching *matching;
    struct address address; /* of who gets it; texts behind */
    int32_t from;
    struct note note;
};

static void member_hear(struct task_list *list, const struct note *note);

static void
note_arrived(struct letter *letter)
{
    struct note_letter *post = container_of(letter, struct note_letter, letter);
    struct place *place = place_of(post->matching, &post->address);
    letter_arrived(post->matching);
    if (!place->is_drained) {
        struct task_list *list = list_get(place, &post->address, LIST_NORMAL);
        bool is_for_root = post->note.kind != NOTE_INVITED && post->note.kind != NOTE_AWAKE;
        if (is_for_root)
            root_hear(list, post->from, &post->note);
        else
            member_hear(list, &post->note);
    }
    memory_free(post);
}

void
note_send(const struct task_list *from, int32_t to, struct note note)
{
    struct matching *matching = from->place->matching;
    check(to >= 0 && to < PARTITIONS_MAX);
    check(place_loop(from->place) == loop_self());
    size_t id_size = strlen(from->domain_id) + 1, name_size = strlen(from->name) + 1;
    struct note_letter *post = memory_alloc(sizeof *post + id_size + name_size);
    char *texts = (char *)(post + 1);
    memcpy(texts, from->domain_id, id_size);
    memcpy(texts + id_size, from->name, name_size);
    post->matching = matching;
    post->address = (struct address){texts, from->type, texts + id_size, to};
    post->from = from->partition;
    post->note = note;
    post->letter.deliver = note_arrived;
    matching_send(matching, place_loop(place_of(matching, &post->address)), &post->letter);
}

/* --- telling -------------------------------------------------------------------------------------
 */

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
    if (list->ask_count > 0)
        return true;
    return (list->waiting_count > 0 || has_rows(list)) && !timer_is_pending(&list->throttle);
}

/* Lets tasks visit polls of the partition that it is invited to. */
static void
go_visiting(struct task_list *list)
{
    struct member *member = &list->member;
    check(member->invited <= INVITED_MAX);
    while (member->invited > 0) {
        struct offer *offer = list_take_query(list);
        if (offer == NULL) {
            offer = list_first(list);
            if (offer == NULL || !list_has_token(list))
                break;
            list_unpark(list, offer);
        }
        check(offer->task->partition == list->partition && member->invited_to != list->partition);
        list_hand_out(list, offer);
        offer_visit(offer, member->invited_to);
        member->invited--;
        mark("task_visits_a_partition");
    }
}

static void
answer_invitation(struct task_list *list)
{
    struct member *member = &list->member;
    go_visiting(list);
    bool may_have_rows = !list->backlog.is_loaded || has_rows(list);
    if (member->invited > 0 && list->waiting_count == 0 && may_have_rows) {
        list->polled = clock_monotonic(); /* so they are read, and this goes on */
        backlog_kick(list);
        return;
    }
    size_t unused = member->invited;
    member->invited = 0;
    member->is_hungry_told = has_tasks(list) && list->poll_count == 0;
    note_send(list, 0,
              (struct note){.kind = NOTE_ANSWERED,
                            .peer = member->invited_to,
                            .count = unused,
                            .is_hungry = member->is_hungry_told});
}

static void
report(struct deferred *deferred)
{
    struct member *member = container_of(deferred, struct member, report);
    struct task_list *list = container_of(member, struct task_list, member);
    check(is_member(list));
    if (list->place->is_drained)
        return;
    if (member->invited > 0)
        answer_invitation(list);
    bool is_hungry = list->poll_count == 0 && has_tasks(list);
    if (is_hungry && !member->is_hungry_told && member->invited == 0) {
        member->is_hungry_told = true;
        note_send(list, 0, (struct note){.kind = NOTE_HUNGRY});
    }
    if (list->waiting_count == 0 && list->poll_count > member->idle_told) {
        member->idle_told = list->poll_count;
        note_send(list, 0, (struct note){.kind = NOTE_IDLE, .count = list->poll_count});
    }
}

void
member_ask_rate(struct task_list *list, double rate)
{
    if (list->partition == 0 && list->rate_asked != rate)
        list->member.refreshed = 0; /* all partitions are told */
    list->rate_asked = rate;
    const struct family *family = list->partition == 0 ? NULL : family_of(list);
    if (family != NULL && family->rate_asked != rate)
        note_send(list, 0, (struct note){.kind = NOTE_RATE, .rate = rate});
}

double
member_rate(const struct task_list *list, double rate)
{
    const struct family *family = is_member(list) ? family_of(list) : NULL;
    check(family == NULL || family->division.writes > 0);
    return family == NULL ? rate : rate / (double)family->division.writes;
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
    if (is_member(list) && !list->place->is_drained)
        loop_defer(&list->member.report);
}

static bool
is_drained(const struct task_list *list)
{
    const struct family *family = family_of(list);
    if (list->partition == 0 ||
        (family != NULL && division_has_write(&family->division, list->partition)))
        return false;
    return list->backlog.is_loaded && backlog_count(list) == 0 && list->backlog.rows == 0;
}

void
member_tend(struct task_list *list)
{
    if (!is_member(list) || list->place->is_drained)
        return;
    list->member.idle_told = 0;
    list->member.is_hungry_told = false;
    member_changed(list);
    if (is_drained(list))
        note_send(list, 0, (struct note){.kind = NOTE_DRAINED});
}

bool
member_is_looked_for(const struct task_list *list)
{
    return is_member(list);
}

/* --- being told ----------------------------------------------------------------------------------
 */

static void
member_hear(struct task_list *list, const struct note *note)
{
    struct member *member = &list->member;
    if (note->kind == NOTE_AWAKE) { /* by a root that knows nothing yet */
        member->idle_told = member->invited = 0;
        member->is_hungry_told = false;
        backlog_kick(list);
        member_changed(list);
        return;
    }
    check(note->kind == NOTE_INVITED && note->count > 0 && note->count <= INVITED_MAX);
    check(note->peer != list->partition);
    member->invited = note->count;
    member->invited_to = note->peer;
    answer_invitation(list);
}

void
member_host(struct task_list *list, struct offer *offer)
{
    struct member *member = &list->member;
    check(offer->errand == ERRAND_VISIT && offer->host == list->partition);
    check(offer->task->partition != list->partition);
    list->used = clock_monotonic();
    struct poll *poll = list_choose_poll(list, offer, true);
    if (poll != NULL) {
        member->idle_told -= member->idle_told > 0;
        list_give(list, offer, poll);
        return;
    }
    mark("task_visited_in_vain");
#ifdef CADENZA_PLANT_visitor_forgotten
    offer_free(offer);
    return;
#endif
    if (!list->place->is_drained)
        note_send(list, 0, (struct note){.kind = NOTE_IDLE, .count = 0});
    member->idle_told = list->poll_count; /* those that are there may get nothing */
    offer->errand = ERRAND_RETURN;
    offer_send(offer);
}
