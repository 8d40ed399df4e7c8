/* removal_check.c - see removal_check.h.
 *
 * Two things can leave workflows without a home. An attribute that is removed while others stay:
 * its workflows are active nowhere (if none stays, the domain itself decides for them), and so are
 * those of entities in the region which the attribute stands for. And a cluster that leaves the
 * domain in the same update that moves it: what was done there last and is not replicated yet stays
 * there. In both cases visibility counts the open workflows that belong there.
 *
 * What is counted is what this cluster has; a workflow that starts in the moment between the count
 * and the change is not. */
#include "api/domain/removal_check.h"

#include <stdio.h>

#include "api/inside.h"
#include "api/visibility/locations.h"
#include "base/buffer.h"
#include "base/check.h"
#include "domain/active.h"
#include "engine/engine.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"
#include "wire/presence.h"

#define ATTRIBUTE_ROOM 2200 /* for a scope and a name; the most that both may have */

static void
append_text(struct buffer *query, const char *text)
{
    buffer_append_u8(query, '\'');
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\'' || *at == '\\')
            buffer_append_u8(query, *at == '\'' ? '\'' : '\\');
        buffer_append_u8(query, (uint8_t)*at);
    }
    buffer_append_u8(query, '\'');
}

/* Counts the open runs that are in a cluster, as `locations` has it. Yields. */
static struct error *
count_open(struct rpc_call *call, const struct domain *domain,
           const struct query_clusters *locations, const char *cluster, int64_t *count)
{
    const struct api_options *options = &api_of(call)->options;
    const char *id = arena_text(call->arena, domain->id);
    struct buffer query = {0};
    struct query parsed;
    buffer_append_text(&query, "CloseTime = missing AND ActiveCluster = ");
    append_text(&query, cluster);
    const char *text = arena_text_of(call->arena, buffer_slice(&query));
    buffer_free(&query);
    struct error *err =
        query_parse_active(text, registry_set(options->registry), locations, call->arena, &parsed);
    return err != NULL ? err
                       : visibility_count(options->visibility, id, &parsed, call->arena, count);
}

/* A run of an entity that this cluster does not know yet is active somewhere, perhaps just there.
 */
static struct error *
check_unknown_entities(struct rpc_call *call, struct domain *domain)
{
    int64_t open = 0;
    scoped(locations_drop) struct locations locations = {0};
    locations_make(&locations, api_of(call)->options.domains, domain);
    struct error *err = count_open(call, domain, &locations.query, LOCATION_UNKNOWN, &open);
    if (err != NULL || open == 0)
        return err;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "%lld open workflow%s of domain %s belong%s to entities that cluster %s has "
                     "not learnt of yet, and may lose their home; try again later, or force it.",
                     (long long)open, open == 1 ? "" : "s", domain->name, open == 1 ? "s" : "",
                     api_of(call)->options.group->current->name);
}

static bool
has_cluster(size_t count, API(ClusterReplicationConfiguration) *const *clusters, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(clusters[i]->cluster_name, name) == 0)
            return true;
    }
    return false;
}

/* A cluster that the domain is not in has none of its workflows: counting there proves nothing. */
static struct error *
check_countable(struct rpc_call *call, const struct domain *domain)
{
    const API(Domain) *record = domain->record->domain;
    const char *here = api_of(call)->options.group->current->name;
    if (has_cluster(record->n_clusters, record->clusters, here))
        return NULL;
    return error_new(
        call->arena, ERR_BAD_REQUEST,
        "Cluster %s does not belong to domain %s, so it cannot count the open workflows that "
        "would be affected; add it to the domain first, or force it.",
        here, record->name);
}

/* --- attributes ---- */

static bool
is_named(const char *scope, const char *name, const API(UpdateDomainRequest) *request)
{
    for (size_t i = 0; i < request->n_removed_attributes; i++) {
        const API(ClusterAttribute) *named = request->removed_attributes[i];
        if (strcmp(named->scope, scope) == 0 &&
            (named->name[0] == '\0' || strcmp(named->name, name) == 0))
            return true;
    }
    return false;
}

/* Are attributes removed while others stay? */
static bool
takes_some(const struct domain *domain, const API(UpdateDomainRequest) *request,
           struct arena *arena)
{
    size_t count, gone = 0;
    const struct domain_assignment *locations = domain_assignments(domain, arena, &count);
    check(count >= 1 && locations[0].scope == NULL); /* the domain itself is the first */
    for (size_t i = 1; i < count; i++)
        gone += is_named(locations[i].scope, locations[i].name, request);
    bool stays_active_active = gone + 1 < count || request->active_clusters != NULL;
    return gone > 0 && stays_active_active && !request->removes_all_attributes;
}

#define GOING "gone" /* the "cluster" of runs of what is removed, for the count */

