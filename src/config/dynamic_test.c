/* dynamic_test.c - dynamic settings: which entry holds, what a bad file does, and when a changed
 * file is seen.
 *
 * Files are followed in simulation: five seconds pass at once, and a host that stopped cleanly has
 * no memory left, so a set that is not freed, or freed twice, is seen. */
#include "config/dynamic.h"

#include <stdio.h>

#include "base/check.h"
#include "base/test.h"
#include "config/value.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/loop.h"
#include "fiber/sim/world.h"

/* A log that keeps its lines, on no heap: simulated hosts write into it, too. */
struct notes {
    size_t length;
    char text[16384];
};

static void
notes_sink(void *context, const char *line, size_t length)
{
    struct notes *notes = context;
    if (notes->length + length >= sizeof notes->text)
        return;
    memcpy(notes->text + notes->length, line, length);
    notes->length += length;
    notes->text[notes->length] = '\0';
}

static int64_t
no_clock(void *context)
{
    return 0;
}

static struct log
log_of(struct notes *notes)
{
    return (struct log){
        .level = LOG_INFO, .service = "x", .now = no_clock, .sink = notes_sink, .context = notes};
}

static size_t
notes_count(const struct notes *notes, const char *part)
{
    size_t count = 0;
    for (const char *at = notes->text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static struct dynamic *
dynamic_of(const char *yaml, const struct log *log)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(log);
    EXPECT_OK(dynamic_load(dynamic, slice_text(yaml), "d.yaml", arena));
    return dynamic;
}

static int64_t
bad_binaries(const struct dynamic *dynamic, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    return dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, &filter);
}

/* --- which entry holds ---- */

ARENA_TEST(dynamic, without_a_file_all_is_as_the_table_says)
{
    struct dynamic *dynamic = dynamic_new(NULL);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, NULL), 30);
    EXPECT(!dynamic_flag(dynamic, DYNAMIC_ADMIN_PROTECTION, NULL));
    EXPECT_EQ(dynamic_duration(dynamic, DYNAMIC_FAILOVER_COOL_DOWN, NULL), 0);
    EXPECT_TEXT(dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, NULL), "CadenceTeamONLY");
    EXPECT(dynamic_list(dynamic, DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, NULL, arena)[0] == NULL);
    dynamic_free(dynamic);
}

ARENA_TEST(dynamic, every_type_is_read_from_the_file, "H-017")
{
    struct dynamic *dynamic = dynamic_of("system.maxRetentionDays: [{value: 90}]\n"
                                         "history.enableAdminProtection:\n- value: true\n"
                                         "frontend.failoverCoolDown:\n- value: 1m30s\n"
                                         "history.adminOperationToken:\n- value: \"secret\"\n"
                                         "system.requiredDomainDataKeys:\n- value: [team, 7]\n",
                                         NULL);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, NULL), 90);
    EXPECT(dynamic_is_set(dynamic, DYNAMIC_MAX_RETENTION_DAYS));
    EXPECT(!dynamic_is_set(dynamic, DYNAMIC_USER_RPS));
    EXPECT(dynamic_flag(dynamic, DYNAMIC_ADMIN_PROTECTION, NULL));
    EXPECT_EQ(dynamic_duration(dynamic, DYNAMIC_FAILOVER_COOL_DOWN, NULL), 90 * NS_PER_S);
    EXPECT_TEXT(dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, NULL), "secret");
    const char *const *keys = dynamic_list(dynamic, DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, NULL, arena);
    EXPECT_TEXT(keys[0], "team");
    EXPECT_TEXT(keys[1], "7");
    EXPECT(keys[2] == NULL);
    dynamic_free(dynamic);
}

TEST(dynamic, the_first_entry_that_fits_the_asker_wins, "H-017", "H-018")
{
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries:\n"
                                         "- value: 1\n"
                                         "  constraints: {domainName: orders}\n"
                                         "- value: 2\n"
                                         "- value: 3\n"
                                         "  constraints: {domainName: orders}\n"
                                         "- value: 4\n"
                                         "  constraints: {domainName: late}\n",
                                         NULL);
    EXPECT_EQ(bad_binaries(dynamic, "orders"), 1);
    EXPECT_EQ(bad_binaries(dynamic, "late"), 4);
    EXPECT_EQ(bad_binaries(dynamic, "other"), 2);
    EXPECT_EQ(bad_binaries(dynamic, NULL), 2);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, NULL), 2);
    dynamic_free(dynamic);
}

