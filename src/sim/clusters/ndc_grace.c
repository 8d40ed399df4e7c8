/* ndc_grace.c - who moves the domain gracefully, and what every cluster says afterwards of how that
 * ended. See ndc_load.h. */
#include "base/check.h"
#include "fiber/clock.h"
#include "sim/clusters/ndc_load.h"
#include "wire/message.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define END_LIMIT    (1200 * NS_PER_S)

static struct load_call
call_to(struct load_clients *clients, unsigned cluster, struct arena *arena)
{
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return (struct load_call){.clients = clients, .host = cluster, .arena = arena};
}

/* --- who moves the domain ---- */

/* Any cluster; of three as often the one that has not had the domain for longest: what came to it
 * by one of the others tells nothing of what it lacks of the other. */
static unsigned
pick_target(const struct ndc_load *load)
{
    unsigned last = load->moved_to[0], before = load->moved_to[1];
    if (load->sim->count == 3 && last != before && entropy_below(2) == 0)
        return 3 - last - before;
    return (unsigned)entropy_below(load->sim->count);
}

static void
note_move(struct ndc_load *load, unsigned to)
{
    if (load->moved_to[0] == to)
        return;
    load->moved_to[1] = load->moved_to[0];
    load->moved_to[0] = to;
}

/* Asks a cluster to take the domain. True: it does, or begins to. */
static bool
ask_for_move(struct ndc_load *load, struct load_clients *clients, unsigned to, int64_t timeout)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, to, arena);
    struct load_failover failover = {
        .name = NDC_DOMAIN, .cluster = arena_format(arena, "cluster%u", to), .timeout = timeout};
    API(Domain) *domain = NULL;
    bool is_taken = load_failover(&call, &failover, &domain) == NULL;
    load->failovers += is_taken;
    if (is_taken)
        note_move(load, to);
    return is_taken;
}

/* Is the domain there, and nothing under way? */
static bool
is_finished(struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *now = NULL;
    return load_describe(&call, NDC_DOMAIN, &now) == NULL && now->failover_info == NULL &&
           strcmp(now->active_cluster_name, arena_format(arena, "cluster%u", cluster)) == 0;
}

static void
move_once(struct ndc_load *load, struct load_clients *clients)
{
    const struct ndc_options *options = &load->options;
    unsigned to = pick_target(load);
    if (is_finished(clients, to))
        return;
    if (!options->has_force) {
        ask_for_move(load, clients, to, options->grace_seconds_max);
        return;
    }
    uint64_t what = entropy_below(6);
    int64_t timeout = 1 + (int64_t)entropy_below((uint64_t)options->grace_seconds_max);
    bool is_taken = ask_for_move(load, clients, to, what == 0 ? 0 : timeout);
    if (is_taken && what == 1) /* somebody does not want to wait for it */
        ask_for_move(load, clients, to, 0);
    if (is_taken && what == 2) /* or wants it elsewhere */
        ask_for_move(load, clients, (to + 1) % load->sim->count, 0);
}

/* Is nothing under way in this cluster? */
static bool
has_ended(struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *domain = NULL;
    return load_describe(&call, NDC_DOMAIN, &domain) == NULL && domain->failover_info == NULL;
}

static void
check_outcome(struct ndc_load *load, const API(FailoverEvent) *event, bool is_to_here,
              bool *is_open)
{
    if (event->n_outcomes == 0) {
        *is_open = true;
        return;
    }
    const API(FailoverOutcome) *outcome = event->outcomes[0];
    bool is_complete = strcmp(outcome->result, "complete") == 0;
    bool is_late = strcmp(outcome->result, "timed out") == 0;
    bool lacks_some = outcome->n_missing > 0;
    if ((is_complete && lacks_some) || (is_late && !lacks_some) || event->n_outcomes > 1)
        verdict_violate(&load->verdict,
                        "a graceful failover is %s, with %zu of %d shards missing (%zu outcomes)",
                        outcome->result, outcome->n_missing, outcome->shard_count,
                        event->n_outcomes);
    load->completed += is_complete && is_to_here;
    load->timed_out += is_late && is_to_here;
}

/* What a cluster knows of graceful failovers, also to others: every one of them has ended, and it
 * knows how, no matter which one crashed. False: not yet. Each is counted where it went to. */
static bool
read_reports(struct ndc_load *load, struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *domain = NULL;
    if (load_describe(&call, NDC_DOMAIN, &domain) != NULL)
        return false;
    API(ListFailoverHistoryRequest) *request = API_NEW(
        arena, list_failover_history_request,
        .filters = API_NEW(arena, list_failover_history_request_filters, .domain_id = domain->id),
        .pagination = API_NEW(arena, pagination_options, .page_size = 1000));
    API(ListFailoverHistoryResponse) *response = NULL;
    if (ndc_call(load, &call, request, &response) != NULL)
        return false;
    bool is_open = false;
    const char *name = arena_format(arena, "cluster%u", cluster);
    for (size_t i = 0; i < response->n_failover_events && !is_open; i++) {
        const API(FailoverEvent) *event = response->failover_events[i];
        bool is_to_here =
            event->n_cluster_failovers > 0 && event->cluster_failovers[0]->to_cluster != NULL &&
            strcmp(event->cluster_failovers[0]->to_cluster->active_cluster_name, name) == 0;
        if (event->failover_type == API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL))
            check_outcome(load, event, is_to_here, &is_open);
    }
    return !is_open;
}

void
ndc_grace_mover_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        ndc_pass_time(load->options.move_pause_max);
        move_once(load, clients);
    }
    int64_t limit = clock_monotonic() + END_LIMIT;
    for (unsigned i = 0; i < load->sim->count && load->verdict.violation == NULL;) {
        uint64_t completed = load->completed, timed_out = load->timed_out;
        if (has_ended(clients, i) && read_reports(load, clients, i)) {
            i++;
            continue;
        }
        load->completed = completed; /* it is read once more */
        load->timed_out = timed_out;
        ndc_pass_time(NS_PER_S);
        if (clock_monotonic() > limit)
            verdict_violate(&load->verdict, "cluster%u knows no end of a graceful failover", i);
    }
    load_clients_free(clients);
    load->movers_running--;
}
