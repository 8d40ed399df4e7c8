/* facts.c - what a step may look at: the moment, the domain, and whether this cluster may mutate.
 *
 * Two runs of one step may belong to different places: the run of the wish, and one that a start
 * begins. A run that goes on as another one takes along what it belongs to. */
#include "domain/active.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"

static const struct domain *
find_domain(const void *context, const char *name)
{
    return domains_find_name(context, name);
}

static struct active_cluster
active_for(const struct shard *shard, const struct domain *domain,
           const API(ActiveClusterSelectionPolicy) *policy)
{
    struct cluster_attribute attribute = {0};
    if (policy != NULL && policy->cluster_attribute != NULL) {
        attribute.scope = policy->cluster_attribute->scope;
        attribute.name = policy->cluster_attribute->name;
    }
    return domains_active(shard->options.domains, domain, &attribute);
}

static struct error *
check_active(const struct shard *shard, const struct domain *domain,
             const struct active_cluster *active, struct arena *arena)
{
    if (active->status == ACTIVE_HERE)
        return NULL;
    if (active->status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return error_new(arena, ERR_BAD_REQUEST,
                         "The cluster attribute of the workflow is not one of domain %s.",
                         domain->name);
    mark("step_not_active_here");
    struct error_clusters clusters = {.current = shard->options.group->current->name,
                                      .active = active->cluster_name};
    return errors_domain_not_active(arena, domain->name, &clusters);
}

bool
facts_say_inactive(const struct error *err)
{
    return err != NULL && (err->kind == ERR_DOMAIN_NOT_ACTIVE || err->kind == ERR_BAD_REQUEST);
}

struct error *
tenure_check_newest(const struct tenure *tenure, int64_t last_version, const struct facts *facts,
                    struct arena *arena)
{
    const struct cluster_group *group = tenure->shard->options.group;
    if (last_version <= facts->event_version)
        return NULL;
    mark("step_before_its_version");
    const struct cluster *cluster = cluster_group_of_version(group, last_version);
    struct error_clusters clusters = {.current = group->current->name,
                                      .active = cluster == NULL ? "" : cluster->name};
    return errors_domain_not_active(arena, facts->domain->name, &clusters);
}

/* Fills all but the moment. */
static struct error *
fill_facts(struct tenure *tenure, const struct domain *domain,
           const API(ActiveClusterSelectionPolicy) *policy, struct arena *arena,
           struct facts *facts)
{
    struct shard *shard = tenure->shard;
    struct active_cluster active = active_for(shard, domain, policy);
    *facts = (struct facts){
        .event_version = active.failover_version,
        .domain = domain,
        .dynamic = shard->options.dynamic,
        .random = &shard->random,
        .search = &shard->options.search,
        .range_id = tenure->range_id,
        .ids = &tenure->ids,
        .alarm_time_min = tenure->alarms.level,
        .find_domain = find_domain,
        .find_domain_context = shard->options.domains,
        .take_turn = pace_take,
        .take_turn_context = tenure,
    };
    return check_active(shard, domain, &active, arena);
}

struct error *
tenure_read_facts(struct tenure *tenure, const char *domain_id, struct arena *arena,
                  struct facts *facts)
{
    struct shard *shard = tenure->shard;
    const struct domain *domain = domains_find_id(shard->options.domains, domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", domain_id);
    *facts = (struct facts){
        .domain = domain,
        .dynamic = shard->options.dynamic,
        .random = &shard->random,
        .range_id = tenure->range_id,
        .find_domain = find_domain,
        .find_domain_context = shard->options.domains,
    };
    return NULL;
}

struct error *
tenure_make_facts(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                  struct arena *arena, struct step_facts *facts)
{
    const char *domain_id = wanted->key.domain_id;
    const struct domain *domain = domains_find_id(tenure->shard->options.domains, domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", domain_id);
    tenure_renew_range(tenure);
    bool is_start = wanted->may_be_missing;
    struct error *of_run = NULL, *of_begun = NULL;
    if (run != NULL)
        of_run = fill_facts(tenure, domain, run->core->active_cluster_selection_policy, arena,
                            &facts->of_run);
    if (run != NULL && !run_is_open(run) && is_start)
        of_run = NULL; /* it is only looked at */
    if (run == NULL || is_start)
        of_begun = fill_facts(tenure, domain, wanted->policy, arena, &facts->of_begun);
    else
        facts->of_begun = facts->of_run;
    facts->of_run.now = facts->of_begun.now = clock_wall();
    if (wanted->ignores_activity)
        return NULL;
    return of_run != NULL ? of_run : of_begun;
}
