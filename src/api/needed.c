/* needed.c - see needed.h.
 *
 * Two things can leave workflows without a home. An attribute that is taken away while others stay:
 * its workflows are active nowhere (if none stays, the domain itself decides for them). And a
 * cluster that leaves the domain while it moves: what was done there last and did not get out yet
 * stays there. Both are counted in the lists: what is open and belongs there.
 *
 * What is counted is what this cluster has; a workflow that starts in the moment between the count
 * and the change is not. */
#include "api/needed.h"

#include "api/inside.h"
#include "api/places.h"
#include "base/buffer.h"
#include "domain/active.h"
#include "engine/engine.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"
#include "wire/presence.h"

#define NAMES_AT_ONCE 200 /* attributes in one question */

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

/* Counts what the query, behind "it is open and", finds; frees its text. */
static struct error *
count_open(struct rpc_call *call, const struct domain *domain, struct buffer *query, int64_t *count)
{
    const struct api_options *options = &api_of(call)->options;
    struct query_places places = places_of(domain, call->arena);
    const char *id = arena_text(call->arena, domain->id);
    const char *text = arena_text_of(call->arena, buffer_slice(query));
    struct query parsed;
    buffer_free(query);
    struct error *err =
        query_parse_placed(text, registry_set(options->registry), &places, call->arena, &parsed);
    return err != NULL ? err
                       : visibility_count(options->visibility, id, &parsed, call->arena, count);
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
        "Cluster %s is none of domain %s and cannot count the open workflows that need "
        "what would go; add it to the domain first, or force it.",
        here, record->name);
}

/* --- attributes ---- */

static bool
is_named(const struct domain_place *place, const API(UpdateDomainRequest) *request)
{
    for (size_t i = 0; place->scope != NULL && i < request->n_removed_attributes; i++) {
        const API(ClusterAttribute) *named = request->removed_attributes[i];
        if (strcmp(named->scope, place->scope) == 0 &&
            (named->name[0] == '\0' || strcmp(named->name, place->name) == 0))
            return true;
    }
    return false;
}

struct gone {
    const struct domain_place *all;
    size_t count;
};

/* Of the attributes, those that go; none if all of them go. */
static struct gone
attributes_that_go(const struct domain *domain, const API(UpdateDomainRequest) *request,
                   struct arena *arena)
{
    size_t count;
    const struct domain_place *places = domain_places(domain, arena, &count);
    struct domain_place *named = arena_zalloc(arena, count, sizeof *named);
    struct gone gone = {.all = named};
    for (size_t i = 0; i < count; i++) {
        if (is_named(&places[i], request))
            named[gone.count++] = places[i];
    }
    bool stays_active_active = gone.count + 1 < count || request->active_clusters != NULL;
    return stays_active_active && !request->removes_all_attributes ? gone : (struct gone){0};
}

static struct error *
count_attributes(struct rpc_call *call, const char *name, const struct gone *gone, int64_t *open)
{
    for (size_t i = 0; i < gone->count; i += NAMES_AT_ONCE) {
        const struct domain *domain =
            domains_find_name(api_of(call)->options.domains, name); /* the look before yielded */
        if (domain == NULL)
            return NULL; /* its owner says so */
        struct buffer query = {0};
        buffer_append_text(&query, "CloseTime = missing AND (");
        for (size_t n = i; n < gone->count && n < i + NAMES_AT_ONCE; n++) {
            buffer_append_text(&query,
                               n > i ? " OR ClusterAttributeScope = " : "ClusterAttributeScope = ");
            append_text(&query, gone->all[n].scope);
            buffer_append_text(&query, " AND ClusterAttributeName = ");
            append_text(&query, gone->all[n].name);
        }
        buffer_append_text(&query, ")");
        int64_t count = 0;
        struct error *err = count_open(call, domain, &query, &count);
        if (err != NULL)
            return err;
        *open += count;
    }
    return NULL;
}

static struct error *
check_attributes(struct rpc_call *call, const struct domain *domain,
                 const API(UpdateDomainRequest) *request)
{
    struct gone gone = attributes_that_go(domain, request, call->arena);
    int64_t open = 0;
    struct error *err = gone.count > 0 ? check_countable(call, domain) : NULL;
    if (err == NULL)
        err = count_attributes(call, request->name, &gone, &open);
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
check_cluster(struct rpc_call *call, const char *name, const char *cluster)
{
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, name);
    if (domain == NULL)
        return NULL;
    struct buffer query = {0};
    int64_t open = 0;
    buffer_append_text(&query, "CloseTime = missing AND ActiveCluster = ");
    append_text(&query, cluster);
    struct error *err = count_open(call, domain, &query, &open);
    if (err != NULL || open == 0)
        return err;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "%lld open workflow%s of domain %s %s active in cluster %s, which would leave "
                     "the domain; fail over first and let the other clusters hear of all they did, "
                     "or force it.",
                     (long long)open, open == 1 ? "" : "s", name, open == 1 ? "is" : "are",
                     cluster);
}

/* Only a request that moves, too: without it a cluster where something is active cannot leave at
 * all, which the owner of domains says. */
static struct error *
check_clusters(struct rpc_call *call, const struct domain *domain,
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
        err = check_cluster(call, request->name, leaving[i]);
    return err;
}

struct error *
needed_check_update(struct rpc_call *call, const API(UpdateDomainRequest) *request)
{
    const struct api_options *options = &api_of(call)->options;
    const struct domain *domain = domains_find_name(options->domains, request->name);
    bool takes = request->n_removed_attributes > 0 || request->n_clusters > 0;
    if (domain == NULL || !takes || request->is_forced || options->visibility == NULL)
        return NULL;
    struct error *err = engine_visible_wait(options->engine, call->arena);
    if (err == NULL)
        domain = domains_find_name(options->domains, request->name);
    if (err == NULL && domain != NULL)
        err = check_attributes(call, domain, request);
    if (err == NULL)
        domain = domains_find_name(options->domains, request->name);
    if (err == NULL && domain != NULL)
        err = check_clusters(call, domain, request);
    return err;
}
