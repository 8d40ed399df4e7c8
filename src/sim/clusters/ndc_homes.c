/* ndc_homes.c - the domain of the load is active in every cluster, and its attributes move. See
 * ndc_load.h.
 *
 * A start names an attribute, or nothing: then its run belongs to the region of the cluster that
 * was asked. A competing start names another one, so that two clusters may begin the same id
 * without hearing of each other. Somebody moves one attribute, two, or the domain itself; somebody
 * else looks at the domain all the time, at every cluster. */
#include <inttypes.h>

#include "base/check.h"
#include "base/map.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "sim/clusters/ndc_load.h"
#include "sim/entity/entity_calls.h"
#include "sim/workflow/workflow_inside.h"
#include "sim/world/calls.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define WATCH_PAUSE  (400 * NS_PER_MS)
#define AGREE_LIMIT  (300 * NS_PER_S)

const struct load_attribute ndc_attributes[NDC_ATTRIBUTES] = {
    {"region", "region0", "cluster0"}, {"region", "region1", "cluster1"},
    {"region", "region2", "cluster2"}, {"city", "a", "cluster0"},
    {"city", "b", "cluster1"},         {"city", "c", "cluster2"},
};

static const char *const users[NDC_ENTITIES] = {"ann", "bob", "cyd"};

/* NDC_ATTRIBUTES: none of them; above: a user. */
static unsigned
number_of(const char *scope, const char *name)
{
    unsigned i = 0;
    for (unsigned user = 0; strcmp(scope, "user") == 0 && user < NDC_ENTITIES; user++) {
        if (strcmp(users[user], name) == 0)
            return NDC_ATTRIBUTES + 1 + user;
    }
    while (i < NDC_ATTRIBUTES && (strcmp(ndc_attributes[i].scope, scope) != 0 ||
                                  strcmp(ndc_attributes[i].name, name) != 0))
        i++;
    return i;
}

/* --- starts ---- */

static int
random_attribute(const struct ndc_load *load)
{
    if (load->options.has_entities && entropy_below(2) == 0)
        return NDC_ATTRIBUTES + 1 + (int)entropy_below(NDC_ENTITIES);
    return (int)entropy_below(NDC_ATTRIBUTES + 2) - 2; /* below 0: says nothing */
}

void
ndc_home_choose(struct ndc_load *load, unsigned entry)
{
    if (load->homes == NULL)
        return;
    load->homes[entry] =
        (struct ndc_home){.said = random_attribute(load), .competitor = random_attribute(load)};
}

static API(Header__FieldsEntry) *
make_field(const char *name, const char *text, struct arena *arena)
{
    API(Header__FieldsEntry) *field = message_new(arena, API_TYPE(header__fields_entry));
    field->key = (char *)name;
    field->value = API_NEW(arena, payload);
    field->value->data.data = (uint8_t *)text;
    field->value->data.len = strlen(text);
    return field;
}

/* As the source of users says it. */
static API(Header) *
make_header(const char *user, struct arena *arena)
{
    API(Header) *header = API_NEW(arena, header);
    header->fields = arena_zalloc(arena, 2, sizeof *header->fields);
    header->n_fields = 2;
    header->fields[0] = make_field("active-region.lookup-key", user, arena);
    header->fields[1] =
        make_field("active-region.lookup-source", "custom.user-location-provider", arena);
    return header;
}

/* The user that a child names, always the same; NULL: it names none. */
static const char *
user_of_child(const struct ndc_load *load, const char *child_id)
{
    uint64_t which = map_hash(slice_text(child_id)) % (NDC_ENTITIES + 2);
    return load->options.has_strangers && which < NDC_ENTITIES ? users[which] : NULL;
}

void
ndc_home_put_children(const struct ndc_load *load, API(Decision) *const *decisions, size_t count,
                      struct arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        if (decisions[i]->attributes_case !=
            API_VALUE(DECISION__ATTRIBUTES_START_CHILD_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES))
            continue;
        API(StartChildWorkflowExecutionDecisionAttributes) *child =
            decisions[i]->start_child_workflow_execution_decision_attributes;
        const char *user = user_of_child(load, child->workflow_id);
        if (user != NULL)
            child->header = make_header(user, arena);
    }
}

