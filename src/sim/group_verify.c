/* group_verify.c - after the storm: do all clusters agree, and is everything there that was
 * acknowledged?
 *
 * The checkers: (1) every cluster shows the same record of a global domain, except what is local to
 * a cluster; (2) an acknowledged registration exists, a local one in its cluster only; (3) a
 * description is one that was asked for and not older than the newest acknowledged; an acknowledged
 * deprecation or deletion holds; (4) every cluster's failover history has the same failovers, and
 * every acknowledged one is among them; (5) the notification versions of each cluster have no gap
 * and no repeat; (6) a group that nobody asks for anything comes to rest: clusters that tell each
 * other the same for ever write for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "fiber/clock.h"
#include "sim/group_load.h"
#include "wire/message.h"

#define SETTLE_LIMIT  (120 * NS_PER_S)
#define SETTLE        (60 * NS_PER_S)
#define REST          (5 * NS_PER_S)
#define HISTORY_MAX   2048
#define AUDIT_TIMEOUT (30 * NS_PER_S)

/* The failovers of one domain that one cluster knows. */
struct history {
    struct group_failover failovers[HISTORY_MAX];
    size_t count;
    bool is_active_active;
    bool is_strange; /* something in it is none of the load's doing */
};

struct audit {
    struct group_load *load;
    struct load_clients *clients;
    struct arena *arena;                               /* of the domain that is looked at */
    char ids[GROUP_DOMAINS_MAX][UUID_TEXT_LENGTH + 1]; /* of global ones that exist; "": others */
};

static struct load_call
call_to(struct audit *audit, unsigned cluster)
{
    fiber_set_deadline(clock_monotonic() + AUDIT_TIMEOUT);
    return (struct load_call){.clients = audit->clients, .host = cluster, .arena = audit->arena};
}

/* --- records -------------------------------------------------------------------------------------
 */

/* NULL: the cluster does not know it. */
static API(Domain) *
ask(struct audit *audit, const struct group_domain *domain, unsigned cluster)
{
    API(Domain) *shown = NULL;
    struct load_call call = call_to(audit, cluster);
    struct error *err = load_describe(&call, domain->name, &shown);
    if (err != NULL && err->kind != ERR_ENTITY_NOT_EXISTS)
        verdict_violate(&audit->load->verdict, "cluster%u does not answer after healing: %s",
                        cluster, err->message);
    return shown;
}

/* What every cluster must show alike, as bytes. Local to a cluster are the progress of its shards
 * and the failovers as it saw them, with its own times. */
static struct slice
shared_part(struct audit *audit, API(Domain) *shown)
{
    shown->failover_info = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < shown->n_data; i++) {
        if (strcmp(shown->data[i]->key, "FailoverHistory") != 0)
            shown->data[kept++] = shown->data[i];
    }
    shown->n_data = kept;
    return message_encode(audit->arena, &shown->base);
}

static void
compare(struct audit *audit, const struct group_domain *domain, unsigned cluster,
        API(Domain) *first, API(Domain) *other)
{
    if ((first == NULL) != (other == NULL)) {
        verdict_violate(&audit->load->verdict, "%s exists in cluster%u only", domain->name,
                        first == NULL ? cluster : 0);
        return;
    }
    if (first == NULL || slice_equal(shared_part(audit, first), shared_part(audit, other)))
        return;
    verdict_violate(&audit->load->verdict,
                    "%s: cluster0 has (%s, %s, %lld, status %d), cluster%u (%s, %s, %lld, %d)",
                    domain->name, first->description, first->active_cluster_name,
                    (long long)first->failover_version, (int)first->status, cluster,
                    other->description, other->active_cluster_name,
                    (long long)other->failover_version, (int)other->status);
}

