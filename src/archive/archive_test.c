/* archive_test.c - names, URIs, records and settings of archives, against what Cadence writes; and
 * files on a real disk. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/test/sample.h"
#include "base/check.h"
#include "fiber/file.h"
#include "fiber/linux/linux.h"
#include "wire/presence.h"

/* --- names: made by Cadence's own code ---- */

ARENA_TEST(archive, files_are_called_as_in_cadence)
{
    const char *prefix =
        archive_history_prefix("testDomainID", "testWorkflowID", "testRunID", arena);
    const char *name = archive_history_name(prefix, 5, arena);
    int64_t version;
    EXPECT_TEXT(name, "17971674567288329890367046253745284795510285995943906173973_5.history");
    EXPECT(archive_history_version(name, prefix, &version) && version == 5);
    EXPECT(archive_history_version(archive_history_name(prefix, -24, arena), prefix, &version) &&
           version == -24);
    EXPECT(!archive_history_version("history", prefix, &version));
    EXPECT(!archive_history_version(arena_format(arena, "%s_x.history", prefix), prefix, &version));
    EXPECT(!archive_history_version(arena_format(arena, "%s.new", name), prefix, &version));
}

ARENA_TEST(archive, records_are_ordered_by_their_names)
{
    struct record_name one, other;
    EXPECT(archive_record_name_read(archive_record_name(20, "a", arena), &one));
    EXPECT(archive_record_name_read(archive_record_name(3, "b", arena), &other));
    EXPECT_EQ(one.close_time, 20);
    EXPECT(archive_record_name_compare(&one, &other) < 0);
    EXPECT(archive_record_name_compare(&other, &one) > 0);
    EXPECT_EQ(archive_record_name_compare(&one, &one), 0);
    EXPECT(!archive_record_name_read(".20_1.visibility.5-3.new", &one));
    EXPECT(!archive_record_name_read("20.visibility", &one));
}

/* --- URIs ---- */

ARENA_TEST(archive, a_uri_names_a_folder_or_is_refused_in_cadences_words, "J-020")
{
    static const struct {
        const char *uri, *folder, *refusal;
    } known[] = {
        {"file:///tmp/cadence_archival/development", "/tmp/cadence_archival/development", NULL},
        {"file:/tmp/a", "/tmp/a", NULL},
        {"file://localhost/tmp", "/tmp", NULL},
        {"file:///a%20b?x=1#y", "/a b", NULL},
        {"file:///a..b/...", "/a..b/...", NULL},
        {"file://", NULL, "directory path is empty"},
        {"file:a", NULL, "URI is invalid"},
        {"file:///a/../b", NULL, "URI is invalid"},
        {"file:///a/..", NULL, "URI is invalid"},
        {"file://tmp/a", NULL, "URI is invalid: a file has no host, three slashes are needed"},
        {"/tmp", NULL, "unknown archiver scheme"},
        {"http://x", NULL, "unknown archiver scheme"},
        {"s3://x", NULL, "unable to find archiver config for the given scheme"},
        {"gs://x", NULL, "unable to find archiver config for the given scheme"},
        {"tmp", NULL, "parse \"tmp\": invalid URI for request"},
        {"", NULL, "parse \"\": invalid URI for request"},
    };
    for (size_t i = 0; i < array_length(known); i++) {
        const char *folder = NULL;
        struct error *err = archive_uri_folder(known[i].uri, arena, &folder);
        EXPECT((err == NULL) == (known[i].folder != NULL));
        if (err == NULL)
            EXPECT_TEXT(folder, known[i].folder);
        else
            EXPECT_TEXT(err->message, known[i].refusal);
    }
}

/* --- records ---- */

/* As encoding/json makes it of Cadence's type. */
static const char cadence_record[] =
    "{\"DomainID\":\"d\",\"DomainName\":\"orders\",\"WorkflowID\":\"wf\",\"RunID\":\"r\","
    "\"WorkflowTypeName\":\"order\",\"StartTimestamp\":1580896574804475000,"
    "\"ExecutionTimestamp\":0,\"CloseTimestamp\":1580896575946478000,"
    "\"CloseStatus\":\"CONTINUED_AS_NEW\",\"HistoryLength\":36,"
    "\"Memo\":{\"fields\":{\"b\":\"AQID\",\"a\":\"\"}},"
    "\"SearchAttributes\":{\"CustomKeywordField\":\"\\\"one\\\"\"},"
    "\"HistoryArchivalURI\":\"file:///a\"}";

