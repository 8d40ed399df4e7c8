/* quota.c - how many calls a second a domain, and the whole host, may make (H.3).
 *
 * Calls are of four kinds: of users, of workers, about lists, and asynchronous ones. Each kind has
 * a rate for the host and one for each domain; both are asked, the host's first. Answers of workers
 * are never refused: work that was done would be done again. What is not in the table below
 * (health, domains, what clusters ask) has no quota. All loops share the rates (base/quota.h). */
#include "base/quota.h"
#include "api/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/services.h"

enum quota_kind { QUOTA_NONE, QUOTA_USER, QUOTA_WORKER, QUOTA_VISIBILITY, QUOTA_ASYNC };
#define QUOTA_KINDS 5

static const struct {
    const char *name;
    enum dynamic_key of_host, of_domain, of_domain_everywhere;
} kinds[QUOTA_KINDS] = {
    [QUOTA_USER] = {"user", DYNAMIC_USER_RPS, DYNAMIC_DOMAIN_USER_RPS,
                    DYNAMIC_GLOBAL_DOMAIN_USER_RPS},
    [QUOTA_WORKER] = {"worker", DYNAMIC_WORKER_RPS, DYNAMIC_DOMAIN_WORKER_RPS,
                      DYNAMIC_GLOBAL_DOMAIN_WORKER_RPS},
    [QUOTA_VISIBILITY] = {"visibility", DYNAMIC_VISIBILITY_RPS, DYNAMIC_DOMAIN_VISIBILITY_RPS,
                          DYNAMIC_GLOBAL_DOMAIN_VISIBILITY_RPS},
    [QUOTA_ASYNC] = {"async", DYNAMIC_ASYNC_RPS, DYNAMIC_DOMAIN_ASYNC_RPS,
                     DYNAMIC_GLOBAL_DOMAIN_ASYNC_RPS},
};

static const struct {
    const char *method;
    enum quota_kind kind;
} limited_methods[] = {
    {"StartWorkflowExecution", QUOTA_USER},
    {"SignalWorkflowExecution", QUOTA_USER},
    {"SignalWithStartWorkflowExecution", QUOTA_USER},
    {"RequestCancelWorkflowExecution", QUOTA_USER},
    {"TerminateWorkflowExecution", QUOTA_USER},
    {"RestartWorkflowExecution", QUOTA_USER},
    {"ResetWorkflowExecution", QUOTA_USER},
    {"RefreshWorkflowTasks", QUOTA_USER},
    {"DescribeWorkflowExecution", QUOTA_USER},
    {"DiagnoseWorkflowExecution", QUOTA_USER},
    {"GetWorkflowExecutionHistory", QUOTA_USER},
    {"QueryWorkflow", QUOTA_USER},
    {"DescribeTaskList", QUOTA_USER},
    {"ListTaskListPartitions", QUOTA_USER},
    {"GetTaskListsByDomain", QUOTA_USER},
    {"FailoverDomain", QUOTA_USER},
    {"CreateSchedule", QUOTA_USER},
    {"DescribeSchedule", QUOTA_USER},
    {"UpdateSchedule", QUOTA_USER},
    {"DeleteSchedule", QUOTA_USER},
    {"PauseSchedule", QUOTA_USER},
    {"UnpauseSchedule", QUOTA_USER},
    {"BackfillSchedule", QUOTA_USER},
    {"ListSchedules", QUOTA_USER},
    {"PollForDecisionTask", QUOTA_WORKER},
    {"PollForActivityTask", QUOTA_WORKER},
    {"ListWorkflowExecutions", QUOTA_VISIBILITY},
    {"ListOpenWorkflowExecutions", QUOTA_VISIBILITY},
    {"ListClosedWorkflowExecutions", QUOTA_VISIBILITY},
    {"ListArchivedWorkflowExecutions", QUOTA_VISIBILITY},
    {"ScanWorkflowExecutions", QUOTA_VISIBILITY},
    {"CountWorkflowExecutions", QUOTA_VISIBILITY},
    {"StartWorkflowExecutionAsync", QUOTA_ASYNC},
    {"SignalWithStartWorkflowExecutionAsync", QUOTA_ASYNC},
};

/* --- which method is of which kind ---- */

static bool
is_public(const struct wire_method *method)
{
    return strncmp(method->service->name, "uber.cadence.api.v1.", 20) == 0;
}

