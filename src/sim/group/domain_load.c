/* domain_load.c - the workers. See domain_load.h; domain_verify.c looks at the end.
 *
 * Runs on the client host: what it allocates there belongs to that host. The ledger was allocated
 * by the test and is only written to. */
#include "sim/group/domain_load.h"

#include "base/memory.h"
#include "fiber/clock.h"
#include "sim/world/calls.h"

#define CALL_TIMEOUT (5 * NS_PER_S)

static uint64_t
chance(uint64_t bound)
{
    return entropy_below(bound);
}

static const char *
name_of(struct arena *arena, unsigned worker, unsigned index)
{
    return arena_format(arena, "w%u-%u", worker, index);
}

/* An error that the server should never give is a violation. */
static void
count_answer(struct domain_load *load, const struct error *err)
{
    load->calls++;
    load->acknowledged += err == NULL;
    load->failed += err != NULL;
    if (!verdict_is_expected(err))
        verdict_violate(&load->verdict, "a call failed with %s: %s", error_kind_name(err->kind),
                        err->message);
}

/* Registers a new domain of the worker, or one whose registration is still in doubt. */
static void
step_register(struct load_worker *worker, struct load_call *call)
{
    unsigned index = worker->domain_count;
    bool retries = index > 0 && !worker->domains[index - 1].is_acknowledged && chance(2) == 0;
    if (retries)
        index--;
    else if (index == LOAD_DOMAINS_MAX)
        return;
    else
        worker->domain_count++;
    struct load_domain *domain = &worker->domains[index];
    struct load_registration registration = {.name = name_of(call->arena, worker->number, index)};
    struct error *err = load_register(call, &registration);
    bool is_there =
        err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS; /* a try before landed unheard */
    if (is_there && err != NULL && !retries)
        verdict_violate(&worker->load->verdict, "a name that nobody used exists already");
    domain->is_acknowledged = domain->is_acknowledged || is_there;
    if (is_there)
        domain->acknowledged_by_host = (uint8_t)(call->host + 1);
    count_answer(worker->load, is_there ? NULL : err);
}

static void
step_update(struct load_worker *worker, struct load_call *call)
{
    unsigned index = (unsigned)chance(worker->domain_count);
    struct load_domain *domain = &worker->domains[index];
    if (!domain->is_acknowledged)
        return;
    uint32_t sequence = ++domain->sequence_tried;
    struct error *err =
        load_describe_as(call, name_of(call->arena, worker->number, index), sequence);
    if (err == NULL) {
        domain->sequence_acknowledged = sequence;
        domain->acknowledged_by_host = (uint8_t)(call->host + 1);
    } else if (err->kind == ERR_ENTITY_NOT_EXISTS &&
               domain->acknowledged_by_host == call->host + 1) {
        verdict_violate(&worker->load->verdict,
                        "host %u does not know a domain that it acknowledged", call->host);
    }
    count_answer(worker->load, err);
}

/* Who asks the host that acknowledged the newest change sees it. */
static void
step_describe(struct load_worker *worker, struct load_call *call)
{
    unsigned index = (unsigned)chance(worker->domain_count);
    const struct load_domain before = worker->domains[index];
    API(Domain) *domain = NULL;
    struct error *err = load_describe(call, name_of(call->arena, worker->number, index), &domain);
    uint32_t sequence = err == NULL ? load_sequence(domain) : 0;
    bool must_see = before.is_acknowledged && before.acknowledged_by_host == call->host + 1;
    if (must_see && err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        verdict_violate(&worker->load->verdict, "host %u lost domain %u of worker %u", call->host,
                        index, worker->number);
    if (must_see && err == NULL && sequence < before.sequence_acknowledged)
        verdict_violate(&worker->load->verdict, "host %u shows description %u, it acknowledged %u",
                        call->host, sequence, before.sequence_acknowledged);
    worker->load->stale_reads_checked += must_see && err == NULL;
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        err = NULL; /* another host may not have heard of it */
    count_answer(worker->load, err);
}

static void
worker_step(void *context, unsigned number, struct load_clients *clients)
{
    struct load_worker *worker = &((struct domain_load *)context)->workers[number];
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {.clients = clients, .arena = arena};
    call.host = (unsigned)chance(worker->load->sim->count);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    uint64_t what = worker->domain_count == 0 ? 0 : chance(10);
    if (what < 3)
        step_register(worker, &call);
    else if (what < 7)
        step_update(worker, &call);
    else
        step_describe(worker, &call);
    fiber_set_deadline(NEVER);
}

struct domain_load *
domain_load_start(struct sim *sim, unsigned workers, int64_t think_max)
{
    struct domain_load *load = memory_zalloc(1, sizeof *load);
    load->sim = sim;
    load->client_pool = (struct client_pool){.count = workers,
                                             .think_max = think_max,
                                             .step = worker_step,
                                             .load = load,
                                             .verdict = &load->verdict};
    load->workers = memory_zalloc(workers, sizeof *load->workers);
    for (unsigned i = 0; i < workers; i++) {
        load->workers[i].load = load;
        load->workers[i].number = i;
    }
    client_pool_start(&load->client_pool, sim);
    return load;
}

void
domain_load_free(struct domain_load *load)
{
    memory_free(load->workers);
    memory_free(load);
}
