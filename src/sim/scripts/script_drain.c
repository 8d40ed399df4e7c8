/* script_drain.c - see script_drain.h. */
#include "sim/scripts/script_drain.h"

#include <string.h>

API(Domain) *
script_describe_domain(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    for (int try = 0; domain == NULL && try < 100; try++) {
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        if (load_describe(&call, SCRIPT_DOMAIN, &domain) != NULL)
            domain = NULL;
        fiber_set_deadline(NEVER);
        script_sleep(script, 10 * NS_PER_MS);
    }
    EXPECT(domain != NULL);
    return domain;
}

static struct error *
ask_graceful(struct script *script, unsigned to, int64_t seconds)
{
    return SCRIPT_CALL(script, to, NULL, failover_domain, .domain_name = SCRIPT_DOMAIN,
                       .domain_active_cluster_name =
                           presence_make_text(arena_format(script->arena, "cluster%u", to)),
                       .failover_timeout = presence_make_duration(script->arena, seconds));
}

void
script_begin_drain(struct script *script, unsigned to, int64_t seconds)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    const char *name = arena_format(script->arena, "cluster%u", to);
    struct error *err = ask_graceful(script, to, seconds);
    while (err != NULL &&
           strcmp(script_describe_domain(script, to)->active_cluster_name, name) != 0) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
        err = ask_graceful(script, to, seconds);
    }
}

unsigned
script_count_signals(const API(History) *history, const char *name)
{
    unsigned count = 0;
    for (size_t i = 0; history != NULL && i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        if (event->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED))
            count +=
                strcmp(event->workflow_execution_signaled_event_attributes->signal_name, name) == 0;
    }
    return count;
}