void
quota_init(struct api *api)
{
    api->quotas = quotas_new();
    api->quota_kinds = memory_zalloc(wire_method_count(), sizeof *api->quota_kinds);
    size_t found = 0;
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        for (size_t k = 0; k < array_length(limited_methods) && is_public(&method); k++) {
            if (strcmp(method.name, limited_methods[k].method) != 0)
                continue;
            api->quota_kinds[i] = (uint8_t)limited_methods[k].kind;
            found++;
        }
    }
    check_that(found == array_length(limited_methods), "a method of the table is in no proto");
}

void
quota_free(struct api *api)
{
    for (unsigned i = 0; i < api->loop_count; i++)
        map_free(api->loops[i].quotas);
    quotas_free(api->quotas);
    memory_free(api->quota_kinds);
}

/* --- asking ---- */

/* The quota of a domain, or of the host (domain ""). A loop asks the others once. */
static struct quota *
find_quota(struct api *api, enum quota_kind kind, const char *domain, struct arena *arena)
{
    struct api_loop *loop = &api->loops[loop_index(loop_self())];
    struct slice name = slice_text(arena_format(arena, "%s %s", kinds[kind].name, domain));
    if (loop->quotas == NULL)
        loop->quotas = map_new();
    struct quota *quota = map_get(loop->quotas, name);
    if (quota == NULL) {
        quota = quotas_find(api->quotas, name);
        map_put(loop->quotas, name, quota);
    }
    return quota;
}

static bool
is_exempt(struct rpc_call *call)
{
    struct slice type = grpc_call_header(call->grpc, "cadence-caller-type");
    const char *const *exempt = dynamic_list(api_of(call)->options.dynamic,
                                             DYNAMIC_QUOTA_BYPASS_CALLERS, NULL, call->arena);
    for (; *exempt != NULL; exempt++)
        if (slice_equal(type, slice_text(*exempt)))
            return true;
    return false;
}

/* A quota for all hosts together is this one's: a cluster has one. */
static int64_t
domain_rate(const struct dynamic *dynamic, enum quota_kind kind, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    int64_t here = dynamic_integer(dynamic, kinds[kind].of_domain, &filter);
    int64_t everywhere = dynamic_integer(dynamic, kinds[kind].of_domain_everywhere, &filter);
    everywhere = everywhere < 1 ? 1 : everywhere;
    return here < everywhere ? here : everywhere;
}

/* A poll may wait for its turn until then (H-028). Yields. */
static bool
take_in_time(struct quota *quota, double rate, int64_t until, struct arena *arena)
{
    struct error *err = NULL;
    while (err == NULL && !quota_take(quota, rate, clock_monotonic())) {
        int64_t left = until - clock_monotonic();
        if (left <= 0 || rate <= 0)
            return false;
        int64_t pause = rate >= 1000 ? NS_PER_MS : (int64_t)((double)NS_PER_S / rate);
        mark("quota_poll_waits");
        err = fiber_sleep(pause < left ? pause : left, arena);
    }
    return err == NULL;
}

static int64_t
latest_turn(const struct dynamic *dynamic, enum quota_kind kind, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    int64_t delay = 0;
    if (kind == QUOTA_WORKER)
        delay = dynamic_duration(dynamic, DYNAMIC_POLL_DELAY_MAX, &filter);
    return clock_monotonic() + delay;
}

struct error *
quota_check(struct rpc_call *call, const char *domain)
{
    struct api *api = api_of(call);
    const struct dynamic *dynamic = api->options.dynamic;
    enum quota_kind kind = (enum quota_kind)api->quota_kinds[rpc_index(call)];
    if (kind == QUOTA_NONE)
        return NULL;
    int64_t rate_of_host = dynamic_integer(dynamic, kinds[kind].of_host, NULL);
    int64_t rate_of_domain = domain_rate(dynamic, kind, domain);
    bool has_limit = rate_of_host < INT32_MAX || rate_of_domain < INT32_MAX;
    if (!has_limit || is_exempt(call))
        return NULL;
    struct quota *of_host = find_quota(api, kind, "", call->arena);
    struct quota *of_domain = find_quota(api, kind, domain, call->arena);
    int64_t latest = latest_turn(dynamic, kind, domain);
    if (take_in_time(of_host, (double)rate_of_host, latest, call->arena) &&
        take_in_time(of_domain, (double)rate_of_domain, latest, call->arena))
        return NULL;
    mark("quota_call_refused");
    return errors_service_busy(call->arena, "",
                               "Too many outstanding requests to the cadence service");
}