/* Against the ledger. */
static void
check_shown(struct audit *audit, struct group_domain *domain, unsigned cluster,
            const API(Domain) *shown)
{
    struct verdict *verdict = &audit->load->verdict;
    if (shown == NULL) {
        if (domain->is_registered && !domain->deletion_tried)
            verdict_violate(verdict, "cluster%u does not have %s, which was acknowledged", cluster,
                            domain->name);
        return;
    }
    const struct group_sight before = domain->sight[cluster];
    group_sight_note(audit->load, domain, cluster, &before, shown);
    if (domain->is_deleted)
        verdict_violate(verdict, "cluster%u has %s, whose deletion was acknowledged", cluster,
                        domain->name);
    if (load_sequence(shown) < domain->sequence_acknowledged)
        verdict_violate(verdict, "cluster%u: %s has description %u; acknowledged %u", cluster,
                        domain->name, load_sequence(shown), domain->sequence_acknowledged);
    bool is_deprecated = shown->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    if (is_deprecated ? !domain->deprecation_tried : domain->is_deprecated)
        verdict_violate(verdict, "cluster%u: %s is %sdeprecated", cluster, domain->name,
                        is_deprecated ? "" : "not ");
}

/* --- histories
 * ------------------------------------------------------------------------------------ */

/* Of a domain with attributes the attributes only: the domain itself takes a new version with each
 * of them, so whether its own active cluster was moved by one depends on what a cluster knew
 * before. */
static void
visit_failover(void *context, const API(ClusterFailover) *failover)
{
    struct history *history = context;
    int what = group_moved(failover->cluster_attribute);
    const API(ActiveClusterInfo) *to = failover->to_cluster;
    if (what < 0 || to == NULL || history->count == HISTORY_MAX ||
        sim_group_of_version(to->failover_version) !=
            group_cluster_number(to->active_cluster_name)) {
        history->is_strange = true;
        return;
    }
    if (what == MOVES_DOMAIN && history->is_active_active)
        return;
    history->failovers[history->count++] =
        (struct group_failover){.what = (uint8_t)what, .failover_version = to->failover_version};
}

static int
compare_failovers(const void *left, const void *right)
{
    const struct group_failover *one = left, *other = right;
    if (one->what != other->what)
        return one->what < other->what ? -1 : 1;
    return (one->failover_version > other->failover_version) -
           (one->failover_version < other->failover_version);
}

/* In order, each once: two clusters may have asked for the same, which is one failover. */
static void
sort_history(struct history *history)
{
    size_t kept = 0;
    qsort(history->failovers, history->count, sizeof history->failovers[0], compare_failovers);
    for (size_t i = 0; i < history->count; i++) {
        if (kept == 0 ||
            compare_failovers(&history->failovers[kept - 1], &history->failovers[i]) != 0)
            history->failovers[kept++] = history->failovers[i];
    }
    history->count = kept;
}

static bool
has_failover(const struct history *history, const struct group_failover *failover)
{
    return bsearch(failover, history->failovers, history->count, sizeof *failover,
                   compare_failovers) != NULL;
}

static struct history *
read_history(struct audit *audit, const struct group_domain *domain, unsigned cluster,
             const char *domain_id)
{
    struct history *history = arena_zalloc(audit->arena, 1, sizeof *history);
    history->is_active_active = domain->is_active_active;
    struct load_call call = call_to(audit, cluster);
    struct error *err = load_list_failovers(&call, domain_id, visit_failover, history);
    if (err != NULL)
        verdict_violate(&audit->load->verdict, "cluster%u does not tell the history of %s: %s",
                        cluster, domain->name, err->message);
    if (history->is_strange)
        verdict_violate(&audit->load->verdict, "cluster%u has a strange failover of %s", cluster,
                        domain->name);
    sort_history(history);
    return history;
}

/* All of `some` are in `history` of the cluster. */
static void
check_history(struct audit *audit, const struct group_domain *domain, unsigned cluster,
              const struct history *history, const struct group_failover *some, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!has_failover(history, &some[i]))
            verdict_violate(&audit->load->verdict,
                            "the history of %s in cluster%u lacks version %lld (%u)", domain->name,
                            cluster, (long long)some[i].failover_version, some[i].what);
    }
}

