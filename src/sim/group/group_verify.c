/* group_verify.c - after the storm: do all clusters agree, and is everything there that was
 * acknowledged?
 *
 * The checkers: (1) every cluster shows the same record of a global domain, except what is local to
 * a cluster; (2) an acknowledged registration exists, a local one in its cluster only; (3) a
 * description is one that was asked for and not older than the newest acknowledged; an acknowledged
 * deprecation or deletion holds; (4) every cluster's failover history tells exactly the
 * failovers that were made, wherever that was, and every acknowledged one was made
 * (group_history.h); clients are told what the store has; (5) the notification versions of each
 * cluster have no gap and no repeat; (6) a group that nobody asks for anything comes to rest:
 * clusters that kept telling each other the same would write for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "fiber/clock.h"
#include "sim/group/group_history.h"
#include "wire/message.h"

#define CONVERGE_LIMIT (120 * NS_PER_S)
#define CONVERGE_TIME  (60 * NS_PER_S)
#define REST           (5 * NS_PER_S)
#define MOVES_MAX      4096
#define AUDIT_TIMEOUT  (30 * NS_PER_S)

/* What the failovers of one domain moved, as one cluster tells it. */
struct shown_moves {
    struct group_move moves[MOVES_MAX];
    size_t count;
    bool is_strange; /* the load did not do all that is in it */
};

struct audit {
    struct group_load *load;
    struct load_clients *clients;
    struct arena *arena;                               /* of the domain that is looked at */
    char ids[GROUP_DOMAINS_MAX][UUID_TEXT_LENGTH + 1]; /* of global ones that exist; "": others */
    struct group_records *all_records;                 /* of all clusters, from their stores */
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
    const struct group_observation before = domain->observed[cluster];
    group_observation_note(audit->load, domain, cluster, &before, shown);
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

static void
add_move(struct shown_moves *shown_moves, const struct group_move *move)
{
    if (shown_moves->count == MOVES_MAX)
        shown_moves->is_strange = true;
    else
        shown_moves->moves[shown_moves->count++] = *move;
}

static void
visit_failover(void *context, const API(ClusterFailover) *failover)
{
    struct shown_moves *shown_moves = context;
    struct group_move move;
    if (group_move_read(failover, &move))
        add_move(shown_moves, &move);
    else
        shown_moves->is_strange = true;
}

static int
compare_moves(const void *left, const void *right)
{
    const struct group_move *one = left, *other = right;
    if (one->what != other->what)
        return one->what < other->what ? -1 : 1;
    if (one->to != other->to)
        return one->to < other->to ? -1 : 1;
    return (one->from > other->from) - (one->from < other->from);
}

/* In an order that does not depend on when failovers came. */
static void
sort_shown_moves(struct shown_moves *shown_moves)
{
    qsort(shown_moves->moves, shown_moves->count, sizeof shown_moves->moves[0], compare_moves);
}

static struct shown_moves *
moves_shown_to_client(struct audit *audit, const struct group_domain *domain, unsigned cluster,
                      const char *domain_id)
{
    struct shown_moves *shown_moves = arena_make(audit->arena, struct shown_moves);
    struct load_call call = call_to(audit, cluster);
    struct error *err = load_list_failovers(&call, domain_id, visit_failover, shown_moves);
    if (err != NULL)
        verdict_violate(&audit->load->verdict, "cluster%u does not tell the history of %s: %s",
                        cluster, domain->name, err->message);
    sort_shown_moves(shown_moves);
    return shown_moves;
}

static struct shown_moves *
moves_in_store(struct audit *audit, unsigned number, unsigned cluster)
{
    struct shown_moves *shown_moves = arena_make(audit->arena, struct shown_moves);
    const struct group_events *history = &audit->all_records[cluster].history;
    for (size_t i = 0; i < history->count; i++) {
        const struct group_event *event = &history->all[i];
        for (unsigned what = 0; event->domain == number && what < MOVES_END; what++) {
            struct group_move move = {what, event->from[what], event->to[what]};
            if (move.to >= 0)
                add_move(shown_moves, &move);
        }
    }
    sort_shown_moves(shown_moves);
    return shown_moves;
}

static bool
are_same_moves(const struct shown_moves *one, const struct shown_moves *other)
{
    bool is_same = one->count == other->count && !one->is_strange && !other->is_strange;
    for (size_t i = 0; is_same && i < one->count; i++)
        is_same = compare_moves(&one->moves[i], &other->moves[i]) == 0;
    return is_same;
}

static void
audit_history(struct audit *audit, unsigned number)
{
    const struct group_domain *domain = &audit->load->domains[number];
    const char *id = audit->ids[number];
    for (unsigned i = 0; id[0] != '\0' && i < audit->load->sim->count; i++) {
        if (!are_same_moves(moves_shown_to_client(audit, domain, i, id),
                            moves_in_store(audit, number, i)))
            verdict_violate(&audit->load->verdict,
                            "cluster%u shows another history of %s than it has", i, domain->name);
    }
}

/* Reads all stores, and compares them. What is read lives as long as the arena. */
static void
audit_pasts(struct audit *audit, struct arena *arena)
{
    bool is_there[GROUP_DOMAINS_MAX];
    unsigned count = audit->load->sim->count;
    audit->all_records = arena_zalloc(arena, count, sizeof *audit->all_records);
    for (unsigned i = 0; i < count; i++) {
        struct error *err = group_records_read(audit->load, i, arena, &audit->all_records[i]);
        if (err != NULL)
            verdict_violate(&audit->load->verdict, "the store of cluster%u: %s", i, err->message);
    }
    for (unsigned i = 0; i < GROUP_DOMAINS_MAX; i++)
        is_there[i] = audit->ids[i][0] != '\0';
    group_records_audit(audit->load, audit->all_records, is_there, arena);
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
audit_each(struct audit *audit, void (*audit_one)(struct audit *audit, unsigned number))
{
    for (unsigned i = 0; i < audit->load->domain_count; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        audit->arena = arena;
        audit_one(audit, i);
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
    scoped(arena_drop) struct arena *arena = arena_new(0);
    audit_pasts(audit, arena);
    audit_each(audit, audit_history);
    fiber_set_deadline(NEVER);
    load_clients_free(audit->clients);
}

static void
namesakes_main(void *argument)
{
    struct group_load *load = argument;
    struct load_clients *clients = load_clients_new(load->sim);
    group_remove_namesakes(load, clients);
    load_clients_free(clients);
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

static void
run_client(struct group_load *load, void (*run)(void *argument), void *argument)
{
    host_start(load->sim->client, run, argument);
    if (!world_run_until(load->sim->world, client_has_ended, load->sim, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "the audit hangs");
}

void
group_load_verify(struct group_load *load)
{
    struct sim *sim = load->sim;
    load->client_pool.is_over = true;
    if (!world_run_until(sim->world, client_has_ended, sim, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "a worker hangs: its call had a deadline and did not end");
    if (load->verdict.violation != NULL)
        return;
    world_run_for(sim->world, CONVERGE_TIME); /* dead connections are noticed, all catch up */
    if (load->has_namesakes) {
        run_client(load, namesakes_main, load);
        world_run_for(sim->world, CONVERGE_TIME);
    }
    check_rest(load);
    struct audit audit = {.load = load};
    run_client(load, audit_main, &audit);
}
