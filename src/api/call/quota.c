/* quota.c - how many calls a second a domain, and the whole host, may make (H.3).
 *
 * Calls are of four kinds: of users, of workers, about lists, and asynchronous ones. Each kind has
 * a rate for the host and one for each domain; both are checked, the host's first. Polls and starts
 * have one for each task list, too; a sticky or ephemeral list shares that of its base list.
 * Answers of workers are never refused: work that was done would be done again. Health,
 * domains and calls of other clusters have no quota. Which method is of which kind, its row says.
 * All loops share the rates (base/quota.h). */
#include "base/quota.h"
#include "api/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define QUOTAS_MAX 65536 /* that a loop remembers; lists beyond have none */

static const struct {
    const char *name;
    enum dynamic_key of_host, of_domain, of_domain_everywhere;
    enum dynamic_key of_list, of_list_everywhere; /* if the call names a list */
} kinds[QUOTA_CLASSES] = {
    [QUOTA_USER] = {"user", DYNAMIC_USER_RPS, DYNAMIC_DOMAIN_USER_RPS,
                    DYNAMIC_GLOBAL_DOMAIN_USER_RPS, DYNAMIC_LIST_USER_RPS,
                    DYNAMIC_GLOBAL_LIST_USER_RPS},
    [QUOTA_WORKER] = {"worker", DYNAMIC_WORKER_RPS, DYNAMIC_DOMAIN_WORKER_RPS,
                      DYNAMIC_GLOBAL_DOMAIN_WORKER_RPS, DYNAMIC_LIST_WORKER_RPS,
                      DYNAMIC_GLOBAL_LIST_WORKER_RPS},
    [QUOTA_VISIBILITY] = {"visibility", DYNAMIC_VISIBILITY_RPS, DYNAMIC_DOMAIN_VISIBILITY_RPS,
                          DYNAMIC_GLOBAL_DOMAIN_VISIBILITY_RPS, 0, 0},
    [QUOTA_ASYNC] = {"async", DYNAMIC_ASYNC_RPS, DYNAMIC_DOMAIN_ASYNC_RPS,
                     DYNAMIC_GLOBAL_DOMAIN_ASYNC_RPS, DYNAMIC_LIST_ASYNC_RPS,
                     DYNAMIC_GLOBAL_LIST_ASYNC_RPS},
};

void
quota_free(struct api *api)
{
    for (unsigned i = 0; i < api->loop_count; i++)
        map_free(api->loops[i].quotas);
    quotas_free(api->quotas);
}

/* --- asking ---- */

/* The quota of a domain, or of the host (domain ""). A loop remembers it: the map that all loops
 * share is looked at once. */
static struct quota *
find_quota(struct api *api, const char *kind, const char *domain, struct arena *arena)
{
    struct api_loop *loop = api_here(api);
    struct slice name = slice_text(arena_format(arena, "%s %s", kind, domain));
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
    struct slice type = rpc_header(call, "cadence-caller-type");
    const char *const *exempt = dynamic_list(api_of(call)->options.dynamic,
                                             DYNAMIC_QUOTA_BYPASS_CALLERS, NULL, call->arena);
    for (; *exempt != NULL; exempt++)
        if (slice_equal(type, slice_text(*exempt)))
            return true;
    return false;
}

/* False is the usual case: no rate of the kind is set, so nothing more has to be looked up. */
static bool
has_rates(const struct dynamic *dynamic, enum quota_class kind)
{
    return dynamic_is_set(dynamic, kinds[kind].of_host) ||
           dynamic_is_set(dynamic, kinds[kind].of_domain) ||
           dynamic_is_set(dynamic, kinds[kind].of_domain_everywhere);
}

/* A quota for all hosts together is this host's: a cluster has one host. */
static int64_t
domain_rate(const struct dynamic *dynamic, enum quota_class kind, const char *domain)
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
        probe("quota_poll_waits");
        err = fiber_sleep(pause < left ? pause : left, arena);
    }
    return err == NULL;
}

