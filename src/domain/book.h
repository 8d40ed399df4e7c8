/* book.h - what one loop knows of the domains: by name and by id. Only files of domain/ include it.
 *
 * Each loop reads and writes its own book only, so there is no lock. The domains in it are shared
 * by all loops. The last record of a deleted domain stays, by its id alone: it says that what comes
 * late for this id has nothing to change any more. */
#ifndef CADENZA_DOMAIN_BOOK_H
#define CADENZA_DOMAIN_BOOK_H

#include "base/map.h"
#include "base/tree.h"
#include "domain/domain.h"
#include "domain/entity.h"

/* Two names of the greatest length that a setting may allow, nearly. */
#define ENTITY_NAME_MAX 2200

struct entity_table; /* homes.c */

struct book {
    struct tree *names;   /* name → struct domain, those that exist */
    struct map *ids;      /* id → struct domain, deleted ones too; one reference each */
    struct map *entities; /* entity_name → struct entity, deleted ones too; one reference each */
    struct entity_table *table; /* all of them, for who asks about many; NULL: nobody did lately */
    uint64_t notification_version;
};

void book_init(struct book *book);
void book_free(struct book *book);
/* Enters a record, over an older one of the same id; takes a reference. An older record than the
 * one there is left out: what arrives late changes nothing. A name that an older record of another
 * id has is taken from it: that one was deleted, and we have not heard of it yet. */
void book_enter(struct book *book, struct domain *domain);
/* Puts the record of one id back to what `truth` has, older or none: for decisions that came to
 * nothing, the newest first. */
void book_restore(struct book *book, const struct book *truth, const char *id);
/* The same two for rows of the entity table. */
void book_enter_entity(struct book *book, struct entity *entity);
void book_restore_entity(struct book *book, const struct book *truth, const struct entity *entity);
/* NULL: none; deleted ones are found. */
struct entity *book_find_entity(const struct book *book, const char *type, const char *key);
/* Gives a reference back; NULL is fine. */
void entity_table_drop(struct entity_table *table);
/* The book knows everything up to there. */
void book_reach(struct book *book, uint64_t notification_version);
/* NULL: none that exists. */
struct domain *book_find_name(const struct book *book, const char *name);
struct domain *book_find_id(const struct book *book, const char *id);
/* The same, deleted ones too. */
struct domain *book_find_record(const struct book *book, const char *id);
/* Is it the last record of a domain that is no more? */
bool book_is_deleted(const struct domain *domain);

#endif
