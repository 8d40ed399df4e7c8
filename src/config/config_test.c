/* config_test.c - static settings: the tables, what is read, files made for Cadence. */
#include "config/config.h"

#include <stdio.h>

#include "base/buffer.h"
#include "base/test.h"
#include "config/path.h"
#include "config/test_parse.h"
#include "config/value.h"

/* The file must be refused and the message have this in it. */
static void
expect_refused_with(const char *yaml, const char *part)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = NULL;
    struct error *err = parse(yaml, NULL, arena, &config);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    if (strstr(err->message, part) == NULL)
        TEST_FAIL("'%s' is not in: %s", part, err->message);
}

/* --- the table ---- */

ARENA_TEST(keys, every_default_is_a_value_of_its_key)
{
    for (size_t i = 0; i < static_key_count; i++) {
        const struct static_key *key = &static_keys[i];
        struct value value;
        if (key->rule.type != KEY_IGNORED)
            EXPECT(value_of_text(&key->rule, key->default_value, arena, &value) == NULL);
    }
    for (size_t i = 0; i < DYNAMIC_KEY_COUNT; i++) {
        const struct dynamic_row *row = &dynamic_rows[i];
        struct value value;
        EXPECT(value_of_text(&row->rule, row->default_value, arena, &value) == NULL);
    }
}

TEST(keys, every_key_stands_in_the_table_once_and_is_found)
{
    for (size_t i = 0; i < static_key_count; i++) {
        struct path_place place = path_find(static_keys[i].path);
        EXPECT(place.key == &static_keys[i]);
        EXPECT_EQ(place.kind, static_keys[i].rule.type == KEY_IGNORED ? PATH_IGNORED : PATH_KEY);
    }
    for (size_t i = 0; i < DYNAMIC_KEY_COUNT; i++) {
        for (size_t j = 0; j < i; j++)
            EXPECT(strcmp(dynamic_rows[i].name, dynamic_rows[j].name) != 0);
    }
}

ARENA_TEST(keys, every_old_name_leads_to_a_declared_place)
{
    for (size_t i = 0; i < static_alias_count; i++) {
        const char *now = path_current(static_aliases[i].from, arena);
        EXPECT(path_find(now).kind != PATH_UNKNOWN);
        EXPECT(path_find(static_aliases[i].from).kind == PATH_UNKNOWN);
    }
}

/* --- values ---- */

ARENA_TEST(config, without_a_file_all_is_as_the_table_says, "A-255")
{
    struct config *config = config_default();
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 16);
    EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcPort"), 7833);
    EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcMaxMsgSize"), 32 << 20);
    EXPECT_TEXT(config_text(config, "services.frontend.http.listenAddress"), "127.0.0.1:8088");
    EXPECT_TEXT(config_text(config, "persistence.datastores.embedded.path"), "./data");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.currentClusterName"), "cluster0");
    EXPECT(config_flag(config, "log.stdout"));
    EXPECT_EQ(config_duration(config, "dynamicconfig.filebased.pollInterval"), 10000000000);
    EXPECT(config_list(config, "services.frontend.rpc.tls.caFiles", arena)[0] == NULL);
    EXPECT(config_names(config, "clusterGroupMetadata.clusterGroup", arena)[0] == NULL);
    EXPECT(!config_is_given(config, "persistence.numHistoryShards"));
    config_free(config);
}

ARENA_TEST(config, an_empty_file_is_all_defaults)
{
    const char *const files[] = {"", "\n# nothing\n", "---\n", "---\n...\n", "{}", "~", "log:\n"};
    for (size_t i = 0; i < array_length(files); i++) {
        struct config *config = config_of(files[i], arena);
        EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 16);
        config_free(config);
    }
}

ARENA_TEST(config, a_file_goes_over_the_defaults)
{
    struct config *config = config_of("log: {level: WARN, stdout: no}\n"
                                      "persistence:\n"
                                      "  numHistoryShards: 4\n"
                                      "services:\n"
                                      "  frontend:\n"
                                      "    rpc:\n"
                                      "      tls:\n"
                                      "        caFiles:\n"
                                      "        - a.pem\n"
                                      "        - 'b.pem'\n"
                                      "dynamicconfig:\n"
                                      "  filebased: {pollInterval: \"1m30s\"}\n",
                                      arena);
    EXPECT_TEXT(config_text(config, "log.level"), "warn");
    EXPECT(!config_flag(config, "log.stdout"));
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 4);
    EXPECT(config_is_given(config, "persistence.numHistoryShards"));
    EXPECT_EQ(config_duration(config, "dynamicconfig.filebased.pollInterval"), 90000000000);
    const char *const *files = config_list(config, "services.frontend.rpc.tls.caFiles", arena);
    EXPECT_TEXT(files[0], "a.pem");
    EXPECT_TEXT(files[1], "b.pem");
    EXPECT(files[2] == NULL);
    EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcPort"), 7833);
    config_free(config);
}