static void
audit_history(struct audit *audit, unsigned number)
{
    const struct group_domain *domain = &audit->load->domains[number];
    if (audit->ids[number][0] == '\0')
        return;
    const struct history *histories[SIM_GROUP_MAX];
    unsigned count = audit->load->sim->count;
    for (unsigned i = 0; i < count; i++) {
        histories[i] = read_history(audit, domain, i, audit->ids[number]);
        check_history(audit, domain, i, histories[i], domain->failovers, domain->failover_count);
    }
    for (unsigned i = 0; i < count; i++)
        check_history(audit, domain, i, histories[i], histories[(i + 1) % count]->failovers,
                      histories[(i + 1) % count]->count);
}

/* --- all of it
 * ------------------------------------------------------------------------------------- */

static void
audit_record(struct audit *audit, unsigned number)
{
    struct group_domain *domain = &audit->load->domains[number];
    API(Domain) *shown[SIM_GROUP_MAX] = {NULL};
    unsigned count = audit->load->sim->count;
    for (unsigned i = 0; i < count; i++)
        shown[i] = ask(audit, domain, i);
    for (unsigned i = 0; i < count; i++) {
        bool must_have = domain->is_global || i == domain->home;
        if (must_have)
            check_shown(audit, domain, i, shown[i]);
        else if (shown[i] != NULL)
            verdict_violate(&audit->load->verdict, "cluster%u knows %s, which is local elsewhere",
                            i, domain->name);
        if (domain->is_global)
            compare(audit, domain, i, shown[0], shown[i]);
    }
    if (domain->is_global && shown[0] != NULL)
        snprintf(audit->ids[number], sizeof audit->ids[number], "%s", shown[0]->id);
}

static void
audit_each(struct audit *audit, void (*look)(struct audit *audit, unsigned number))
{
    for (unsigned i = 0; i < audit->load->domain_count; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        audit->arena = arena;
        look(audit, i);
    }
}

static void
audit_log(struct audit *audit, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = sim_host_check_log(&audit->load->sim->hosts[cluster], arena);
    if (err != NULL)
        verdict_violate(&audit->load->verdict, "the store of cluster%u: %s", cluster, err->message);
}

static void
audit_main(void *argument)
{
    struct audit *audit = argument;
    struct group_load *load = audit->load;
    audit->clients = load_clients_new(load->sim);
    audit_each(audit, audit_record);
    for (unsigned i = 0; i < load->sim->count; i++)
        audit_log(audit, i);
    audit_each(audit, audit_history);
    fiber_set_deadline(NEVER);
    load_clients_free(audit->clients);
}

/* Nothing is written while nothing happens. */
static void
check_rest(struct group_load *load)
{
    struct sim *sim = load->sim;
    uint64_t commits[SIM_GROUP_MAX];
    for (unsigned i = 0; i < sim->count; i++)
        commits[i] = memory_base_commits(sim->hosts[i].base);
    world_run_for(sim->world, REST);
    for (unsigned i = 0; i < sim->count; i++) {
        uint64_t more = memory_base_commits(sim->hosts[i].base) - commits[i];
        if (more > 0)
            verdict_violate(&load->verdict, "cluster%u wrote %llu times though nobody asked", i,
                            (unsigned long long)more);
    }
}

static bool
client_has_ended(void *context)
{
    struct sim *sim = context;
    return !host_is_running(sim->client);
}

void
group_load_verify(struct group_load *load)
{
    struct sim *sim = load->sim;
    load->is_over = true;
    if (!world_run_until(sim->world, client_has_ended, sim, SETTLE_LIMIT))
        verdict_violate(&load->verdict, "a worker hangs: its call had a deadline and did not end");
    if (load->verdict.violation != NULL)
        return;
    world_run_for(sim->world, SETTLE); /* dead connections are noticed, all catch up */
    check_rest(load);
    struct audit audit = {.load = load};
    host_start(sim->client, audit_main, &audit);
    if (!world_run_until(sim->world, client_has_ended, sim, SETTLE_LIMIT))
        verdict_violate(&load->verdict, "the audit hangs");
}
