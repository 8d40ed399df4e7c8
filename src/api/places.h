/* places.h - where the runs of a domain are active, for queries by ActiveCluster. */
#ifndef CADENZA_API_PLACES_H
#define CADENZA_API_PLACES_H

#include "domain/domain.h"
#include "visibility/query.h"

/* Of the domain as it is; all texts are in the arena. NULL: nobody knows the domain, so nothing is
 * anywhere. */
struct query_places places_of(const struct domain *domain, struct arena *arena);

#endif
