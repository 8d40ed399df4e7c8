/* group_load.c - the workers. See group_load.h.
 *
 * Runs on the client host: what it allocates there belongs to that host. The ledger was allocated
 * by the test and is only written to. */
#include "sim/group/group_load.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"

#define CALL_TIMEOUT  (5 * NS_PER_S)
#define PRIMARY       0
#define NAMESAKE_ODDS 4

/* One step of one worker. */
struct step {
    struct group_load *load;
    unsigned worker;
    struct load_call call;
};

static unsigned
chance(size_t bound)
{
    return (unsigned)entropy_below(bound);
}

static const char *
any_cluster(struct step *step)
{
    return arena_format(step->call.arena, "cluster%u", chance(step->load->sim->count));
}

/* Counts an answer. `may_refuse`: the server may say that the request makes no sense now. */
static void
count_answer(struct step *step, const struct error *err, bool may_refuse)
{
    struct group_load *load = step->load;
    load->calls++;
    load->acknowledged += err == NULL;
    bool is_refused = err != NULL && err->kind == ERR_BAD_REQUEST && may_refuse;
    load->refused += is_refused;
    load->failed += err != NULL && !is_refused;
    if (!is_refused && !verdict_is_expected(err))
        verdict_violate(&load->verdict, "cluster%u failed with %s: %s", step->call.host,
                        error_kind_name(err->kind), err->message);
}

/* A cluster that has shown a domain shows it for ever, unless somebody deletes it. */
static void
check_absence(struct step *step, const struct group_domain *domain,
              const struct group_observation *before, const struct error *err)
{
    bool is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS;
    if (is_gone && before->is_there && !domain->deletion_tried)
        verdict_violate(&step->load->verdict, "cluster%u lost %s", step->call.host, domain->name);
}

/* A domain that was registered and that `suits`; NULL: none now. */
static struct group_domain *
pick(struct step *step, bool (*suits)(const struct group_domain *domain, unsigned worker))
{
    struct group_load *load = step->load;
    unsigned from = load->domain_count == 0 ? 0 : chance(load->domain_count);
    for (unsigned i = 0; i < load->domain_count; i++) {
        struct group_domain *domain = &load->domains[(from + i) % load->domain_count];
        if (domain->is_registered && suits(domain, step->worker))
            return domain;
    }
    return NULL;
}

static bool
is_own(const struct group_domain *domain, unsigned worker)
{
    return domain->owner == worker && !domain->deletion_tried;
}

static bool
is_any(const struct group_domain *domain, unsigned worker)
{
    return true;
}

static bool
is_movable(const struct group_domain *domain, unsigned worker)
{
    return domain->is_global;
}

/* --- settings -----------------------------------------------------------------------------------
 */

static void
fill_attributes(struct step *step, struct load_attribute attributes[GROUP_ATTRIBUTES])
{
    for (unsigned i = 0; i < GROUP_ATTRIBUTES; i++) {
        attributes[i] = group_attributes[i];
        attributes[i].cluster = any_cluster(step);
    }
}

static struct error *
try_register(struct step *step, const struct group_domain *domain)
{
    struct load_attribute attributes[GROUP_ATTRIBUTES];
    fill_attributes(step, attributes);
    struct load_registration registration = {
        .name = domain->name,
        .is_global = domain->is_global,
        .cluster_count = step->load->sim->count,
        .active_cluster = arena_format(step->call.arena, "cluster%u", domain->first_active),
        .attributes = attributes,
        .attribute_count = domain->is_active_active ? GROUP_ATTRIBUTES : 0,
    };
    return load_register(&step->call, &registration);
}

/* Takes the name in another cluster, which may be down: then there is no namesake. */
static void
register_namesake(struct step *step, struct group_domain *domain)
{
    struct load_registration registration = {.name = domain->name};
    step->call.host = domain->namesake;
    domain->namesake_tried = true;
    struct error *err = load_register(&step->call, &registration);
    if (err != NULL && err->kind == ERR_DOMAIN_ALREADY_EXISTS)
        err = NULL; /* a try of the global one landed unheard, and has come here */
    count_answer(step, err, false);
}

static struct group_domain *
new_domain(struct step *step)
{
    struct group_load *load = step->load;
    check(load->domain_count < GROUP_DOMAINS_MAX);
    struct group_domain *domain = &load->domains[load->domain_count];
    domain->owner = step->worker;
    domain->is_global = chance(4) > 0;
    domain->is_active_active = domain->is_global && chance(2) == 0;
    domain->first_active = chance(load->sim->count);
    domain->home = domain->is_global ? PRIMARY : chance(load->sim->count);
    if (load->has_namesakes && domain->is_global && chance(NAMESAKE_ODDS) == 0)
        domain->namesake = 1 + chance(load->sim->count - 1);
    snprintf(domain->name, sizeof domain->name, "%s-%u", domain->is_global ? "global" : "local",
             load->domain_count++);
    return domain;
}

/* A new one, or one whose registration is in doubt. */
static void
step_register(struct step *step)
{
    struct group_load *load = step->load;
    struct group_domain *domain =
        load->domain_count > 0 ? &load->domains[load->domain_count - 1] : NULL;
    bool is_again = domain != NULL && domain->owner == step->worker && !domain->is_registered;
    if (!is_again && load->domain_count == GROUP_DOMAINS_MAX)
        return;
    if (!is_again)
        domain = new_domain(step);
    if (domain->namesake != 0 && !domain->namesake_tried)
        register_namesake(step, domain);
    step->call.host = domain->home;
    struct error *err = try_register(step, domain);
    if (err != NULL && err->kind == ERR_DOMAIN_ALREADY_EXISTS && is_again)
        err = NULL; /* a try before landed unheard */
    if (err == NULL)
        domain->is_registered = domain->observed[domain->home].is_there = true;
    count_answer(step, err, false);
}

