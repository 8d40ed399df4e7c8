/* publish.c - a durable change goes to every loop, and comes back when it was entered there.
 *
 * One loop message per other loop, there and back: the loop enters the change in its cache and
 * returns the message, so that all counting is done on loop 0 and needs no atomics. Messages of one
 * sender arrive in order, so every loop sees the changes in order of the notification version.
 *
 * This is the process showing itself a record, and no message between owners: what crosses is an
 * immutable record with references that any loop may drop, and the counting that only loop 0 looks
 * at. To another host a change is its row in the log of the store: that host looks for rows from
 * time to time and whenever it has to (domains_refresh, domains_reach), so whatever it is not told
 * it learns later. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"

/* On loop 0, until it is on its way. */
static void
change_check(const struct change *change)
{
    check(change->references > 0 && change->loops_left == change->domains->loops);
    check(change->domain == NULL || change->entity_count == 0); /* one or the other */
    check((change->entities == NULL) == (change->entity_count == 0));
    for (size_t i = 0; CHECK_DEEPLY && i < change->entity_count; i++)
        check(change->entities[i]->notification_version == change->version);
}

struct change *
change_new(struct domains *domains, struct domain *domain, uint64_t version)
{
    check(version > 0 || domain == NULL);
    struct change *change =
        memory_zalloc(1, sizeof *change + domains->loops * sizeof change->change_messages[0]);
    list_init(&change->node);
    change->domains = domains;
    change->domain = domain == NULL ? NULL : domain_take(domain);
    change->version = version;
    change->loops_left = domains->loops;
    change->references = 1;
    fiber_cond_init(&change->known_everywhere);
    return change;
}

struct change *
change_new_entities(struct domains *domains, STORED(EntityRecord) *const *records, size_t count,
                    uint64_t version)
{
    check(count > 0 && version > 0);
    struct change *change = change_new(domains, NULL, version);
    change->entities = memory_zalloc(count, sizeof(struct entity *));
    change->entity_count = count;
    for (size_t i = 0; i < count; i++) {
        STORED(EntityRecord) row = *records[i];
        row.notification_version = (int64_t)version;
        change->entities[i] = entity_from_record(&row);
    }
    return change;
}

void
change_drop(struct change *change)
{
    check(change->references > 0);
    if (--change->references > 0)
        return;
    domain_drop(change->domain);
    for (size_t i = 0; i < change->entity_count; i++)
        entity_drop(change->entities[i]);
    memory_free(change->entities);
    memory_free(change);
}

void
change_enter(const struct change *change, struct domain_cache *domain_cache)
{
    if (change->domain != NULL)
        domain_cache_enter(domain_cache, change->domain);
    for (size_t i = 0; i < change->entity_count; i++)
        domain_cache_enter_entity(domain_cache, change->entities[i]);
    domain_cache_reach(domain_cache, change->version);
    domain_cache_check(domain_cache);
}

/* Loop 0: one more loop has it. */
static void
note_entered(struct change *change)
{
    check(route_is_here(owner_of_domains()) && change->loops_left > 0);
    if (--change->loops_left > 0)
        return;
    fiber_cond_broadcast(&change->known_everywhere);
    change_drop(change);
}

static void
message_returned(struct loop_message *message)
{
    struct change_message *change_message = container_of(message, struct change_message, message);
    struct domains *domains = change_message->change->domains;
    note_entered(change_message->change);
    latch_done(&domains->loop_messages);
}

static void
message_arrived(struct loop_message *message)
{
    struct change_message *change_message = container_of(message, struct change_message, message);
    loop_listeners_notify(change_message->change->domains, change_message->index,
                          change_message->change);
    message->deliver = message_returned;
    loop_post_answer(loop_at(0), message);
}

void
change_publish(struct change *change)
{
    struct domains *domains = change->domains;
    check(route_is_here(owner_of_domains()) && list_is_empty(&change->node));
    check(change->version >=
          domains->domain_caches[0].notification_version); /* in order, to every loop */
    change_check(change);
    for (unsigned i = 1; i < domains->loops; i++) {
        struct change_message *change_message = &change->change_messages[i];
        *change_message = (struct change_message){
            .change = change, .index = i, .message.deliver = message_arrived};
        latch_add(&domains->loop_messages, 1);
        /* Never refused: changes are bounded by DOMAINS_CHANGES_MAX, and so are these messages. */
        loop_post_answer(loop_at(i), &change_message->message);
    }
    loop_listeners_notify(domains, 0, change);
    if (domains->version_gauge != NULL)
        gauge_set(domains->version_gauge, (int64_t)domains->domain_caches[0].notification_version);
    note_entered(change);
}