struct going {
    const struct homes *homes;
    const API(UpdateDomainRequest) *request;
};

/* Is that what a run belongs to, or the region of the entity that it belongs to? */
static const char *
find_going(const void *context, struct slice scope, struct slice name)
{
    const struct going *going = context;
    char room[ATTRIBUTE_ROOM];
    const char *region = homes_find_region(going->homes, scope, name);
    if (region != NULL)
        return is_named(SCOPE_REGION, region, going->request) ? GOING : "";
    if (scope.length + name.length + 2 > sizeof room)
        return "";
    snprintf(room, sizeof room, "%.*s%c%.*s", (int)scope.length, (const char *)scope.data, '\0',
             (int)name.length, (const char *)name.data);
    return is_named(room, room + scope.length + 1, going->request) ? GOING : "";
}

static struct error *
count_going(struct rpc_call *call, struct domain *domain, const API(UpdateDomainRequest) *request,
            int64_t *open)
{
    scoped(locations_drop) struct locations locations = {0};
    locations_make(&locations, api_of(call)->options.domains, domain);
    struct going going = {locations.homes, request};
    struct query_clusters query = {.cluster_name = "", .find = find_going, .context = &going};
    return count_open(call, domain, &query, GOING, open);
}

static struct error *
check_attributes(struct rpc_call *call, struct domain *domain,
                 const API(UpdateDomainRequest) *request)
{
    int64_t open = 0;
    if (!takes_some(domain, request, call->arena))
        return NULL;
    struct error *err = check_countable(call, domain);
    if (err == NULL)
        err = count_going(call, domain, request, &open);
    if (err == NULL && open == 0)
        err = check_unknown_entities(call, domain);
    if (err != NULL || open == 0)
        return err;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "%lld open workflow%s of domain %s belong%s to the cluster attributes that "
                     "would go, and would be active nowhere; end %s first, take away all "
                     "attributes, or force it.",
                     (long long)open, open == 1 ? "" : "s", request->name, open == 1 ? "s" : "",
                     open == 1 ? "it" : "them");
}

/* --- clusters ---- */

static struct error *
check_cluster(struct rpc_call *call, struct domain *domain, const char *cluster)
{
    int64_t open = 0;
    scoped(locations_drop) struct locations locations = {0};
    locations_make(&locations, api_of(call)->options.domains, domain);
    struct error *err = count_open(call, domain, &locations.query, cluster, &open);
    if (err != NULL || open == 0)
        return err;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "%lld open workflow%s of domain %s %s active in cluster %s, which would leave "
                     "the domain; fail over first and wait until the other clusters have caught "
                     "up, or force it.",
                     (long long)open, open == 1 ? "" : "s", domain->name, open == 1 ? "is" : "are",
                     cluster);
}

/* Only for a request that also moves: otherwise a cluster where something is active cannot leave at
 * all, and domain/ refuses it. */
static struct error *
check_clusters(struct rpc_call *call, struct domain *domain,
               const API(UpdateDomainRequest) *request)
{
    const API(Domain) *record = domain->record->domain;
    size_t count = 0;
    const char **leaving = arena_zalloc(call->arena, record->n_clusters, sizeof *leaving);
    bool moves = request->active_cluster_name[0] != '\0' || request->active_clusters != NULL ||
                 request->removes_all_attributes;
    bool is_set = presence_mask_has(request->update_mask, "clusters") && request->n_clusters > 0;
    for (size_t i = 0; is_set && moves && i < record->n_clusters; i++) {
        const char *cluster = record->clusters[i]->cluster_name;
        if (!has_cluster(request->n_clusters, request->clusters, cluster))
            leaving[count++] = arena_text(call->arena, cluster);
    }
    struct error *err = count > 0 ? check_countable(call, domain) : NULL;
    for (size_t i = 0; err == NULL && i < count; i++)
        err = check_cluster(call, domain, leaving[i]);
    return err != NULL || count == 0 ? err : check_unknown_entities(call, domain);
}

struct error *
removal_check_update(struct rpc_call *call, const API(UpdateDomainRequest) *request)
{
    const struct api_options *options = &api_of(call)->options;
    bool takes = request->n_removed_attributes > 0 || request->n_clusters > 0;
    if (!takes || request->is_forced || options->visibility == NULL ||
        domains_find_name(options->domains, request->name) == NULL)
        return NULL;
    struct error *err = engine_visibility_wait(options->engine, call->arena);
    struct domain *domain = err != NULL ? NULL : domains_find_name(options->domains, request->name);
    if (domain == NULL)
        return err;      /* domain/ refuses it */
    domain_take(domain); /* as it is now; counting yields */
    err = check_attributes(call, domain, request);
    if (err == NULL)
        err = check_clusters(call, domain, request);
    domain_drop(domain);
    return err;
}