ARENA_TEST(archive, a_record_that_cadence_wrote_is_read, "B-034")
{
    API(WorkflowExecutionInfo) *info;
    EXPECT_OK(archive_record_read(slice_text(cadence_record), arena, &info));
    EXPECT_TEXT(info->workflow_execution->workflow_id, "wf");
    EXPECT_TEXT(info->type->name, "order");
    EXPECT_EQ(info->close_time->seconds, 1580896575);
    EXPECT_EQ(info->execution_time->nanos, 804475000); /* that of the start, where there is none */
    EXPECT_EQ(info->history_length, 36);
    EXPECT_EQ(
        info->close_status,
        API_VALUE(
            WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW));
    EXPECT_EQ(info->memo->n_fields, 2);
    EXPECT_TEXT(info->memo->fields[0]->key, "a");
    EXPECT(slice_equal(presence_read_bytes(info->search_attributes->indexed_fields[0]->value->data),
                       slice_text("\"one\"")));
}

ARENA_TEST(archive, a_record_is_written_as_cadence_does_with_more_behind)
{
    API(WorkflowExecutionInfo) *info, *again;
    EXPECT_OK(archive_record_read(slice_text(cadence_record), arena, &info));
    info->execution_time = NULL;
    info->task_list = (char *)"work";
    struct archive_run run = {.domain_id = "d",
                              .domain_name = "orders",
                              .workflow_id = "wf",
                              .run_id = "r",
                              .history_uri = "file:///a"};
    struct slice written = archive_record_write(&run, info, arena);
    const char *memo = strstr(cadence_record, "\"Memo\"");
    EXPECT(slice_starts_with(written, slice_of(cadence_record, (size_t)(memo - cadence_record))));
    EXPECT_OK(archive_record_read(written, arena, &again));
    EXPECT_TEXT(again->task_list, "work");
    EXPECT_EQ(again->memo->n_fields, 2);
}

TEST(archive, what_is_no_record_is_refused)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"RunID\":\"r\"}",
                                      "{\"RunID\":\"r\",\"CloseStatus\":\"NONE\"}",
                                      "{\"RunID\":\"r\",\"CloseStatus\":6}",
                                      "{\"RunID\":\"r\",\"CloseStatus\":0} x",
                                      "{\"RunID\":\"r\",\"CloseStatus\":0,\"Memo\":3}"};
    for (size_t i = 0; i < array_length(bad); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(WorkflowExecutionInfo) *info;
        EXPECT_KIND(archive_record_read(slice_text(bad[i]), arena, &info), ERR_CORRUPT);
    }
}

/* --- settings ---- */

static struct error *
read_settings(const char *yaml, struct arena *arena, struct archive_settings settings[2])
{
    struct config *config;
    struct error *err = config_parse(slice_text(yaml), "file", NULL, arena, &config);
    if (err != NULL)
        return err;
    err = archive_settings_read(config, arena, settings);
    settings[0].default_uri = arena_text(arena, settings[0].default_uri);
    config_free(config);
    return err;
}

#define FILES "{filestore: {fileMode: '0640', dirMode: '0750'}}"
#define DEFAULT_URI                                                                                \
    "domainDefaults: {archival: {history: {status: enabled, URI: 'file:///h'}, "                   \
    "visibility: {URI: 'file:///v'}}}\n"

ARENA_TEST(archive, settings_are_those_of_cadence, "J-020")
{
    struct archive_settings settings[2];
    EXPECT_OK(read_settings("{}", arena, settings));
    EXPECT(!settings[0].is_enabled && !settings[1].is_enabled);
    EXPECT_OK(
        read_settings("archival: {history: {status: enabled, enableRead: true, provider: " FILES
                      "}, visibility: {status: 'paused', provider: " FILES "}}\n" DEFAULT_URI,
                      arena, settings));
    EXPECT(settings[ARCHIVE_HISTORY].is_enabled && settings[ARCHIVE_HISTORY].is_readable);
    EXPECT(settings[ARCHIVE_HISTORY].is_default_enabled);
    EXPECT(!settings[ARCHIVE_VISIBILITY].is_enabled);
    EXPECT(!settings[ARCHIVE_VISIBILITY].is_default_enabled);
    EXPECT_EQ(settings[ARCHIVE_HISTORY].file_mode, 0640);
    EXPECT_EQ(settings[ARCHIVE_HISTORY].dir_mode, 0750);
    EXPECT_TEXT(settings[ARCHIVE_HISTORY].default_uri, "file:///h");
}

