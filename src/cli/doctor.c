/* doctor.c - `admin doctor`: asks a server, and the other clusters of its group, and says in
 * sentences what is wrong and what to do about it. What it cannot find out it says, too. */
#include <jansson.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/inside.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define TIMEOUT      (5 * NS_PER_S)
#define PAGE_SIZE    1000
#define SKEW_MAX     NS_PER_S /* what clocks may differ by; lag and timers are read by them */
#define DISK_PERCENT 10       /* less than this is left: nearly full */
#define NAMES_MAX    5        /* of domains that a sentence names */

struct doctor {
    struct cli_call *call;
    json_t *findings;
    const STORE_API(DescribePeersResponse) *peers; /* NULL: the server did not say */
    int64_t offset; /* of the server's clock to ours, ns, and how far that may be wrong */
    int64_t doubt;
};

static void
find(struct doctor *doctor, const char *what, const char *advice)
{
    json_array_append_new(doctor->findings, json_pack("{s:s, s:s}", "what", what, "do", advice));
    if (!doctor->call->as_json)
        cli_print("* %s\n  %s\n", what, advice);
}

static void
find_unanswered(struct doctor *doctor, const char *about, const struct error *err)
{
    find(doctor,
         arena_format(doctor->call->arena, "The server did not say %s: %s", about, err->message),
         "Look into its log; an administrator's token may be needed (--jwt-private-key).");
}

/* ---- this server ---- */

/* False: there is nobody to ask. */
static bool
check_health(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, "/uber.cadence.api.v1.MetaAPI/Health", &request.base, TIMEOUT,
                                API_TYPE(health_response), &answer);
    if (err != NULL) {
        find(doctor,
             arena_format(call->arena, "%s does not answer: %s", call->address, err->message),
             "Start the server, or look into its log: its last line says why it ended.");
        return false;
    }
    const API(HealthResponse) *response = (const API(HealthResponse) *)answer;
    if (!response->ok)
        find(doctor, arena_format(call->arena, "The server is not well: %s", response->message),
             "It is starting or stopping; ask again, then look into its log.");
    return true;
}

static struct error *
count_unowned(struct doctor *doctor, int *unowned, int *total)
{
    struct cli_call *call = doctor->call;
    ADMIN(DescribeShardDistributionRequest) *request =
        message_new(call->arena, ADMIN_TYPE(describe_shard_distribution_request));
    request->page_size = PAGE_SIZE;
    do {
        ProtobufCMessage *answer = NULL;
        struct error *err = cli_ask(
            call, "/uber.cadence.admin.v1.AdminAPI/DescribeShardDistribution", &request->base,
            TIMEOUT, ADMIN_TYPE(describe_shard_distribution_response), &answer);
        if (err != NULL)
            return err;
        const ADMIN(DescribeShardDistributionResponse) *response =
            (const ADMIN(DescribeShardDistributionResponse) *)answer;
        for (size_t i = 0; i < response->n_shards; i++)
            *unowned += strcmp(response->shards[i]->value, "unknown") == 0;
        *total = response->number_of_shards;
        request->page_id++;
    } while (request->page_id * PAGE_SIZE < *total);
    return NULL;
}

static void
check_shards(struct doctor *doctor)
{
    int unowned = 0, total = 0;
    struct error *err = count_unowned(doctor, &unowned, &total);
    if (err != NULL)
        find_unanswered(doctor, "which shards it has", err);
    else if (unowned > 0)
        find(doctor,
             arena_format(doctor->call->arena,
                          "%d of %d shards have no owner: their workflows stand still.", unowned,
                          total),
             "The log says why a shard was not taken; a restart of the server takes all.");
}

static void
check_dead_letters(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    ADMIN(CountDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(count_dlqmessages_request));
    ProtobufCMessage *answer = NULL;
    request->force_fetch = true;
    struct error *err =
        cli_ask(call, "/uber.cadence.admin.v1.AdminAPI/CountDLQMessages", &request->base, TIMEOUT,
                ADMIN_TYPE(count_dlqmessages_response), &answer);
    if (err != NULL) {
        find_unanswered(doctor, "how many dead letters it has", err);
        return;
    }
    const ADMIN(CountDLQMessagesResponse) *response =
        (const ADMIN(CountDLQMessagesResponse) *)answer;
    for (size_t i = 0; i < response->n_history; i++) {
        const ADMIN(HistoryDLQCountEntry) *entry = response->history[i];
        if (entry->count > 0)
            find(doctor,
                 arena_format(call->arena,
                              "%lld messages of %s about shard %d could not be applied.",
                              (long long)entry->count, entry->source_cluster, (int)entry->shard_id),
                 arena_format(call->arena,
                              "cadenza admin dlq read --source_cluster %s --shard_id %d shows "
                              "them, merge applies them again.",
                              entry->source_cluster, (int)entry->shard_id));
    }
    if (response->domain > 0)
        find(doctor,
             arena_format(call->arena, "%lld changes of domains could not be applied.",
                          (long long)response->domain),
             "cadenza admin dlq read --dlq_type domain shows them, merge applies them again.");
}

static void
check_disk(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    struct statvfs disk;
    if (call->data == NULL)
        return;
    if (statvfs(call->data, &disk) != 0) {
        find(doctor, arena_format(call->arena, "The folder %s cannot be looked at.", call->data),
             "--data names the data folder of a server on this machine.");
        return;
    }
    unsigned long long left = disk.f_blocks == 0 ? 100 : disk.f_bavail * 100ull / disk.f_blocks;
    if (left < DISK_PERCENT)
        find(doctor,
             arena_format(call->arena, "%llu %% of the disk of %s is left.", left, call->data),
             "Make room: a server whose disk is full ends. See retention (cadenza domain update "
             "--retention) and old backups.");
}

