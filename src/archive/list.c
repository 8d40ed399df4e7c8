/* list.c - records of archived runs, the latest closed first. See archive.h.
 *
 * Names of files say when a run closed, so they are sorted, and those that a query's times or the
 * page before exclude are never opened. A page opens a limited number of files: a query that finds
 * little gets short pages, and goes on. */
#include <stdlib.h>

#include "archive/inside.h"
#include "base/check.h"
#include "base/farm.h"
#include "base/json.h"
#include "base/vector.h"
#include "fiber/file.h"
#include "visibility/engine.h"
#include "visibility/evaluate.h"
#include "wire/message.h"

#define FILES_MAX        5000
#define RECORD_BYTES_MAX (8u * 1024 * 1024)
#define MILLISECOND      INT64_C(1000000)

/* --- tokens ---- */

static struct slice
write_token(const API(WorkflowExecutionInfo) *last, int64_t close_time, struct arena *arena)
{
    scoped(buffer_free) struct buffer out = {0};
    buffer_append_format(&out, "{\"LastCloseTime\":%lld,\"LastRunID\":", (long long)close_time);
    object_append_text(&out, last->workflow_execution->run_id);
    buffer_append_text(&out, "}");
    return arena_slice(arena, buffer_slice(&out));
}

static struct error *
read_token(struct slice token, struct arena *arena, struct record_name *last)
{
    struct json_reader reader = object_begin(token, arena);
    const char *name = "", *run_id = "";
    while (object_next(&reader, &name)) {
        if (strcmp(name, "LastCloseTime") == 0)
            object_integer(&reader, &last->close_time);
        else if (strcmp(name, "LastRunID") == 0)
            object_text(&reader, &run_id);
        else
            object_skip(&reader);
    }
    last->run_hash = farm_fingerprint64(slice_text(run_id));
    if (object_end(&reader) && run_id[0] != '\0')
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "next page token is corrupted");
}

/* --- names ---- */

/* Close times that a run may have, as far as the query shows. */
struct span {
    int64_t from, to;
};

static void
narrow(const struct query_node *node, struct span *span)
{
    if (node != NULL && node->kind == QUERY_AND)
        for (size_t i = 0; i < node->child_count; i++)
            narrow(node->child[i], span);
    if (node == NULL || node->kind != QUERY_COMPARE || node->attribute->column != COLUMN_CLOSE_TIME)
        return;
    bool is_from = node->operator== QUERY_GREATER || node->operator== QUERY_GREATER_OR_EQUAL;
    bool is_to = node->operator== QUERY_LESS || node->operator== QUERY_LESS_OR_EQUAL;
    int64_t time = node->value.integer;
    if (is_from && time > INT64_MIN + MILLISECOND && time - MILLISECOND > span->from)
        span->from = time - MILLISECOND; /* whole ms are compared: a little more is looked at */
    if (is_to && time < INT64_MAX - MILLISECOND && time + MILLISECOND < span->to)
        span->to = time + MILLISECOND;
}

static int
compare_names(const void *one, const void *other)
{
    return archive_record_name_compare(one, other);
}

struct name_list {
    struct record_name *items;
    size_t count, capacity;
};

/* Names of records that may match, in order. */
static struct error *
find_names(const struct archive_list_question *question, const char *folder, struct arena *arena,
           struct name_list *found)
{
    struct record_name last = {0}, name;
    struct span span = {INT64_MIN, INT64_MAX};
    const char **name_list = NULL;
    struct error *err = NULL;
    narrow(question->query->where, &span);
    if (question->token.length > 0)
        err = read_token(question->token, arena, &last);
    if (err == NULL)
        err = folder_list(folder, arena, &name_list);
    if (err != NULL)
        return err->kind == ERR_NOT_FOUND ? NULL : err; /* nothing was archived yet */
    for (; *name_list != NULL; name_list++) {
        if (!archive_record_name_read(*name_list, &name) || name.close_time < span.from ||
            name.close_time > span.to)
            continue;
        if (question->token.length == 0 || archive_record_name_compare(&last, &name) < 0)
            vector_push_in(found, arena, name);
    }
    if (found->count > 0)
        qsort(found->items, found->count, sizeof found->items[0], compare_names);
    return NULL;
}

/* --- records ---- */

static bool
is_meant(const struct archive_list_question *question, const API(WorkflowExecutionInfo) *info,
         struct arena *arena)
{
    struct visibility_row row = {0};
    struct visibility_change change = {.domain_id = question->domain_id,
                                       .workflow_id = info->workflow_execution->workflow_id,
                                       .run_id = info->workflow_execution->run_id,
                                       .info = message_encode(arena, &info->base),
                                       .num_clusters = 1};
    visibility_read_row(&change, question->attributes, arena, &row);
    return query_matches(question->query->where, &row);
}

/* A file that vanished or cannot be read is logged, and does not hide the others. */
static API(WorkflowExecutionInfo) *
load_record(struct archive *archive, const char *path, struct arena *arena)
{
    struct slice bytes = {0};
    API(WorkflowExecutionInfo) *info = NULL;
    struct error *err = file_load(path, RECORD_BYTES_MAX, arena, &bytes);
    if (err == NULL)
        err = archive_record_read(bytes, arena, &info);
    if (err == NULL)
        return info;
    log_warn(archive->options.log, "A record of the archive cannot be read.",
             log_text("path", path), log_error(err));
    return NULL;
}

static void
fill_page(struct archive *archive, const struct archive_list_question *question, const char *folder,
          const struct name_list *name_list, struct arena *arena, struct archive_list_page *page)
{
    size_t room = question->page_size < name_list->count ? question->page_size : name_list->count;
    page->info = arena_zalloc(arena, room, sizeof page->info[0]);
    for (size_t i = 0; i < name_list->count; i++) {
        const struct record_name *name = &name_list->items[i];
        API(WorkflowExecutionInfo) *info =
            load_record(archive, arena_format(arena, "%s/%s", folder, name->name), arena);
        if (info == NULL)
            continue;
        if (is_meant(question, info, arena))
            page->info[page->count++] = info;
        check(page->count <= room);
        bool is_full = page->count == question->page_size || i + 1 >= FILES_MAX;
        if (is_full && i + 1 < name_list->count)
            page->token = write_token(info, name->close_time, arena);
        if (is_full)
            return;
    }
}

struct error *
archive_list(struct archive *archive, const struct archive_list_question *question,
             struct arena *arena, struct archive_list_page *page)
{
    const char *root;
    struct name_list name_list = {0};
    check(question->page_size > 0);
    struct error *err = archive_uri_folder(question->uri, arena, &root);
    if (err == NULL)
        err = archive_enter_reader(archive, arena);
    if (err != NULL)
        return err;
    const char *folder = arena_format(arena, "%s/%s", root, question->domain_id);
    err = find_names(question, folder, arena, &name_list);
    if (err == NULL)
        fill_page(archive, question, folder, &name_list, arena, page);
    archive_leave_reader(archive);
    return err;
}
