/* watchers_test.c - sources of entities on a simulated disk and network: what they say becomes
 * rows, and what they fail to say changes nothing. */
#include "entity/watchers.h"

#include "fiber/contract/contract.h"
#include "fiber/file.h"
#include "fiber/socket.h"
#include "fiber/sync.h"
#include "net/http_get.h"
#include "route/test_answers.h"
#include "store/memory/memory.h"

static const struct cluster clusters[] = {
    {.name = "east", .is_enabled = true, .region = "us-east", .new_initial_failover_version = -1},
    {.name = "west",
     .is_enabled = true,
     .initial_failover_version = 1,
     .region = "us-west",
     .new_initial_failover_version = -1},
};
static const struct region regions[] = {{"us-east", 5}, {"us-west", 6}};

struct watchers_fixture {
    struct arena *arena;
    struct memory_base *base;
    struct store *store;
    struct dynamic *dynamic;
    struct cluster_group group;
    struct domains *domains;
    struct metrics *metrics;
    struct entity_type type;
    struct entity_types types;
    struct watchers *watchers;
};

static struct watchers_fixture *
watchers_fixture_open(const char *watcher, const char *position, unsigned current,
                      struct arena *arena)
{
    struct watchers_fixture *watchers_fixture = arena_make(arena, struct watchers_fixture);
    *watchers_fixture = (struct watchers_fixture){.arena = arena,
                                                  .base = memory_base_new(0),
                                                  .dynamic = dynamic_new(NULL),
                                                  .metrics = metrics_new(),
                                                  .group = {.failover_version_increment = 10,
                                                            .current = &clusters[current],
                                                            .primary = &clusters[0],
                                                            .clusters = clusters,
                                                            .count = array_length(clusters),
                                                            .regions = regions,
                                                            .region_count = array_length(regions)},
                                                  .type = {.name = "user",
                                                           .source = "users",
                                                           .watcher = watcher,
                                                           .file = position,
                                                           .url = position,
                                                           .authority_file = "",
                                                           .server_name = "",
                                                           .certificate_file = "",
                                                           .key_file = "",
                                                           .interval = 250 * NS_PER_MS,
                                                           .wait = 5 * NS_PER_S}};
    watchers_fixture->store = memory_open(watchers_fixture->base);
    watchers_fixture->types = (struct entity_types){&watchers_fixture->type, 1};
    EXPECT_OK(domains_open(&(struct domains_options){.store = watchers_fixture->store,
                                                     .group = &watchers_fixture->group,
                                                     .dynamic = watchers_fixture->dynamic},
                           arena, &watchers_fixture->domains));
    return watchers_fixture;
}

static void
watchers_fixture_watch(struct watchers_fixture *watchers_fixture)
{
    watchers_fixture->watchers =
        watchers_start(&(struct watchers_options){.domains = watchers_fixture->domains,
                                                  .group = &watchers_fixture->group,
                                                  .types = &watchers_fixture->types,
                                                  .metrics = watchers_fixture->metrics});
}

static void
watchers_fixture_close(struct watchers_fixture *watchers_fixture)
{
    watchers_stop(watchers_fixture->watchers);
    domains_close(watchers_fixture->domains);
    store_close(watchers_fixture->store);
    memory_base_free(watchers_fixture->base);
    metrics_free(watchers_fixture->metrics);
    dynamic_free(watchers_fixture->dynamic);
}

/* "ann:us-west=6 bob:-"; a dash: deleted or never there. */
static const char *
print_row(const struct watchers_fixture *watchers_fixture, const char *key)
{
    const struct entity *entity = domains_find_entity(watchers_fixture->domains, "user", key);
    if (entity == NULL || entity->is_deleted)
        return "-";
    return arena_format(watchers_fixture->arena, "%s=%lld", entity->region,
                        (long long)entity->failover_version);
}

static struct watcher_state
state_of(struct watchers_fixture *watchers_fixture)
{
    struct watcher_state *states = NULL;
    size_t count = 0;
    EXPECT_ANSWER(
        watchers_list(watchers_fixture->watchers, watchers_fixture->arena, &states, &count));
    EXPECT_EQ(count, 1);
    return states[0];
}