ARENA_TEST(config, what_is_left_empty_is_not_given)
{
    struct config *config = config_of("persistence: {numHistoryShards: }\n"
                                      "services: {frontend: {rpc: {grpcPort: ~, bindOnIP: ''}}}\n"
                                      "log: {level: null, encoding: \"\"}\n"
                                      "clusterGroupMetadata:\n",
                                      arena);
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 16);
    EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcPort"), 7833);
    EXPECT_TEXT(config_text(config, "services.frontend.rpc.bindOnIP"), "");
    EXPECT(config_is_given(config, "services.frontend.rpc.bindOnIP"));
    EXPECT_TEXT(config_text(config, "log.level"), "info");
    EXPECT_TEXT(config_text(config, "log.encoding"), "json");
    config_free(config);
}

ARENA_TEST(config, names_of_the_users_choice_come_in_order_of_the_file)
{
    struct config *config = config_of("clusterGroupMetadata:\n"
                                      "  clusterGroup:\n"
                                      "    west: {rpcAddress: 'w:1', initialFailoverVersion: 2}\n"
                                      "    east:\n"
                                      "    north-1: {enabled: false, region: arctic}\n"
                                      "  regions: {arctic: {initialFailoverVersion: 5}}\n",
                                      arena);
    const char *const *names = config_names(config, "clusterGroupMetadata.clusterGroup", arena);
    EXPECT_TEXT(names[0], "west");
    EXPECT_TEXT(names[1], "east");
    EXPECT_TEXT(names[2], "north-1");
    EXPECT(names[3] == NULL);
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterGroup.west.rpcAddress"), "w:1");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterGroup.east.rpcAddress"), "");
    EXPECT(config_flag(config, "clusterGroupMetadata.clusterGroup.east.enabled"));
    EXPECT(!config_flag(config, "clusterGroupMetadata.clusterGroup.north-1.enabled"));
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterGroup.north-1.region"), "arctic");
    EXPECT_EQ(config_integer(config, "clusterGroupMetadata.regions.arctic.initialFailoverVersion"),
              5);
    config_free(config);
}

/* --- files made for Cadence ---- */