TEST(dynamic, of_entries_without_constraints_the_last_one_holds, "H-018")
{
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries:\n"
                                         "- value: 1\n"
                                         "- value: 2\n"
                                         "  constraints: {}\n"
                                         "- value: 3\n"
                                         "  constraints:\n",
                                         NULL);
    EXPECT_EQ(bad_binaries(dynamic, "orders"), 3);
    dynamic_free(dynamic);
}

TEST(dynamic, without_a_fitting_entry_the_default_holds, "H-018")
{
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries:\n"
                                         "- value: 1\n"
                                         "  constraints: {domainName: orders}\n",
                                         NULL);
    EXPECT_EQ(bad_binaries(dynamic, "orders"), 1);
    EXPECT_EQ(bad_binaries(dynamic, "order"), 10);
    EXPECT_EQ(bad_binaries(dynamic, "orders2"), 10);
    EXPECT_EQ(bad_binaries(dynamic, NULL), 10);
    dynamic_free(dynamic);
}

/* The asker of this key carries a domain name and nothing else. */
TEST(dynamic, an_entry_with_a_constraint_that_nobody_carries_never_matches, "H-018")
{
    struct notes notes = {0};
    struct log log = log_of(&notes);
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries:\n"
                                         "- value: 1\n"
                                         "  constraints: {domainName: orders, taskListName: x}\n"
                                         "- value: 2\n"
                                         "  constraints: {ratelimitKey: x}\n"
                                         "- value: 3\n"
                                         "  constraints: {domainNmae: orders}\n"
                                         "- value: 4\n"
                                         "  constraints: {domainName: [orders]}\n"
                                         "- value: 5\n"
                                         "  constraints: {domainName: }\n",
                                         &log);
    struct dynamic_filter all = {.domain_name = "orders",
                                 .domain_id = "x",
                                 .task_list_name = "x",
                                 .cluster_name = "x",
                                 .workflow_id = "x",
                                 .workflow_type = "x"};
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, &all), 10);
    EXPECT_EQ(notes_count(&notes, "never matches"), 5);
    EXPECT_EQ(notes_count(&notes, "this key has no constraint 'domainNmae'"), 1);
    dynamic_free(dynamic);
}

/* --- values and files that are wrong ---- */

/* Cadence takes the default for such a value; here what held before goes on (docs/limits.md). */
TEST(dynamic, a_file_with_a_value_of_the_wrong_type_is_refused_as_a_whole, "H-020")
{
    static const char *const wrong[] = {"many", "'7'", "1.5", "[1]", "{a: 1}", "", "true", "0x10"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries: [{value: 7}]\n", NULL);
    for (size_t i = 0; i < array_length(wrong); i++) {
        const char *yaml = arena_format(arena,
                                        "system.maxRetentionDays: [{value: 31}]\n"
                                        "frontend.maxBadBinaries:\n- value: %s\n",
                                        wrong[i]);
        struct error *err = dynamic_load(dynamic, slice_text(yaml), "d.yaml", arena);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strstr(err->message,
                      "d.yaml:3: frontend.maxBadBinaries: expected an integer, got") != NULL);
        EXPECT_EQ(bad_binaries(dynamic, "orders"), 7);
        EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, NULL), 30);
    }
    dynamic_free(dynamic);
}

/* What Cadence's own suites set, as a file. The worker, the scheduler and what repeats replicated
 * tasks are not parts of this server: those keys are logged, and the file is accepted. */
