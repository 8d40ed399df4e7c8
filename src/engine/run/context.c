/* context.c - what a decision may look at beside the run: settings and chance. */
#include "engine/run/inside.h"

static struct dynamic_filter
run_context_filter(const struct run_context *context)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    if (context->domain != NULL) {
        filter.domain_name = context->domain->name;
        filter.domain_id = context->domain->id;
    }
    return filter;
}

int64_t
run_context_integer(const struct run_context *context, enum dynamic_key key)
{
    struct dynamic_filter filter = run_context_filter(context);
    return dynamic_integer(context->dynamic, key, &filter);
}

int64_t
run_context_duration(const struct run_context *context, enum dynamic_key key)
{
    struct dynamic_filter filter = run_context_filter(context);
    return dynamic_duration(context->dynamic, key, &filter);
}

bool
run_context_flag(const struct run_context *context, enum dynamic_key key)
{
    struct dynamic_filter filter = run_context_filter(context);
    return dynamic_flag(context->dynamic, key, &filter);
}

struct active_cluster
run_context_active(const struct run_context *context, const struct domain *domain,
                   const struct cluster_attribute *attribute)
{
    return context->find_active == NULL
               ? domain_find_active(domain, attribute)
               : context->find_active(context->find_domain_context, domain, attribute);
}

bool
run_context_take_turn(const struct run_context *context, const char *domain_id,
                      const char *workflow_id)
{
    return context->take_turn == NULL ||
           context->take_turn(context->take_turn_context, domain_id, workflow_id);
}

struct uuid
run_context_uuid(const struct run_context *context)
{
    uint8_t bytes[16];
    uint64_t high = random_next(context->random), low = random_next(context->random);
    memcpy(bytes, &high, sizeof high);
    memcpy(bytes + sizeof high, &low, sizeof low);
    return uuid_v4(bytes);
}

struct error *
run_context_check_search(const struct run_context *context, const API(SearchAttributes) *attributes,
                         struct arena *arena)
{
    if (context->search == NULL || context->search->judge == NULL || attributes == NULL)
        return NULL;
    return context->search->judge(context->search->context, attributes, context->domain->name,
                                  arena);
}
