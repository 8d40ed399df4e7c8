/* group_namesakes.c - two domains of one name, a global one and a local one in another cluster:
 * what an operator does about it. See group_load.h.
 *
 * The cluster of the local one cannot apply what it is told of the global one, and keeps it as a
 * dead letter. Once the local one is deleted, the dead letters are merged, in the order in which
 * they came and mixed with newer messages that can be applied at once. After that the cluster must
 * hold what all others hold: the domain, or none if it was deleted meanwhile, and its whole
 * failover history. */
#include "fiber/clock.h"
#include "sim/group/group_load.h"

#define CALL_TIMEOUT (30 * NS_PER_S)

bool
group_is_namesake(const struct group_domain *domain, unsigned cluster, const API(Domain) *shown)
{
    return domain->namesake_tried && cluster == domain->namesake && !shown->is_global_domain;
}

/* An answer between owners may be lost; what was asked for may have been done. */
static bool
is_lost(const struct error *err)
{
    return err != NULL && err->kind == ERR_UNAVAILABLE;
}

/* *is_there: it was, or is still. */
static struct error *
try_to_remove(const struct group_domain *domain, struct load_call *call, bool *is_there)
{
    API(Domain) *shown = NULL;
    struct error *err = load_describe(call, domain->name, &shown);
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    if (!group_is_namesake(domain, call->host, shown))
        return NULL;
    *is_there = true;
    err = load_deprecate(call, domain->name);
    return err != NULL ? err : load_delete(call, domain->name);
}

static void
remove_namesake(struct group_load *load, const struct group_domain *domain, struct load_call *call)
{
    bool is_there = false;
    struct error *err = try_to_remove(domain, call, &is_there);
    while (is_lost(err))
        err = try_to_remove(domain, call, &is_there);
    if (err != NULL)
        verdict_violate(&load->verdict, "cluster%u does not delete its own %s: %s", call->host,
                        domain->name, err->message);
    load->namesakes += is_there;
}

static struct error *
try_to_merge(struct load_call *call, uint64_t *left)
{
    struct error *err = load_merge_dead_letters(call);
    return err != NULL ? err : load_count_dead_letters(call, left);
}

static void
merge_dead_letters(struct group_load *load, struct load_call *call)
{
    uint64_t dead_lettered = 0, left = 0;
    struct error *err = load_count_dead_letters(call, &dead_lettered);
    while (is_lost(err))
        err = load_count_dead_letters(call, &dead_lettered);
    if (err == NULL)
        err = try_to_merge(call, &left);
    while (is_lost(err))
        err = try_to_merge(call, &left);
    if (err != NULL)
        verdict_violate(&load->verdict, "cluster%u does not merge its dead letters: %s", call->host,
                        err->message);
    if (left > 0)
        verdict_violate(&load->verdict, "cluster%u cannot apply %llu of %llu dead letters",
                        call->host, (unsigned long long)left, (unsigned long long)dead_lettered);
    load->dead_letters += dead_lettered;
}

void
group_remove_namesakes(struct group_load *load, struct load_clients *clients)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {.clients = clients, .arena = arena};
    for (unsigned i = 0; i < load->domain_count; i++) {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        call.host = load->domains[i].namesake;
        if (load->domains[i].namesake_tried)
            remove_namesake(load, &load->domains[i], &call);
    }
    for (call.host = 0; call.host < load->sim->count; call.host++) {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        merge_dead_letters(load, &call);
    }
    fiber_set_deadline(NEVER);
}
