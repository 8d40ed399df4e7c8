/* doctor_group.c - what `admin doctor` finds in a group of clusters: which one is unreachable,
 * whose clock differs, which lags, which domains are stalled, which failovers do not end. See
 * doctor.h. */
#include <string.h>

#include "cli/admin/cluster.h"
#include "cli/admin/doctor.h"
#include "cli/domain/domain_drain.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define TIMEOUT        (5 * NS_PER_S)
#define PAGE_SIZE      1000
#define RECOVERING     "recovering: " /* begins what a server's health says of it */
#define SKEW_MAX       NS_PER_S /* what clocks may differ by; lag and timers are read by them */
#define LAG_MAX        (10 * NS_PER_S) /* behind a peer, while it answers */
#define FAILOVER_GRACE (10 * NS_PER_S) /* beyond the time that a failover has */
#define NAMES_MAX      5               /* of domains that a sentence names */
#define DESCRIBED_MAX  500             /* domains that are asked about one by one */

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
        cli_note("The clock of %s could not be checked: %s\n", peer->name, err->message);
        return;
    }
    int64_t skew = offset - doctor->offset, apart = skew < 0 ? -skew : skew;
    if (apart > SKEW_MAX + doubt + doctor->doubt)
        doctor_find(doctor,
                    arena_format(call->arena, "The clock of %s is %.1f s %s that of %s.",
                                 peer->name, (double)apart / (double)NS_PER_S,
                                 skew < 0 ? "behind" : "ahead of", doctor->peers->cluster),
                    "Synchronise both machines with a time server (NTP): timers and the measured "
                    "lag depend on their clocks.");
}

/* By the clock of the peer, whose error was found before. */
static void
check_lag(struct doctor *doctor, const STORE_API(Peer) *peer)
{
    struct arena *arena = doctor->call->arena;
    int64_t lag = doctor->peers->time_nanoseconds - peer->oldest_nanoseconds;
    if (peer->waiting == 0 || peer->oldest_nanoseconds == 0 || lag < LAG_MAX)
        return;
    doctor_find(doctor,
                arena_format(arena, "%s is %.0f s behind %s: %lld messages are not applied.",
                             doctor->peers->cluster, (double)lag / (double)NS_PER_S, peer->name,
                             (long long)peer->waiting),
                "If this does not fall: the log names workflows that cannot be applied, which "
                "become dead letters after some minutes; else the machine may be too small.");
}

/* The cluster that is asked lost memory and has not read it all: for whom it waits, and for whom
 * perhaps in vain. */
static void
report_waiting(struct doctor *doctor)
{
    struct arena *arena = doctor->call->arena;
    const char *waits = "", *gone = "";
    for (size_t i = 0; i < doctor->peers->n_peers; i++) {
        const STORE_API(Peer) *peer = doctor->peers->peers[i];
        if (!peer->is_past_wanted)
            continue;
        waits =
            arena_format(arena, "%s%s%s (%s%s)", waits, waits[0] == '\0' ? "" : ", ", peer->name,
                         peer_past_text(peer, arena), peer->is_away ? ", is away now" : "");
        if (peer->is_away)
            gone = arena_format(arena, "%s%s%s", gone, gone[0] == '\0' ? "" : ",", peer->name);
    }
    const char *cluster = doctor->peers->cluster;
    doctor_find(
        doctor,
        arena_format(arena,
                     "%s lost memory (its store was restored or copied) and reads from the others "
                     "what it had: %s. Global domains that are active in %s are not served until "
                     "it has.",
                     cluster, waits, cluster),
        arena_format(arena,
                     "It needs all of them; start those that are away, and let it read. If one is "
                     "gone for good: restart this server with --accept-loss %s; what only that one "
                     "has is lost then.",
                     gone[0] == '\0' ? "CLUSTERS" : gone));
}

/* A cluster that has nobody to ask says it by its health alone. That is asked last: until the end
 * of its recovery it says so. */
static void
check_recovery(struct doctor *doctor)
{
    if (doctor->peers != NULL && peers_have_past_wanted(doctor->peers)) {
        report_waiting(doctor);
        return;
    }
    struct error *err;
    const API(HealthResponse) *health = doctor_ask_health(doctor, &err);
    const char *recovery = health == NULL ? NULL : strstr(health->message, RECOVERING);
    if (recovery == NULL) /* that it does not answer was found before */
        return;
    doctor_find(doctor, arena_format(doctor->call->arena, "The server is %s", recovery),
                "If another cluster has its past: set enabled: true for it in this server's "
                "clusterGroupMetadata and restart it. If none has: restart it with --accept-loss "
                "all; what was lost stays lost then.");
}

static void
check_peer(struct doctor *doctor, const STORE_API(Peer) *peer)
{
    struct arena *arena = doctor->call->arena;
    if (peer->has_other_settings)
        doctor_find(
            doctor,
            arena_format(arena, "%s does not follow %s at %s: %s", doctor->peers->cluster,
                         peer->name, peer->address, peer->failure),
            "Make clusterGroupMetadata the same in the files of both clusters and restart the "
            "one that was wrong: until then a version means different clusters in them.");
    else if (peer->is_away)
        doctor_find(doctor,
                    arena_format(arena, "%s cannot follow %s at %s: %s", doctor->peers->cluster,
                                 peer->name, peer->address, peer->failure),
                    "Is that server running, and can it be reached over the network? Changes "
                    "that it made since then arrive when it is back.");
    else if (peer->is_followed)
        check_clock(doctor, peer);
    check_lag(doctor, peer);
}