static void
step_update(struct step *step)
{
    struct group_domain *domain = pick(step, is_own);
    if (domain == NULL)
        return;
    step->call.host = domain->home;
    uint32_t sequence = ++domain->sequence_tried;
    struct error *err = load_describe_as(&step->call, domain->name, sequence);
    if (err == NULL)
        domain->sequence_acknowledged = domain->observed[domain->home].sequence = sequence;
    check_absence(step, domain, &domain->observed[domain->home], err);
    count_answer(step, err, false);
}

/* Who is not primary refuses settings of global domains; nobody but its home knows a local one. */
static void
step_update_elsewhere(struct step *step)
{
    struct group_domain *domain = pick(step, is_own);
    if (domain == NULL || step->call.host == domain->home ||
        (domain->namesake_tried && step->call.host == domain->namesake))
        return;
    struct error *err = load_describe_as(&step->call, domain->name, UINT32_MAX);
    if (err == NULL)
        verdict_violate(&step->load->verdict, "cluster%u took settings of %s", step->call.host,
                        domain->name);
    count_answer(step, err, domain->is_global);
}

static void
step_deprecate(struct step *step)
{
    struct group_domain *domain = pick(step, is_own);
    if (domain == NULL)
        return;
    step->call.host = domain->home;
    domain->deprecation_tried = true;
    struct error *err = load_deprecate(&step->call, domain->name);
    domain->is_deprecated = domain->is_deprecated || err == NULL;
    count_answer(step, err, false);
}

static void
step_delete(struct step *step)
{
    struct group_domain *domain = pick(step, is_own);
    if (domain == NULL || !domain->is_deprecated)
        return;
    step->call.host = domain->home;
    domain->deletion_tried = true;
    struct error *err = load_delete(&step->call, domain->name);
    domain->is_deleted = domain->is_deleted || err == NULL;
    count_answer(step, err, false);
}

/* --- failovers and reading -----------------------------------------------------------------------
 */

/* What the answer shows must have been written where it was asked. */
static void
note_failover(struct step *step, struct group_domain *domain, unsigned what,
              const API(Domain) *shown)
{
    if (domain->failover_count == GROUP_FAILOVERS_MAX)
        return;
    domain->failovers[domain->failover_count++] =
        (struct group_failover){.what = (uint8_t)what,
                                .cluster = (uint8_t)step->call.host,
                                .failover_version = group_shown_version(shown, what),
                                .domain_version = group_shown_version(shown, MOVES_DOMAIN)};
    step->load->failovers++;
}

static void
step_failover(struct step *step)
{
    struct group_domain *domain = pick(step, is_movable);
    if (domain == NULL)
        return;
    unsigned what = domain->is_active_active ? chance(MOVES_END) : MOVES_DOMAIN;
    struct load_attribute attribute = {0};
    struct load_failover failover = {.name = domain->name, .by_update = chance(2) == 0};
    if (what == MOVES_DOMAIN) {
        failover.cluster = any_cluster(step);
    } else {
        attribute = group_attributes[what - MOVES_FIRST_ATTRIBUTE];
        attribute.cluster = any_cluster(step);
        failover.attribute = &attribute;
    }
    const struct group_observation before = domain->observed[step->call.host];
    API(Domain) *shown = NULL;
    struct error *err = load_failover(&step->call, &failover, &shown);
    if (err == NULL) {
        group_observation_note(step->load, domain, step->call.host, &before, shown);
        note_failover(step, domain, what, shown);
    }
    check_absence(step, domain, &before, err);
    count_answer(step, err, true);
}

static void
step_describe(struct step *step)
{
    struct group_domain *domain = pick(step, is_any);
    if (domain == NULL)
        return;
    const struct group_observation before = domain->observed[step->call.host];
    API(Domain) *shown = NULL;
    struct error *err = load_describe(&step->call, domain->name, &shown);
    if (err == NULL)
        group_observation_note(step->load, domain, step->call.host, &before, shown);
    check_absence(step, domain, &before, err);
    count_answer(step, err, false);
}

/* --- workers -------------------------------------------------------------------------------------
 */

static const struct {
    unsigned weight;
    void (*take)(struct step *step);
} steps[] = {
    {10, step_register}, {25, step_update},   {3, step_update_elsewhere}, {1, step_deprecate},
    {1, step_delete},    {35, step_failover}, {25, step_describe},
};
#define WEIGHTS 100

static void
worker_step(void *context, unsigned worker, struct load_clients *clients)
{
    struct group_load *load = context;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct step step = {.load = load, .worker = worker};
    step.call =
        (struct load_call){.clients = clients, .host = chance(load->sim->count), .arena = arena};
    unsigned what = chance(WEIGHTS), i = 0;
    while (what >= steps[i].weight)
        what -= steps[i++].weight;
    check(i < array_length(steps));
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    steps[i].take(&step);
    fiber_set_deadline(NEVER);
}

struct group_load *
group_load_start(struct sim *sim, unsigned workers, int64_t think_max)
{
    struct group_load *load = memory_zalloc(1, sizeof *load);
    load->sim = sim;
    load->client_pool = (struct client_pool){.count = workers,
                                             .think_max = think_max,
                                             .step = worker_step,
                                             .load = load,
                                             .verdict = &load->verdict};
    client_pool_start(&load->client_pool, sim);
    return load;
}
