/* mailbox.c - messages between loops: many push, the owner takes all at once. No lock.
 *
 * A push puts the message on a stack; the owner swaps the whole stack for an empty one and turns it
 * round, so messages of one sender arrive in order. Waking the owner costs a system call, so it is
 * done only when the owner sleeps, and by one sender. Nobody is missed: the owner first says that
 * it falls asleep and then looks at the stack, a sender first pushes and then looks whether it
 * sleeps; all four are sequentially consistent, so at least one of them sees the other.
 *
 * A loop wakes the owners at the end of its turn, for all that it posted: an owner that was woken
 * for the first message would be done with it, and asleep again, before the second comes. */
#include "base/check.h"
#include "fiber/linux/inside.h"

static void
mailbox_push(struct mailbox *mailbox, struct loop_message *message)
{
    struct list *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        message->node.next = newest;
    while (!atomic_compare_exchange_weak(&mailbox->newest, &newest, &message->node));
}

static void
wake_owner(struct linux_loop *loop)
{
    struct mailbox *mailbox = &loop->mailbox;
    if (atomic_load(&mailbox->is_sleeping) && atomic_exchange(&mailbox->is_sleeping, false))
        linux_loop_awake(loop);
}

void
mailbox_wake_owners(struct linux_loop *sender)
{
    struct platform *platform = sender->platform;
    for (unsigned i = 0; sender->has_posted && i < platform->loop_count; i++) {
        if (sender->posted_to[i])
            wake_owner(&platform->loops[i]);
        sender->posted_to[i] = false;
    }
    sender->has_posted = false;
}

/* After a push. */
static void
announce(struct linux_loop *loop)
{
    if (!loop_is_here()) {
        wake_owner(loop);
        return;
    }
    struct linux_loop *sender = linux_loop_self();
    sender->has_posted = sender->posted_to[loop->loop.head.index] = true;
}

bool
platform_post(struct loop *to, struct loop_message *message, bool is_bounded)
{
    struct linux_loop *loop = container_of(to, struct linux_loop, loop);
    struct mailbox *mailbox = &loop->mailbox;
    size_t waiting = atomic_fetch_add(&mailbox->count, 1);
    if (is_bounded && waiting >= LOOP_MAILBOX_MAX) {
        atomic_fetch_sub(&mailbox->count, 1);
        return false;
    }
    mailbox_push(mailbox, message);
    announce(loop);
    return true;
}

void
platform_post_all(struct loop *to, struct list *messages)
{
    struct linux_loop *loop = container_of(to, struct linux_loop, loop);
    struct list *node;
    while ((node = list_pop_front(messages)) != NULL) {
        atomic_fetch_add(&loop->mailbox.count, 1);
        mailbox_push(&loop->mailbox, list_entry(node, struct loop_message, node));
    }
    announce(loop);
}

/* Oldest first. */
static struct list *
mailbox_take(struct mailbox *mailbox)
{
    if (atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL)
        return NULL;
    struct list *newest = atomic_exchange(&mailbox->newest, NULL);
    struct list *oldest = NULL;
    while (newest != NULL) {
        struct list *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

void
mailbox_deliver(struct linux_loop *loop)
{
    size_t count = 0;
    for (struct list *node = mailbox_take(&loop->mailbox), *next; node != NULL; node = next) {
        next = node->next;
        list_init(node);
        struct loop_message *message = list_entry(node, struct loop_message, node);
        message->deliver(message); /* it may be gone now */
        count++;
    }
    if (count == 0)
        return;
    size_t waiting = atomic_fetch_sub(&loop->mailbox.count, count);
    check(waiting >= count);
}

bool
mailbox_fall_asleep(struct mailbox *mailbox)
{
    atomic_store(&mailbox->is_sleeping, true);
    return atomic_load(&mailbox->newest) == NULL;
}

void
mailbox_wake_up(struct mailbox *mailbox)
{
    atomic_store_explicit(&mailbox->is_sleeping, false, memory_order_relaxed);
}