TEST(dynamic, the_settings_of_cadence_s_suites_load_and_hold, "H-024")
{
    struct notes notes = {0};
    struct log log = log_of(&notes);
    struct dynamic *dynamic =
        dynamic_of("frontend.rps: [{value: 3000}]\n"
                   "frontend.esIndexMaxResultWindow: [{value: 5}]\n"
                   "matching.numTasklistWritePartitions: [{value: 3}]\n"
                   "matching.numTasklistReadPartitions: [{value: 3}]\n"
                   "history.decisionHeartbeatTimeout: [{value: 5s}]\n"
                   "history.EnableConsistentQueryByDomain: [{value: true}]\n"
                   "system.minRetentionDays: [{value: 0}]\n"
                   "system.workflowDeletionJitterRange: [{value: 1}]\n"
                   "frontend.failoverCoolDown: [{value: 0s}]\n"
                   "frontend.enableActiveClusterSelectionPolicyInStartWorkflow: [{value: true}]\n"
                   "history.ReplicationTaskProcessorErrorRetryMaxAttempts: [{value: 1}]\n"
                   "worker.enableScheduler: [{value: true}]\n",
                   &log);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_USER_RPS, NULL), 3000);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_LIST_PAGE_MAX, NULL), 5);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_READ_PARTITIONS, NULL), 3);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_WRITE_PARTITIONS, NULL), 3);
    EXPECT_EQ(dynamic_duration(dynamic, DYNAMIC_DECISION_HEARTBEAT_TIMEOUT, NULL), 5 * NS_PER_S);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MIN_RETENTION_DAYS, NULL), 0);
    EXPECT_EQ(dynamic_duration(dynamic, DYNAMIC_FAILOVER_COOL_DOWN, NULL), 0);
    EXPECT_EQ(notes_count(&notes, "is unknown and ignored"), 2);
    dynamic_free(dynamic);
}

TEST(dynamic, keys_that_are_not_known_are_logged_and_ignored)
{
    struct notes notes = {0};
    struct log log = log_of(&notes);
    struct dynamic *dynamic = dynamic_of("frontend.no.such.key:\n"
                                         "- value: {CustomKeywordField: 1}\n"
                                         "some.thing: 7\n"
                                         "system.maxRetentionDays: [{value: 31}]\n",
                                         &log);
    EXPECT_EQ(notes_count(&notes, "is unknown and ignored"), 2);
    EXPECT_EQ(notes_count(&notes, "\"key\":\"some.thing\""), 1);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, NULL), 31);
    dynamic_free(dynamic);
}

ARENA_TEST(dynamic, a_section_of_names_is_one_value)
{
    struct dynamic *dynamic = dynamic_new(NULL);
    EXPECT(dynamic_value(dynamic, DYNAMIC_SEARCH_ATTRIBUTES, NULL)->map[0].name == NULL);
    const char *good = "frontend.validSearchAttributes: [{value: {Colour: 1, Size: INT}}]\n";
    EXPECT_OK(dynamic_load(dynamic, slice_text(good), "d.yaml", arena));
    const struct value_pair *map = dynamic_value(dynamic, DYNAMIC_SEARCH_ATTRIBUTES, NULL)->map;
    EXPECT_TEXT(map[0].name, "Colour");
    EXPECT_TEXT(map[0].text, "1");
    EXPECT_TEXT(map[1].name, "Size");
    EXPECT_TEXT(map[1].text, "INT");
    EXPECT(map[2].name == NULL);
    const char *bad = "frontend.validSearchAttributes: [{value: {Colour: [1]}}, {value: 7}]\n";
    struct error *err = dynamic_load(dynamic, slice_text(bad), "d.yaml", arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "names and texts, got a list in 'Colour'") != NULL);
    EXPECT(strstr(err->message, "names and texts, got '7'") != NULL);
    map = dynamic_value(dynamic, DYNAMIC_SEARCH_ATTRIBUTES, NULL)->map;
    EXPECT_TEXT(map[0].name, "Colour");
    dynamic_free(dynamic);
}

