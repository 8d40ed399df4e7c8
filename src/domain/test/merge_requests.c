/* merge_requests.c - what clients ask for, at random. See merge_fixture.h. */
#include "domain/test/merge_fixture.h"
#include "wire/message.h"

void
announce(struct merge_fixture *merge_fixture, struct node *node, const char *id,
         const struct domain_decision *decision)
{
    static const int operations[] = {
        [DOMAIN_CREATED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE),
        [DOMAIN_UPDATED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE),
        [DOMAIN_DELETED] = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE),
    };
    EXPECT(decision->what != DOMAIN_UNCHANGED);
    STORED(DomainChange) *change =
        STORED_NEW(merge_fixture->arena, domain_change, .operation = operations[decision->what],
                   .record = (STORED(DomainRecord) *)(*find_id(node, id))->record,
                   .failover = decision->failover);
    ADMIN(ReplicationTask) *task = domain_replication_task(change, merge_fixture->arena);
    EXPECT(node->sent_count < MESSAGES_MAX);
    node->sent[node->sent_count++] =
        (struct packet){node->index, message_encode(merge_fixture->arena, &task->base)};
}
static const char *const names[] = {"orders", "bills"};

static const char *
random_attributes(struct merge_fixture *merge_fixture)
{
    const char *text = "";
    uint64_t count = 1 + below(merge_fixture, 2);
    uint64_t first = below(merge_fixture, 3);
    for (uint64_t i = 0; i < count; i++)
        text = arena_format(merge_fixture->arena, "%s%scity.%c:%s", text, i > 0 ? "," : "",
                            (char)('a' + (first + i) % 3),
                            sample_names[below(merge_fixture, (uint64_t)merge_fixture->count)]);
    return text;
}

static struct error *
request_register(struct merge_fixture *merge_fixture, const char *name,
                 const struct domain *current, const struct domain_rules *rules,
                 const struct domain_moment *moment, struct domain_decision *decision)
{
    const char *attributes = below(merge_fixture, 2) == 0 ? random_attributes(merge_fixture) : NULL;
    API(RegisterDomainRequest) *request =
        sample_register((int)below(merge_fixture, (uint64_t)merge_fixture->count), attributes,
                        merge_fixture->arena);
    request->name = (char *)name;
    request->n_clusters = (size_t)merge_fixture->count;
    request->clusters = sample_clusters(merge_fixture->arena, request->n_clusters);
    return domain_decide_register(current, request, rules, moment, merge_fixture->arena, decision);
}

static struct error *
request_settings(struct merge_fixture *merge_fixture, const char *name,
                 const struct domain *current, const struct domain_rules *rules,
                 const struct domain_moment *moment, struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("description", merge_fixture->arena);
    request->name = (char *)name;
    request->description =
        arena_format(merge_fixture->arena, "at %llu", (unsigned long long)merge_fixture->now);
    return domain_decide_update(current, request, rules, moment, merge_fixture->arena, decision);
}

static struct error *
request_attributes(struct merge_fixture *merge_fixture, const char *name,
                   const struct domain *current, const struct domain_rules *rules,
                   const struct domain_moment *moment, struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("active_clusters", merge_fixture->arena);
    request->name = (char *)name;
    request->active_clusters =
        sample_attributes(random_attributes(merge_fixture), merge_fixture->arena);
    return domain_decide_update(current, request, rules, moment, merge_fixture->arena, decision);
}

static struct error *
request_removal(struct merge_fixture *merge_fixture, const char *name, const struct domain *current,
                const struct domain_rules *rules, const struct domain_moment *moment,
                struct domain_decision *decision)
{
    API(UpdateDomainRequest) *request = sample_update("", merge_fixture->arena);
    request->name = (char *)name;
    request->removes_all_attributes = below(merge_fixture, 4) == 0;
    API(ClusterAttribute) *one = API_NEW(
        merge_fixture->arena, cluster_attribute, .scope = "city",
        .name = arena_format(merge_fixture->arena, "%c", (char)('a' + below(merge_fixture, 3))));
    request->removed_attributes =
        arena_zalloc(merge_fixture->arena, 1, sizeof(API(ClusterAttribute) *));
    request->removed_attributes[0] = one;
    request->n_removed_attributes = !request->removes_all_attributes;
    return domain_decide_update(current, request, rules, moment, merge_fixture->arena, decision);
}

