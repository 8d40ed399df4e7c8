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

static void
begin(struct places *places, const struct domain *domain)
{
    *places = (struct places){.query.cluster_name = ""};
    if (domain == NULL)
        return;
    places->query = (struct query_places){
        .cluster_name = domain->record->domain->active_cluster_name, /* the homes keep it */
        .is_one = !domain_is_active_active(domain),
        .find = find,
    };
}

static void
take_homes(struct places *places, struct domains *domains, struct domain *domain)
{
    if (domain != NULL)
        places->query.context = places->homes = homes_new(domains, domain);
}

void
places_make(struct places *places, struct domains *domains, struct domain *domain)
{
    begin(places, domain);
    take_homes(places, domains, domain);
}

struct error *
places_parse(struct places *places, const struct places_wish *wish, struct arena *arena,
             struct query *query)
{
    begin(places, wish->domain);
    struct error *err =
        query_parse_placed(wish->text, wish->attributes, &places->query, arena, query);
    if (err == NULL && query->is_placed)
        take_homes(places, wish->domains, wish->domain);
    return err;
}

void
places_drop(struct places *places)
{
    homes_drop(places->homes);
    places->homes = NULL;
}