/* Each says which key is wrong. */
TEST(archive, settings_that_cannot_work_are_refused_by_name, "J-020")
{
    static const char *const bad[][2] = {
        {"archival: {history: {status: on-and-off}}", "archival.history.status"},
        {"archival: {visibility: {enableRead: true}}", "archival.visibility.enableRead"},
        {"archival: {history: {status: enabled}}\n" DEFAULT_URI, "archival.history.provider"},
        {"archival: {history: {status: enabled, provider: {s3store: {region: x}}}}\n" DEFAULT_URI,
         "archival.history.provider"},
        {"archival: {history: {status: enabled, provider: " FILES "}}",
         "domainDefaults.archival.history.URI"},
        {"archival: {history: {status: enabled, provider: " FILES "}}\n"
         "domainDefaults: {archival: {history: {URI: 's3://bucket'}}}",
         "domainDefaults.archival.history.URI"},
        {"archival: {history: {provider: {filestore: {fileMode: rw, dirMode: '0750'}}}}",
         "archival.history.provider.filestore.fileMode"},
        {"archival: {history: {provider: {filestore: {fileMode: '0640'}}}}",
         "archival.history.provider.filestore.dirMode"},
        {"domainDefaults: {archival: {history: {status: paused}}}",
         "domainDefaults.archival.history.status"},
        {"archival: {history: {provider: {tapestore: {x: y}}}}", "tapestore"},
    };
    for (size_t i = 0; i < array_length(bad); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct archive_settings settings[2] = {0};
        struct error *err = read_settings(bad[i][0], arena, settings);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strstr(err->message, bad[i][1]) != NULL);
    }
}

/* --- a real disk ---- */

static unsigned
mode_of(const char *path)
{
    struct stat facts;
    check_that(stat(path, &facts) == 0, "%s", path);
    return facts.st_mode & 07777;
}

static void
use_disk(void *argument)
{
    const char *root = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(NULL);
    struct archive *archive = sample_archive(dynamic, "here");
    struct archive_run *run = sample_run(arena, 200, 4000); /* pages for the pool */
    struct slice events;
    run->history_uri = arena_format(arena, "file://%s/deep/h", root);
    run->visibility_uri = arena_format(arena, "file://%s/v", root);
    EXPECT_OK(archive_put(archive, run, arena));
    EXPECT_OK(archive_put(archive, run, arena)); /* twice is once */
    EXPECT_OK(sample_read(archive, run, 7, arena, &events));
    EXPECT(slice_equal(events, sample_events(run, arena)));
    const char *prefix =
        archive_history_prefix(run->domain_id, run->workflow_id, run->run_id, arena);
    EXPECT_EQ(mode_of(arena_format(arena, "%s/deep/h/%s_7.history", root, prefix)), 0640);
    EXPECT_EQ(mode_of(arena_format(arena, "%s/deep", root)), 0750);
    EXPECT_EQ(mode_of(arena_format(arena, "%s/v/%s", root, run->domain_id)), 0750);
    EXPECT_OK(archive_check_uri(archive, ARCHIVE_HISTORY, run->history_uri, arena));
    EXPECT_KIND(archive_check_uri(
                    archive, ARCHIVE_HISTORY,
                    arena_format(arena, "file://%s/deep/h/%s_7.history", root, prefix), arena),
                ERR_BAD_REQUEST);
    archive_free(archive);
    dynamic_free(dynamic);
    arena_free(arena);
}

TEST(archive, files_of_a_real_disk_have_the_modes_of_the_settings, "J-020")
{
    char root[] = "/tmp/archive_test.XXXXXX";
    EXPECT(mkdtemp(root) != NULL);
    linux_run(&(struct linux_options){.loops = 1}, use_disk, root);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_EQ(system(arena_format(arena, "rm -r %s", root)), 0);
}
