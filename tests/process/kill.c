/* kill.c - see kill.h. */
#include "kill.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "sim/world/domain_log.h"
#include "store/rocks/rocks.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define START_LIMIT (60 * NS_PER_S)
#define DOMAIN_API  "/uber.cadence.api.v1.DomainAPI/"

/* --- calls --------------------------------------------------------------------------------------
 */

static struct error *
send(struct grpc_client *client, const char *path, const ProtobufCMessage *request,
     struct arena *arena)
{
    struct grpc_request call = {.path = path, .message = message_encode(arena, request)};
    struct slice bytes;
    return grpc_client_call(client, &call, arena, &bytes);
}

struct error *
kill_register(struct grpc_client *client, const char *name, struct arena *arena)
{
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = (char *)name;
    request->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    return send(client, DOMAIN_API "RegisterDomain", &request->base, arena);
}

struct error *
kill_describe_as(struct grpc_client *client, const char *name, const char *description,
                 struct arena *arena)
{
    char *path = "description";
    API(UpdateDomainRequest) *request = message_new(arena, API_TYPE(update_domain_request));
    request->name = (char *)name;
    request->description = (char *)description;
    request->update_mask = message_new(arena, GOOGLE_TYPE(field_mask));
    request->update_mask->n_paths = 1;
    request->update_mask->paths = &path;
    return send(client, DOMAIN_API "UpdateDomain", &request->base, arena);
}

/* --- the server's process -----------------------------------------------------------------------
 */

static pid_t
spawn(const struct kill_storm *storm)
{
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid > 0)
        return pid;
    int log = open("/dev/null", O_WRONLY);
    dup2(log, STDOUT_FILENO);
    execl(CADENZA_BINARY, "cadenza", "server", "--data", storm->data, "--grpc", storm->address,
          "--http", "127.0.0.1:0", "--loops", "2", (char *)NULL);
    _exit(127);
}

static void
wait_for_server(const struct kill_storm *storm)
{
    int64_t limit = clock_monotonic() + START_LIMIT;
    bool is_up = false;
    while (!is_up) {
        struct arena *arena = arena_new(0);
        struct grpc_client *client =
            grpc_client_new(&(struct grpc_client_options){.address = storm->address});
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

/* --- a round of calls ---------------------------------------------------------------------------
 */

/* False: the worker is done. */
static bool
make_call(struct kill_storm *storm, unsigned worker, struct grpc_client *client,
          struct arena *arena)
{
    struct error *err = NULL;
    fiber_set_deadline(clock_monotonic() + START_LIMIT);
    if (!storm->work->call(storm, worker, client, arena, &err))
        return false;
    storm->calls++;
    storm->answers += err == NULL;
    storm->in_doubt += err != NULL;
    if (!storm->is_killed && storm->answers >= storm->kill_at) {
        storm->is_killed = true;
        kill(storm->server, SIGKILL);
    }
    if (err != NULL && !storm->is_killed)
        TEST_FAIL("round %d: %s", storm->round, err->message);
    return true;
}

static void
work(void *argument)
{
    struct kill_storm *storm = argument;
    unsigned worker = storm->next_worker++;
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = storm->address});
    bool goes_on = true;
    while (goes_on && !storm->is_killed) {
        struct arena *arena = arena_new(0);
        goes_on = make_call(storm, worker, client, arena);
        arena_free(arena);
    }
    grpc_client_free(client);
    latch_done(&storm->workers);
}

static void
call_all(void *argument)
{
    struct kill_storm *storm = argument;
    wait_for_server(storm);
    latch_init(&storm->workers, KILL_CONNECTIONS);
    for (int i = 0; i < KILL_CONNECTIONS; i++)
        fiber_start("kill-worker", work, storm);
    latch_wait(&storm->workers);
}

/* --- looking into the folder --------------------------------------------------------------------
 */

static void
verify(void *argument)
{
    struct kill_storm *storm = argument;
    struct arena *arena = arena_new(0);
    struct config *config = config_default();
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    struct dynamic *dynamic = dynamic_new(NULL);
    struct store *store = NULL;
    struct rocks_options options = {
        .path = storm->data, .cluster_name = "cluster0", .shard_count = 16};
    EXPECT_OK(rocks_open(&options, arena, &store));
    EXPECT_OK(domain_log_check(store, arena));
    struct domains *domains = NULL;
    EXPECT_OK(
        domains_open(&(struct domains_options){.store = store, .group = group, .dynamic = dynamic},
                     arena, &domains));
    uint64_t guard = 0;
    EXPECT_OK(store_guard(store, PARTITION_OF_DOMAINS, arena, &guard));
    EXPECT_EQ(guard, domains_notification_version(domains));
    storm->work->verify(storm, domains, arena);
    domains_close(domains);
    store_close(store);
    dynamic_free(dynamic);
    config_free(config);
    arena_free(arena);
}

void
kill_open(struct kill_storm *storm, const struct kill_work *work_, void *context)
{
    *storm = (struct kill_storm){.work = work_, .context = context};
    snprintf(storm->folder, sizeof storm->folder, "/tmp/cadenza-kill-XXXXXX");
    EXPECT(mkdtemp(storm->folder) != NULL);
    snprintf(storm->data, sizeof storm->data, "%s/data", storm->folder);
    snprintf(storm->address, sizeof storm->address, "127.0.0.1:%u",
             20000 + (unsigned)getpid() % 20000);
}

void
kill_round(struct kill_storm *storm, unsigned kill_at)
{
    storm->answers = storm->next_worker = 0;
    storm->is_killed = false;
    storm->kill_at = kill_at;
    storm->server = spawn(storm);
    linux_run(&(struct linux_options){.loops = 1}, call_all, storm);
    int status = 0;
    EXPECT(storm->is_killed);
    EXPECT_EQ(waitpid(storm->server, &status, 0), storm->server);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    linux_run(&(struct linux_options){.loops = 1}, verify, storm);
    storm->round++;
}

void
kill_close(struct kill_storm *storm)
{
    EXPECT(storm->in_doubt >
           (unsigned)storm->round); /* calls were in the air, or nothing is proven */
    printf("    %d kills, %u calls, %u in doubt\n", storm->round, storm->calls, storm->in_doubt);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", storm->folder);
    EXPECT_EQ(system(command), 0);
}
