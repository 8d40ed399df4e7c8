/* domain_verify.c - after the storm: does every host hold what was acknowledged, and do all hold
 * the same?
 *
 * The checkers: (1) every acknowledged registration exists on every host; (2) every description is
 * one that its worker asked for, and not older than the newest acknowledged; (3) all hosts show the
 * same; (4) the notification versions have no gap and no repeat.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "fiber/clock.h"
#include "sim/group/domain_load.h"
#include "sim/world/calls.h"

#define CONVERGE_LIMIT (120 * NS_PER_S)

struct audit {
    struct domain_load *load;
    bool is_done;
    unsigned host;
    uint64_t seen[SIM_HOSTS_MAX];        /* domains */
    uint64_t fingerprint[SIM_HOSTS_MAX]; /* of names and descriptions, in order */
    uint8_t (*found)[LOAD_DOMAINS_MAX];  /* by worker: seen on the host that is looked at */
};

static void
visit_domain(void *context, const char *name, uint32_t sequence)
{
    struct audit *audit = context;
    struct domain_load *load = audit->load;
    unsigned worker = 0, index = 0;
    int parsed = sscanf(name, "w%u-%u", &worker, &index);
    audit->seen[audit->host]++;
    for (const char *at = name; *at != '\0'; at++)
        audit->fingerprint[audit->host] = audit->fingerprint[audit->host] * 31 + (uint8_t)*at;
    audit->fingerprint[audit->host] = audit->fingerprint[audit->host] * 31 + sequence;
    if (parsed != 2 || worker >= load->client_pool.count ||
        index >= load->workers[worker].domain_count) {
        verdict_violate(&load->verdict, "host %u has %s, which nobody registered", audit->host,
                        name);
        return;
    }
    const struct load_domain *domain = &load->workers[worker].domains[index];
    audit->found[worker][index] = 1;
    if (sequence < domain->sequence_acknowledged || sequence > domain->sequence_tried)
        verdict_violate(&load->verdict, "host %u: %s has description %u; acknowledged %u, tried %u",
                        audit->host, name, sequence, domain->sequence_acknowledged,
                        domain->sequence_tried);
}

static void
check_found(struct audit *audit)
{
    struct domain_load *load = audit->load;
    for (unsigned w = 0; w < load->client_pool.count; w++) {
        for (unsigned i = 0; i < load->workers[w].domain_count; i++) {
            if (load->workers[w].domains[i].is_acknowledged && !audit->found[w][i])
                verdict_violate(&load->verdict, "host %u lost w%u-%u, which was acknowledged",
                                audit->host, w, i);
        }
        memset(audit->found[w], 0, sizeof audit->found[w]);
    }
}

static void
audit_hosts(struct audit *audit, struct load_clients *clients)
{
    struct domain_load *load = audit->load;
    for (audit->host = 0; audit->host < load->sim->count; audit->host++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients, .host = audit->host, .arena = arena};
        fiber_set_deadline(clock_monotonic() + 30 * NS_PER_S);
        struct error *err = load_list(&call, visit_domain, audit);
        fiber_set_deadline(NEVER);
        if (err != NULL)
            verdict_violate(&load->verdict, "host %u does not answer after healing: %s",
                            audit->host, err->message);
        else
            check_found(audit);
        if (audit->seen[audit->host] != audit->seen[0] ||
            audit->fingerprint[audit->host] != audit->fingerprint[0])
            verdict_violate(&load->verdict, "hosts 0 and %u do not show the same domains",
                            audit->host);
    }
}

static void
audit_main(void *argument)
{
    struct audit *audit = argument;
    struct load_clients *clients = load_clients_new(audit->load->sim);
    audit_hosts(audit, clients);
    load_clients_free(clients);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = sim_host_check_log(&audit->load->sim->hosts[0], arena);
    if (err != NULL)
        verdict_violate(&audit->load->verdict, "the store: %s", err->message);
    audit->is_done = true;
}

static bool
workers_have_ended(void *context)
{
    struct domain_load *load = context;
    return !host_is_running(load->sim->client);
}

static bool
audit_has_ended(void *context)
{
    struct audit *audit = context;
    return audit->is_done && !host_is_running(audit->load->sim->client);
}

const char *
domain_load_verify(struct domain_load *load)
{
    struct sim *sim = load->sim;
    load->client_pool.is_over = true;
    if (!world_run_until(sim->world, workers_have_ended, load, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "a worker hangs: its call had a deadline and did not end");
    if (load->verdict.violation != NULL)
        return load->verdict.violation;
    world_run_for(sim->world, 10 * NS_PER_S); /* every host looks at the store each second */

    struct audit audit = {.load = load,
                          .found = memory_zalloc(load->client_pool.count, LOAD_DOMAINS_MAX)};
    host_start(sim->client, audit_main, &audit);
    if (!world_run_until(sim->world, audit_has_ended, &audit, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "the audit hangs");
    memory_free(audit.found);
    return load->verdict.violation;
}
