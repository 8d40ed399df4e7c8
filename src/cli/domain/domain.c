/* domain.c - the domain commands: make the request, ask the server, say what came of it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vector.h"
#include "cli/base/inside.h"
#include "cli/domain/domain_attributes.h"
#include "cli/domain/domain_drain.h"
#include "cli/domain/domain_request.h"
#include "cli/domain/domain_show.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT       (5 * NS_PER_S)
#define LIST_PAGE_SIZE     200
#define FAILOVER_PAGE_SIZE 10 /* also how many are shown unless all are asked for */
#define ANSWER_MAX         16 /* "Yes" and some blanks */

/* What to do next, where an error leaves no doubt: by its kind and text of the server, which are
 * those of Cadence. The first that fits counts. */
static const struct {
    enum error_kind kind;
    const char *words;
    const char *next;
} advice[] = {
    {ERR_ENTITY_NOT_EXISTS, "", "cadenza domain list --all shows all domains"},
    {ERR_DOMAIN_ALREADY_EXISTS, "", "cadenza domain update changes it"},
    {ERR_ACCESS_DENIED, "",
     "give --jwt TOKEN or --security_token TOKEN, or ask the operators of the server"},
    {ERR_BAD_REQUEST, "not primary cluster",
     "global domains are changed at the group's primary cluster: --address HOST:PORT; a failover "
     "can be asked of any"},
    {ERR_BAD_REQUEST, "to-be-passive cluster. Ask cluster", NULL}, /* the message says what to do */
    {ERR_BAD_REQUEST, "from a to-be-passive cluster",
     "ask the cluster that is to become active: --address HOST:PORT"},
    {ERR_BAD_REQUEST, "from an active cluster to an active cluster",
     "it is active there already, nothing was changed; cadenza domain describe shows where"},
    {ERR_BAD_REQUEST, "no change detected",
     "it is active there already, nothing was changed; cadenza domain describe shows where"},
    {ERR_BAD_REQUEST, "concurrent graceful failover",
     "cadenza domain failover --watch shows the one that is under way, --failover_type force to "
     "the "
     "same cluster ends it at once"},
    {ERR_BAD_REQUEST, "not contained in all clusters",
     "cadenza domain describe shows its clusters, cadenza domain update --clusters changes them"},
};

static struct error *
advise(struct cli_call *call, struct error *err)
{
    for (size_t i = 0; i < array_length(advice); i++) {
        if (err->kind != advice[i].kind || strstr(err->message, advice[i].words) == NULL)
            continue;
        return advice[i].next == NULL
                   ? err
                   : error_new(call->arena, err->kind, "%s (%s)", err->message, advice[i].next);
    }
    return err;
}

/* One call of the domain API. */
static struct error *
ask(struct cli_call *call, const char *method, const ProtobufCMessage *request,
    const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    const char *path = arena_format(call->arena, "/uber.cadence.api.v1.DomainAPI/%s", method);
    struct error *err = cli_ask(call, path, request, CALL_TIMEOUT, type, response);
    return err == NULL ? NULL : advise(call, err);
}

struct error *
cli_domain_register(struct cli_call *call)
{
    API(RegisterDomainRequest) *request = NULL;
    struct error *err = domain_make_register(&call->domain, call->arena, &request);
    if (err != NULL)
        return cli_wrong(call, err);
    ProtobufCMessage *answer = NULL;
    err = ask(call, "RegisterDomain", &request->base, API_TYPE(register_domain_response), &answer);
    if (err == NULL)
        cli_print("Domain %s successfully registered.\n", request->name);
    return err;
}

static struct error *describe(struct cli_call *call, API(Domain) **domain);

/* As it is before it is asked to move; NULL: nobody says, and it is moved all the same. */
static const API(Domain) *
ask_before(struct cli_call *call)
{
    API(Domain) *domain = NULL;
    struct error *err = describe(call, &domain);
    return err == NULL ? domain : NULL;
}

static struct error *
take_domain(struct cli_call *call, const API(Domain) *answered, const API(Domain) **domain)
{
    *domain = answered;
    return answered != NULL ? NULL
                            : error_new(call->arena, ERR_UNCATEGORISED,
                                        "%s answered without a domain", call->address);
}

/* What came of it, or, if a graceful failover was begun, how it goes on, unless nobody wants to
 * wait. */
