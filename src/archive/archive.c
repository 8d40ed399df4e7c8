/* archive.c - what the archive of a cluster is: whether it is on, and who may use it now. See
 * archive.h. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/timer.h"

#define TURN_LOOK (2 * NS_PER_MS)
#define TURN_WAIT (10 * NS_PER_S) /* for a turn to read */

/* Cadence's names. */
static void
find_series(struct archive *archive, struct metrics *metrics)
{
    const char *labels[] = {"cadence_service", "cadence_history", NULL};
    if (metrics == NULL)
        return;
    archive->successes[ARCHIVE_HISTORY] = metrics_counter(
        metrics, "history_archiver_archive_success", "Histories that were archived.", labels);
    archive->failures[ARCHIVE_HISTORY] =
        metrics_counter(metrics, "history_archiver_archive_transient_error",
                        "Attempts to archive a history that failed and are retried.", labels);
    archive->successes[ARCHIVE_VISIBILITY] =
        metrics_counter(metrics, "visibility_archiver_archive_success",
                        "Visibility records that were archived.", labels);
    archive->failures[ARCHIVE_VISIBILITY] =
        metrics_counter(metrics, "visibility_archiver_archive_transient_error",
                        "Attempts to archive a record that failed and are retried.", labels);
}

struct archive *
archive_new(const struct archive_options *options)
{
    struct archive *archive = memory_zalloc(1, sizeof *archive);
    check(options->dynamic != NULL && options->owner != NULL);
    archive->options = *options;
    find_series(archive, options->metrics);
    return archive;
}

void
archive_free(struct archive *archive)
{
    check(archive == NULL ||
          (atomic_load(&archive->puts) == 0 && atomic_load(&archive->reads) == 0));
    memory_free(archive);
}

struct archive_port
archive_port(struct archive *archive)
{
    return (struct archive_port){.put = archive_put, .context = archive};
}

/* --- is it on? ---- */

bool
archive_is_enabled(const struct archive *archive, enum archive_kind kind)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    enum dynamic_key key = kind == ARCHIVE_HISTORY ? DYNAMIC_HISTORY_ARCHIVAL_STATUS
                                                   : DYNAMIC_VISIBILITY_ARCHIVAL_STATUS;
    return archive->options.settings[kind].is_enabled &&
           strcasecmp(dynamic_text(archive->options.dynamic, key, &filter), "enabled") == 0;
}

bool
archive_is_readable(const struct archive *archive, enum archive_kind kind)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    enum dynamic_key key =
        kind == ARCHIVE_HISTORY ? DYNAMIC_READ_HISTORY_ARCHIVE : DYNAMIC_READ_VISIBILITY_ARCHIVE;
    return archive_is_enabled(archive, kind) && archive->options.settings[kind].is_readable &&
           dynamic_flag(archive->options.dynamic, key, &filter);
}

/* --- folders of domains ---- */

struct error *
archive_check_uri(struct archive *archive, enum archive_kind kind, const char *uri,
                  struct arena *arena)
{
    const char *folder;
    struct error *err = archive_uri_folder(uri, arena, &folder);
    if (err != NULL)
        return err;
    if (!archive->options.settings[kind].has_files)
        return error_new(arena, ERR_BAD_REQUEST,
                         "unable to find archiver config for the given scheme");
    int64_t modified;
    uint64_t size;
    err = file_stat(folder, &modified, &size, arena);
    if (err != NULL) /* not there yet is fine; a folder that cannot be reached is reported when it
                        is used */
        return NULL;
    err = folder_sync(folder, arena); /* of a file it fails */
    return err == NULL ? NULL
                       : error_new(arena, ERR_BAD_REQUEST, "a path to a directory was expected");
}

/* --- one reader at a time ---- */

struct error *
archive_enter_reader(struct archive *archive, struct arena *arena)
{
    int64_t end = clock_monotonic() + TURN_WAIT;
    for (;;) {
        int none = 0;
        if (atomic_compare_exchange_strong(&archive->reads, &none, 1))
            return NULL;
        if (clock_monotonic() >= end)
            return error_new(arena, ERR_SERVICE_BUSY, "The archive is in use. Try again later.");
        struct error *err = fiber_sleep(TURN_LOOK, arena);
        if (err != NULL)
            return err;
    }
}

void
archive_leave_reader(struct archive *archive)
{
    int before = atomic_exchange(&archive->reads, 0);
    check(before == 1);
}