void
ndc_home_put(struct ndc_load *load, unsigned entry, bool is_competing, struct load_call *call,
             API(StartWorkflowExecutionRequest) *request)
{
    if (load->homes == NULL)
        return;
    struct ndc_home *home = &load->homes[entry];
    int which = is_competing ? home->competitor : home->said;
    home->is_competing_sent = home->is_competing_sent || is_competing;
    if (which < 0) {
        home->asked |= 1u << call->host;
        return;
    }
    if (which > NDC_ATTRIBUTES) {
        check(request->header == NULL);
        request->header = make_header(users[which - NDC_ATTRIBUTES - 1], call->arena);
        return;
    }
    request->active_cluster_selection_policy =
        API_NEW(call->arena, active_cluster_selection_policy,
                .cluster_attribute = API_NEW(call->arena, cluster_attribute,
                                             .scope = (char *)ndc_attributes[which].scope,
                                             .name = (char *)ndc_attributes[which].name));
}

/* --- who moves attributes ---- */

/* A move by force, or gracefully: the cluster that is to be active is asked for that. Of the domain
 * alone, too: others may move attributes and not have heard of it. */
static void
add_move(struct ndc_load *load, API(FailoverDomainRequest) *request, unsigned to, bool may_wait,
         struct arena *arena)
{
    struct load_attribute *moved = arena_zalloc(arena, 2, sizeof *moved);
    char *cluster = arena_format(arena, "cluster%u", to);
    if (load->options.moves_default && entropy_below(6) == 0) {
        request->domain_active_cluster_name = cluster;
        load->moves_asked[NDC_ATTRIBUTES][to]++;
        return;
    }
    unsigned count = 1 + (unsigned)entropy_below(2),
             first = (unsigned)entropy_below(NDC_ATTRIBUTES);
    for (unsigned i = 0; i < count; i++) {
        unsigned which = (first + i) % NDC_ATTRIBUTES;
        moved[i] = ndc_attributes[which];
        moved[i].cluster = cluster;
        load->moves_asked[which][to]++;
    }
    request->active_clusters = load_make_attributes(arena, moved, count);
    if (may_wait && entropy_below(3) == 0) {
        request->failover_timeout = presence_make_duration(arena, 2 + (int64_t)entropy_below(10));
    } else if (entropy_below(5) == 0) {
        request->domain_active_cluster_name = cluster;
        load->moves_asked[NDC_ATTRIBUTES][to]++;
    }
}

/* A user goes to another region; perhaps to one that the domain does not have: then its workflows
 * stay where they are. */
static void
move_user(struct ndc_load *load, struct load_call *call)
{
    const char *user = users[entropy_below(NDC_ENTITIES)];
    unsigned number = (unsigned)entropy_below(SIM_GROUP_MAX + 1);
    const char *region = number == SIM_GROUP_MAX ? SIM_REGION_OF_NONE : ndc_attributes[number].name;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err =
        load_send(call, entity_set_request(call->arena, "user", user, region), NULL);
    load->failovers += err == NULL;
    if (err == NULL && number == SIM_GROUP_MAX)
        probe("user_in_unknown_region");
}

/* A decision that starts a child of a user in an unknown region fails, and is tried again: so that
 * all workflows end, all users are in the end where the domain has a region. */
static void
bring_users_home(struct ndc_load *load, struct load_clients *clients)
{
    for (unsigned i = 0; i < NDC_ENTITIES && load->verdict.violation == NULL;) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients, .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = load_send(
            &call, entity_set_request(arena, "user", users[i], ndc_attributes[0].name), NULL);
        i += err == NULL;
        if (err != NULL)
            ndc_pass_time(load->options.move_pause_max);
    }
}

void
ndc_home_mover_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        ndc_pass_time(load->options.move_pause_max);
        ndc_rest(load);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        unsigned to = (unsigned)entropy_below(load->sim->count);
        bool is_asked_there = entropy_below(2) == 0;
        struct load_call call = {.clients = clients,
                                 .host = is_asked_there ? to
                                                        : (unsigned)entropy_below(load->sim->count),
                                 .arena = arena};
        if (load->options.has_entities && entropy_below(2) == 0) {
            move_user(load, &call);
            continue;
        }
        API(FailoverDomainRequest) *request =
            API_NEW(arena, failover_domain_request, .domain_name = NDC_DOMAIN);
        add_move(load, request, to, call.host == to, arena);
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = load_send(&call, request, NULL);
        load->failovers += err == NULL;
        if (err == NULL && request->failover_timeout != NULL)
            probe("attributes_moved_gracefully");
    }
    if (load->options.has_strangers)
        bring_users_home(load, clients);
    load_clients_free(clients);
    load->movers_running--;
}