ARENA_TEST(dynamic, a_broken_file_changes_nothing_and_names_every_fault)
{
    struct dynamic *dynamic = dynamic_of("frontend.maxBadBinaries: [{value: 7}]\n", NULL);
    struct error *err = dynamic_load(dynamic,
                                     slice_text("system.maxRetentionDays: [{value: 31}]\n"
                                                "frontend.maxBadBinaries: 8\n"
                                                "history.adminOperationToken:\n"
                                                "- value: x\n"
                                                "  constraint: {domainName: orders}\n"
                                                "- constraints: {}\n"
                                                "system.Lockdown: [{value: true, "
                                                "constraints: 3}]\n"),
                                     "d.yaml", arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "d.yaml:2: frontend.maxBadBinaries: "
                "expected a list of entries (- value: ...), got '8'\n"
                "d.yaml:5: history.adminOperationToken: "
                "an entry has value and constraints, not 'constraint'\n"
                "d.yaml:6: history.adminOperationToken: an entry without a value\n"
                "d.yaml:7: system.Lockdown: constraints: expected a section, got '3'");
    EXPECT_EQ(bad_binaries(dynamic, NULL), 7);
    EXPECT_EQ(dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, NULL), 30);
    EXPECT_KIND(dynamic_load(dynamic, slice_text("a: [\n"), "d.yaml", arena), ERR_BAD_REQUEST);
    EXPECT_KIND(dynamic_load(dynamic, slice_text("- a\n"), "d.yaml", arena), ERR_BAD_REQUEST);
    EXPECT_EQ(bad_binaries(dynamic, NULL), 7);
    EXPECT_OK(dynamic_load(dynamic, slice_text(""), "d.yaml", arena));
    EXPECT_EQ(bad_binaries(dynamic, NULL), 10);
    dynamic_free(dynamic);
}

ARENA_TEST(dynamic, a_server_looks_every_half_second_at_least)
{
    struct config *config = config_default();
    EXPECT_EQ(dynamic_interval(config), NS_PER_S / 2);
    EXPECT_OK(config_set(config, "dynamicconfig.filebased.pollInterval", "100ms", arena));
    EXPECT_EQ(dynamic_interval(config), NS_PER_S / 10);
    EXPECT_OK(config_set(config, "dynamicconfig.filebased.pollInterval", "1m", arena));
    EXPECT_EQ(dynamic_interval(config), NS_PER_S / 2);
    config_free(config);
}

/* --- following a file ---- */

#define PATH     "/dynamic.yaml"
#define INTERVAL (10 * NS_PER_S)

/* What happens on a host, noted for the test that looks from outside. */
struct story {
    struct log log;
    const struct dynamic *dynamic;
    int64_t seen[16];
    size_t count;
    bool is_over;
    char error[256];
};

static void
story_save(const char *yaml, struct arena *arena)
{
    struct error *err = file_save(PATH, slice_text(yaml), arena);
    check_that(err == NULL, "%s", err->message);
}

static void
story_wait(int64_t nanoseconds, struct arena *arena)
{
    struct error *err = fiber_sleep(nanoseconds, arena);
    check_that(err == NULL, "%s", err->message);
}

static void
story_look(void *argument)
{
    struct story *story = argument;
    check(story->count < array_length(story->seen));
    story->seen[story->count++] = dynamic_integer(story->dynamic, DYNAMIC_MAX_BAD_BINARIES, NULL);
}

static void
run_story(void (*function)(void *), struct story *story, unsigned loops)
{
    struct world *world = world_new(.seed = test_seed(0));
    struct host *host = world_add_host(world, "host", loops);
    host_start(host, function, story);
    world_run_for(world, 3600 * NS_PER_S);
    bool is_running = host_is_running(host);
    size_t blocks = host_heap_blocks(host);
    world_free(world);
    EXPECT(!is_running);
    EXPECT(story->is_over);
    EXPECT_EQ(blocks, 0);
}

static void
expect_seen(const struct story *story, const int64_t *values, size_t count)
{
    EXPECT_EQ(story->count, count);
    for (size_t i = 0; i < count; i++)
        EXPECT_EQ(story->seen[i], values[i]);
}

