/* context.c - what a step may look at: the moment, the domain, and whether this cluster may mutate.
 *
 * Two runs of one step may belong to different places: the run of the request, and one that a start
 * begins. A run that goes on as another one takes along what it belongs to. */
#include "engine/shard/context.h"
#include "base/check.h"
#include "domain/drain.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/wakeups.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"

static const struct domain *
find_domain(const void *context, const char *name)
{
    return domains_find_name(context, name);
}

static struct active_cluster
find_active(const void *context, const struct domain *domain,
            const struct cluster_attribute *attribute)
{
    return domains_active_run(context, domain, attribute, -1);
}

static struct active_cluster
active_for(const struct shard *shard, const struct domain *domain,
           const API(ActiveClusterSelectionPolicy) *policy, int64_t last_version)
{
    struct cluster_attribute attribute = cluster_attribute_of(policy);
    struct active_cluster active =
        domains_active_run(shard->options.domains, domain, &attribute, last_version);
#ifdef CADENZA_FAULT_old_version_after_marker
    const STORED(Drain) *drain = domain_find_drain(domain, &attribute);
    if (drain != NULL && active.status == ACTIVE_ELSEWHERE) {
        active.status = ACTIVE_HERE;
        active.failover_version = drain->previous_failover_version;
    }
#endif
    return active;
}

static struct active_cluster
active_for_run(const struct shard *shard, const struct domain *domain, const struct run *run)
{
    return active_for(shard, domain, run->core->active_cluster_selection_policy,
                      run_last_version(run));
}

/* ERR_DOMAIN_NOT_ACTIVE: `active` is the cluster to ask. */
static struct error *
shard_not_active(const struct shard *shard, const struct domain *domain, const char *active,
                 struct arena *arena)
{
    const char **names;
    size_t count = domain_active_clusters(domain, arena, &names);
    struct error_clusters clusters = {.current = shard->options.group->current->name,
                                      .active = active,
                                      .active_each = names,
                                      .active_count = count};
    return errors_domain_not_active(arena, domain->name, &clusters);
}

/* A version of another cluster (from a message that was wrong) is not for us to write with. */
static bool
is_own_version(const struct shard *shard, int64_t failover_version)
{
    const struct cluster_group *group = shard->options.group;
    return failover_version == FAILOVER_VERSION_LOCAL ||
           cluster_group_of_version(group, failover_version) == group->current;
}

static struct error *
check_active(const struct shard *shard, const struct domain *domain,
             const struct active_cluster *active, struct arena *arena)
{
    if (active->status == ACTIVE_HERE && is_own_version(shard, active->failover_version))
        return NULL;
    if (active->status == ACTIVE_HERE)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Failover version %lld of domain %s is not one of cluster %s.",
                         (long long)active->failover_version, domain->name, active->cluster_name);
    if (active->status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return error_new(arena, ERR_BAD_REQUEST,
                         "The cluster attribute of the workflow is not one of domain %s.",
                         domain->name);
    probe("step_not_active_here");
    return shard_not_active(shard, domain, active->cluster_name, arena);
}

bool
is_inactive_error(const struct error *err)
{
    return err != NULL && (err->kind == ERR_DOMAIN_NOT_ACTIVE || err->kind == ERR_BAD_REQUEST);
}

struct error *
tenure_check_newest(const struct tenure *tenure, int64_t last_version,
                    const struct run_context *context, struct arena *arena)
{
    const struct cluster_group *group = tenure->shard->options.group;
    if (last_version <= context->event_version)
        return NULL;
    probe("step_before_its_version");
    const struct cluster *cluster = cluster_group_of_version(group, last_version);
    return shard_not_active(tenure->shard, context->domain, cluster == NULL ? "" : cluster->name,
                            arena);
}

/* Where the run that a start begins is active. */
static struct active_cluster
active_for_start(const struct shard *shard, const struct domain *domain,
                 const struct shard_step *wanted)
{
    int64_t version = wanted->parent_version > 0 ? wanted->parent_version : -1;
    return active_for(shard, domain, wanted->policy, version);
}

