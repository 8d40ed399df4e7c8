/* failover_fast.c - admin cluster failover_fast: all managed domains go to one cluster at once, by
 * calls of this client; no workflow, no batches, no way back. See failover.h. */
#include <string.h>
#include <unistd.h>

#include "cli/domain/domain_show.h"
#include "cli/failover/failover.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"

#define TIMEOUT (10 * NS_PER_S)

static bool
is_confirmed(struct cli_call *call, const char *target, size_t count)
{
    char answer[16] = "";
    if (call->domain.is_confirmed || count == 0)
        return true;
    cli_print("%zu domains go to %s at once. Please confirm [Yes/No]: ", count, target);
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer - 1);
    return length >= 1 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* The managed ones that are active elsewhere. */
static void
pick_away(struct cli_call *call, const char *target, struct domain_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *active = list->items[i]->active_cluster_name;
        struct managed_params params = {.target = target, .sources = &active, .source_count = 1};
        struct managed_move move;
        if (strcmp(active, target) != 0 &&
            managed_pick(KIND_FAILOVER, &params, list->items[i], call->arena, &move))
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

static bool
move(struct cli_call *call, const char *domain, const char *target)
{
    API(FailoverDomainRequest) request = API_VALUE(FAILOVER_DOMAIN_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    request.domain_name = (char *)domain;
    request.domain_active_cluster_name = (char *)target;
    request.reason = "failover_fast";
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.DomainAPI/FailoverDomain", &request.base, TIMEOUT,
                API_TYPE(failover_domain_response), &answer);
    if (err == NULL)
        cli_print("Success failover domain: %s\n", show_text(domain, call->arena));
    else
        cli_print("Failed failover domain: %s: %s\n", show_text(domain, call->arena),
                  show_text(err->message, call->arena));
    return err == NULL;
}

struct error *
cli_failover_fast(struct cli_call *call)
{
    const char *target;
    struct domain_list list = {0};
    size_t moved = 0;
    struct error *err = cli_need(call, "target_cluster", &target);
    if (err == NULL)
        err = cli_list_domains(call, &list);
    if (err != NULL)
        return err;
    pick_away(call, target, &list);
    if (!is_confirmed(call, target, list.count))
        return error_new(call->arena, ERR_CANCELLED,
                         "nothing was moved; answer Yes, or give --yes");
    for (size_t i = 0; i < list.count; i++)
        moved += move(call, list.items[i]->name, target);
    cli_print("Succeed %zu, failed %zu\n", moved, list.count - moved);
    call->exit_code = moved < list.count ? 1 : 0;
    return NULL;
}
