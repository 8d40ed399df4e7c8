/* merge_fixture.c - what a cluster holds, and what must be true of every change. See
 * merge_fixture.h. */
#include "domain/test/merge_fixture.h"

#include "domain/attributes.h"

uint64_t
below(struct merge_fixture *merge_fixture, uint64_t bound)
{
    return random_below(&merge_fixture->random, bound);
}

bool
is_deleted(const struct domain *domain)
{
    return domain->record->domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

struct domain *
find_name(const struct node *node, const char *name)
{
    for (size_t i = 0; i < node->known_count; i++) {
        if (!is_deleted(node->known[i]) && strcmp(node->known[i]->name, name) == 0)
            return node->known[i];
    }
    return NULL;
}

struct domain **
find_id(struct node *node, const char *id)
{
    for (size_t i = 0; i < node->known_count; i++) {
        if (strcmp(node->known[i]->id, id) == 0)
            return &node->known[i];
    }
    return NULL;
}

bool
has_entry(const struct entry *entries, size_t count, const char *domain_id,
          int64_t failover_version)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].failover_version == failover_version &&
            strcmp(entries[i].domain_id, domain_id) == 0)
            return true;
    }
    return false;
}

void
make_group(struct merge_fixture *merge_fixture)
{
    for (int i = 0; i < SAMPLE_CLUSTERS; i++) {
        merge_fixture->clusters[i] = sample_group(EAST)->clusters[i];
        merge_fixture->clusters[i].is_enabled = true;
        merge_fixture->groups[i] = *sample_group(i);
        merge_fixture->groups[i].clusters = merge_fixture->clusters;
        merge_fixture->groups[i].current = &merge_fixture->clusters[i];
        merge_fixture->groups[i].primary = &merge_fixture->clusters[EAST];
    }
}

struct domain_rules
rules_of(const struct merge_fixture *merge_fixture, const struct node *node)
{
    struct domain_rules rules = sample_rules(node->index);
    rules.group = &merge_fixture->groups[node->index];
    return rules;
}

/* --- what must hold at each step ---------------------------------------------------------------
 */

static void
expect_version_of(const char *cluster_name, int64_t failover_version)
{
    const struct cluster *cluster = cluster_group_of_version(sample_group(EAST), failover_version);
    EXPECT(cluster != NULL);
    EXPECT_TEXT(cluster->name, cluster_name);
}

/* Grows with every failover of the domain or of an attribute. */
static int64_t
sum_of_versions(const STORED(DomainRecord) *record, struct arena *arena)
{
    const API(Domain) *domain = record->domain;
    struct attributes attributes =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    int64_t moved = domain_record_moved_version(record);
    int64_t sum = domain->failover_version + moved;
    expect_version_of(domain->active_cluster_name, domain->failover_version);
    expect_version_of(domain->active_cluster_name, moved);
    EXPECT(moved <= domain->failover_version);
    for (size_t i = 0; i < attributes.count; i++) {
        const struct attribute *one = &attributes.all[i];
        if (!one->is_removed)
            expect_version_of(one->cluster_name, one->failover_version);
        EXPECT(!one->is_removed || one->failover_version < domain->failover_version);
        sum += 1 + one->is_removed + 2 * one->failover_version;
    }
    return sum;
}

/* Versions never fall, and only a failover that is newer counts as one. */
static void
expect_growth(const STORED(DomainRecord) *before, const STORED(DomainRecord) *after,
              struct arena *arena)
{
    EXPECT(after->config_version >= before->config_version);
    EXPECT(after->domain->failover_version >= before->domain->failover_version);
    EXPECT(domain_record_moved_version(after) >= domain_record_moved_version(before));
    struct attributes old =
        attributes_read_all(before->domain->active_clusters, before->removed_attributes, arena);
    struct attributes new =
        attributes_read_all(after->domain->active_clusters, after->removed_attributes, arena);
    for (size_t i = 0; i < old.count; i++) {
        const struct attribute *now = attributes_find(&new, old.all[i].scope, old.all[i].name);
        EXPECT(now != NULL && now->failover_version >= old.all[i].failover_version);
    }
    bool has_moved = sum_of_versions(after, arena) > sum_of_versions(before, arena);
    bool was_noticed =
        after->failover_notification_version != before->failover_notification_version;
    EXPECT(has_moved == was_noticed);
    EXPECT(!was_noticed ||
           after->failover_notification_version > before->failover_notification_version);
}

/* --- changing ----------------------------------------------------------------------------------
 */

struct domain_moment
next_moment(struct merge_fixture *merge_fixture, const struct node *node)
{
    struct domain_moment moment = sample_moment(++merge_fixture->now);
    moment.notification_version = node->notification_version;
    return moment;
}

static void
enter(struct merge_fixture *merge_fixture, struct node *node, const STORED(DomainRecord) *record)
{
    struct domain *domain = domain_from_record(record);
    struct domain **known = find_id(node, domain->id);
    if (known == NULL) {
        known = &node->known[node->known_count++];
        (void)sum_of_versions(record, merge_fixture->arena);
    } else {
        expect_growth((*known)->record, record, merge_fixture->arena);
        domain_drop(*known);
    }
    *known = domain;
}

static void
remember(struct merge_fixture *merge_fixture, struct node *node,
         const STORED(FailoverRecord) *failover)
{
    if (failover == NULL || has_entry(node->history, node->history_count, failover->domain_id,
                                      failover->failover_version))
        return; /* none, or it came again */
    EXPECT(node->history_count < ENTRIES_MAX);
    node->history[node->history_count++] = (struct entry){
        arena_text(merge_fixture->arena, failover->domain_id), failover->failover_version};
}

void
store(struct merge_fixture *merge_fixture, struct node *node,
      const struct domain_decision *decision)
{
    remember(merge_fixture, node, decision->failover);
    if (decision->what == DOMAIN_UNCHANGED)
        return;
    decision->next->notification_version = (int64_t)++node->notification_version;
    enter(merge_fixture, node, decision->next);
}