/* Fills all but the moment. `active`: where the run that the context is for is. */
static struct error *
fill_context(struct tenure *tenure, const struct domain *domain, struct active_cluster active,
             struct arena *arena, struct run_context *context)
{
    struct shard *shard = tenure->shard;
    check(tenure->ids.end - tenure->ids.next > RANGE_SPARE); /* enough for any step */
    *context = (struct run_context){
        .event_version = active.failover_version,
        .domain = domain,
        .dynamic = shard->options.dynamic,
        .random = &shard->random,
        .search = &shard->options.search,
        .range_id = tenure->range_id,
        .ids = &tenure->ids,
        .wakeup_time_min = wakeups_time_min(tenure),
        .find_domain = find_domain,
        .find_domain_context = shard->options.domains,
        .find_active = find_active,
        .take_turn = throttle_take,
        .take_turn_context = tenure,
    };
    return check_active(shard, domain, &active, arena);
}

struct error *
tenure_read_context(struct tenure *tenure, const char *domain_id, struct arena *arena,
                    struct run_context *context)
{
    struct shard *shard = tenure->shard;
    const struct domain *domain = domains_find_id(shard->options.domains, domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", domain_id);
    *context = (struct run_context){
        .domain = domain,
        .dynamic = shard->options.dynamic,
        .random = &shard->random,
        .range_id = tenure->range_id,
        .find_domain = find_domain,
        .find_domain_context = shard->options.domains,
    };
    return NULL;
}

/* What a start needs of an open run that it ends: both are active here. One that belongs to
 * something else and is active elsewhere cannot be ended in the same step as the new one begins
 * (G-024). */
static struct error *
check_replacing(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                const struct domain *domain, struct arena *arena)
{
    struct active_cluster old = active_for_run(tenure->shard, domain, run);
    struct active_cluster begun = active_for_start(tenure->shard, domain, wanted);
    if (strcmp(old.cluster_name, begun.cluster_name) == 0)
        return check_active(tenure->shard, domain, &begun, arena);
    probe("start_over_run_elsewhere");
    return error_new(arena, ERR_BAD_REQUEST,
                     "Cannot terminate the existing workflow and start a new workflow because it "
                     "is active in a different cluster with a different active cluster selection "
                     "policy.");
}

/* May the start do what it does with the run that has the id? */
static struct error *
check_start(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
            const struct domain *domain, struct error *of_run, struct error *of_begun,
            struct arena *arena)
{
    bool is_open = run != NULL && run_is_open(run);
    struct active_cluster begun = active_for_start(tenure->shard, domain, wanted);
    struct cluster_attribute attribute = cluster_attribute_of(wanted->policy);
    if (is_open && wanted->may_signal && !wanted->may_terminate)
        return of_run;
    if (begun.status == ACTIVE_UNKNOWN_ATTRIBUTE && begun.is_unresolved)
        return domains_refuse_unresolved(tenure->shard->options.domains, domain, &attribute, arena);
    if (begun.status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return error_new(arena, ERR_BAD_REQUEST, UNKNOWN_ATTRIBUTE_FAULT);
    if (wanted->is_call && (!is_open || wanted->may_terminate) &&
        !domains_takes_runs(tenure->shard->options.domains, domain, &attribute))
        return error_new(arena, ERR_BAD_REQUEST, DELETED_ENTITY_FAULT, attribute.name,
                         attribute.scope);
    if (is_open && wanted->may_terminate)
        return check_replacing(tenure, wanted, run, domain, arena);
    return of_begun; /* the run is only looked at */
}

struct error *
tenure_make_context(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                    struct arena *arena, struct step_context *context)
{
    const char *domain_id = wanted->key.domain_id;
    const struct domain *domain = domains_find_id(tenure->shard->options.domains, domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", domain_id);
    check(tenure->shard->tenure == tenure);
    tenure_renew_range(tenure);
    bool is_start = wanted->may_be_missing;
    struct error *of_run = NULL, *of_begun = NULL;
    if (run != NULL)
        of_run = fill_context(tenure, domain, active_for_run(tenure->shard, domain, run), arena,
                              &context->of_run);
    if (run == NULL || is_start)
        of_begun = fill_context(tenure, domain, active_for_start(tenure->shard, domain, wanted),
                                arena, &context->of_begun);
    else
        context->of_begun = context->of_run;
    context->of_run.now = context->of_begun.now = clock_wall();
    if (wanted->ignores_activity)
        return NULL;
    if (is_start)
        return check_start(tenure, wanted, run, domain, of_run, of_begun, arena);
    return of_run != NULL ? of_run : of_begun;
}