/* Save, look, wait for one look of the follower, look again; through good, broken and missing. */
static void
change_story(void *argument)
{
    struct story *story = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(&story->log);
    story->dynamic = dynamic;
    story_save("frontend.maxBadBinaries: [{value: 1}]\n", arena);
    struct error *err = dynamic_follow(dynamic, PATH, INTERVAL, arena);
    check_that(err == NULL, "%s", err->message);
    story_look(story);
    story_save("frontend.maxBadBinaries: [{value: 2}]\n", arena);
    story_wait(INTERVAL / 2, arena);
    story_look(story); /* not yet */
    story_wait(INTERVAL, arena);
    story_look(story);
    story_save("frontend.maxBadBinaries: [{value: 3}\n", arena);
    story_wait(3 * INTERVAL, arena);
    story_look(story); /* broken: as it was */
    err = file_remove(PATH, arena);
    check(err == NULL);
    story_wait(3 * INTERVAL, arena);
    story_look(story); /* missing: as it was */
    story_save("frontend.maxBadBinaries: [{value: 4}]\n", arena);
    story_wait(INTERVAL + NS_PER_S, arena);
    story_look(story);
    dynamic_free(dynamic);
    arena_free(arena);
    story->is_over = true;
}

TEST(dynamic, a_changed_file_is_read_again_and_a_broken_one_is_told_once, "H-019")
{
    struct notes notes = {0};
    struct story story = {.log = log_of(&notes)};
    run_story(change_story, &story, 1);
    expect_seen(&story, (int64_t[]){1, 1, 2, 2, 2, 4}, 6);
    EXPECT_EQ(notes_count(&notes, "are in force"), 3);
    EXPECT_EQ(notes_count(&notes, "stay as they were"), 2); /* once broken, once missing */
    EXPECT_EQ(notes_count(&notes, "/dynamic.yaml:2: "), 1); /* the broken one, with its line */
}

/* Values are asked for on every loop while the file changes; what loops still may look at is freed
 * later, and all of it in the end. */
static void
loops_story(void *argument)
{
    struct story *story = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(&story->log);
    story->dynamic = dynamic;
    for (int round = 0; round < 4; round++) {
        story_save(arena_format(arena, "frontend.maxBadBinaries: [{value: %d}]\n", 100 + round),
                   arena);
        struct error *err = NULL;
        if (round == 0)
            err = dynamic_follow(dynamic, PATH, INTERVAL, arena);
        check(err == NULL);
        story_wait(INTERVAL + NS_PER_S, arena);
        for (unsigned i = 0; i < loop_count(); i++) {
            err = loop_call(loop_at(i), story_look, story, arena);
            check(err == NULL);
        }
    }
    /* Freed while messages are on their way. */
    for (int i = 0; i < 3; i++) {
        struct error *err = dynamic_load(dynamic, slice_text(""), "d.yaml", arena);
        check(err == NULL);
    }
    dynamic_free(dynamic);
    arena_free(arena);
    story->is_over = true;
}

TEST(dynamic, every_loop_sees_the_change_and_old_values_are_freed)
{
    struct notes notes = {0};
    struct story story = {.log = log_of(&notes)};
    run_story(loops_story, &story, 3);
    expect_seen(&story, (int64_t[]){100, 100, 100, 101, 101, 101, 102, 102, 102, 103, 103, 103},
                12);
}

static void
missing_story(void *argument)
{
    struct story *story = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(&story->log);
    struct error *err = dynamic_follow(dynamic, "/missing.yaml", INTERVAL, arena);
    snprintf(story->error, sizeof story->error, "%d %s", err != NULL && err->kind == ERR_NOT_FOUND,
             err == NULL ? "" : err->message);
    story_save("frontend.maxBadBinaries: {\n", arena);
    err = dynamic_follow(dynamic, PATH, INTERVAL, arena);
    story->seen[story->count++] = err != NULL && err->kind == ERR_BAD_REQUEST;
    dynamic_free(dynamic);
    arena_free(arena);
    story->is_over = true;
}

TEST(dynamic, the_first_read_must_succeed)
{
    struct notes notes = {0};
    struct story story = {.log = log_of(&notes)};
    run_story(missing_story, &story, 1);
    expect_seen(&story, (int64_t[]){1}, 1);
    EXPECT(strncmp(story.error, "1 dynamic settings: ", 20) == 0);
    EXPECT(strstr(story.error, "/missing.yaml") != NULL);
}
