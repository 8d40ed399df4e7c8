/* book.h - what one loop knows of the domains: by name and by id. Only files of domain/ include it.
 *
 * Each loop reads and writes its own book only, so there is no lock. The domains in it are shared
 * by all loops. */
#ifndef CADENZA_DOMAIN_BOOK_H
#define CADENZA_DOMAIN_BOOK_H

#include "base/map.h"
#include "base/tree.h"
#include "domain/domain.h"

struct book {
    struct tree *names; /* name → struct domain, one reference each */
    struct map *ids;    /* id → the same */
    uint64_t notification_version;
};

void book_init(struct book *book);
void book_free(struct book *book);
/* Enters a domain, over an older record of the same id; takes a reference. An older record than the
 * one there is left out: what arrives late changes nothing. */
void book_enter(struct book *book, struct domain *domain);
/* NULL: none. */
struct domain *book_find_name(const struct book *book, const char *name);
struct domain *book_find_id(const struct book *book, const char *id);

#endif
