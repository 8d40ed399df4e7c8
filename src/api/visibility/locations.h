/* locations.h - where the runs of a domain are active, for queries by ActiveCluster. */
#ifndef CADENZA_API_VISIBILITY_LOCATIONS_H
#define CADENZA_API_VISIBILITY_LOCATIONS_H

#include "domain/homes.h"
#include "visibility/query.h"

struct locations {
    struct query_clusters query; /* for query_parse_active; as long as the locations live */
    struct homes *homes;         /* NULL: the domain is not known, or the query does not ask */
};

/* Of the domain as it is now; NULL: it is not known. `locations` must be zero before, and stay
 * where it is until locations_drop, on the same loop. No yield. */
void locations_make(struct locations *locations, struct domains *domains, struct domain *domain);
/* The same, and parses a query; homes are collected only if the query asks for them. No yield.
 * Errors: as query_parse. */
struct locations_spec {
    struct domains *domains;
    struct domain *domain;
    const struct attribute_set *attributes;
    const char *text;
};
must_use struct error *locations_parse(struct locations *locations,
                                       const struct locations_spec *spec, struct arena *arena,
                                       struct query *query);
/* Runs of entities whose row has not been replicated to here are in a cluster of this name, which
 * no real cluster may have. */
#define LOCATION_UNKNOWN "?"
/* Lets go of the homes; of zero nothing happens. For scoped(). */
void locations_drop(struct locations *locations);

#endif
