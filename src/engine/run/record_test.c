/* record_test.c - the row of a run: what it leaves out, and that nobody who reads it misses that.
 */
#include "base/test.h"
#include "engine/run/test_samples.h"

static const struct batch_step *
find_row(const struct sample *sample)
{
    const struct batch_step *step = sample->batch->first;
    while (step->kind != ROW_RUN)
        step = step->next;
    return step;
}

static STORED(RunRecord) *
read_row(const struct sample *sample)
{
    const struct batch_step *row = find_row(sample);
    STORED(RunRecord) *core = NULL;
    EXPECT_OK(run_read_row(row->key, row->value, sample->arena, &core));
    return core;
}

static bool
has_text(struct slice bytes, const char *text)
{
    return memmem(bytes.data, bytes.length, text, strlen(text)) != NULL;
}

TEST(record, names_are_in_the_key_only_and_are_read_from_there)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    const STORED(RunRecord) *core = sample.run->core;
    struct slice value = find_row(&sample)->value;
    EXPECT(!has_text(value, core->domain_id) && !has_text(value, core->workflow_id));
    EXPECT(!has_text(value, core->run_id)); /* it is the first of its chain, too */
    STORED(RunRecord) *read = read_row(&sample);
    EXPECT(slice_equal(message_encode(sample.arena, &read->base),
                       message_encode(sample.arena, &core->base)));
    sample_close(&sample);
}

TEST(record, the_first_and_the_original_run_are_told_where_they_are_others)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_begin(&sample);
    sample_started(&sample, 0);
    mutation_core(sample.mutation)->first_execution_run_id = run_keep_text(sample.run, "first");
    mutation_core(sample.mutation)->original_execution_run_id = run_keep_text(sample.run, "other");
    sample_finish(&sample);
    EXPECT_TEXT(read_row(&sample)->first_execution_run_id, "first");
    EXPECT_TEXT(read_row(&sample)->original_execution_run_id, "other");
    sample_close(&sample);
}

/* As older programs wrote it. */
TEST(record, a_row_that_has_all_names_is_read)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    struct slice value = message_encode(sample.arena, &sample.run->core->base);
    STORED(RunRecord) *core = NULL;
    EXPECT_OK(run_read_row(find_row(&sample)->key, value, sample.arena, &core));
    EXPECT(slice_equal(message_encode(sample.arena, &core->base), value));
    sample_close(&sample);
}

TEST(record, a_row_of_a_newer_program_or_under_another_key_is_not_believed)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    const struct batch_step *row = find_row(&sample);
    STORED(RunRecord) *core = NULL;
    EXPECT_KIND(run_read_row(slice_text("key"), row->value, sample.arena, &core), ERR_CORRUPT);
    sample.run->core->format = 3;
    struct slice newer = message_encode(sample.arena, &sample.run->core->base);
    EXPECT_KIND(run_read_row(row->key, newer, sample.arena, &core), ERR_CORRUPT);
    sample_close(&sample);
}
