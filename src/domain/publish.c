/* publish.c - a durable change goes to every loop, and comes back when it was entered there.
 *
 * One letter per other loop, there and back: the loop makes the change in its book and returns the
 * letter, so all counting is done on loop 0 and needs no atomics. Letters of one sender arrive in
 * order, so every loop sees the changes in the order of the notification version. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/inside.h"

struct change *
change_new(struct domains *domains, struct domain *domain, uint64_t version)
{
    check(version > 0 || domain == NULL);
    struct change *change =
        memory_zalloc(1, sizeof *change + domains->loops * sizeof change->tellings[0]);
    list_init(&change->node);
    change->domains = domains;
    change->domain = domain == NULL ? NULL : domain_take(domain);
    change->version = version;
    change->untold = domains->loops;
    change->references = 1;
    fiber_cond_init(&change->told);
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
change_enter(const struct change *change, struct book *book)
{
    if (change->domain != NULL)
        book_enter(book, change->domain);
    for (size_t i = 0; i < change->entity_count; i++)
        book_enter_entity(book, change->entities[i]);
    book_reach(book, change->version);
}

/* Loop 0: one more loop has it. */
static void
note_told(struct change *change)
{
    check(change->untold > 0);
    if (--change->untold > 0)
        return;
    fiber_cond_broadcast(&change->told);
    change_drop(change);
}

static void
letter_returned(struct letter *letter)
{
    struct telling *telling = container_of(letter, struct telling, letter);
    struct domains *domains = telling->change->domains;
    note_told(telling->change);
    latch_done(&domains->letters);
}

static void
letter_arrived(struct letter *letter)
{
    struct telling *telling = container_of(letter, struct telling, letter);
    audience_tell(telling->change->domains, telling->index, telling->change);
    letter->deliver = letter_returned;
    loop_post_answer(loop_at(0), letter);
}

void
change_publish(struct change *change)
{
    struct domains *domains = change->domains;
    check(loop_index(loop_self()) == 0 && list_is_empty(&change->node));
    check(change->version >= domains->books[0].notification_version); /* in order, to every loop */
    for (unsigned i = 1; i < domains->loops; i++) {
        struct telling *telling = &change->tellings[i];
        *telling = (struct telling){.change = change, .index = i, .letter.deliver = letter_arrived};
        latch_add(&domains->letters, 1);
        /* Never refused: changes are bounded by DOMAINS_CHANGES_MAX, and so are these letters. */
        loop_post_answer(loop_at(i), &telling->letter);
    }
    audience_tell(domains, 0, change);
    if (domains->version_shown != NULL)
        gauge_set(domains->version_shown, (int64_t)domains->books[0].notification_version);
    note_told(change);
}
