/* homes.h - where runs of one domain are active, as one loop knew it at one moment: what
 * domains_active_run says, for callers that ask about many runs, and on other threads.
 *
 * Nothing is copied but references: the record of the domain and the rows of the entity table are
 * immutable. A loop keeps the list of rows that it made for the first asker until a row changes. */
#ifndef CADENZA_DOMAIN_HOMES_H
#define CADENZA_DOMAIN_HOMES_H

#include "domain/domains.h"

struct homes;

/* `domain` is of this loop. No yield. The caller drops it, on this loop. */
struct homes *homes_new(struct domains *domains, struct domain *domain);
/* NULL is fine. */
void homes_drop(struct homes *homes);
/* The active cluster of runs that belong to the attribute; "": the domain has no such attribute, or
 * the row of the entity is not known. Pure, any thread; lives as long as the homes. */
const char *homes_find(const struct homes *homes, struct slice scope, struct slice name);
/* The region that an entity is in, if the attribute is one that the domain follows and its row is
 * known; else NULL. As above. */
const char *homes_find_region(const struct homes *homes, struct slice scope, struct slice name);
/* Does a run belong to an entity whose row is not known here, or whose region the domain does not
 * have? It is active somewhere: the cluster that wrote its last event knows. Pure, any
 * thread. */
bool homes_is_unknown(const struct homes *homes, struct slice scope, struct slice name);

#endif
