/* put.c - a closed run into the archive: its history first, then the record by which list calls
 * find it.
 *
 * A history is written page by page, so that the longest takes no more memory than a page; large
 * pages are turned into JSON by the pool. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/farm.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/pool.h"
#include "visibility/attributes.h"
#include "wire/event_json.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TURN_LOOK    (2 * NS_PER_MS)
#define TURN_WAIT    (5 * NS_PER_S)
#define INLINE_BYTES (16u * 1024) /* pages up to this are written on the loop */

/* --- pages ---- */

struct page_job {
    const struct history_page *page;
    bool is_first;
    struct buffer out;
    struct arena *arena;
    struct error *err;
};

static void
write_page(void *argument)
{
    struct page_job *job = argument;
    for (size_t i = 0; job->err == NULL && i < job->page->count; i++) {
        scoped(arena_drop) struct arena *room = arena_new(0);
        API(History) *batch = NULL;
        struct error *err = message_decode_as(room, ERR_CORRUPT, API_TYPE(history),
                                              job->page->node[i].events, &batch);
        if (err != NULL) {
            job->err = error_copy(job->arena, err);
            return;
        }
        buffer_append_text(&job->out, job->is_first && i == 0 ? "[" : ",\n");
        event_json_append_batch(&job->out, batch);
    }
}

static struct error *
append_page(struct archive_file *archive_file, const struct history_page *page, bool is_first)
{
    struct page_job job = {.page = page, .is_first = is_first, .arena = archive_file->arena};
    struct error *err = NULL;
    if (history_page_bytes(page) <= INLINE_BYTES)
        write_page(&job);
    else
        err = pool_run(write_page, &job, archive_file->arena);
    err = err != NULL ? err : job.err;
    if (err != NULL)
        archive_file_drop(archive_file);
    else
        err = archive_file_append(archive_file, buffer_slice(&job.out));
    buffer_free(&job.out);
    return err;
}

static struct error *
append_history(struct archive_file *archive_file, const struct archive_run *run)
{
    struct error *err = NULL;
    for (int64_t next = 1; err == NULL && next < run->next_event_id;) {
        scoped(arena_drop) struct arena *room = arena_new(0);
        struct history_page page = {0};
        err = run->read(run->context, next, room, &page);
        if (err != NULL) {
            archive_file_drop(archive_file);
            return error_copy(archive_file->arena, err);
        }
        check(page.next_event_id > next);
        err = append_page(archive_file, &page, next == 1);
        next = page.next_event_id;
    }
    return err != NULL ? err : archive_file_append(archive_file, slice_text("]\n"));
}

/* --- files ---- */

/* Unique: the owner among all that write here, and its tenure. */
static const char *
owner_suffix(const struct archive *archive, const struct archive_run *run, struct arena *arena)
{
    return arena_format(arena, "%llx-%x-%llx",
                        (unsigned long long)farm_fingerprint64(slice_text(archive->options.owner)),
                        run->shard, (unsigned long long)run->range_id);
}

static struct error *
put_history(struct archive *archive, const struct archive_run *run, struct arena *arena)
{
    const char *root;
    struct error *err = archive_uri_folder(run->history_uri, arena, &root);
    if (err != NULL)
        return err;
    const char *prefix =
        archive_history_prefix(run->domain_id, run->workflow_id, run->run_id, arena);
    struct archive_file archive_file = {.archive = archive,
                                        .kind = ARCHIVE_HISTORY,
                                        .folder = root,
                                        .name =
                                            archive_history_name(prefix, run->event_version, arena),
                                        .arena = arena};
    err = archive_file_open(&archive_file, root, owner_suffix(archive, run, arena));
    if (err == NULL)
        err = append_history(&archive_file, run);
    return err != NULL ? err : archive_file_publish(&archive_file);
}

static struct error *
put_record(struct archive *archive, const struct archive_run *run, struct arena *arena)
{
    const char *root;
    API(WorkflowExecutionInfo) *info = NULL;
    struct error *err = archive_uri_folder(run->visibility_uri, arena, &root);
    if (err == NULL)
        err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(workflow_execution_info), run->info,
                                &info);
    if (err != NULL)
        return err;
    int64_t close_time = presence_time(info->close_time);
    struct archive_file archive_file = {.archive = archive,
                                        .kind = ARCHIVE_VISIBILITY,
                                        .folder =
                                            arena_format(arena, "%s/%s", root, run->domain_id),
                                        .name = archive_record_name(close_time, run->run_id, arena),
                                        .arena = arena};
    err = archive_file_open(&archive_file, root, owner_suffix(archive, run, arena));
    if (err == NULL)
        err = archive_file_append(&archive_file, archive_record_write(run, info, arena));
    return err != NULL ? err : archive_file_publish(&archive_file);
}

/* --- both ---- */

static struct error *
put_kind(struct archive *archive, enum archive_kind kind, const struct archive_run *run,
         struct arena *arena)
{
    bool is_wanted = (kind == ARCHIVE_HISTORY ? run->history_uri : run->visibility_uri) != NULL;
    if (!is_wanted || !archive_is_enabled(archive, kind))
        return NULL;
    struct error *err = (kind == ARCHIVE_HISTORY ? put_history : put_record)(archive, run, arena);
    struct counter *counter = (err == NULL ? archive->successes : archive->failures)[kind];
    if (counter != NULL)
        counter_add(counter, 1);
    return err;
}

/* A few at a time; others wait a little, so that a turn is not lost to back-off. */
static struct error *
take_turn(struct archive *archive, struct arena *arena)
{
    for (int64_t end = clock_monotonic() + TURN_WAIT;;) {
        int before = atomic_fetch_add(&archive->puts, 1);
        check(before >= 0);
        if (before < ARCHIVE_PUTS_MAX)
            return NULL;
        atomic_fetch_sub(&archive->puts, 1);
        if (clock_monotonic() >= end)
            return error_new(arena, ERR_BUSY, "enough runs are being archived");
        struct error *err = fiber_sleep(TURN_LOOK, arena);
        if (err != NULL)
            return err;
    }
}

struct error *
archive_put(void *context, const struct archive_run *run, struct arena *arena)
{
    struct archive *archive = context;
    check(run->domain_id[0] != '\0' && run->run_id[0] != '\0' && run->read != NULL);
    struct error *err = take_turn(archive, arena);
    if (err != NULL)
        return err;
    err = put_kind(archive, ARCHIVE_HISTORY, run, arena);
    if (err == NULL)
        err = put_kind(archive, ARCHIVE_VISIBILITY, run, arena);
    int before = atomic_fetch_sub(&archive->puts, 1);
    check(before > 0);
    return err;
}
