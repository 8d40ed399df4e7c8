/* archived_test.c - histories of runs that are gone, from the archive; and which archive a domain
 * may have. */
#include "api/test/archiving.h"
#include "base/buffer.h"
#include "fiber/file.h"

#define LARGE 200000 /* bytes of a signal */

/* --- histories ---- */

static struct error *
try_history(struct fixture *fixture, const char *workflow_id, const char *run_id,
            API(GetWorkflowExecutionHistoryResponse) **response)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, workflow_id);
    request->workflow_execution->run_id = (char *)run_id;
    return fixture_call(fixture, request, response);
}

/* All pages of at least so many events, joined; they must all be of the archive, or none. */
static struct slice
read_all(struct fixture *fixture, const char *workflow_id, const char *run_id, int page_size,
         bool is_archived, unsigned *pages)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, workflow_id);
    scoped(buffer_free) struct buffer all = {0};
    request->workflow_execution->run_id = (char *)run_id;
    request->page_size = page_size;
    *pages = 0;
    do {
        API(GetWorkflowExecutionHistoryResponse) *response = read_history(fixture, request);
        EXPECT_EQ(response->archived, is_archived);
        buffer_append(&all, message_encode(fixture->arena, &response->history->base));
        request->next_page_token = response->next_page_token;
        (*pages)++;
    } while (request->next_page_token.len > 0);
    return arena_slice(fixture->arena, buffer_slice(&all));
}

SERVER_TEST(archived, the_history_of_a_run_that_is_gone_is_read_from_the_archive, "A-235", "J-021")
{
    API(GetWorkflowExecutionHistoryResponse) *response;
    unsigned pages;
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    const char *run_id = run_start(fixture, "wf");
    run_signal(fixture, "wf", "one");
    child_tree_decide(fixture, "work", "wf", decide_marker(fixture));
    run_signal(fixture, "wf", "two");
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    struct slice before = read_all(fixture, "wf", run_id, 0, false, &pages);
    archiving_pass(fixture);
    EXPECT(slice_equal(read_all(fixture, "wf", run_id, 0, true, &pages), before));
    EXPECT_EQ(pages, 1);
    EXPECT(slice_equal(read_all(fixture, "wf", run_id, 1, true, &pages), before));
    EXPECT(pages > 3);
    /* Who does not want the archive, or does not say which run, is told that there is none. */
    EXPECT_KIND(try_history(fixture, "wf", "", &response), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(try_history(fixture, "other", run_id, &response), ERR_ENTITY_NOT_EXISTS);
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)run_id;
    request->skip_archival = true;
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);
}

/* More than one read of the file takes in, and more than one page holds. */
SERVER_TEST(archived, a_history_over_many_blobs_is_archived_whole, "J-021")
{
    unsigned pages;
    char *text = arena_alloc(fixture->arena, LARGE + 1);
    memset(text, 'x', LARGE);
    text[LARGE] = '\0';
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    const char *run_id = run_start(fixture, "wf");
    for (int i = 0; i < 20; i++) {
        EXPECT_OK(API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                           .workflow_execution = fixture_execution(fixture, "wf"),
                           .signal_name = "large", .signal_input = fixture_payload(fixture, text)));
    }
    child_tree_decide(fixture, "work", "wf", decide_end(fixture));
    struct slice before = read_all(fixture, "wf", run_id, 0, false, &pages);
    archiving_pass(fixture);
    EXPECT(slice_equal(read_all(fixture, "wf", run_id, 0, true, &pages), before));
    EXPECT(pages > 1);
}