static struct error *
report_moves(struct cli_call *call, const struct domain_moves *moves, bool is_graceful,
             int64_t began)
{
    const char *name = moves->after->name;
    if (!is_graceful)
        cli_print("%s", domain_show_moves(moves, call->arena));
    else if (!cli_is_on(call, "detach"))
        return domain_follow_drain(
            call, name,
            &(struct drain_request){moves->after, moves->attributes, moves->moves_domain, began});
    else
        cli_print(
            "The failover continues; cadenza domain failover --domain %s --watch follows it.\n",
            show_text(name, call->arena));
    return NULL;
}

struct error *
cli_domain_update(struct cli_call *call)
{
    const char *user = getenv("USER");
    API(UpdateDomainRequest) *request = NULL;
    int64_t began = clock_monotonic();
    struct error *err =
        domain_make_update(&call->domain, user != NULL ? user : "unknown", call->arena, &request);
    if (err != NULL)
        return cli_wrong(call, err);
    struct domain_moves moves = {.attributes = request->active_clusters,
                                 .moves_domain = call->domain.active_cluster != NULL};
    bool has_moves = moves.moves_domain || moves.attributes != NULL;
    if (has_moves)
        moves.before = ask_before(call);
    ProtobufCMessage *answer = NULL;
    err = ask(call, "UpdateDomain", &request->base, API_TYPE(update_domain_response), &answer);
    if (err == NULL)
        err = take_domain(call, ((API(UpdateDomainResponse) *)answer)->domain, &moves.after);
    if (err != NULL)
        return err;
    if (!has_moves || request->n_clusters > 0 || domain_has_moved(&moves))
        cli_print("Domain %s successfully updated.\n", request->name);
    return has_moves ? report_moves(call, &moves, request->failover_timeout != NULL, began) : NULL;
}

/* Everything that is active in a cluster goes to another one. */
static struct error *
leave_cluster(struct cli_call *call, API(FailoverDomainRequest) *request)
{
    API(Domain) *domain = NULL;
    struct error *err = describe(call, &domain);
    if (err != NULL)
        return err;
    return domain_leave(domain, call->domain.leave_cluster, call->domain.to_cluster, call->arena,
                        request);
}

/* --watch alone shows one that is under way; with a target it is begun first. */
struct error *
cli_domain_failover(struct cli_call *call)
{
    API(FailoverDomainRequest) *request = NULL;
    int64_t began = clock_monotonic();
    bool has_target = call->domain.active_cluster != NULL ||
                      call->domain.active_clusters.count > 0 ||
                      call->domain.active_clusters_json != NULL;
    struct error *err = domain_need_name(&call->domain, call->arena);
    if (err == NULL && cli_is_on(call, "watch") && !has_target)
        return domain_follow_drain(call, call->domain.name, NULL);
    err = domain_make_failover(&call->domain, call->arena, &request);
    if (err != NULL)
        return cli_wrong(call, err);
    if (call->domain.leave_cluster != NULL)
        err = leave_cluster(call, request);
    if (err != NULL)
        return err;
    struct domain_moves moves = {.before = ask_before(call),
                                 .attributes = request->active_clusters,
                                 .moves_domain = request->domain_active_cluster_name[0] != '\0'};
    ProtobufCMessage *answer = NULL;
    err = ask(call, "FailoverDomain", &request->base, API_TYPE(failover_domain_response), &answer);
    if (err == NULL)
        err = take_domain(call, ((API(FailoverDomainResponse) *)answer)->domain, &moves.after);
    if (err != NULL)
        return err;
    return report_moves(call, &moves, request->failover_timeout != NULL, began);
}

struct error *
cli_domain_deprecate(struct cli_call *call)
{
    struct error *err = domain_need_name(&call->domain, call->arena);
    if (err != NULL)
        return cli_wrong(call, err);
    API(DeprecateDomainRequest) request = API_VALUE(DEPRECATE_DOMAIN_REQUEST__INIT);
    request.name = presence_make_text(call->domain.name);
    request.security_token = presence_make_text(call->domain.security_token);
    ProtobufCMessage *answer = NULL;
    err = ask(call, "DeprecateDomain", &request.base, API_TYPE(deprecate_domain_response), &answer);
    if (err == NULL)
        cli_print("Domain %s successfully deprecated.\n", request.name);
    return err;
}

/* --- describe, delete ----------------------------------------------------------------------------
 */

