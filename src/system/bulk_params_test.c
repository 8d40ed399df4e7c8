/* bulk_params_test.c - input and progress of a batch job. */
#include "base/test.h"
#include "system/bulk.h"

#define STARTED                                                                                    \
    "{\"DomainName\":\"d\",\"Query\":\"WorkflowType = 'w'\",\"Reason\":\"r\","                     \
    "\"BatchType\":\"terminate\",\"TerminateParams\":{\"TerminateChildren\":null},"                \
    "\"CancelParams\":{\"CancelChildren\":null},"                                                  \
    "\"SignalParams\":{\"SignalName\":\"\",\"Input\":\"\"},"                                       \
    "\"ReplicateParams\":{\"SourceCluster\":\"\",\"TargetCluster\":\"\"},\"RPS\":7,"               \
    "\"Concurrency\":2,\"PageSize\":30,\"AttemptsOnRetryableError\":3,"                            \
    "\"ActivityHeartBeatTimeout\":12000000000,\"MaxActivityRetries\":-1,"                          \
    "\"NonRetryableErrors\":[\"never\",\"no\"],\"Progress\":null}\n"

ARENA_TEST(batch, what_the_command_line_sends_is_understood, "A-263")
{
    struct bulk_params params;
    EXPECT_OK(bulk_read_params(slice_text(STARTED), arena, &params));
    EXPECT_TEXT(params.domain, "d");
    EXPECT_TEXT(params.query, "WorkflowType = 'w'");
    EXPECT_EQ(params.verb, BULK_TERMINATE);
    EXPECT(params.has_children);
    EXPECT_EQ(params.rate, 7);
    EXPECT_EQ(params.concurrency, 2);
    EXPECT_EQ(params.page_size, 30);
    EXPECT_EQ(params.attempts, 3);
    EXPECT_EQ(params.heartbeat_timeout, 12);
    EXPECT_EQ(params.retries_max, 4);
    EXPECT_EQ(params.final_error_count, 2);
    EXPECT_TEXT(params.final_errors[1], "no");
}

ARENA_TEST(batch, what_is_not_given_is_as_usual)
{
    struct bulk_params params;
    EXPECT_OK(bulk_read_params(slice_text("{\"DomainName\":\"d\",\"Query\":\"q\",\"Reason\":\"r\","
                                          "\"BatchType\":\"cancel\"}"),
                               arena, &params));
    EXPECT_EQ(params.rate, 50);
    EXPECT_EQ(params.concurrency, 5);
    EXPECT_EQ(params.page_size, 1000);
    EXPECT_EQ(params.attempts, 50);
    EXPECT_EQ(params.heartbeat_timeout, 10);
    EXPECT_EQ(params.retries_max, 0);
    EXPECT(!params.has_children); /* of cancelled runs only on request */
}

static const char *
fault_of(const char *input, struct arena *arena)
{
    struct bulk_params params;
    struct error *err = bulk_read_params(slice_text(input), arena, &params);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    return err->message;
}

ARENA_TEST(batch, what_lacks_or_is_unknown_is_refused)
{
#define BASE "{\"DomainName\":\"d\",\"Query\":\"q\",\"Reason\":\"r\",\"BatchType\":"
    EXPECT_TEXT(fault_of("{}", arena),
                "must provide required parameters: BatchType/Reason/DomainName/Query");
    EXPECT_TEXT(fault_of(BASE "\"dance\"}", arena), "not supported batch type: dance");
    EXPECT_TEXT(fault_of(BASE "\"signal\"}", arena), "must provide signal name");
    EXPECT_TEXT(fault_of(BASE "\"replicate\"}", arena), "must provide source cluster");
    fault_of("nonsense", arena);
}

ARENA_TEST(batch, progress_is_read_as_it_was_written)
{
    struct bulk_target targets[] = {{"a\"b", "run-1"}, {"c", "run-2"}};
    struct bulk_progress read, progress = {.token = slice_text("here"),
                                           .total = 300,
                                           .success = 120,
                                           .error = 3,
                                           .rate = 7,
                                           .concurrency = 2,
                                           .chunk_success = 20,
                                           .chunk_error = 1,
                                           .targets = targets,
                                           .target_count = 2};
    struct slice bytes = bulk_write_progress(&progress, 50, false, arena);
    EXPECT(bulk_read_progress(bytes, arena, &read));
    EXPECT(slice_equal(read.token, progress.token));
    EXPECT_EQ(read.success, 120);
    EXPECT_EQ(read.chunk_success, 20);
    EXPECT_EQ(read.chunk_error, 1);
    EXPECT_EQ(read.target_count, 2);
    EXPECT_TEXT(read.targets[0].workflow_id, "a\"b");
    EXPECT_TEXT(read.targets[1].run_id, "run-2");
    EXPECT_TEXT(arena_text_of(arena, bulk_write_progress(&progress, 50, true, arena)),
                "{\"PageToken\":null,\"CurrentPage\":3,\"TotalEstimate\":300,\"SuccessCount\":120,"
                "\"ErrorCount\":3,\"RPS\":7,\"Concurrency\":2}");
}
