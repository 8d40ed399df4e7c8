/* config_faults_test.c - files that are refused, and the errors that say so; variables. */
#include "config/config.h"

#include "base/buffer.h"
#include "base/test.h"
#include "config/test_parse.h"

/* The file must be refused with exactly this message. */
static void
expect_refused(const char *yaml, const char *message)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = NULL;
    struct error *err = parse(yaml, NULL, arena, &config);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, message);
    EXPECT(config == NULL);
}

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

/* --- refusals ---- */

TEST(config, an_unknown_key_is_refused_with_its_line_and_the_nearest_one)
{
    expect_refused("log:\n  level: info\npersistance:\n  numHistoryShards: 4\n",
                   "test.yaml:3: persistance: there is no such key; did you mean persistence?");
    expect_refused("persistence:\n  numHistoryShard: 4\n",
                   "test.yaml:2: persistence.numHistoryShard: there is no such key; "
                   "did you mean persistence.numHistoryShards?");
    expect_refused(
        "clusterGroupMetadata:\n clusterGroup:\n  east:\n   rpcAdress: x\n",
        "test.yaml:4: clusterGroupMetadata.clusterGroup.east.rpcAdress: there is no such "
        "key; did you mean clusterGroupMetadata.clusterGroup.east.rpcAddress?");
    expect_refused("numhistoryshards: 4\n", "test.yaml:1: numhistoryshards: there is no such key; "
                                            "did you mean persistence.numHistoryShards?");
    expect_refused("zebra: 4\n", "test.yaml:1: zebra: there is no such key");
}

TEST(config, a_value_of_the_wrong_type_is_refused_with_what_was_expected)
{
    expect_refused("persistence:\n\n  numHistoryShards: many\n",
                   "test.yaml:3: persistence.numHistoryShards: "
                   "expected an integer from 1 to 16384, got 'many'");
    expect_refused("log: {stdout: maybe}",
                   "test.yaml:1: log.stdout: expected true or false, got 'maybe'");
    expect_refused("log: {level: loud}",
                   "test.yaml:1: log.level: "
                   "expected one of: debug info warn error fatal, got 'loud'");
    expect_refused("log: {level: [info]}",
                   "test.yaml:1: log.level: "
                   "expected one of: debug info warn error fatal, got a list");
    expect_refused("dynamicconfig: {filebased: {pollInterval: 10}}",
                   "test.yaml:1: dynamicconfig.filebased.pollInterval: "
                   "expected a duration such as 10s or 1h30m, got '10'");
    expect_refused("services: {frontend: {rpc: {tls: {caFiles: a.pem}}}}",
                   "test.yaml:1: services.frontend.rpc.tls.caFiles: "
                   "expected a list of texts, got 'a.pem'");
    expect_refused("services: {frontend: {rpc: {tls: {caFiles: [[a]]}}}}",
                   "test.yaml:1: services.frontend.rpc.tls.caFiles: "
                   "expected a list of texts, got a list inside");
    expect_refused("log: info", "test.yaml:1: log: expected a section, got 'info'");
    expect_refused("log:\n- level: info\n", "test.yaml:1: log: expected a section, got a list");
    expect_refused("- log\n", "test.yaml:1: expected sections (name: value), got a list");
}

TEST(config, integers_are_read_strictly_and_within_their_range)
{
    static const char *const bad[] = {
        "0", "16385", "-1", "+4", "4.0", "0x10", "1e3", "4 5", "4s", "١", "99999999999999999999"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(bad); i++) {
        const char *yaml = arena_format(arena, "persistence: {numHistoryShards: '%s'}", bad[i]);
        expect_refused(yaml, arena_format(arena,
                                          "test.yaml:1: persistence.numHistoryShards: "
                                          "expected an integer from 1 to 16384, got '%s'",
                                          bad[i]));
    }
    expect_refused_with("services: {frontend: {rpc: {grpcPort: 65536}}}", "from 0 to 65535");
    config_free(config_of("services: {frontend: {rpc: {grpcPort: 65535}}}", arena));
    config_free(config_of("persistence: {numHistoryShards: 16384}", arena));
}

TEST(config, all_faults_of_a_file_are_reported_in_its_order)
{
    expect_refused("log: {level: loud}\n"
                   "nonsense: 1\n"
                   "persistence: {numHistoryShards: 0}\n"
                   "log: {level: info}\n",
                   "test.yaml:1: log.level: "
                   "expected one of: debug info warn error fatal, got 'loud'\n"
                   "test.yaml:2: nonsense: there is no such key\n"
                   "test.yaml:3: persistence.numHistoryShards: "
                   "expected an integer from 1 to 16384, got '0'\n"
                   "test.yaml:4: log: duplicate key, first given in line 1");
}

ARENA_TEST(config, very_many_faults_are_counted_and_not_all_listed)
{
    struct buffer yaml = {0};
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&yaml, "zebra%d: 1\n", i);
    struct config *config = NULL;
    struct error *err =
        config_parse(buffer_slice(&yaml), "f", &(struct config_environment){0}, arena, &config);
    buffer_free(&yaml);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "\nand 950 more") != NULL);
}

