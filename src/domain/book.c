/* book.c - see book.h. */
#include "domain/book.h"

#include "base/check.h"

void
book_init(struct book *book)
{
    *book = (struct book){.names = tree_new(), .ids = map_new()};
}

void
book_free(struct book *book)
{
    for (struct tree_row *row = tree_first(book->names); row != NULL; row = tree_next(row))
        domain_drop(row->value);
    tree_free(book->names);
    map_free(book->ids);
}

struct domain *
book_find_name(const struct book *book, const char *name)
{
    return tree_get(book->names, slice_text(name));
}

struct domain *
book_find_id(const struct book *book, const char *id)
{
    return map_get(book->ids, slice_text(id));
}

void
book_enter(struct book *book, struct domain *domain)
{
    uint64_t version = (uint64_t)domain->record->notification_version;
    struct domain *old = book_find_id(book, domain->id);
    if (old != NULL && (uint64_t)old->record->notification_version > version)
        return;
    check(old == NULL || strcmp(old->name, domain->name) == 0);
    tree_put(book->names, slice_text(domain->name), domain_take(domain));
    map_put(book->ids, slice_text(domain->id), domain);
    domain_drop(old);
    if (version > book->notification_version)
        book->notification_version = version;
}