void
doctor_check_peers(struct doctor *doctor)
{
    struct error *err = ask_peers(doctor->call, &doctor->peers, &doctor->offset, &doctor->doubt);
    if (err != NULL)
        doctor_find_unanswered(doctor, "the state of the other clusters", err);
    check_recovery(doctor);
    for (size_t i = 0; doctor->peers != NULL && i < doctor->peers->n_peers; i++)
        check_peer(doctor, doctor->peers->peers[i]);
}

static bool
is_away(const struct doctor *doctor, const char *cluster)
{
    for (size_t i = 0; doctor->peers != NULL && i < doctor->peers->n_peers; i++)
        if (strcmp(doctor->peers->peers[i]->name, cluster) == 0)
            return doctor->peers->peers[i]->is_away;
    return false;
}

/* Domains that nobody can write to while the cluster is unreachable. */
struct stranded {
    size_t count;
    const char *names;
    size_t asked; /* about failovers */
};

/* A graceful failover that should be over: its target forces it when its time is. */
/* "--active_cluster west" or "--active_clusters region.oslo:west": what ends the move by force. */
static const char *
target_flag(const API(ClusterAttribute) *attribute, const char *target, struct arena *arena)
{
    if (attribute == NULL)
        return arena_format(arena, "--active_cluster %s", target);
    return arena_format(arena, "--active_clusters %s.%s:%s", attribute->scope, attribute->name,
                        target);
}

/* Only the target of a graceful failover knows its progress: the cluster that is asked. */
static void
report_overdue(struct doctor *doctor, const API(Domain) *domain, double seconds)
{
    struct arena *arena = doctor->call->arena;
    const API(FailoverInfo) *info = domain->failover_info;
    const char *target = doctor->peers->cluster;
    const API(FailoverProgress) *move = info->n_moves == 0 ? NULL : info->moves[0];
    const API(ClusterAttribute) *attribute = move == NULL ? NULL : move->cluster_attribute;
    struct drain_state state = {.domain = domain->name,
                                .scope = attribute == NULL ? NULL : attribute->scope,
                                .name = attribute == NULL ? NULL : attribute->name,
                                .progress = move,
                                .info = info};
    const char *shards = drain_seen(&state, arena);
    doctor_find(
        doctor,
        arena_format(
            arena,
            "The graceful failover of %s to %s should have ended %.0f s ago; handed over: %s.",
            drain_what(&state, arena), target, seconds, shards == NULL ? "unknown" : shards),
        arena_format(arena,
                     "Check the logs of both clusters; cadenza domain failover --domain %s "
                     "%s --failover_type force ends it.",
                     domain->name, target_flag(attribute, target, arena)));
}

static void
check_failover(struct doctor *doctor, const char *name)
{
    struct cli_call *call = doctor->call;
    API(DescribeDomainRequest) *request =
        message_new(call->arena, API_TYPE(describe_domain_request));
    ProtobufCMessage *answer = NULL;
    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request->name = (char *)name;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.DomainAPI/DescribeDomain", &request->base, TIMEOUT,
                API_TYPE(describe_domain_response), &answer);
    const API(Domain) *domain =
        err != NULL ? NULL : ((const API(DescribeDomainResponse) *)answer)->domain;
    const API(FailoverInfo) *info = domain == NULL ? NULL : domain->failover_info;
    if (info == NULL)
        return;
    struct maybe_int64 end = {0};
    err = presence_read_timestamp(call->arena, "failover_expire_timestamp",
                                  info->failover_expire_timestamp, &end);
    int64_t late = doctor->peers->time_nanoseconds - end.value;
    if (err != NULL || !end.is_set || late < FAILOVER_GRACE)
        return;
    report_overdue(doctor, domain, (double)late / (double)NS_PER_S);
}

/* Only who is followed by nobody has no failovers; of very many domains the first are asked. */
static bool
may_fail_over(const struct doctor *doctor, const API(Domain) *domain)
{
    return domain->is_global_domain && domain->n_clusters > 1 && doctor->peers != NULL &&
           doctor->peers->n_peers > 0;
}

static void
note_domain(struct doctor *doctor, const API(Domain) *domain, struct stranded *stranded)
{
    if (may_fail_over(doctor, domain) && stranded->asked++ < DESCRIBED_MAX)
        check_failover(doctor, domain->name);
    bool is_new = domain->is_global_domain && is_away(doctor, domain->active_cluster_name);
    if (!is_new)
        return;
    if (stranded->count++ < NAMES_MAX)
        stranded->names = arena_format(doctor->call->arena, "%s%s%s", stranded->names,
                                       stranded->count > 1 ? ", " : "", domain->name);
}

void
doctor_check_domains(struct doctor *doctor)
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
            doctor_find_unanswered(doctor, "which domains it has", err);
            return;
        }
        const API(ListDomainsResponse) *response = (const API(ListDomainsResponse) *)answer;
        for (size_t i = 0; i < response->n_domains; i++)
            note_domain(doctor, response->domains[i], &stranded);
        request->next_page_token = response->next_page_token;
    } while (request->next_page_token.len > 0);
    if (stranded.asked > DESCRIBED_MAX)
        cli_note("Failovers of the first %d domains were looked at.\n", DESCRIBED_MAX);
    if (stranded.count > 0)
        doctor_find(
            doctor,
            arena_format(call->arena, "%zu domains are active in a cluster that is away: %s%s.",
                         stranded.count, stranded.names, stranded.count > NAMES_MAX ? ", ..." : ""),
            arena_format(call->arena,
                         "If it stays unreachable: cadenza domain failover --domain NAME "
                         "--active_cluster %s",
                         doctor->peers->cluster));
}
