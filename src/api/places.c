/* places.c - see places.h. */
#include "api/places.h"

#include "domain/active.h"

/* What the homes do not know of is active somewhere all the same. */
static const char *
find(const void *context, struct slice scope, struct slice name)
{
    const char *cluster = homes_find(context, scope, name);
    return cluster[0] == '\0' && homes_is_unheard(context, scope, name) ? PLACES_UNHEARD : cluster;
}

void
places_make(struct places *places, struct domains *domains, struct domain *domain)
{
    *places = (struct places){.query.cluster_name = ""};
    if (domain == NULL)
        return;
    places->homes = homes_new(domains, domain);
    places->query = (struct query_places){
        .cluster_name = domain->record->domain->active_cluster_name, /* the homes keep it */
        .is_one = !domain_is_active_active(domain),
        .find = find,
        .context = places->homes,
    };
}

void
places_drop(struct places *places)
{
    homes_drop(places->homes);
    places->homes = NULL;
}