TEST(config, broken_yaml_is_refused_with_its_line)
{
    expect_refused_with("log:\n\tlevel: info\n", "test.yaml:2: found character that cannot start");
    expect_refused_with("log: {level: info\npersistence: 1\n", "test.yaml:2: ");
    expect_refused_with("log: [\n", "test.yaml:2: ");
    expect_refused_with("log: \"open\n", "test.yaml:");
    expect_refused_with("log:\n  level: \xff\xfe\n", "test.yaml:2: ");
    expect_refused_with("? [log]\n: 1\n", "test.yaml:1: a key must be a plain text");
    expect_refused_with("log: {level: \"in\\0fo\"}\n", "test.yaml:1: a text with a NUL byte");
    expect_refused_with("log: {}\n---\nlog: {}\n", "test.yaml:3: a second document");
}

ARENA_TEST(config, an_alias_is_refused_and_an_anchor_alone_is_fine)
{
    config_free(config_of("log: &log {level: info}\n", arena));
    expect_refused("clusterGroupMetadata:\n"
                   "  primaryClusterName: &name east\n"
                   "  currentClusterName: *name\n",
                   "test.yaml:3: the alias *name is not followed; write its value here");
}

TEST(config, depth_and_size_are_bounded)
{
    struct buffer deep = {0};
    for (int i = 0; i < 5000; i++)
        buffer_append_text(&deep, "[");
    buffer_append_u8(&deep, 0);
    expect_refused_with((const char *)buffer_slice(&deep).data, "nested too deeply");
    buffer_clear(&deep);
    buffer_append_text(&deep, "kafka: [");
    for (int i = 0; i < 70000; i++)
        buffer_append_text(&deep, "1,");
    buffer_append_text(&deep, "1]");
    buffer_append_u8(&deep, 0);
    expect_refused_with((const char *)buffer_slice(&deep).data, "too many values in one file");
    buffer_clear(&deep);
    for (int i = 0; i < 1024; i++)
        buffer_append_format(&deep, "#%1023d\n", i);
    buffer_append_text(&deep, "#");
    buffer_append_u8(&deep, 0);
    expect_refused_with((const char *)buffer_slice(&deep).data, "the most is 1048576");
    buffer_free(&deep);
}

TEST(config, a_name_with_a_dot_is_refused)
{
    expect_refused_with("log.level: info\n", "test.yaml:1: log.level: a name is not empty");
    expect_refused_with("clusterGroupMetadata: {clusterGroup: {a.b: {}}}\n",
                        "clusterGroupMetadata.clusterGroup.a.b: a name is not empty");
    expect_refused_with("'': 1\n", "a name is not empty");
}

/* --- variables ---- */

static const char *const variables[] = {
    "PORT", "9000", "HOST", "db1", "EMPTY", "", "LOOP", "${LOOP}", NULL,
};

static void
expect_variable(const char *written, const char *read)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = NULL;
    const char *yaml = arena_format(arena, "persistence:\n  defaultStore: >-\n    %s\n", written);
    EXPECT_OK(parse(yaml, variables, arena, &config));
    EXPECT_TEXT(config_text(config, "persistence.defaultStore"), read);
    config_free(config);
}

TEST(config, variables_are_replaced_from_the_environment)
{
    expect_variable("${PORT}", "9000");
    expect_variable("${PORT:7833}", "9000");
    expect_variable("${UNSET:7833}", "7833");
    expect_variable("${UNSET:}", "");
    expect_variable("${UNSET:\"\"}", "");
    expect_variable("${EMPTY:full}", "");
    expect_variable("tcp://${HOST:localhost}:${PORT:1}/x", "tcp://db1:9000/x");
    expect_variable("${UNSET:${HOST}:${ALSO_UNSET:1}}", "db1:1");
    expect_variable("${UNSET:host:1}", "host:1");
    expect_variable("${LOOP}", "${LOOP}");
    expect_variable("$${PORT} costs $5 {x}", "${PORT} costs $5 {x}");
}

ARENA_TEST(config, a_replaced_value_is_checked_like_a_written_one)
{
    struct config *config = NULL;
    EXPECT_OK(parse("services:\n  frontend:\n    rpc:\n      grpcPort: ${PORT:1}\n"
                    "      tls:\n        caFiles: [\"${HOST}.pem\"]\n",
                    variables, arena, &config));
    EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcPort"), 9000);
    EXPECT_TEXT(config_list(config, "services.frontend.rpc.tls.caFiles", arena)[0], "db1.pem");
    config_free(config);
    expect_refused_with("persistence:\n  numHistoryShards: ${N:none}\n",
                        "test.yaml:2: persistence.numHistoryShards: expected an integer");
}

TEST(config, a_faulty_variable_is_reported_with_its_line)
{
    expect_refused("log:\n  level: ${LEVEL\n", "test.yaml:2: log.level: ${LEVEL has no closing "
                                               "brace");
    expect_refused("log:\n  level: ${LEVEL}\n",
                   "test.yaml:2: log.level: the variable LEVEL is not set; "
                   "${LEVEL:value} gives a default");
    expect_refused("log:\n  level: \"${:x}\"\n", "test.yaml:2: log.level: '' is not a valid "
                                                 "variable name");
    expect_refused_with("log:\n  level: ${a b:x}\n", "'a b' is not a valid variable name");
    expect_refused_with("log:\n  level: "
                        "${A:${A:${A:${A:${A:${A:${A:${A:${A:x}}}}}}}}}\n",
                        "nested too deeply");
}
