/* inside.h - the owner of the domains from inside. Only files of domain/ include it.
 *
 * domains.c opens, closes and reads; reload.c reads the store and starts over after a failure;
 * change.c decides changes; publish.c tells them to the loops. All fields belong to loop 0 but
 * `books`, where loop i owns books[i]. */
#ifndef CADENZA_DOMAIN_INSIDE_H
#define CADENZA_DOMAIN_INSIDE_H

#include "base/list.h"
#include "domain/book.h"
#include "domain/domains.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

#define DOMAINS_CHANGES_MAX 4096 /* that wait to become durable */

struct domains {
    struct domains_options options;
    struct writer *writer;     /* NULL while the state is read again */
    struct book newest;        /* with what is decided but perhaps not durable */
    struct list undurable;     /* struct change, in order of ticket */
    struct latch writer_users; /* fibers that wait on the writer: it must not go away under them */
    struct fiber_cond ready;   /* the writer is there (again) */
    bool is_reloading;
    bool is_closing;
    struct latch letters;    /* on their way to or from other loops */
    struct latch fibers;     /* reload and refresh */
    struct fiber *refresher; /* NULL: none */
    unsigned loops;
    struct book books[]; /* one per loop: what is durable */
};

/* A decided change on its way: to the disk, then to every loop. */
struct telling {
    struct letter letter;
    struct change *change;
    struct book *book;
};
struct change {
    struct list node; /* in undurable */
    struct domains *domains;
    struct domain *domain; /* as it is afterwards; one reference */
    ticket_t ticket;
    unsigned untold;        /* loops that have not got it yet */
    struct fiber_cond told; /* untold became 0 */
    unsigned references;    /* who still looks at it: the fiber that asked, the way to the loops */
    struct telling tellings[];
};

struct change *change_new(struct domains *domains, struct domain *domain);
void change_drop(struct change *change);
/* Tells every loop; takes over one reference of the change, given back when all have it. */
void change_publish(struct change *change);

/* Reads everything again, in a fiber of its own, unless that is under way. */
void domains_start_reload(struct domains *domains);
/* Reads all domains and opens the writer. Yields. */
must_use struct error *domains_load(struct domains *domains, struct arena *arena);
/* Looks for changes by other hosts from time to time; a fiber. */
void domains_refresh(void *argument);

#endif