static struct error *
request_failover(struct merge_fixture *merge_fixture, const char *name,
                 const struct domain *current, const struct domain_rules *rules,
                 const struct domain_moment *moment, struct domain_decision *decision)
{
    bool moves_domain = below(merge_fixture, 2) == 0;
    API(FailoverDomainRequest) *request = sample_failover(
        moves_domain ? sample_names[below(merge_fixture, (uint64_t)merge_fixture->count)] : NULL,
        moves_domain ? NULL : random_attributes(merge_fixture), merge_fixture->arena);
    request->domain_name = (char *)name;
    return domain_decide_failover(current, request, rules, moment, merge_fixture->arena, decision);
}

static struct error *
request_retire(struct merge_fixture *merge_fixture, const char *name, const struct domain *current,
               const struct domain_rules *rules, const struct domain_moment *moment,
               struct domain_decision *decision)
{
    if (below(merge_fixture, 2) == 0) {
        API(DeprecateDomainRequest) *request =
            API_NEW(merge_fixture->arena, deprecate_domain_request, .name = (char *)name);
        return domain_decide_deprecate(current, request, rules, moment, merge_fixture->arena,
                                       decision);
    }
    API(DeleteDomainRequest) *request =
        API_NEW(merge_fixture->arena, delete_domain_request, .name = (char *)name);
    return domain_decide_delete(current, request, rules, moment, merge_fixture->arena, decision);
}

struct request_kind {
    struct error *(*decide)(struct merge_fixture *merge_fixture, const char *name,
                            const struct domain *current, const struct domain_rules *rules,
                            const struct domain_moment *moment, struct domain_decision *decision);
};

static const struct request_kind request_kinds[] = {
    {request_register},   {request_settings}, {request_failover}, {request_failover},
    {request_attributes}, {request_removal},  {request_retire}};

/* By its names, not by what the record says of itself. `before` NULL: it begins. */
static void
note_moved(struct merge_fixture *merge_fixture, const struct domain *before,
           const STORED(DomainRecord) *after)
{
    const API(Domain) *domain = after->domain;
    if (before != NULL &&
        strcmp(before->record->domain->active_cluster_name, domain->active_cluster_name) == 0)
        return;
    merge_fixture->moved[merge_fixture->moved_count++] =
        (struct entry){arena_text(merge_fixture->arena, domain->id), domain->failover_version};
}

void
step_request(struct merge_fixture *merge_fixture)
{
    struct node *node =
        &merge_fixture->nodes[below(merge_fixture, 2) == 0
                                  ? EAST
                                  : (int)below(merge_fixture, (uint64_t)merge_fixture->count)];
    size_t choices =
        array_length(request_kinds) - !merge_fixture->is_ordered; /* the last one deletes */
    const char *name = names[below(merge_fixture, array_length(names))];
    struct domain_rules rules = rules_of(merge_fixture, node);
    struct domain_moment moment = next_moment(merge_fixture, node);
    struct domain_decision decision = {0};
    struct error *err = request_kinds[below(merge_fixture, choices)].decide(
        merge_fixture, name, find_name(node, name), &rules, &moment, &decision);
    if (err != NULL) {
        EXPECT(err->kind == ERR_BAD_REQUEST || err->kind == ERR_ENTITY_NOT_EXISTS ||
               err->kind == ERR_DOMAIN_ALREADY_EXISTS);
        return;
    }
    if (decision.what == DOMAIN_UNCHANGED)
        return; /* it was told to be where it is */
    const char *id = arena_text(merge_fixture->arena, decision.next->domain->id);
    note_moved(merge_fixture, find_name(node, name), decision.next);
    store(merge_fixture, node, &decision);
    announce(merge_fixture, node, id, &decision);
    if (decision.failover != NULL)
        merge_fixture->made[merge_fixture->made_count++] =
            (struct entry){decision.failover->domain_id, decision.failover->failover_version};
}