/* --- who watches the domain ---- */

/* One after the other. */
struct shown {
    const API(ActiveClusters) *all;
    size_t scope, next;
    const char *scope_name, *name;
    const API(ActiveClusterInfo) *info;
};

static bool
show_next(struct shown *shown)
{
    while (shown->all != NULL &&
           shown->scope < shown->all->n_active_clusters_by_cluster_attribute) {
        const API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *scope =
            shown->all->active_clusters_by_cluster_attribute[shown->scope];
        if (shown->next < scope->value->n_cluster_attributes) {
            shown->scope_name = scope->key;
            shown->name = scope->value->cluster_attributes[shown->next]->key;
            shown->info = scope->value->cluster_attributes[shown->next++]->value;
            return true;
        }
        shown->scope++;
        shown->next = 0;
    }
    return false;
}

static void
see_default(struct ndc_load *load, unsigned host, const API(Domain) *domain)
{
    int64_t version = domain->failover_version, *seen = &load->versions_seen[host][NDC_ATTRIBUTES];
    if (version < *seen)
        verdict_violate(&load->verdict,
                        "cluster%u: the version of the domain fell from %" PRId64 " to %" PRId64,
                        host, *seen, version);
    *seen = version;
}

/* What a cluster shows of its domain: versions belong to who is active, and never fall. */
static void
see_domain(struct ndc_load *load, unsigned host, const API(Domain) *domain, struct arena *arena)
{
    struct shown one = {.all = domain->active_clusters};
    see_default(load, host, domain);
    while (show_next(&one)) {
        unsigned which = number_of(one.scope_name, one.name);
        int64_t version = one.info->failover_version;
        int cluster = sim_group_of_version(version);
        if (which == NDC_ATTRIBUTES || cluster < 0 ||
            strcmp(one.info->active_cluster_name, arena_format(arena, "cluster%d", cluster)) != 0) {
            verdict_violate(&load->verdict,
                            "cluster%u shows %s.%s active in %s with version %" PRId64, host,
                            one.scope_name, one.name, one.info->active_cluster_name, version);
            return;
        }
        int64_t *seen = &load->versions_seen[host][which];
        if (version < *seen)
            verdict_violate(&load->verdict,
                            "cluster%u: the version of %s.%s fell from %" PRId64 " to %" PRId64,
                            host, one.scope_name, one.name, *seen, version);
        *seen = version;
    }
}

void
ndc_home_watcher_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        ndc_pass_time(WATCH_PAUSE);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = (unsigned)entropy_below(load->sim->count), .arena = arena};
        API(Domain) *domain = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        unsigned forgotten = load->forgotten[call.host];
        if (load_describe(&call, NDC_DOMAIN, &domain) == NULL &&
            load->forgotten[call.host] == forgotten)
            see_domain(load, call.host, domain, arena);
    }
    load_clients_free(clients);
    load->movers_running--;
}

/* --- in the end: do all tell the same of the domain, and did nothing move unasked? ---- */

/* The rows of the users, and where they are active; NULL: no answer. */
static const char *
print_users(struct load_call *call)
{
    struct arena *arena = call->arena;
    const char *text = "";
    for (unsigned i = 0; i < NDC_ENTITIES; i++) {
        STORE_API(GetEntityRequest) *request =
            STORE_API_NEW(call->arena, get_entity_request, .type = "user", .key = (char *)users[i]);
        ProtobufCMessage *answer = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = load_send(call, request, &answer);
        if (err != NULL && err->kind != ERR_ENTITY_NOT_EXISTS)
            return NULL;
        const STORE_API(GetEntityResponse) *user = (STORE_API(GetEntityResponse) *)answer;
        if (err == NULL)
            text = arena_format(arena, "%s %s:%s=%" PRId64, text, users[i], user->entity->region,
                                user->entity->failover_version);
        for (size_t h = 0; err == NULL && h < user->n_homes; h++)
            text = arena_format(arena, "%s@%s=%" PRId64, text, user->homes[h]->cluster,
                                user->homes[h]->failover_version);
    }
    return text;
}

