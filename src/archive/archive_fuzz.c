/* archive_fuzz.c - any bytes as files of an archive: a record, and a history from somewhere in it.
 * The first byte says how much of a page is wanted. */
#include "archive/inside.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that is read is written, and that is read as the same. */
static void
try_record(struct slice bytes, struct arena *arena)
{
    API(WorkflowExecutionInfo) *info, *again;
    if (archive_record_read(bytes, arena, &info) != NULL)
        return;
    struct archive_run run = {.domain_id = "d",
                              .domain_name = "n",
                              .workflow_id = info->workflow_execution->workflow_id,
                              .run_id = info->workflow_execution->run_id};
    struct error *err = archive_record_read(archive_record_write(&run, info, arena), arena, &again);
    check_that(err == NULL, "what was written cannot be read");
    check(strcmp(again->workflow_execution->run_id, run.run_id) == 0);
    check(again->close_status == info->close_status);
}

static void
try_batches(struct slice bytes, size_t events_max, struct arena *arena)
{
    struct batches batches = {
        .bytes = bytes, .is_end = true, .events_max = events_max, .bytes_max = 100000};
    struct error *err = batches_read(&batches, arena);
    check(err != NULL || batches.used <= bytes.length);
    check(err != NULL || batches.is_last || batches.event_count >= events_max ||
          batches.events.length >= batches.bytes_max);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (size == 0)
        return 0;
    struct slice bytes = slice_of(data + 1, size - 1);
    struct record_name name;
    int64_t version;
    const char *text = arena_text_of(arena, bytes), *folder;
    try_record(bytes, arena);
    try_batches(bytes, 1 + data[0], arena);
    (void)!archive_record_name_read(text, &name);
    (void)!archive_history_version(text, "12", &version);
    (void)!archive_uri_folder(text, arena, &folder);
    return 0;
}
