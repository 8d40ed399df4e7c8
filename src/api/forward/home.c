/* home.c - the home of the workflow that a call is about.
 *
 * A start that does not say what its run belongs to belongs to the region of the cluster that took
 * it, where there are regions. That is written into the request before anything else is done with
 * it: another cluster that carries it out has a region of its own, and must not use that instead.
 * So a call that another cluster has sent on is left as it is. */
#include "api/forward/home.h"

#include "api/call/subject.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

/* --- what a start belongs to ---- */

bool
home_choose(struct rpc_call *call)
{
    const struct api_options *options = &api_of(call)->options;
    API(StartWorkflowExecutionRequest) *start = subject_start(call);
#ifdef CADENZA_FAULT_region_substituted
    if (start == NULL ||
        (!api_is_forwarded(call) && start->active_cluster_selection_policy != NULL))
        return false; /* fault: the cluster that carries a start out puts its own region into it */
#else
    if (start == NULL || api_is_forwarded(call) ||
        cluster_attribute_of(start->active_cluster_selection_policy).scope != NULL)
        return false;
#endif
    const struct domain *domain = domains_find_name(options->domains, start->domain);
    if (domain == NULL || !domain->record->domain->is_global_domain)
        return false;
    struct cluster_attribute chosen = domain_choose_attribute(domain, options->group);
    if (chosen.scope == NULL)
        return false;
    probe("region_chosen");
    API(ActiveClusterSelectionPolicy) *policy =
        message_new(call->arena, API_TYPE(active_cluster_selection_policy));
    policy->cluster_attribute = message_new(call->arena, API_TYPE(cluster_attribute));
    policy->cluster_attribute->scope = (char *)chosen.scope;
    policy->cluster_attribute->name = (char *)chosen.name; /* of the group: it stays */
    start->active_cluster_selection_policy = policy;
    return true;
}

/* --- what is counted of looking it up ---- */

struct home_lookup
home_lookup_begin(const struct rpc_call *call, const struct domain *domain, const char *function)
{
    return (struct home_lookup){.function = function,
                                .domain = arena_text(call->arena, domain->name),
                                .is_active_active = domain_is_active_active(domain),
                                .began = clock_monotonic()};
}

void
home_lookup_end(const struct rpc_call *call, const struct home_lookup *lookup, bool is_found)
{
    struct metrics *metrics = api_of(call)->options.metrics;
    const char *labels[] = {"fn",
                            lookup->function,
                            "domain",
                            lookup->domain,
                            "is_active_active_domain",
                            lookup->is_active_active ? "true" : "false",
                            NULL};
    if (metrics == NULL)
        return;
    counter_add(metrics_counter(metrics, "active_cluster_manager_lookup_request_count",
                                "Times that the active cluster of a workflow was looked for.",
                                labels),
                1);
    counter_add(is_found
                    ? metrics_counter(metrics, "active_cluster_manager_lookup_success_count",
                                      "Times that it was found.", labels)
                    : metrics_counter(metrics, "active_cluster_manager_lookup_failure_count",
                                      "Times that it was not: the call was answered here.", labels),
                1);
    histogram_observe(metrics_histogram(metrics, "active_cluster_manager_lookup_latency",
                                        "Time that looking for it took.", labels),
                      clock_monotonic() - lookup->began);
}