static const char cadence_like[] =
    "log: {stdout: true, level: info, levelKey: level}\n"
    "persistence:\n"
    "  numHistoryShards: ${NUM_HISTORY_SHARDS:4}\n"
    "  defaultStore: main\n"
    "  visibilityStore: search\n"
    "  advancedVisibilityStore: found\n"
    "  datastores:\n"
    "    found: {elasticsearch: {url: {host: '10.0.0.3:9200'}}, pinot: {broker: 'b:8099'}}\n"
    "    cut: {shardedNosql: {defaultShard: s0, shards: [s0]}}\n"
    "    main:\n"
    "      nosql: {pluginName: cassandra, hosts: 10.0.0.1, keyspace: k, connectTimeout: 2s}\n"
    "    search:\n"
    "      sql: {pluginName: mysql, connectAddr: '10.0.0.2:3306', user: , maxConns: 20}\n"
    "ringpop: {name: ring, bootstrapMode: hosts, bootstrapHosts: ['10.0.0.1:7933']}\n"
    "services:\n"
    "  frontend:\n"
    "    rpc: {port: 7933, grpcPort: 7833, bindOnLocalHost: true, grpcMaxMsgSize: 33554432,\n"
    "          http: {port: 8800, procedures: [a, b]}}\n"
    "    metrics: {statsd: ~, m3: ~, prefix: p, tags: {a: b},\n"
    "              prometheus: {timerType: histogram, listenAddress: '0.0.0.0:8000'}}\n"
    "    pprof: {port: 7936}\n"
    "  history: {rpc: {port: 7934, grpcPort: 7834, bindOnLocalHost: true}, pprof: {port: 7937}}\n"
    "  matching: {rpc: {port: 7935}}\n"
    "  worker: {rpc: {port: 7939}}\n"
    "clusterGroupMetadata:\n"
    "  clusterRedirectionPolicy: {policy: noop, allDomainApisForwardingTargetCluster: ''}\n"
    "  failoverVersionIncrement: 10\n"
    "  primaryClusterName: cluster0\n"
    "  currentClusterName: cluster0\n"
    "  clusterGroup:\n"
    "    cluster0:\n"
    "      enabled: true\n"
    "      initialFailoverVersion: 0\n"
    "      newInitialFailoverVersion: 1\n"
    "      rpcName: cadence-frontend\n"
    "      rpcAddress: localhost:7833\n"
    "      rpcTransport: grpc\n"
    "      authorizationProvider: {enable: false, type: OAuthAuthorization, privateKey: }\n"
    "      tls: {enabled: false}\n"
    "archival: {history: {status: disabled, provider: {filestore: {fileMode: '0666'}}}}\n"
    "domainDefaults: {archival: {history: {status: disabled, URI: ''}}}\n"
    "kafka: {tls: {enabled: false}, topics: {some.topic: {cluster: test}}}\n"
    "publicClient: {hostPort: localhost:7833}\n"
    "dynamicconfig:\n"
    "  client: filebased\n"
    "  configstore: {pollInterval: 10s}\n"
    "  filebased: {filepath: dynamic.yaml, pollInterval: 60s}\n"
    "blobstore: {filestore: {outputDirectory: /tmp/blobs}}\n"
    "membership: {provider: {ringpop: {name: ring}}}\n"
    "authorization: {noopAuthorizer: {enable: true}}\n"
    "headerForwardingRules: [{add: true, match: '^x-'}]\n"
    "asyncWorkflowQueues: {q: {type: kafka}}\n"
    "shardDistributorClient: {hostPort: localhost:7943}\n"
    "shard-distributor-matching: {namespaces: [{namespace: n}]}\n"
    "histograms: {default: both}\n"
    "gauge-migration: {default: both}\n"
    "counter-migration: {default: both}\n";

static void
count_lines(void *context, const char *line, size_t length)
{
    buffer_append(context, slice_of(line, length));
}

static int64_t
no_clock(void *context)
{
    return 0;
}

static size_t
count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

ARENA_TEST(config, a_file_made_for_cadence_starts, "J-001", "J-002", "J-003", "J-004")
{
    struct config *config = config_of(cadence_like, arena);
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 4);
    EXPECT_TEXT(config_text(config, "dynamicconfig.filebased.filepath"), "dynamic.yaml");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterRedirectionPolicy.policy"),
                "noop");
    EXPECT_EQ(config_integer(
                  config, "clusterGroupMetadata.clusterGroup.cluster0.newInitialFailoverVersion"),
              1);
    config_free(config);
}

ARENA_TEST(config, what_has_no_meaning_is_reported_once_each_with_line_and_reason)
{
    struct config *config = config_of(cadence_like, arena);
    struct buffer lines = {0};
    struct log log = {
        .level = LOG_INFO, .service = "x", .now = no_clock, .sink = count_lines, .context = &lines};
    config_log_ignored(config, &log);
    config_free(config);
    const char *text = arena_text_of(arena, buffer_slice(&lines));
    buffer_free(&lines);
    EXPECT_EQ(count_of(text, "\"ringpop\""), 1);
    EXPECT_EQ(count_of(text, "\"kafka\""), 1);
    EXPECT_EQ(count_of(text, "\"services.history\""), 1);
    EXPECT_EQ(count_of(text, "\"persistence.datastores.main.nosql\""), 1);
    EXPECT_EQ(count_of(text, "One process needs no ring."), 2); /* and membership */
    EXPECT_EQ(count_of(text, "numHistoryShards"), 0);
    EXPECT_EQ(count_of(text, "\"line\":14"), 1); /* ringpop */
}