/* Where everything is active, with which versions; NULL: no answer. */
static const char *
print_domain(struct load_clients *clients, unsigned host, struct arena *arena, const char **id)
{
    struct load_call call = {.clients = clients, .host = host, .arena = arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    if (load_describe(&call, NDC_DOMAIN, &domain) != NULL)
        return NULL;
    const char *text =
        arena_format(arena, "%s=%" PRId64, domain->active_cluster_name, domain->failover_version);
    struct shown one = {.all = domain->active_clusters};
    while (show_next(&one))
        text = arena_format(arena, "%s %s.%s:%s=%" PRId64, text, one.scope_name, one.name,
                            one.info->active_cluster_name, one.info->failover_version);
    *id = domain->id;
    const char *of_users = print_users(&call);
    return of_users == NULL ? NULL : arena_format(arena, "%s%s", text, of_users);
}

static bool
is_agreed(struct ndc_load *load, struct load_clients *clients, struct arena *arena,
          const char **description, const char **id)
{
    const char *first = print_domain(clients, 0, arena, id);
    *description = first == NULL ? "cluster0 does not answer" : first;
    for (unsigned i = 1; first != NULL && i < load->sim->count; i++) {
        const char *other = print_domain(clients, i, arena, id);
        if (other != NULL && strcmp(first, other) == 0)
            continue;
        *description = arena_format(arena, "cluster0 has %s, cluster%u %s", first, i,
                                    other == NULL ? "does not answer" : other);
        return false;
    }
    return first != NULL;
}

/* Nothing moves: a cluster that lost memory goes on with a version that nobody has seen. */
static bool
is_same_cluster(const API(ClusterFailover) *failover)
{
    return failover->from_cluster != NULL && strcmp(failover->from_cluster->active_cluster_name,
                                                    failover->to_cluster->active_cluster_name) == 0;
}

static void
note_failover(void *context, const API(ClusterFailover) *failover)
{
    struct ndc_load *load = context;
    const API(ClusterAttribute) *attribute = failover->cluster_attribute;
    unsigned which =
        attribute == NULL ? NDC_ATTRIBUTES : number_of(attribute->scope, attribute->name);
    int64_t version = failover->to_cluster->failover_version;
    int cluster = sim_group_of_version(version);
    bool is_rise = is_same_cluster(failover);
    check(cluster >= 0 && load->move_count < NDC_MOVES_MAX);
    load->moves[load->move_count++] = (struct ndc_move){which, version, is_rise};
    if (is_rise)
        probe("version_raised");
    else if (load->moves_asked[which][cluster]-- == 0)
        verdict_violate(&load->verdict, "%s.%s moved to cluster%d, and nobody asked for it",
                        attribute == NULL ? "the domain" : attribute->scope,
                        attribute == NULL ? "itself" : attribute->name, cluster);
}

/* The domain itself is where the newest move of it put it: who moved attributes at the same time
 * did not undo that. `told` begins with its cluster. */
static void
check_default(struct ndc_load *load, const char *description, struct arena *arena)
{
    int64_t newest = -1;
    for (unsigned i = 0; i < load->move_count; i++) {
        const struct ndc_move *move = &load->moves[i];
        if (move->which == NDC_ATTRIBUTES && !move->is_rise && move->failover_version > newest)
            newest = move->failover_version;
    }
    int cluster = newest < 0 ? 0 : sim_group_of_version(newest);
    const char *wanted = arena_format(arena, "cluster%d=", cluster);
    if (strncmp(description, wanted, strlen(wanted)) != 0)
        verdict_violate(&load->verdict, "version %" PRId64 " moved the domain last, but it is %s",
                        newest, description);
}

void
ndc_homes_audit(struct ndc_load *load, struct load_clients *clients)
{
    int64_t limit = clock_monotonic() + AGREE_LIMIT;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *description = "", *id = "";
    while (!is_agreed(load, clients, arena, &description, &id)) {
        if (clock_monotonic() > limit) {
            verdict_violate(&load->verdict, "the clusters disagree: %s", description);
            return;
        }
        ndc_pass_time(NS_PER_S);
    }
    struct load_call call = {.clients = clients, .arena = arena};
    fiber_set_deadline(clock_monotonic() + 60 * NS_PER_S);
    struct error *err = load_list_failovers(&call, id, note_failover, load);
    if (err != NULL)
        verdict_violate(&load->verdict, "no history of failovers: %s", err->message);
    else
        check_default(load, description, arena);
    load->has_moves = true;
}

/* --- runs ---- */

/* May a run of this id belong to the attribute? */
static bool
is_wanted(const struct ndc_home *home, unsigned which)
{
    bool is_region_of_asked = which < SIM_GROUP_MAX && (home->asked >> which & 1) != 0;
    return (int)which == home->said ||
           (home->is_competing_sent && (int)which == home->competitor) || is_region_of_asked;
}

static bool
had_version(const struct ndc_load *load, unsigned which, int64_t version)
{
    if (sim_group_of_version(version) == ndc_attributes[which].cluster[strlen("cluster")] - '0' &&
        version < SIM_GROUP_INCREMENT)
        return true; /* the first one */
    for (unsigned i = 0; i < load->move_count; i++) {
        if (load->moves[i].which == which && load->moves[i].failover_version == version)
            return true;
    }
    return false;
}

/* The version of a user's home is of a cluster, and has that of a region in it. */
static void
check_user(struct ndc_load *load, const struct workflow_entry *entry, const API(History) *history)
{
    const int64_t factor = (int64_t)SIM_GROUP_INCREMENT << 24;
    for (size_t i = 0; i < history->n_events; i++) {
        int64_t version = history->events[i]->version;
        bool was_had = false;
        for (unsigned region = 0; region < SIM_GROUP_MAX; region++)
            was_had = was_had || had_version(load, region, version % factor);
        if (version < factor || !was_had)
            verdict_violate(&load->verdict, "%s: event %zu has version %" PRId64, entry->id, i + 1,
                            version);
        if (i > 0 && version > history->events[i - 1]->version)
            probe("workflow_followed_user");
    }
}

void
ndc_home_check_child(struct ndc_load *load, const struct workflow_entry *child,
                     const API(History) *history)
{
    const char *user = user_of_child(load, child->id);
    if (!load->has_moves || user == NULL || history->n_events == 0)
        return;
    const API(ActiveClusterSelectionPolicy) *policy =
        history->events[0]
            ->workflow_execution_started_event_attributes->active_cluster_selection_policy;
    bool is_his = policy != NULL && policy->cluster_attribute != NULL &&
                  strcmp(policy->cluster_attribute->scope, "user") == 0 &&
                  strcmp(policy->cluster_attribute->name, user) == 0;
    if (!is_his)
        verdict_violate(&load->verdict, "%s does not belong to %s", child->id, user);
    else
        check_user(load, child, history);
    probe("child_of_other_user");
}

void
ndc_home_check_run(struct ndc_load *load, const struct workflow_entry *entry,
                   const API(History) *history)
{
    if (!load->has_moves || history->n_events == 0)
        return;
    const struct ndc_home *home = &load->homes[entry - load->entries];
    const API(WorkflowExecutionStartedEventAttributes) *started =
        history->events[0]->workflow_execution_started_event_attributes;
    const API(ActiveClusterSelectionPolicy) *policy = started->active_cluster_selection_policy;
    unsigned which =
        policy == NULL || policy->cluster_attribute == NULL
            ? NDC_ATTRIBUTES
            : number_of(policy->cluster_attribute->scope, policy->cluster_attribute->name);
    if (which == NDC_ATTRIBUTES || !is_wanted(home, which)) {
        verdict_violate(&load->verdict, "%s belongs to %s.%s, and nobody asked for that", entry->id,
                        which == NDC_ATTRIBUTES ? "nothing" : policy->cluster_attribute->scope,
                        which == NDC_ATTRIBUTES ? "" : policy->cluster_attribute->name);
        return;
    }
    if (which > NDC_ATTRIBUTES) {
        check_user(load, entry, history);
        return;
    }
    for (size_t i = 0; i < history->n_events; i++) {
        int64_t version = history->events[i]->version;
        /* The move that made it may be lost, and the event not. */
        if (!load->options.may_lose && !had_version(load, which, version))
            verdict_violate(
                &load->verdict, "%s: event %zu has version %" PRId64 ", which %s.%s never had",
                entry->id, i + 1, version, ndc_attributes[which].scope, ndc_attributes[which].name);
        if (i > 0 && version > history->events[i - 1]->version)
            probe("workflow_went_on_elsewhere");
    }
}
