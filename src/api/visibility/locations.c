/* locations.c - see locations.h. */
#include "api/visibility/locations.h"

#include "base/check.h"
#include "domain/active.h"

/* A run whose home is not known is active somewhere all the same. */
static const char *
find(const void *context, struct slice scope, struct slice name)
{
    const char *cluster = homes_find(context, scope, name);
    return cluster[0] == '\0' && homes_is_unknown(context, scope, name) ? LOCATION_UNKNOWN
                                                                        : cluster;
}

static void
begin(struct locations *locations, const struct domain *domain)
{
    check(locations->homes == NULL); /* zero, or dropped */
    *locations = (struct locations){.query.cluster_name = ""};
    if (domain == NULL)
        return;
    locations->query = (struct query_clusters){
        .cluster_name = domain->record->domain->active_cluster_name, /* the homes keep it */
        .is_one = !domain_is_active_active(domain),
        .find = find,
    };
}

static void
fill_homes(struct locations *locations, struct domains *domains, struct domain *domain)
{
    if (domain != NULL)
        locations->query.context = locations->homes = homes_new(domains, domain);
}

void
locations_make(struct locations *locations, struct domains *domains, struct domain *domain)
{
    begin(locations, domain);
    fill_homes(locations, domains, domain);
}

struct error *
locations_parse(struct locations *locations, const struct locations_spec *spec, struct arena *arena,
                struct query *query)
{
    begin(locations, spec->domain);
    struct error *err =
        query_parse_active(spec->text, spec->attributes, &locations->query, arena, query);
    if (err == NULL && query->asks_active_cluster)
        fill_homes(locations, spec->domains, spec->domain);
    return err;
}

void
locations_drop(struct locations *locations)
{
    homes_drop(locations->homes);
    locations->homes = NULL;
}
