/* book.c - see book.h. */
#include "domain/book.h"

#include "base/check.h"

void
book_init(struct book *book)
{
    *book = (struct book){.names = tree_new(), .ids = map_new(), .entities = map_new()};
}

void
book_free(struct book *book)
{
    void *domain = NULL;
    size_t cursor = 0;
    while (map_next(book->ids, &cursor, NULL, &domain))
        domain_drop(domain);
    void *entity = NULL;
    cursor = 0;
    while (map_next(book->entities, &cursor, NULL, &entity))
        entity_drop(entity);
    entity_table_drop(book->table);
    tree_free(book->names);
    map_free(book->ids);
    map_free(book->entities);
}

bool
book_is_deleted(const struct domain *domain)
{
    return domain->record->domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

struct domain *
book_find_name(const struct book *book, const char *name)
{
    return tree_get(book->names, slice_text(name));
}

struct domain *
book_find_record(const struct book *book, const char *id)
{
    return map_get(book->ids, slice_text(id));
}

struct domain *
book_find_id(const struct book *book, const char *id)
{
    struct domain *domain = book_find_record(book, id);
    return domain == NULL || book_is_deleted(domain) ? NULL : domain;
}

void
book_reach(struct book *book, uint64_t notification_version)
{
    if (notification_version > book->notification_version)
        book->notification_version = notification_version;
}

static bool
is_newer(const struct domain *domain, const struct domain *other)
{
    return domain->record->notification_version > other->record->notification_version;
}

static void
take_out(struct book *book, struct domain *domain)
{
    if (book_find_name(book, domain->name) == domain)
        tree_remove(book->names, slice_text(domain->name));
    void *known = map_remove(book->ids, slice_text(domain->id));
    check(known == domain);
    domain_drop(domain);
}

void
book_enter(struct book *book, struct domain *domain)
{
    book_reach(book, (uint64_t)domain->record->notification_version);
    bool has_name = !book_is_deleted(domain);
    struct domain *old = book_find_record(book, domain->id);
    struct domain *namesake = has_name ? book_find_name(book, domain->name) : NULL;
    if (namesake == old)
        namesake = NULL;
    if ((old != NULL && is_newer(old, domain)) || (namesake != NULL && is_newer(namesake, domain)))
        return;
    domain_take(domain); /* it may be the one that is there */
    if (old != NULL)
        take_out(book, old);
    if (namesake != NULL)
        take_out(book, namesake);
    map_put(book->ids, slice_text(domain->id), domain);
    if (has_name)
        tree_put(book->names, slice_text(domain->name), domain);
    check(tree_count(book->names) <= map_count(book->ids));
}

void
book_restore(struct book *book, const struct book *truth, const char *id)
{
    struct domain *wrong = book_find_record(book, id);
    struct domain *right = book_find_record(truth, id);
    if (wrong != NULL)
        take_out(book, wrong);
    if (right != NULL)
        book_enter(book, right);
}

/* --- entities --------------------------------------------------------------------------------- */

static void
forget_table(struct book *book)
{
    entity_table_drop(book->table);
    book->table = NULL;
}

struct entity *
book_find_entity(const struct book *book, const char *type, const char *key)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(type, key, room, sizeof room);
    return name.length == 0 ? NULL : map_get(book->entities, name);
}

void
book_enter_entity(struct book *book, struct entity *entity)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(entity->type, entity->key, room, sizeof room);
    check(name.length > 0);
    book_reach(book, entity->notification_version);
    struct entity *old = map_get(book->entities, name);
    if (old != NULL && old->notification_version > entity->notification_version)
        return;
    entity_take(entity);
    forget_table(book);
    map_put(book->entities, name, entity);
    entity_drop(old);
}

void
book_restore_entity(struct book *book, const struct book *truth, const struct entity *entity)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(entity->type, entity->key, room, sizeof room);
    struct entity *right = map_get(truth->entities, name);
    forget_table(book);
    entity_drop(map_remove(book->entities, name));
    if (right != NULL)
        book_enter_entity(book, right);
}