static int64_t
latest_turn(const struct dynamic *dynamic, enum quota_class kind, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    int64_t delay = 0;
    if (kind == QUOTA_WORKER)
        delay = dynamic_duration(dynamic, DYNAMIC_POLL_DELAY_MAX, &filter);
    return clock_monotonic() + delay;
}

/* --- task lists ---- */

/* False is the usual case: no task list has a rate, so it does not matter which list it is. */
static bool
has_list_rates(const struct dynamic *dynamic, enum quota_class kind)
{
    return dynamic_is_set(dynamic, kinds[kind].of_list) ||
           dynamic_is_set(dynamic, kinds[kind].of_list_everywhere);
}

/* The list whose rate counts for the call; "": none. */
static const char *
rated_list(const struct rpc_call *call)
{
    struct rpc_subject subject;
    rpc_subject(call, &subject);
    const API(TaskList) *list = subject.task_list;
    if (list == NULL)
        return "";
    bool is_normal = list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID) ||
                     list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    return is_normal ? list->name : list->base_name;
}

static bool
list_takes(struct rpc_call *call, enum quota_class kind, const char *domain)
{
    struct api *api = api_of(call);
    check(kind != QUOTA_NONE && kind != QUOTA_VISIBILITY); /* no call of that kind names a list */
    if (!has_list_rates(api->options.dynamic, kind))
        return true;
    const char *list = rated_list(call);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    filter.task_list_name = list;
    int64_t here = dynamic_integer(api->options.dynamic, kinds[kind].of_list, &filter);
    int64_t all = dynamic_integer(api->options.dynamic, kinds[kind].of_list_everywhere, &filter);
    int64_t rate = here < all ? here : all;
    const struct map *known = api_here(api)->quotas;
    bool is_full = known != NULL && map_count(known) >= QUOTAS_MAX;
    if (list[0] == '\0' || rate >= INT32_MAX || is_full || is_exempt(call))
        return true;
    const char *name = arena_format(call->arena, "%s/%s", domain, list);
    return quota_take(find_quota(api, kinds[kind].name, name, call->arena), (double)rate,
                      clock_monotonic());
}

/* --- all together ---- */

static bool
domain_takes(struct rpc_call *call, enum quota_class kind, const char *domain)
{
    struct api *api = api_of(call);
    const struct dynamic *dynamic = api->options.dynamic;
    if (!has_rates(dynamic, kind))
        return true;
    int64_t rate_of_host = dynamic_integer(dynamic, kinds[kind].of_host, NULL);
    int64_t rate_of_domain = domain_rate(dynamic, kind, domain);
    bool has_limit = rate_of_host < INT32_MAX || rate_of_domain < INT32_MAX;
    if (!has_limit || is_exempt(call))
        return true;
    struct quota *of_host = find_quota(api, kinds[kind].name, "", call->arena);
    struct quota *of_domain = find_quota(api, kinds[kind].name, domain, call->arena);
    int64_t latest = latest_turn(dynamic, kind, domain);
    return take_in_time(of_host, (double)rate_of_host, latest, call->arena) &&
           take_in_time(of_domain, (double)rate_of_domain, latest, call->arena);
}

struct error *
quota_check(struct rpc_call *call, const char *domain)
{
    const struct rpc_method *method = rpc_method(call);
    enum quota_class kind = method->quota;
    bool has_list = method->list_quota == LIST_RATED;
    if (kind == QUOTA_NONE ||
        (domain_takes(call, kind, domain) && (!has_list || list_takes(call, kind, domain))))
        return NULL;
    probe("quota_call_refused");
    return errors_service_busy(call->arena, "",
                               "Too many outstanding requests to the cadence service");
}

struct error *
quota_check_list(struct rpc_call *call, const char *domain, enum dynamic_key key)
{
    struct api *api = api_of(call);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    int64_t rate = dynamic_integer(api->options.dynamic, key, &filter);
    if (rate >= INT32_MAX || is_exempt(call))
        return NULL;
    struct quota *quota = find_quota(api, "lists", domain, call->arena);
    if (quota_take(quota, (double)rate, clock_monotonic()))
        return NULL;
    probe("quota_list_refused");
    return errors_service_busy(call->arena, "", "Persistence Max QPS Reached for List Operations.");
}
