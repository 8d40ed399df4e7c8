/* places.c - see places.h. */
#include "api/places.h"

#include "domain/active.h"

struct query_places
places_of(const struct domain *domain, struct arena *arena)
{
    struct query_places places = {0};
    if (domain == NULL)
        return places;
    const struct domain_place *all = domain_places(domain, arena, &places.count);
    places.is_one = !domain_is_active_active(domain);
    places.all = arena_zalloc(arena, places.count, sizeof *places.all);
    for (size_t i = 0; i < places.count; i++)
        places.all[i] = (struct query_place){all[i].scope, all[i].name, all[i].cluster_name};
    return places;
}
