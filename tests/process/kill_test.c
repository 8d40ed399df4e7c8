/* kill_test.c - kill -9 in the middle of a storm of registrations: every acknowledged domain is
 * there afterwards.
 *
 * What is at stake: an answer leaves only when its commit is on the disk, and the notification
 * version counts each write once. Method: the real binary in a process of its own, 32 connections
 * that register 1,000 domains; after a random number of answers the process is killed. Then the
 * data folder is opened here and compared with what was answered. Fifty times on the same folder,
 * so that every round also checks all rounds before it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/sync.h"
#include "net/client.h"
#include "store/rocks/rocks.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define ROUNDS      50
#define CONNECTIONS 32
#define DOMAINS     1000
#define START_LIMIT (60 * NS_PER_S)

struct round {
    const char *data;
    const char *address;
    pid_t server;
    int number;
    unsigned next;    /* domain to register */
    unsigned answers; /* acknowledged in this round */
    unsigned kill_at; /* after so many answers */
    bool is_killed;
    uint8_t (*acknowledged)[DOMAINS]; /* of all rounds */
    struct latch workers;
};

/* --- the server's process
 * ------------------------------------------------------------------------- */

static pid_t
spawn(const struct round *round)
{
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid > 0)
        return pid;
    int log = open("/dev/null", O_WRONLY);
    dup2(log, STDOUT_FILENO);
    execl(CADENZA_BINARY, "cadenza", "server", "--data", round->data, "--grpc", round->address,
          "--http", "127.0.0.1:0", (char *)NULL);
    _exit(127);
}

static struct error *
register_domain(struct grpc_client *client, int round, unsigned number, struct arena *arena)
{
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = arena_format(arena, "r%d-%u", round, number);
    request->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    struct grpc_request call = {.path = "/uber.cadence.api.v1.DomainAPI/RegisterDomain",
                                .message = message_encode(arena, &request->base)};
    struct slice bytes;
    return grpc_client_call(client, &call, arena, &bytes);
}

/* --- a round of registrations
 * ------------------------------------------------------------------------ */

static void
work(void *argument)
{
    struct round *round = argument;
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = round->address});
    while (!round->is_killed && round->next < DOMAINS) {
        struct arena *arena = arena_new(0);
        unsigned number = round->next++;
        fiber_set_deadline(clock_monotonic() + START_LIMIT);
        struct error *err = register_domain(client, round->number, number, arena);
        if (err == NULL) {
            round->acknowledged[round->number][number] = 1;
            round->answers++;
        }
        if (!round->is_killed && round->answers >= round->kill_at) {
            round->is_killed = true;
            kill(round->server, SIGKILL);
        }
        EXPECT(err == NULL || round->is_killed);
        arena_free(arena);
    }
    grpc_client_free(client);
    latch_done(&round->workers);
}

static void
wait_for_server(const struct round *round)
{
    int64_t limit = clock_monotonic() + START_LIMIT;
    bool is_up = false;
    while (!is_up) {
        struct arena *arena = arena_new(0);
        struct grpc_client *client =
            grpc_client_new(&(struct grpc_client_options){.address = round->address});
        struct grpc_request call = {.path = "/uber.cadence.api.v1.MetaAPI/Health"};
        struct slice bytes;
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        is_up = grpc_client_call(client, &call, arena, &bytes) == NULL;
        fiber_set_deadline(NEVER);
        grpc_client_free(client);
        EXPECT(is_up || clock_monotonic() < limit);
        EXPECT(is_up || fiber_sleep(5 * NS_PER_MS, arena) == NULL);
        arena_free(arena);
    }
}

static void
storm(void *argument)
{
    struct round *round = argument;
    wait_for_server(round);
    latch_init(&round->workers, CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; i++)
        fiber_start("kill-worker", work, round);
    latch_wait(&round->workers);
}

/* --- looking into the folder
 * -------------------------------------------------------------------------- */

static void
verify(void *argument)
{
    struct round *round = argument;
    struct arena *arena = arena_new(0);
    struct config *config = config_default();
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    struct dynamic *dynamic = dynamic_new(NULL);
    struct store *store = NULL;
    struct rocks_options options = {
        .path = round->data, .cluster_name = "cluster0", .shard_count = 16};
    EXPECT_OK(rocks_open(&options, arena, &store));
    struct domains *domains = NULL;
    EXPECT_OK(
        domains_open(&(struct domains_options){.store = store, .group = group, .dynamic = dynamic},
                     arena, &domains));
    for (int r = 0; r <= round->number; r++) {
        for (unsigned i = 0; i < DOMAINS; i++) {
            char name[32];
            snprintf(name, sizeof name, "r%d-%u", r, i);
            if (round->acknowledged[r][i] && domains_find_name(domains, name) == NULL)
                TEST_FAIL("round %d: %s was acknowledged and is lost", round->number, name);
        }
    }
    /* Each registration is one write: as many domains as the counter says, each with a version of
     * its own. */
    uint64_t version = domains_notification_version(domains), guard = 0;
    EXPECT_OK(store_guard(store, PARTITION_OF_DOMAINS, arena, &guard));
    EXPECT_EQ(domains_count(domains), version);
    EXPECT_EQ(guard, version);
    uint8_t *seen = arena_zalloc(arena, version + 1, 1);
    struct domain **all = arena_zalloc(arena, version, sizeof *all);
    size_t count = domains_list(domains, "", all, version);
    for (size_t i = 0; i < count; i++) {
        uint64_t own = (uint64_t)all[i]->record->notification_version;
        EXPECT(own >= 1 && own <= version && !seen[own]);
        seen[own] = 1;
    }
    domains_close(domains);
    store_close(store);
    dynamic_free(dynamic);
    config_free(config);
    arena_free(arena);
}

TEST(kill, fifty_kills_lose_no_acknowledged_domain_and_leave_no_gap_in_the_counter)
{
    char folder[] = "/tmp/cadenza-kill-XXXXXX";
    EXPECT(mkdtemp(folder) != NULL);
    char data[64], address[32];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(address, sizeof address, "127.0.0.1:%u", 20000 + (unsigned)getpid() % 20000);
    struct random random;
    random_seed(&random, test_seed(test_seed_count() - 1));
    unsigned in_doubt = 0;
    struct round round = {
        .data = data, .address = address, .acknowledged = memory_zalloc(ROUNDS, DOMAINS)};
    for (round.number = 0; round.number < ROUNDS; round.number++) {
        round.next = round.answers = 0;
        round.is_killed = false;
        round.kill_at = 1 + (unsigned)random_below(&random, DOMAINS - CONNECTIONS);
        round.server = spawn(&round);
        linux_run(&(struct linux_options){.loops = 1}, storm, &round);
        int status = 0;
        EXPECT_EQ(waitpid(round.server, &status, 0), round.server);
        EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        linux_run(&(struct linux_options){.loops = 1}, verify, &round);
        in_doubt += round.next - round.answers;
    }
    EXPECT(in_doubt > ROUNDS); /* there were calls in the air, or nothing was proven */
    printf("    %d kills, %u calls in doubt\n", ROUNDS, in_doubt);
    memory_free(round.acknowledged);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    EXPECT_EQ(system(command), 0);
}