/* Each run of a chain has a file of its own. */
SERVER_TEST(archived, every_run_of_a_chain_is_archived, "J-021")
{
    const char *runs[5];
    struct slice before[5];
    unsigned pages;
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    runs[0] = run_start(fixture, "wf");
    for (int i = 0; i < 5; i++) {
        API(Decision) *next =
            API_DECISION(fixture->arena, continue_as_new_workflow_execution,
                         .workflow_type = fixture_start(fixture, "wf")->workflow_type,
                         .task_list = fixture_list(fixture, "work"));
        child_tree_decide(fixture, "work", "wf", i < 4 ? next : decide_end(fixture));
        before[i] = read_all(fixture, "wf", runs[i], 0, false, &pages);
        if (i < 4)
            runs[i + 1] = run_describe(fixture, "wf", "")
                              ->workflow_execution_info->workflow_execution->run_id;
    }
    archiving_pass(fixture);
    for (int i = 0; i < 5; i++)
        EXPECT(slice_equal(read_all(fixture, "wf", runs[i], 0, true, &pages), before[i]));
}

SERVER_TEST(archived, settings_and_domains_switch_it_off_and_on, "J-020")
{
    API(GetWorkflowExecutionHistoryResponse) *response;
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    const char *one = archiving_run(fixture, "one");
    archiving_pass(fixture);
    EXPECT_OK(try_history(fixture, "one", one, &response));
    fixture_set(fixture, "system.enableReadFromHistoryArchival: [{value: false}]\n");
    EXPECT_KIND(try_history(fixture, "one", one, &response), ERR_ENTITY_NOT_EXISTS);
    fixture_set(fixture, "system.historyArchivalStatus: [{value: paused}]\n");
    EXPECT_KIND(try_history(fixture, "one", one, &response), ERR_ENTITY_NOT_EXISTS);
    const char *two = archiving_run(fixture, "two"); /* goes unarchived, as in Cadence */
    archiving_pass(fixture);
    fixture_set(fixture, "system.historyArchivalStatus: [{value: enabled}]\n");
    EXPECT_OK(try_history(fixture, "one", one, &response));
    EXPECT_KIND(try_history(fixture, "two", two, &response), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(archiving_update(fixture, ARCHIVING_OFF, ""));
    EXPECT_OK(try_history(fixture, "one", one, &response)); /* what is there stays */
    const char *three = archiving_run(fixture, "three");
    archiving_pass(fixture);
    EXPECT_KIND(try_history(fixture, "three", three, &response), ERR_ENTITY_NOT_EXISTS);
}

SERVER_TEST(archived, a_token_that_leads_nowhere_is_refused)
{
    static const char *const tokens[] = {
        "{\"CloseFailoverVersion\":-24}",
        "{\"CloseFailoverVersion\":-24,\"Offset\":7}",
        "{\"CloseFailoverVersion\":-24,\"Offset\":99999999}",
        "{\"CloseFailoverVersion\":-24,\"Offset\":-1}",
    };
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    const char *run_id = archiving_run(fixture, "wf");
    archiving_pass(fixture);
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->workflow_execution->run_id = (char *)run_id;
    for (size_t i = 0; i < array_length(tokens); i++) {
        request->next_page_token = presence_make_bytes(slice_text(tokens[i]));
        struct error *err = fixture_call(fixture, request, NULL);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT_TEXT(err->message, "next page token is corrupted");
    }
    request->next_page_token =
        presence_make_bytes(slice_text("{\"CloseFailoverVersion\":5,\"Offset\":7}"));
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_ENTITY_NOT_EXISTS);
}

/* --- domains ---- */

static struct error *
register_with(struct fixture *fixture, const char *name, int status, const char *history,
              const char *visibility)
{
    API(RegisterDomainRequest) *request = API_NEW(
        fixture->arena, register_domain_request, .name = (char *)name,
        .workflow_execution_retention_period = presence_make_duration(fixture->arena, 24 * 3600),
        .history_archival_status = (API(ArchivalStatus))status,
        .visibility_archival_status = (API(ArchivalStatus))status,
        .history_archival_uri = (char *)history, .visibility_archival_uri = (char *)visibility);
    return fixture_call(fixture, request, NULL);
}