ARENA_TEST(config, old_names_are_read_as_the_new_ones, "J-001", "J-004")
{
    struct config *config =
        config_of("clusterMetadata:\n"
                  "  enableGlobalDomain: true\n"
                  "  masterClusterName: east\n"
                  "  currentClusterName: west\n"
                  "  clusterInformation:\n"
                  "    west: {rpcAddress: 'w:1'}\n"
                  "dcRedirectionPolicy: {policy: selected-apis-forwarding, toDC: ''}\n"
                  "dynamicConfigClient: {filepath: d.yaml, pollInterval: 20s}\n",
                  arena);
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.primaryClusterName"), "east");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.currentClusterName"), "west");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterGroup.west.rpcAddress"), "w:1");
    EXPECT_TEXT(config_names(config, "clusterGroupMetadata.clusterGroup", arena)[0], "west");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterRedirectionPolicy.policy"),
                "selected-apis-forwarding");
    EXPECT_TEXT(config_text(config, "dynamicconfig.filebased.filepath"), "d.yaml");
    config_free(config);
    expect_refused_with("clusterMetadata: {masterClusterNam: x}\n",
                        "test.yaml:1: clusterMetadata.masterClusterNam: there is no such key");
}

ARENA_TEST(config, where_old_and_new_name_are_given_the_new_one_wins)
{
    const char *const files[] = {
        "clusterGroupMetadata: {masterClusterName: old, primaryClusterName: new}\n",
        "clusterGroupMetadata: {primaryClusterName: new, masterClusterName: old}\n",
    };
    for (size_t i = 0; i < array_length(files); i++) {
        struct config *config = config_of(files[i], arena);
        EXPECT_TEXT(config_text(config, "clusterGroupMetadata.primaryClusterName"), "new");
        config_free(config);
    }
    expect_refused_with("clusterGroupMetadata: {masterClusterName: a}\n"
                        "clusterMetadata: {primaryClusterName: b}\n",
                        "test.yaml:2: clusterMetadata.primaryClusterName: "
                        "gives clusterGroupMetadata.primaryClusterName a second time");
}

TEST(config, every_policy_of_forwarding_is_known_and_others_are_refused, "G-042")
{
    static const char *const policies[] = {
        "noop", "selected-apis-forwarding", "selected-apis-forwarding-v2",
        "all-domain-apis-forwarding", "all-domain-apis-forwarding-v2"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(policies); i++) {
        struct config *config =
            config_of(arena_format(arena,
                                   "clusterGroupMetadata: {clusterRedirectionPolicy: {policy: %s, "
                                   "allDomainApisForwardingTargetCluster: west}}\n",
                                   policies[i]),
                      arena);
        EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterRedirectionPolicy.policy"),
                    policies[i]);
        config_free(config);
    }
    expect_refused_with(
        "clusterGroupMetadata: {clusterRedirectionPolicy: {policy: everything}}\n",
        "test.yaml:1: clusterGroupMetadata.clusterRedirectionPolicy.policy: expected one of: noop "
        "selected-apis-forwarding selected-apis-forwarding-v2 all-domain-apis-forwarding "
        "all-domain-apis-forwarding-v2, got 'everything'");
}

/* --- flags ---- */

ARENA_TEST(config, a_flag_of_the_command_line_goes_over_the_file_with_the_same_checks)
{
    struct config *config = config_of("persistence: {numHistoryShards: 4}\n", arena);
    EXPECT_OK(config_set(config, "persistence.numHistoryShards", "8", arena));
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 8);
    EXPECT_OK(config_set(config, "services.frontend.rpc.tls.caFiles", "a,b", arena));
    EXPECT_TEXT(config_list(config, "services.frontend.rpc.tls.caFiles", arena)[1], "b");
    EXPECT_OK(config_set(config, "clusterMetadata.clusterInformation.x.rpcAddress", "h:1", arena));
    EXPECT_TEXT(config_names(config, "clusterGroupMetadata.clusterGroup", arena)[0], "x");
    EXPECT_TEXT(config_text(config, "clusterGroupMetadata.clusterGroup.x.rpcAddress"), "h:1");

    struct error *err = config_set(config, "persistence.numHistoryShards", "0", arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "persistence.numHistoryShards: "
                              "expected an integer from 1 to 16384, got '0'");
    err = config_set(config, "log.levle", "info", arena);
    EXPECT_TEXT(err->message, "log.levle: there is no such key; did you mean log.level?");
    err = config_set(config, "log", "info", arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_KIND(config_set(config, "", "x", arena), ERR_BAD_REQUEST);
    EXPECT_KIND(config_set(config, "clusterGroupMetadata.clusterGroup..region", "x", arena),
                ERR_BAD_REQUEST);
    err = config_set(config, "kafka.x", "1", arena);
    EXPECT_TEXT(err->message, "kafka.x: is ignored by this server: No Kafka is needed.");
    EXPECT_EQ(config_integer(config, "persistence.numHistoryShards"), 8);
    config_free(config);
}
