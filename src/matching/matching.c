/* matching.c - the interface of matching. See matching.h.
 *
 * A list lives where the hash of its name says; what is for it goes there as a value (values.h).
 * New offers and new polls may be refused when too much is on its way. What follows from something
 * accepted (a poll that comes back, a task that is returned, passed on or done) is never refused,
 * since what was accepted bounds it. */
#include "matching/matching.h"

#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"

/* --- where things live ------------------------------------------------------------------------ */

/* Partitions of one list are on loops side by side: a hot list uses them all. */
struct owner
list_owner(const struct list_id *list_id)
{
    return owner_of_list(route_list_hash(slice_text(list_id->domain_id), slice_text(list_id->name),
                                         (unsigned)list_id->type, (unsigned)list_id->partition));
}

struct list_id
list_id_of_task(const struct task *task)
{
    return (struct list_id){task->domain_id, task->type, task->list, task->partition};
}

void
task_find_partition(struct task *task, struct arena *arena)
{
    struct list_name name;
    if (task->kind != LIST_NORMAL || task->partition != 0 ||
        !list_name_parse(task->list, arena, &name))
        return;
    task->list = name.list;
    task->partition = name.partition;
}

struct loop_lists *
loop_lists_here(struct matching *matching)
{
    return &matching->per_loop[route_place_here()];
}

bool
loop_lists_are_here(const struct loop_lists *loop_lists)
{
    return loop_lists->place == route_place_here();
}

void
matching_count(struct counter *counter, uint64_t amount)
{
    if (counter != NULL)
        counter_add(counter, amount);
}

/* --- tasks ------------------------------------------------------------------------------------ */

atomic_size_t *
matching_share_of(struct matching *matching, const char *domain_id)
{
    return &matching->held_by[map_hash(slice_text(domain_id)) % DOMAIN_SHARES];
}

bool
matching_is_full(struct matching *matching, const char *domain_id)
{
    return atomic_load(&matching->held) >= TASKS_MAX ||
           atomic_load(matching_share_of(matching, domain_id)) >= TASKS_SHARE;
}

bool
matching_add(struct matching *matching, const struct task *task)
{
    if (atomic_load(&matching->is_shutting_down) || matching_is_full(matching, task->domain_id))
        return false;
    struct offer *offer = offer_new(matching, task, OFFER_ADD);
    offer->task->number = 0;
    if (offer->task->partition == 0)
        offer->task->partition =
            partition_group_choose_write(loop_lists_here(matching), offer->task);
    return offer_try_send(offer);
}

void
matching_return(struct matching *matching, const struct task *task)
{
    offer_send(offer_new(matching, task, OFFER_RETURN));
}

void
matching_finish(struct matching *matching, const struct task *task)
{
    if (task->row == 0 && task->number != 0)
        offer_send(offer_new(matching, task, OFFER_FINISH));
}