/* The domain that --domain_id or --domain names. */
static struct error *
ask_described(struct cli_call *call, API(DescribeDomainResponse) **described)
{
    API(DescribeDomainRequest) request = API_VALUE(DESCRIBE_DOMAIN_REQUEST__INIT);
    if (call->domain.id != NULL) {
        request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_ID);
        request.id = presence_make_text(call->domain.id);
    } else {
        struct error *wrong = domain_need_name(&call->domain, call->arena);
        if (wrong != NULL)
            return cli_wrong(call, wrong);
        request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
        request.name = presence_make_text(call->domain.name);
    }
    ProtobufCMessage *answer = NULL;
    struct error *err =
        ask(call, "DescribeDomain", &request.base, API_TYPE(describe_domain_response), &answer);
    if (err != NULL)
        return err;
    *described = (API(DescribeDomainResponse) *)answer;
    const API(Domain) *domain;
    return take_domain(call, (*described)->domain, &domain);
}

static struct error *
describe(struct cli_call *call, API(Domain) **domain)
{
    API(DescribeDomainResponse) *described = NULL;
    struct error *err = ask_described(call, &described);
    if (err == NULL)
        *domain = described->domain;
    return err;
}

struct error *
cli_domain_get_id_or_name(struct cli_call *call)
{
    API(Domain) *domain = NULL;
    struct error *err = describe(call, &domain);
    if (err != NULL)
        return err;
    if (call->domain.id != NULL)
        cli_print("domainName for domainID %s is %s\n", show_text(call->domain.id, call->arena),
                  show_text(domain->name, call->arena));
    else
        cli_print("domainID for domainName %s is %s\n", show_text(call->domain.name, call->arena),
                  show_text(domain->id, call->arena));
    return NULL;
}

struct error *
cli_domain_describe(struct cli_call *call)
{
    API(DescribeDomainResponse) *described = NULL;
    struct error *err = ask_described(call, &described);
    if (err == NULL)
        cli_print("%s", call->as_json ? domain_json_described(described, call->arena)
                                      : domain_show_described(described, call->arena));
    return err;
}

/* Shows what would go and waits for a Yes. A domain in use is not asked about: the server would
 * refuse it anyway. */
static struct error *
confirm(struct cli_call *call, const API(Domain) *domain)
{
    if (domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED))
        return error_new(
            call->arena, ERR_BAD_REQUEST,
            "Domain %s is not deprecated; run cadenza domain deprecate --domain %s first",
            domain->name, domain->name);
    if (call->domain.is_confirmed)
        return NULL;
    char answer[ANSWER_MAX + 1] = "";
    cli_print("%s\nDelete this domain permanently? Please confirm [Yes/No]: ",
              domain_show(domain, call->arena));
    ssize_t length = read(STDIN_FILENO, answer, ANSWER_MAX);
    answer[length > 0 ? length : 0] = '\0';
    answer[strcspn(answer, " \r\n")] = '\0';
    if (strcasecmp(answer, "yes") == 0)
        return NULL;
    return error_new(call->arena, ERR_CANCELLED,
                     "nothing was deleted; answer Yes, or give --yes, to delete %s", domain->name);
}

struct error *
cli_domain_delete(struct cli_call *call)
{
    struct error *err = domain_need_name(&call->domain, call->arena);
    if (err != NULL)
        return cli_wrong(call, err);
    API(Domain) *domain = NULL;
    err = describe(call, &domain);
    if (err == NULL)
        err = confirm(call, domain);
    if (err != NULL)
        return err;
    API(DeleteDomainRequest) request = API_VALUE(DELETE_DOMAIN_REQUEST__INIT);
    request.name = presence_make_text(call->domain.name);
    request.security_token = presence_make_text(call->domain.security_token);
    ProtobufCMessage *answer = NULL;
    err = ask(call, "DeleteDomain", &request.base, API_TYPE(delete_domain_response), &answer);
    if (err == NULL)
        cli_print("Domain %s successfully deleted.\n", request.name);
    return err;
}

/* --- lists ---------------------------------------------------------------------------------------
 */

static bool
is_wanted(const struct domain_flags *flags, const API(Domain) *domain)
{
    if (flags->prefix != NULL && strncmp(domain->name, flags->prefix, strlen(flags->prefix)) != 0)
        return false;
    if (flags->wants_all)
        return true;
    return domain->status == (flags->wants_deprecated
                                  ? API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED)
                                  : API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED));
}