static void
save(const char *path, const char *text, struct arena *arena)
{
    EXPECT_OK(file_save(path, slice_text(text), arena));
}

static void
sleep_for(int64_t time, struct arena *arena)
{
    EXPECT_OK(fiber_sleep(time, arena));
}

/* --- a file ----------------------------------------------------------------------------------- */

CONTRACT(watchers, rows_follow_a_file_within_a_second, 1, "G-061")
{
    const char *path = arena_format(arena, "%s/users.yaml", contract_folder());
    save(path, "ann: us-west\nbob: us-east\n", arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("file", path, 0, arena);
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-west=6");
    EXPECT_TEXT(print_row(watchers_fixture, "bob"), "us-east=5");
    save(path, "ann: us-east\nbob: us-east\ncyd: us-west\n", arena);
    sleep_for(NS_PER_S, arena);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-east=15");
    EXPECT_TEXT(print_row(watchers_fixture, "bob"), "us-east=5"); /* was not touched */
    EXPECT_TEXT(print_row(watchers_fixture, "cyd"), "us-west=6");
    EXPECT_EQ(state_of(watchers_fixture).changes, 4);
    EXPECT(state_of(watchers_fixture).is_running);
    watchers_fixture_close(watchers_fixture);
}

CONTRACT(watchers, an_entity_that_a_file_names_no_more_is_deleted_unless_others_made_it, 1)
{
    const char *path = arena_format(arena, "%s/users.yaml", contract_folder());
    save(path, "ann: us-west\nbob: us-east\n", arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("file", path, 0, arena);
    struct entity_change made = {ENTITY_ADD, "user", "eve", "us-east", "start"};
    EXPECT_MADE(domains_set_entities(watchers_fixture->domains, &made, 1, arena));
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    save(path, "{\"ann\": \"us-west\"}", arena);
    sleep_for(NS_PER_S, arena);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-west=6");
    EXPECT_TEXT(print_row(watchers_fixture, "bob"), "-");
    EXPECT_TEXT(print_row(watchers_fixture, "eve"), "us-east=5");
    watchers_fixture_close(watchers_fixture);
}

/* A file that is gone, broken, or wrong in one line: everything stays, the failure is seen, and
 * when it is repaired it counts. */
CONTRACT(watchers, a_failing_file_changes_nothing_and_is_shown, 1)
{
    static const char *const bad[] = {"ann: us-east\nbob\n", "ann: us-east\nbob: mars\n",
                                      "{\"ann\": \"us-east\"", "ann: us-east\nann: us-west\n"};
    const char *path = arena_format(arena, "%s/users.yaml", contract_folder());
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("file", path, 0, arena);
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    EXPECT(state_of(watchers_fixture).failures > 0 &&
           state_of(watchers_fixture).failure[0] != '\0');
    save(path, "ann: us-west\nbob: us-east\n", arena);
    sleep_for(3 * NS_PER_S, arena);
    uint64_t version = domains_notification_version(watchers_fixture->domains);
    for (size_t i = 0; i < array_length(bad); i++) {
        save(path, bad[i], arena);
        sleep_for(3 * NS_PER_S, arena);
        EXPECT(state_of(watchers_fixture).failure[0] != '\0');
        EXPECT_EQ(domains_notification_version(watchers_fixture->domains), version);
    }
    EXPECT_OK(file_remove(path, arena));
    sleep_for(3 * NS_PER_S, arena);
    EXPECT(state_of(watchers_fixture).failure[0] != '\0');
    EXPECT_TEXT(print_row(watchers_fixture, "bob"), "us-east=5");
    save(path, "ann: us-east\nbob: us-east\n", arena);
    sleep_for(3 * NS_PER_S, arena);
    EXPECT_TEXT(state_of(watchers_fixture).failure, "");
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-east=15");
    watchers_fixture_close(watchers_fixture);
}

CONTRACT(watchers, a_source_with_too_many_entities_changes_nothing, 1)
{
    const char *path = arena_format(arena, "%s/users.yaml", contract_folder());
    save(path, "ann: us-west\nbob: us-east\ncyd: us-east\n", arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("file", path, 0, arena);
    EXPECT_OK(dynamic_load(watchers_fixture->dynamic,
                           slice_text("system.entitiesMax:\n- value: 2\n"), "test", arena));
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    EXPECT_EQ(domains_entity_count(watchers_fixture->domains), 0);
    EXPECT(strstr(state_of(watchers_fixture).failure, "system.entitiesMax") != NULL);
    watchers_fixture_close(watchers_fixture);
}

CONTRACT(watchers, they_run_in_the_primary_cluster_only, 1)
{
    const char *path = arena_format(arena, "%s/users.yaml", contract_folder());
    save(path, "ann: us-west\n", arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("file", path, 1, arena);
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "-");
    EXPECT(!state_of(watchers_fixture).is_running);
    EXPECT_EQ(state_of(watchers_fixture).failures, 0);
    watchers_fixture_close(watchers_fixture);
}

/* --- HTTP ------------------------------------------------------------------------------------- */

/* A source that says one thing after the other, whatever it is asked, and notes the questions. */
struct source {
    struct listener *listener;
    const char *const *answers; /* NULL-terminated; the last one again and again */
    const char *questions[16];
    size_t asked;
    struct arena *arena;
    struct latch done;
};

static void
answer_one(struct source *source, struct socket *socket)
{
    char text[4096] = {0};
    size_t length = 0;
    while (strstr(text, "\r\n\r\n") == NULL && length < sizeof text - 1) {
        int64_t count = socket_read(socket, text + length, sizeof text - 1 - length);
        if (count < 0)
            return;
        length += (size_t)count;
        if (count == 0)
            (void)socket_wait(socket, SOCKET_READABLE, NEVER);
    }
    if (source->asked < array_length(source->questions))
        source->questions[source->asked] =
            arena_format(source->arena, "%.*s", (int)strcspn(text, "\r"), text);
    source->asked++;
    const char *answer = *source->answers;
    if (source->answers[1] != NULL)
        source->answers++;
    while (answer[0] != '\0') {
        int64_t count = socket_write(socket, answer, strlen(answer));
        if (count < 0)
            return;
        answer += count;
        if (count == 0)
            (void)socket_wait(socket, SOCKET_WRITABLE, NEVER);
    }
}

static void
serve(void *argument)
{
    struct source *source = argument;
    for (;;) {
        struct socket *socket = NULL;
        if (listener_accept(source->listener, source->arena, &socket) != NULL)
            break;
        socket_adopt(socket);
        answer_one(source, socket);
        socket_close(socket);
    }
    latch_done(&source->done);
}

static const char *
source_open(struct source *source, const char *const *answers, struct arena *arena)
{
    *source = (struct source){.answers = answers, .arena = arena};
    latch_init(&source->done, 1);
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &source->listener));
    fiber_start("source", serve, source);
    return arena_format(arena, "http://%s/users?x=1", listener_address(source->listener));
}

static void
source_close(struct source *source)
{
    listener_close(source->listener);
    latch_wait(&source->done);
    listener_free(source->listener);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

CONTRACT(watchers, rows_follow_an_http_source_from_its_version_on, 1)
{
    static const char *const answers[] = {
        OK_HEAD "\r\n{\"version\": \"v 1\", \"entities\": {\"ann\": \"us-west\", \"bob\": "
                "\"us-west\"}}",
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                "10\r\n{\"version\":\"v2\",\r\n28;x\r\n\"changes\":{\"ann\":\"us-east\","
                "\"bob\": null}}\r\n0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n", NULL};
    struct source source;
    const char *url = source_open(&source, answers, arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("http", url, 0, arena);
    watchers_fixture_watch(watchers_fixture);
    sleep_for(NS_PER_S, arena);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-east=15");
    EXPECT_TEXT(print_row(watchers_fixture, "bob"), "-");
    EXPECT_TEXT(source.questions[0], "GET /users?x=1&type=user&version=&wait=5 HTTP/1.1");
    EXPECT_TEXT(source.questions[1], "GET /users?x=1&type=user&version=v%201&wait=5 HTTP/1.1");
    EXPECT_TEXT(source.questions[2], "GET /users?x=1&type=user&version=v2&wait=5 HTTP/1.1");
    EXPECT(source.asked < 10); /* one that does not wait is not asked all the time */
    EXPECT_TEXT(state_of(watchers_fixture).failure, "");
    watchers_fixture_close(watchers_fixture);
    source_close(&source);
}

CONTRACT(watchers, an_http_source_that_fails_changes_nothing, 1)
{
    static const char *const answers[] = {
        OK_HEAD "\r\n{\"version\": \"1\", \"entities\": {\"ann\": \"us-west\"}}",
        "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        OK_HEAD "Content-Length: 100\r\n\r\n{\"version\": \"2\", \"entities\": {}}",
        OK_HEAD "\r\n{\"version\": \"2\", \"changes\": {\"ann\": null}}", /* all was asked for */
        OK_HEAD "\r\n{\"entities\": {}}",
        "nonsense\r\n\r\n",
        "",
        NULL};
    struct source source;
    const char *url = source_open(&source, answers, arena);
    struct watchers_fixture *watchers_fixture = watchers_fixture_open("http", url, 0, arena);
    watchers_fixture_watch(watchers_fixture);
    sleep_for(20 * NS_PER_S, arena);
    EXPECT(source.asked > 6);
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-west=6");
    EXPECT(state_of(watchers_fixture).failures >= 6);
    /* after a failure everything is asked for */
    EXPECT_TEXT(source.questions[2], "GET /users?x=1&type=user&version=&wait=5 HTTP/1.1");
    source_close(&source);
    sleep_for(5 * NS_PER_S, arena); /* nobody listens */
    EXPECT_TEXT(print_row(watchers_fixture, "ann"), "us-west=6");
    watchers_fixture_close(watchers_fixture);
}

/* --- the settings ----------------------------------------------------------------------------- */

static struct error *
load(const char *yaml, struct arena *arena, struct entity_types *types)
{
    struct config *config = NULL;
    EXPECT_OK(config_parse(slice_text(yaml), "test", NULL, arena, &config));
    struct error *err = entity_types_load(config, arena, types);
    config_free(config);
    return err;
}

ARENA_TEST(entity_types, a_source_of_starts_names_a_type)
{
    struct entity_types types;
    EXPECT_OK(load("entities:\n"
                   "  types:\n"
                   "    user-location:\n"
                   "      source: custom.user-location-provider\n"
                   "      unknownKeys: create\n"
                   "      watcher: file\n"
                   "      file: /etc/users.yaml\n"
                   "    city: {}\n",
                   arena, &types));
    EXPECT_EQ(types.count, 2);
    const struct entity_type *type =
        entity_types_find_source(&types, "custom.user-location-provider");
    EXPECT_TEXT(type->name, "user-location");
    EXPECT(type->creates);
    EXPECT(entity_types_find(&types, "user-location") == type);
    EXPECT_TEXT(entity_types_find_source(&types, "city")->name, "city");
    EXPECT(!entity_types_find(&types, "city")->creates);
    EXPECT(entity_types_find_source(&types, "user-location") == NULL);
}

ARENA_TEST(entity_types, all_faults_are_reported_together)
{
    struct entity_types types;
    struct error *err = load("entities:\n"
                             "  types:\n"
                             "    region: {}\n"
                             "    one: {source: x}\n"
                             "    two: {source: x}\n"
                             "    three: {watcher: file}\n"
                             "    four: {watcher: http, url: 'ftp://x'}\n"
                             "    five: {watcher: http, url: 'http://x', tls: {caFile: ca.pem}}\n"
                             "    six: {watcher: http, url: 'https://x', tls: {certFile: c.pem}}\n"
                             "    fine: {watcher: http, url: 'https://x'}\n",
                             arena, &types);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    static const char *const said[] = {
        "entities.types.region: rows of this type follow from domains",
        "entities.types.two.source is 'x'",
        "entities.types.three.file is not set",
        "entities.types.four.url is 'ftp://x'",
        "entities.types.five.tls is set, and url is not https://",
        "entities.types.six.tls: certFile and keyFile go together"};
    for (size_t i = 0; i < array_length(said); i++)
        EXPECT(strstr(err->message, said[i]) != NULL);
    EXPECT(strstr(err->message, "fine") == NULL);
}
