/* facts.c - what a decision may look at beside the run: settings and chance. */
#include "engine/run/inside.h"

static struct dynamic_filter
facts_filter(const struct facts *facts)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    if (facts->domain != NULL) {
        filter.domain_name = facts->domain->name;
        filter.domain_id = facts->domain->id;
    }
    return filter;
}

int64_t
facts_integer(const struct facts *facts, enum dynamic_key key)
{
    struct dynamic_filter filter = facts_filter(facts);
    return dynamic_integer(facts->dynamic, key, &filter);
}

int64_t
facts_duration(const struct facts *facts, enum dynamic_key key)
{
    struct dynamic_filter filter = facts_filter(facts);
    return dynamic_duration(facts->dynamic, key, &filter);
}

bool
facts_flag(const struct facts *facts, enum dynamic_key key)
{
    struct dynamic_filter filter = facts_filter(facts);
    return dynamic_flag(facts->dynamic, key, &filter);
}

struct active_cluster
facts_active(const struct facts *facts, const struct domain *domain,
             const struct cluster_attribute *attribute)
{
    return facts->find_active == NULL
               ? domain_find_active(domain, attribute)
               : facts->find_active(facts->find_domain_context, domain, attribute);
}

bool
facts_take_turn(const struct facts *facts, const char *domain_id, const char *workflow_id)
{
    return facts->take_turn == NULL ||
           facts->take_turn(facts->take_turn_context, domain_id, workflow_id);
}

struct uuid
facts_uuid(const struct facts *facts)
{
    uint8_t bytes[16];
    uint64_t high = random_next(facts->random), low = random_next(facts->random);
    memcpy(bytes, &high, sizeof high);
    memcpy(bytes + sizeof high, &low, sizeof low);
    return uuid_v4(bytes);
}

struct error *
facts_check_search(const struct facts *facts, const API(SearchAttributes) *attributes,
                   struct arena *arena)
{
    if (facts->search == NULL || facts->search->judge == NULL || attributes == NULL)
        return NULL;
    return facts->search->judge(facts->search->context, attributes, facts->domain->name, arena);
}