/* Page after page, those that are wanted. */
static struct error *
list_domains(struct cli_call *call, int32_t page_size, struct domain_list *list)
{
    API(ListDomainsRequest) request = API_VALUE(LIST_DOMAINS_REQUEST__INIT);
    request.page_size = page_size;
    do {
        ProtobufCMessage *answer = NULL;
        struct error *err =
            ask(call, "ListDomains", &request.base, API_TYPE(list_domains_response), &answer);
        if (err != NULL)
            return err;
        const API(ListDomainsResponse) *page = (const API(ListDomainsResponse) *)answer;
        for (size_t i = 0; i < page->n_domains; i++) {
            if (is_wanted(&call->domain, page->domains[i]))
                vector_push_in(list, call->arena, page->domains[i]);
        }
        request.next_page_token = page->next_page_token;
    } while (request.next_page_token.len > 0);
    return NULL;
}

struct error *
cli_list_domains(struct cli_call *call, struct domain_list *list)
{
    return list_domains(call, LIST_PAGE_SIZE, list);
}

struct error *
cli_domain_list(struct cli_call *call)
{
    int32_t page_size = 0;
    struct error *err =
        domain_read_page_size(&call->domain, LIST_PAGE_SIZE, call->arena, &page_size);
    if (err == NULL && call->domain.wants_all && call->domain.wants_deprecated)
        err = error_new(call->arena, ERR_BAD_REQUEST,
                        "--all and --deprecated exclude each other; give one of them");
    if (err != NULL)
        return cli_wrong(call, err);
    struct domain_list list = {0};
    err = list_domains(call, page_size, &list);
    if (err == NULL)
        cli_print("%s", call->as_json
                            ? domain_json_list(&list, call->arena)
                            : domain_show_list(&list, call->domain.wants_full, call->arena));
    return err;
}

/* The newest failovers, page after page, until there are enough. */
static struct error *
list_failovers(struct cli_call *call, const char *domain_id, int32_t page_size,
               struct failover_list *list)
{
    API(ListFailoverHistoryRequest) request = API_VALUE(LIST_FAILOVER_HISTORY_REQUEST__INIT);
    request.filters = message_new(call->arena, API_TYPE(list_failover_history_request_filters));
    request.filters->domain_id = presence_make_text(domain_id);
    if (call->domain.attribute != NULL) {
        struct error *wrong =
            domain_read_attribute("cluster_attribute", call->domain.attribute, call->arena,
                                  &request.filters->cluster_attribute);
        if (wrong != NULL)
            return cli_wrong(call, wrong);
    }
    request.pagination = message_new(call->arena, API_TYPE(pagination_options));
    request.pagination->page_size = page_size;
    size_t wanted = call->domain.wants_all ? SIZE_MAX : FAILOVER_PAGE_SIZE;
    do {
        ProtobufCMessage *answer = NULL;
        struct error *err = ask(call, "ListFailoverHistory", &request.base,
                                API_TYPE(list_failover_history_response), &answer);
        if (err != NULL)
            return err;
        const API(ListFailoverHistoryResponse) *page =
            (const API(ListFailoverHistoryResponse) *)answer;
        for (size_t i = 0; i < page->n_failover_events && list->count < wanted; i++)
            vector_push_in(list, call->arena, page->failover_events[i]);
        request.pagination->next_page_token = page->next_page_token;
    } while (request.pagination->next_page_token.len > 0 && list->count < wanted);
    return NULL;
}

struct error *
cli_domain_list_failover_history(struct cli_call *call)
{
    int32_t page_size = 0;
    struct error *err =
        domain_read_page_size(&call->domain, FAILOVER_PAGE_SIZE, call->arena, &page_size);
    if (err != NULL)
        return cli_wrong(call, err);
    API(Domain) *domain = NULL;
    struct failover_list list = {0};
    err = describe(call, &domain);
    if (err == NULL)
        err = list_failovers(call, domain->id, page_size, &list);
    if (err != NULL)
        return err;
    if (call->as_json)
        cli_print("%s", domain_json_failovers(&list, call->arena));
    else if (list.count == 0)
        cli_print("No failover history found for domain: %s\n", domain->name);
    else
        cli_print("%s", domain_show_failovers(&list, call->arena));
    return NULL;
}
