/* places.h - where the runs of a domain are active, for queries by ActiveCluster. */
#ifndef CADENZA_API_PLACES_H
#define CADENZA_API_PLACES_H

#include "domain/homes.h"
#include "visibility/query.h"

struct places {
    struct query_places query; /* for query_parse_placed; as long as the places live */
    struct homes *homes;       /* NULL: nobody knows the domain, so nothing is anywhere */
};

/* Of the domain as it is; NULL: nobody knows it. Stays where it is until it is dropped, by the loop
 * that made it. No yield. */
void places_make(struct places *places, struct domains *domains, struct domain *domain);
/* The same, and reads a query; what is known of homes is looked at only if the query asks. No
 * yield. Errors: as query_parse. */
struct places_wish {
    struct domains *domains;
    struct domain *domain;
    const struct attribute_set *attributes;
    const char *text;
};
must_use struct error *places_parse(struct places *places, const struct places_wish *wish,
                                    struct arena *arena, struct query *query);
/* Of runs of entities whose row has not been heard of here: each is at the cluster of this name. It
 * is no name that a cluster may have. */
#define PLACES_UNHEARD "?"
void places_drop(struct places *places); /* fit for scoped() */

#endif
