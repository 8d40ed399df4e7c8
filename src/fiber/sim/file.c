/* file.c - files as host code sees them (file.h), on the simulated disk.
 *
 * Every call is a job: it takes effect when the disk answers, after a drawn latency, and its fiber
 * goes on after that. Calls that change the disk are counted; the one that a test has chosen as its
 * crash point takes effect (a sync does not) but is never answered, and the crash decides what of
 * it is kept. */
#include "fiber/file.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "fiber/clock.h"
#include "fiber/sim/disk.h"

struct file_call {
    struct job job;
    bool is_change;
    enum disk_result (*perform)(struct host *host, struct file_call *call);
    struct file *file;
    const char *path, *to;
    unsigned flags;
    uint64_t offset;
    void *room;        /* read into */
    const void *bytes; /* written from */
    size_t count;
    bool is_sync;
    enum disk_result result;
};

/* --- calls ----------------------------------------------------------------------------------- */

static void
call_fire(struct world *world, struct event *event)
{
    struct file_call *call = container_of(event, struct file_call, job.event);
    struct host *host = event->host;
    if (!call->is_change) {
        call->result = call->perform(host, call);
        job_done(&call->job);
        return;
    }
    host->disk_writes++;
    bool is_last = host->disk_writes == host->crash_at;
    if (host->is_disk_failing)
        call->result = DISK_FULL;
    else if (!is_last || !call->is_sync)
        call->result = call->perform(host, call);
    if (is_last)
        host_crash_inside(host); /* takes the stack with the call on it */
    else
        job_done(&call->job);
}

static enum disk_result
call_run(struct file_call *call)
{
    struct host *host = sim_host_self();
    struct world *world = host->world;
    const struct world_options *options = &world->options;
    int64_t delay =
        call->is_change
            ? world_between(world, options->disk_latency_min, options->disk_latency_max)
            : world_between(world, options->disk_latency_min / 4, options->disk_latency_min);
    if (call->file != NULL)
        call->file->calls++;
    job_wait(&call->job, STEP_DISK, host->disk_writes, delay, call_fire);
    if (call->file != NULL)
        call->file->calls--;
    return call->result;
}

static struct error *
disk_error(enum disk_result result, struct arena *arena, const char *doing, const char *path)
{
    static const struct {
        enum error_kind kind;
        const char *reason;
    } meanings[] = {
        [DISK_NOT_FOUND] = {ERR_NOT_FOUND, "no such file or folder"},
        [DISK_EXISTS] = {ERR_IO, "it exists"},
        [DISK_IS_FOLDER] = {ERR_IO, "it is a folder"},
        [DISK_NOT_FOLDER] = {ERR_IO, "it is not a folder"},
        [DISK_NOT_EMPTY] = {ERR_IO, "the folder is not empty"},
        [DISK_FULL] = {ERR_IO, "no space left on the disk"},
        [DISK_LOCKED] = {ERR_BUSY, "another process holds its lock"},
    };
    if (result == DISK_FINE)
        return NULL;
    check(result < array_length(meanings));
    return error_new(arena, meanings[result].kind, "%s %s: %s", doing, path,
                     meanings[result].reason);
}

/* --- open files ------------------------------------------------------------------------------ */

/* An open that may create or truncate changes the disk, whether it finds something to do or not. */
static enum disk_result
perform_open(struct host *host, struct file_call *call)
{
    struct node *node = NULL;
    enum disk_result result = disk_open(host->disk, call->path, call->flags, &node);
    if (result == DISK_FINE) {
        node_hold(node);
        call->file->node = node;
        list_push_back(&host->files, &call->file->link);
    }
    return result;
}

