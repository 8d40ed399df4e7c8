/* history.c - an archived history, page by page. See archive.h.
 *
 * A token says which file, and where in it the next batch begins: so a page costs what it contains,
 * not what came before. If a batch is longer than what was read, more is read. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/json.h"
#include "fiber/file.h"
#include "fiber/pool.h"

#define PAGE_BYTES_MAX (1u * 1024 * 1024)
#define WINDOW_FIRST   (256u * 1024)
#define WINDOW_MAX     (512u * 1024 * 1024)
#define TOKEN_BEGIN    "{\"CloseFailoverVersion\":"

/* --- tokens ---- */

struct history_position {
    int64_t version, offset;
};

bool
archive_is_history_token(struct slice token)
{
    return slice_starts_with(token, slice_text(TOKEN_BEGIN));
}

static struct slice
write_token(const struct history_position *history_position, struct arena *arena)
{
    return slice_text(arena_format(arena, TOKEN_BEGIN "%lld,\"NextBatchIdx\":0,\"Offset\":%lld}",
                                   (long long)history_position->version,
                                   (long long)history_position->offset));
}

static struct error *
read_token(struct slice token, struct arena *arena, struct history_position *history_position)
{
    struct json_reader reader = object_begin(token, arena);
    const char *name = "";
    while (object_next(&reader, &name)) {
        if (strcmp(name, "CloseFailoverVersion") == 0)
            object_integer(&reader, &history_position->version);
        else if (strcmp(name, "Offset") == 0)
            object_integer(&reader, &history_position->offset);
        else
            object_skip(&reader);
    }
    if (object_end(&reader) && history_position->offset > 0)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "next page token is corrupted");
}

/* --- which file ---- */

static struct error *
not_there(struct arena *arena)
{
    return error_new(arena, ERR_ENTITY_NOT_EXISTS, "requested workflow history does not exist");
}

/* The one with the highest version. */
static struct error *
find_version(const char *folder, const char *prefix, struct arena *arena, int64_t *version)
{
    const char **names = NULL;
    bool is_found = false;
    struct error *err = folder_list(folder, arena, &names);
    if (err != NULL)
        return err->kind == ERR_NOT_FOUND ? not_there(arena) : err;
    for (; *names != NULL; names++) {
        int64_t found;
        if (!archive_history_version(*names, prefix, &found))
            continue;
        *version = is_found && *version > found ? *version : found;
        is_found = true;
    }
    return is_found ? NULL : not_there(arena);
}

/* Most likely the domain has not failed over since: then a folder with a million names need not be
 * searched. No version is higher than that. */
static struct error *
open_history(const struct archive_history_question *question,
             struct history_position *history_position, struct arena *arena, struct file **file)
{
    const char *folder;
    struct error *err = archive_uri_folder(question->uri, arena, &folder);
    if (err != NULL)
        return err;
    const char *prefix =
        archive_history_prefix(question->domain_id, question->workflow_id, question->run_id, arena);
    if (question->token.length > 0)
        err = read_token(question->token, arena, history_position);
    else
        history_position->version = question->version_hint;
    for (int attempt = 0; err == NULL && attempt < 2; attempt++) {
        const char *name = archive_history_name(prefix, history_position->version, arena);
        err = file_open(arena_format(arena, "%s/%s", folder, name), FILE_READ, arena, file);
        if (err == NULL || err->kind != ERR_NOT_FOUND)
            return err;
        err = attempt == 0 && question->token.length == 0
                  ? find_version(folder, prefix, arena, &history_position->version)
                  : not_there(arena);
    }
    return err;
}

/* --- what is in it ---- */

struct read_job {
    struct batches batches;
    struct arena *arena;
    struct error *err;
};

static void
read_work(void *argument)
{
    struct read_job *job = argument;
    job->err = batches_read(&job->batches, job->arena);
}

/* Reads batches from the place on with a window of so many bytes. */
static struct error *
read_window(struct file *file, const struct history_position *history_position, uint64_t size,
            size_t window, struct read_job *job)
{
    size_t count = 0;
    check(history_position->offset >= 0 && window > 0);
    scoped(arena_drop) struct arena *room = arena_new(window + 64);
    uint8_t *bytes = arena_alloc(room, window);
    struct error *err =
        file_read(file, (uint64_t)history_position->offset, bytes, window, &count, job->arena);
    if (err != NULL)
        return err;
    job->batches.bytes = slice_of(bytes, count);
    job->batches.is_end = (uint64_t)history_position->offset + count >= size;
    err = pool_run(read_work, job, job->arena);
    job->batches.bytes = (struct slice){0};
    return err != NULL ? err : job->err;
}

static struct error *
read_page(struct file *file, const struct archive_history_question *question,
          struct history_position *history_position, struct arena *arena,
          struct archive_history_page *page)
{
    uint64_t size = 0;
    struct error *err = file_size(file, &size, arena);
    for (size_t window = WINDOW_FIRST; err == NULL; window *= 2) {
        struct read_job job = {
            .batches = {.events_max = question->events_max, .bytes_max = PAGE_BYTES_MAX},
            .arena = arena};
        err = read_window(file, history_position, size, window, &job);
        if (err != NULL)
            break;
        if (job.batches.event_count == 0 && !job.batches.is_last) {
            if (window >= WINDOW_MAX)
                err = error_new(arena, ERR_CORRUPT, "an archived history cannot be read");
            continue;
        }
        history_position->offset += (int64_t)job.batches.used;
        page->events = job.batches.events;
        page->token =
            job.batches.is_last ? (struct slice){0} : write_token(history_position, arena);
        return NULL;
    }
    bool is_forged = err->kind == ERR_CORRUPT && question->token.length > 0;
    return is_forged ? error_new(arena, ERR_BAD_REQUEST, "next page token is corrupted") : err;
}

struct error *
archive_read_history(struct archive *archive, const struct archive_history_question *question,
                     struct arena *arena, struct archive_history_page *page)
{
    struct history_position history_position = {0};
    struct file *file = NULL;
    check(question->events_max > 0 && question->run_id[0] != '\0');
    struct error *err = archive_enter_reader(archive, arena);
    if (err != NULL)
        return err;
    err = open_history(question, &history_position, arena, &file);
    if (err == NULL) {
        err = read_page(file, question, &history_position, arena, page);
        file_close(file);
    }
    archive_leave_reader(archive);
    return err;
}