/* ---- the group ---- */

/* Asks who the peers are; measures the clock of who answers by ours. */
static struct error *
ask_peers(struct cli_call *call, const STORE_API(DescribePeersResponse) **peers, int64_t *offset,
          int64_t *doubt)
{
    STORE_API(DescribePeersRequest) request = CADENZA__ADMIN__V1__DESCRIBE_PEERS_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    int64_t before = clock_wall();
    struct error *err =
        cli_ask(call, "/cadenza.admin.v1.ReplicationAPI/DescribePeers", &request.base, TIMEOUT,
                &cadenza__admin__v1__describe_peers_response__descriptor, &answer);
    int64_t after = clock_wall();
    if (err != NULL)
        return err;
    *peers = (const STORE_API(DescribePeersResponse) *)answer;
    *doubt = (after - before) / 2;
    *offset = (*peers)->time_nanoseconds - before - *doubt;
    return NULL;
}

static void
check_clock(struct doctor *doctor, const STORE_API(Peer) *peer)
{
    struct cli_call *call = doctor->call, there = *call;
    const STORE_API(DescribePeersResponse) *peers;
    int64_t offset, doubt;
    there.address = peer->address;
    struct error *err = ask_peers(&there, &peers, &offset, &doubt);
    if (err != NULL) {
        cli_note("The clock of %s was not looked at: %s\n", peer->name, err->message);
        return;
    }
    int64_t skew = offset - doctor->offset, apart = skew < 0 ? -skew : skew;
    if (apart > SKEW_MAX + doubt + doctor->doubt)
        find(doctor,
             arena_format(call->arena, "The clock of %s is %.1f s %s that of %s.", peer->name,
                          (double)apart / (double)NS_PER_S, skew < 0 ? "behind" : "ahead of",
                          doctor->peers->cluster),
             "Let both machines follow a time server: timers and the measured lag go by their "
             "clocks.");
}

static void
check_peers(struct doctor *doctor)
{
    struct arena *arena = doctor->call->arena;
    struct error *err = ask_peers(doctor->call, &doctor->peers, &doctor->offset, &doctor->doubt);
    if (err != NULL) {
        find_unanswered(doctor, "how it goes with the other clusters", err);
        return;
    }
    for (size_t i = 0; i < doctor->peers->n_peers; i++) {
        const STORE_API(Peer) *peer = doctor->peers->peers[i];
        if (peer->is_away)
            find(doctor,
                 arena_format(arena, "%s cannot follow %s at %s: %s", doctor->peers->cluster,
                              peer->name, peer->address, peer->failure),
                 "Is that server up, and the way to it open? What it wrote meanwhile comes when it "
                 "is back.");
        else if (peer->is_followed)
            check_clock(doctor, peer);
    }
}

static bool
is_away(const struct doctor *doctor, const char *cluster)
{
    for (size_t i = 0; doctor->peers != NULL && i < doctor->peers->n_peers; i++)
        if (strcmp(doctor->peers->peers[i]->name, cluster) == 0)
            return doctor->peers->peers[i]->is_away;
    return false;
}

/* Domains that nobody can write to as long as the cluster is away. */
struct stranded {
    size_t count;
    const char *names;
};

static void
note_domain(struct doctor *doctor, const API(Domain) *domain, struct stranded *stranded)
{
    bool is_new = domain->is_global_domain && is_away(doctor, domain->active_cluster_name);
    if (!is_new)
        return;
    if (stranded->count++ < NAMES_MAX)
        stranded->names = arena_format(doctor->call->arena, "%s%s%s", stranded->names,
                                       stranded->count > 1 ? ", " : "", domain->name);
}

static void
check_domains(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    API(ListDomainsRequest) *request = message_new(call->arena, API_TYPE(list_domains_request));
    struct stranded stranded = {.names = ""};
    request->page_size = PAGE_SIZE;
    do {
        ProtobufCMessage *answer = NULL;
        struct error *err =
            cli_ask(call, "/uber.cadence.api.v1.DomainAPI/ListDomains", &request->base, TIMEOUT,
                    API_TYPE(list_domains_response), &answer);
        if (err != NULL) {
            find_unanswered(doctor, "which domains it has", err);
            return;
        }
        const API(ListDomainsResponse) *response = (const API(ListDomainsResponse) *)answer;
        for (size_t i = 0; i < response->n_domains; i++)
            note_domain(doctor, response->domains[i], &stranded);
        request->next_page_token = response->next_page_token;
    } while (request->next_page_token.len > 0);
    if (stranded.count > 0)
        find(doctor,
             arena_format(call->arena, "%zu domains are active in a cluster that is away: %s%s.",
                          stranded.count, stranded.names,
                          stranded.count > NAMES_MAX ? ", ..." : ""),
             arena_format(call->arena,
                          "If it stays away: cadenza domain failover --domain NAME "
                          "--active_cluster %s",
                          doctor->peers->cluster));
}

struct error *
cli_doctor(struct cli_call *call)
{
    struct doctor doctor = {.call = call, .findings = json_array()};
    if (check_health(&doctor)) {
        check_shards(&doctor);
        check_dead_letters(&doctor);
        check_peers(&doctor);
        check_domains(&doctor);
    }
    check_disk(&doctor);
    bool is_well = json_array_size(doctor.findings) == 0;
    call->exit_code = is_well ? 0 : 1;
    if (call->as_json) {
        cli_print_json(doctor.findings);
        return NULL;
    }
    if (is_well)
        cli_print("Nothing is wrong with %s.\n", call->address);
    json_decref(doctor.findings);
    return NULL;
}