struct error *
file_open(const char *path, unsigned flags, struct arena *arena, struct file **result)
{
    *result = NULL;
    check((flags & (FILE_READ | FILE_WRITE)) != 0);
    struct file *file = memory_zalloc(1, sizeof *file);
    file->host = sim_host_self();
    file->flags = flags;
    file->path = memcpy(memory_alloc(strlen(path) + 1), path, strlen(path) + 1);
    list_init(&file->link);
    struct file_call call = {.perform = perform_open,
                             .is_change = (flags & (FILE_CREATE | FILE_TRUNCATE)) != 0,
                             .file = file,
                             .path = path,
                             .flags = flags};
    struct error *err = disk_error(call_run(&call), arena, "open", path);
    if (err == NULL) {
        *result = file;
        return NULL;
    }
    memory_free(file->path);
    memory_free(file);
    return err;
}

void
file_close(struct file *file)
{
    check_that(file->calls == 0, "%s is closed while in use", file->path);
    if (file->node->lock_holder == file)
        file->node->lock_holder = NULL;
    list_remove(&file->link);
    node_release(file->node);
    memory_free(file->path);
    memory_free(file);
}

static enum disk_result
perform_read(struct host *host, struct file_call *call)
{
    const struct bytes *seen = &call->file->node->seen;
    size_t count = 0;
    if (call->offset < seen->size)
        count = call->count < seen->size - call->offset ? call->count : seen->size - call->offset;
    if (count > 0)
        memcpy(call->room, seen->data + call->offset, count);
    call->count = count;
    return DISK_FINE;
}

struct error *
file_read(struct file *file, uint64_t offset, void *bytes, size_t room, size_t *count,
          struct arena *arena)
{
    check_that(file->flags & FILE_READ, "%s is not open for reading", file->path);
    struct file_call call = {
        .perform = perform_read, .file = file, .offset = offset, .room = bytes, .count = room};
    enum disk_result result = call_run(&call);
    *count = call.count;
    return disk_error(result, arena, "read", file->path);
}

static enum disk_result
perform_write(struct host *host, struct file_call *call)
{
    world_trace_bytes(host->world, call->bytes, call->count);
    node_write(call->file->node, call->offset, call->bytes, call->count);
    return DISK_FINE;
}

struct error *
file_write(struct file *file, uint64_t offset, const void *bytes, size_t count, struct arena *arena)
{
    check_that(file->flags & FILE_WRITE, "%s is not open for writing", file->path);
    struct file_call call = {.perform = perform_write,
                             .is_change = true,
                             .file = file,
                             .offset = offset,
                             .bytes = bytes,
                             .count = count};
    return disk_error(call_run(&call), arena, "write", file->path);
}

static enum disk_result
perform_sync(struct host *host, struct file_call *call)
{
    node_sync(call->file->node);
    return DISK_FINE;
}

struct error *
file_sync(struct file *file, struct arena *arena)
{
    struct file_call call = {
        .perform = perform_sync, .is_change = true, .is_sync = true, .file = file};
    return disk_error(call_run(&call), arena, "sync", file->path);
}

static enum disk_result
perform_nothing(struct host *host, struct file_call *call)
{
    return DISK_FINE;
}

struct error *
file_size(struct file *file, uint64_t *size, struct arena *arena)
{
    struct file_call call = {.perform = perform_nothing, .file = file};
    enum disk_result result = call_run(&call);
    *size = file->node->seen.size;
    return disk_error(result, arena, "look at", file->path);
}

struct error *
file_place(struct file *file, uint64_t *inode, int64_t *born, struct arena *arena)
{
    struct file_call call = {.perform = perform_nothing, .file = file};
    enum disk_result result = call_run(&call);
    *inode = file->node->number;
    *born = 0;
    return disk_error(result, arena, "look at", file->path);
}

static enum disk_result
perform_lock(struct host *host, struct file_call *call)
{
    struct node *node = call->file->node;
    if (node->lock_holder != NULL && node->lock_holder != call->file)
        return DISK_LOCKED;
    node->lock_holder = call->file;
    return DISK_FINE;
}

