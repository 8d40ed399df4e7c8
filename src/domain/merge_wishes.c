/* merge_wishes.c - what clients ask for, at random. See merge_world.h. */
#include "domain/merge_world.h"
#include "wire/message.h"

void
announce(struct world *world, struct node *node, const char *id,
         const struct domain_decision *decision)
{
    static const int operations[] = {
        [DOMAIN_CREATED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE),
        [DOMAIN_UPDATED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE),
        [DOMAIN_DELETED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE),
    };
    EXPECT(decision->what != DOMAIN_UNCHANGED);
    STORED(DomainChange) *change = message_new(world->arena, STORED_TYPE(domain_change));
    change->operation = operations[decision->what];
    change->record = (STORED(DomainRecord) *)(*find_id(node, id))->record;
    change->failover = decision->failover;
    ADMIN(ReplicationTask) *task = domain_replication_task(change, world->arena);
    EXPECT(node->sent_count < MESSAGES_MAX);
    node->sent[node->sent_count++] =
        (struct packet){node->index, message_encode(world->arena, &task->base)};
}
static const char *const names[] = {"orders", "bills"};

static const char *
random_attributes(struct world *world)
{
    const char *text = "";
    uint64_t count = 1 + below(world, 2);
    uint64_t first = below(world, 3);
    for (uint64_t i = 0; i < count; i++)
        text = arena_format(world->arena, "%s%scity.%c:%s", text, i > 0 ? "," : "",
                            (char)('a' + (first + i) % 3),
                            sample_names[below(world, (uint64_t)world->count)]);
    return text;
}

static struct error *
wish_register(struct world *world, const char *name, const struct domain *current,
              const struct domain_rules *rules, const struct domain_moment *moment,
              struct domain_decision *decision)
{
    const char *attributes = below(world, 2) == 0 ? random_attributes(world) : NULL;
    API(RegisterDomainRequest) *request =
        sample_register((int)below(world, (uint64_t)world->count), attributes, world->arena);
    request->name = (char *)name;
    request->n_clusters = (size_t)world->count;
    request->clusters = sample_clusters(world->arena, request->n_clusters);
    return domain_decide_register(current, request, rules, moment, world->arena, decision);
}

static struct error *
wish_settings(struct world *world, const char *name, const struct domain *current,
              const struct domain_rules *rules, const struct domain_moment *moment,
              struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("description", world->arena);
    request->name = (char *)name;
    request->description = arena_format(world->arena, "at %llu", (unsigned long long)world->now);
    return domain_decide_update(current, request, rules, moment, world->arena, decision);
}

static struct error *
wish_attributes(struct world *world, const char *name, const struct domain *current,
                const struct domain_rules *rules, const struct domain_moment *moment,
                struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("active_clusters", world->arena);
    request->name = (char *)name;
    request->active_clusters = sample_attributes(random_attributes(world), world->arena);
    return domain_decide_update(current, request, rules, moment, world->arena, decision);
}

static struct error *
wish_removal(struct world *world, const char *name, const struct domain *current,
             const struct domain_rules *rules, const struct domain_moment *moment,
             struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("", world->arena);
    request->name = (char *)name;
    request->removes_all_attributes = below(world, 4) == 0;
    API(ClusterAttribute) *one = message_new(world->arena, API_TYPE(cluster_attribute));
    one->scope = "city";
    one->name = arena_format(world->arena, "%c", (char)('a' + below(world, 3)));
    request->removed_attributes = arena_zalloc(world->arena, 1, sizeof(API(ClusterAttribute) *));
    request->removed_attributes[0] = one;
    request->n_removed_attributes = !request->removes_all_attributes;
    return domain_decide_update(current, request, rules, moment, world->arena, decision);
}

static struct error *
wish_failover(struct world *world, const char *name, const struct domain *current,
              const struct domain_rules *rules, const struct domain_moment *moment,
              struct domain_decision *decision)
{
    bool moves_domain = below(world, 2) == 0;
    API(FailoverDomainRequest) *request =
        sample_failover(moves_domain ? sample_names[below(world, (uint64_t)world->count)] : NULL,
                        moves_domain ? NULL : random_attributes(world), world->arena);
    request->domain_name = (char *)name;
    return domain_decide_failover(current, request, rules, moment, world->arena, decision);
}

static struct error *
wish_retire(struct world *world, const char *name, const struct domain *current,
            const struct domain_rules *rules, const struct domain_moment *moment,
            struct domain_decision *decision)
{
    if (below(world, 2) == 0) {
        API(DeprecateDomainRequest) *request =
            message_new(world->arena, API_TYPE(deprecate_domain_request));
        request->name = (char *)name;
        return domain_decide_deprecate(current, request, rules, moment, world->arena, decision);
    }
    API(DeleteDomainRequest) *request = message_new(world->arena, API_TYPE(delete_domain_request));
    request->name = (char *)name;
    return domain_decide_delete(current, request, rules, moment, world->arena, decision);
}

struct wish_kind {
    struct error *(*decide)(struct world *world, const char *name, const struct domain *current,
                            const struct domain_rules *rules, const struct domain_moment *moment,
                            struct domain_decision *decision);
};

static const struct wish_kind wishes[] = {{wish_register}, {wish_settings},   {wish_failover},
                                          {wish_failover}, {wish_attributes}, {wish_removal},
                                          {wish_retire}};

/* By its names, not by what the record says of itself. `before` NULL: it begins. */
static void
note_moved(struct world *world, const struct domain *before, const STORED(DomainRecord) *after)
{
    const API(Domain) *domain = after->domain;
    if (before != NULL &&
        strcmp(before->record->domain->active_cluster_name, domain->active_cluster_name) == 0)
        return;
    world->moved[world->moved_count++] =
        (struct entry){arena_text(world->arena, domain->id), domain->failover_version};
}

void
step_wish(struct world *world)
{
    struct node *node =
        &world->nodes[below(world, 2) == 0 ? EAST : (int)below(world, (uint64_t)world->count)];
    size_t choices = array_length(wishes) - !world->is_ordered; /* the last one deletes */
    const char *name = names[below(world, array_length(names))];
    struct domain_rules rules = rules_of(world, node);
    struct domain_moment moment = next_moment(world, node);
    struct domain_decision decision = {0};
    struct error *err = wishes[below(world, choices)].decide(world, name, find_name(node, name),
                                                             &rules, &moment, &decision);
    if (err != NULL) {
        EXPECT(err->kind == ERR_BAD_REQUEST || err->kind == ERR_ENTITY_NOT_EXISTS ||
               err->kind == ERR_DOMAIN_ALREADY_EXISTS);
        return;
    }
    if (decision.what == DOMAIN_UNCHANGED)
        return; /* it was told to be where it is */
    const char *id = arena_text(world->arena, decision.next->domain->id);
    note_moved(world, find_name(node, name), decision.next);
    store(world, node, &decision);
    announce(world, node, id, &decision);
    if (decision.failover != NULL)
        world->made[world->made_count++] =
            (struct entry){decision.failover->domain_id, decision.failover->failover_version};
}