#define EXPECT_REFUSED(call, text)                                                                 \
    do {                                                                                           \
        struct error *refusal = (call);                                                            \
        EXPECT_KIND(refusal, ERR_BAD_REQUEST);                                                     \
        EXPECT_TEXT(refusal->message, text);                                                       \
    } while (0)

SERVER_TEST(archived, a_domain_has_an_archive_that_can_be_used_and_keeps_it, "D-012", "J-020")
{
    EXPECT_REFUSED(register_with(fixture, "a", ARCHIVING_ON, "ftp://x/y", ""),
                   "unknown archiver scheme");
    EXPECT_REFUSED(register_with(fixture, "a", ARCHIVING_ON, "s3://bucket/y", ""),
                   "unable to find archiver config for the given scheme");
    EXPECT_REFUSED(register_with(fixture, "a", ARCHIVING_ON, "", "nowhere"),
                   "parse \"nowhere\": invalid URI for request");
    EXPECT_REFUSED(register_with(fixture, "a", ARCHIVING_ON, "file://", ""),
                   "directory path is empty");
    EXPECT_OK(register_with(fixture, "a", ARCHIVING_ON, "file:///a%20b", ""));
    API(Domain) *domain = archiving_describe(fixture, "a");
    EXPECT_TEXT(domain->history_archival_uri, "file:///a%20b");
    EXPECT_TEXT(domain->visibility_archival_uri, "file:///archive"); /* the cluster's own */
    EXPECT_EQ(domain->history_archival_status, ARCHIVING_ON);
    EXPECT_OK(register_with(fixture, "b", 0, "", ""));
    domain = archiving_describe(fixture, "b");
    EXPECT_EQ(domain->history_archival_status, ARCHIVING_OFF); /* the default of new domains */
    EXPECT_TEXT(domain->history_archival_uri, "");
    /* Once it is there the URI stays. */
    EXPECT_REFUSED(archiving_update(fixture, ARCHIVING_ON, "gs://x"),
                   "unable to find archiver config for the given scheme");
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, "file:///one"));
    EXPECT_REFUSED(archiving_update(fixture, ARCHIVING_ON, "file:///two"),
                   "Cannot update existing archival URI");
    EXPECT_OK(archiving_update(fixture, ARCHIVING_OFF, ""));
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    EXPECT_TEXT(archiving_describe(fixture, "orders")->history_archival_uri, "file:///one");
    /* A file is not a folder. */
    const char *run_id = archiving_run(fixture, "wf");
    archiving_pass(fixture);
    const char **names = NULL;
    EXPECT_OK(folder_list("/one", fixture->arena, &names));
    while (*names != NULL && strstr(*names, ".history") == NULL)
        names++;
    EXPECT(*names != NULL && run_id != NULL);
    const char *file = arena_format(fixture->arena, "file:///one/%s", *names);
    EXPECT_REFUSED(register_with(fixture, "c", ARCHIVING_ON, file, ""),
                   "a path to a directory was expected");
}

/* A cluster without archives ignores settings of them; they are not an error. */
static void
without(struct fixture *fixture)
{
    fixture_set(fixture, "system.historyArchivalStatus: [{value: disabled}]\n"
                         "system.visibilityArchivalStatus: [{value: disabled}]\n");
    EXPECT_OK(register_with(fixture, "a", ARCHIVING_ON, "ftp://x", "ftp://x"));
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, "file:///x"));
    EXPECT_EQ(archiving_describe(fixture, "a")->history_archival_status, ARCHIVING_OFF);
    EXPECT_TEXT(archiving_describe(fixture, "a")->visibility_archival_uri, "");
    EXPECT_EQ(archiving_describe(fixture, "orders")->history_archival_status, ARCHIVING_OFF);
}

TEST(archived, a_cluster_that_does_not_archive_ignores_what_domains_want, "J-020")
{
    fixture_run(without);
}