struct error *
file_lock(struct file *file, struct arena *arena)
{
    struct file_call call = {.perform = perform_lock, .file = file};
    return disk_error(call_run(&call), arena, "lock", file->path);
}

/* --- names ----------------------------------------------------------------------------------- */

static enum disk_result
perform_create_folder(struct host *host, struct file_call *call)
{
    return disk_create_folder(host->disk, call->path);
}

struct error *
folder_create(const char *path, struct arena *arena)
{
    struct file_call call = {.perform = perform_create_folder, .is_change = true, .path = path};
    return disk_error(call_run(&call), arena, "create folder", path);
}

static enum disk_result
perform_sync_folder(struct host *host, struct file_call *call)
{
    struct node *node = disk_find(host->disk, call->path);
    if (node == NULL)
        return DISK_NOT_FOUND;
    if (!node->is_folder)
        return DISK_NOT_FOLDER;
    node_sync(node);
    return DISK_FINE;
}

struct error *
folder_sync(const char *path, struct arena *arena)
{
    struct file_call call = {
        .perform = perform_sync_folder, .is_change = true, .is_sync = true, .path = path};
    return disk_error(call_run(&call), arena, "sync folder", path);
}

static enum disk_result
perform_rename(struct host *host, struct file_call *call)
{
    return disk_rename(host->disk, call->path, call->to);
}

struct error *
file_rename(const char *from, const char *to, struct arena *arena)
{
    struct file_call call = {.perform = perform_rename, .is_change = true, .path = from, .to = to};
    return disk_error(call_run(&call), arena, "rename", from);
}

static enum disk_result
perform_remove(struct host *host, struct file_call *call)
{
    return disk_remove(host->disk, call->path);
}

struct error *
file_remove(const char *path, struct arena *arena)
{
    struct file_call call = {.perform = perform_remove, .is_change = true, .path = path};
    return disk_error(call_run(&call), arena, "remove", path);
}

static enum disk_result
perform_look(struct host *host, struct file_call *call)
{
    return disk_find(host->disk, call->path) == NULL ? DISK_NOT_FOUND : DISK_FINE;
}

struct error *
folder_list(const char *path, struct arena *arena, const char ***names)
{
    struct file_call call = {.perform = perform_look, .path = path};
    struct node *folder = NULL;
    enum disk_result result = call_run(&call);
    if (result == DISK_FINE) {
        folder = disk_find(sim_host_self()->disk, path);
        result = folder == NULL ? DISK_NOT_FOUND : folder->is_folder ? DISK_FINE : DISK_NOT_FOLDER;
    }
    if (result != DISK_FINE)
        return disk_error(result, arena, "list", path);
    size_t count = 0;
    *names = arena_zalloc(arena, tree_count(folder->seen_entries) + 1, sizeof **names);
    for (struct tree_row *row = tree_first(folder->seen_entries); row != NULL; row = tree_next(row))
        (*names)[count++] = arena_text_of(arena, row->key);
    return NULL;
}

struct error *
file_set_mode(const char *path, unsigned mode, struct arena *arena)
{
    struct file_call call = {.perform = perform_look, .path = path};
    enum disk_result result = call_run(&call);
    if (result == DISK_FINE && disk_find(sim_host_self()->disk, path) == NULL)
        result = DISK_NOT_FOUND;
    return disk_error(result, arena, "set the mode of", path);
}

struct error *
file_stat(const char *path, int64_t *modified, uint64_t *size, struct arena *arena)
{
    struct file_call call = {.perform = perform_look, .path = path};
    enum disk_result result = call_run(&call);
    struct host *host = sim_host_self();
    struct node *node = result == DISK_FINE ? disk_find(host->disk, path) : NULL;
    if (node == NULL)
        return disk_error(DISK_NOT_FOUND, arena, "look at", path);
    int64_t age = host->world->now - node->modified;
    *modified = clock_wall() - age;
    *size = node->seen.size;
    return NULL;
}
