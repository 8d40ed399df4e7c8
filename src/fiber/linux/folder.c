/* folder.c - names: whole files, folders, renaming, removing. Each call is one job of the pool. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/linux/disk.h"
#include "fiber/linux/inside.h"

struct path_job {
    const char *path;
    const char *other; /* where to */
    struct slice bytes;
    size_t size_max;
    const char **names;
    int64_t modified;
    uint64_t size;
    unsigned mode;
    struct arena *arena;
    struct error *err;
};

/* Closes the descriptor at the end of its block. */
static void
close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
}

static void
close_folder(DIR **folder)
{
    if (*folder != NULL)
        closedir(*folder);
}

/* ---- whole files ---- */

static struct error *
load(struct path_job *job)
{
    scoped(close_descriptor) int descriptor = open(job->path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    if (descriptor < 0 || fstat(descriptor, &stat) != 0)
        return disk_error(job->arena, "open", job->path, errno);
    if (S_ISDIR(stat.st_mode))
        return disk_error(job->arena, "read", job->path, EISDIR);
    if ((uint64_t)stat.st_size > job->size_max)
        return error_new(job->arena, ERR_IO, "%s has more than %zu bytes", job->path,
                         job->size_max);
    size_t count = 0;
    char *bytes = arena_alloc(job->arena, (size_t)stat.st_size + 1);
    struct error *err =
        disk_read(descriptor, job->path, 0, bytes, (size_t)stat.st_size, &count, job->arena);
    bytes[count] = '\0'; /* for those who want a text */
    job->bytes = slice_of(bytes, count);
    return err;
}

static void
load_work(void *argument)
{
    struct path_job *job = argument;
    job->err = load(job);
}

struct error *
file_load(const char *path, size_t size_max, struct arena *arena, struct slice *bytes)
{
    struct path_job job = {.path = path, .size_max = size_max, .arena = arena};
    pool_run_unbounded(load_work, &job);
    *bytes = job.bytes;
    return job.err;
}

static struct error *
sync_folder(const char *path, struct arena *arena)
{
    scoped(close_descriptor) int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || fsync(descriptor) != 0)
        return disk_error(arena, "sync folder", path, errno);
    return NULL;
}

static struct error *
write_synced(const char *path, struct slice bytes, struct arena *arena)
{
    scoped(close_descriptor) int descriptor =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return disk_error(arena, "create", path, errno);
    struct error *err = disk_write(descriptor, path, 0, bytes.data, bytes.length, arena);
    if (err == NULL && fsync(descriptor) != 0)
        err = disk_error(arena, "sync", path, errno);
    return err;
}

/* The folder that holds the name. */
static const char *
folder_of(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path ? "/" : arena_text_of(arena, slice_of(path, (size_t)(slash - path)));
}

static void
save_work(void *argument)
{
    struct path_job *job = argument;
    const char *beside = arena_format(job->arena, "%s.new", job->path);
    job->err = write_synced(beside, job->bytes, job->arena);
    if (job->err == NULL && rename(beside, job->path) != 0)
        job->err = disk_error(job->arena, "rename", beside, errno);
    if (job->err != NULL)
        unlink(beside);
    else
        job->err = sync_folder(folder_of(job->path, job->arena), job->arena);
}

struct error *
file_save(const char *path, struct slice bytes, struct arena *arena)
{
    struct path_job job = {.path = path, .bytes = bytes, .arena = arena};
    pool_run_unbounded(save_work, &job);
    return job.err;
}

/* ---- folders ---- */

/* One folder; fine if it is there. A new one is not there for sure before its parent is synced. */
static struct error *
create_one(const char *path, struct arena *arena)
{
    if (mkdir(path, 0755) == 0)
        return sync_folder(folder_of(path, arena), arena);
    int reason = errno;
    struct stat status;
    if (reason == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return NULL;
    return disk_error(arena, "create folder", path, reason == EEXIST ? ENOTDIR : reason);
}

static void
create_work(void *argument)
{
    struct path_job *job = argument;
    char *path = arena_text(job->arena, job->path);
    for (char *at = path + 1; job->err == NULL; at++) {
        char end = *at;
        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (at[-1] != '/') /* not twice for a doubled or a last slash */
            job->err = create_one(path, job->arena);
        if (end == '\0')
            return;
        *at = end;
    }
}

struct error *
folder_create(const char *path, struct arena *arena)
{
    check(path[0] != '\0');
    struct path_job job = {.path = path, .arena = arena};
    pool_run_unbounded(create_work, &job);
    return job.err;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *
list_names(struct path_job *job)
{
    scoped(close_folder) DIR *folder = opendir(job->path);
    if (folder == NULL)
        return disk_error(job->arena, "list", job->path, errno);
    size_t count = 0, room = 16;
    job->names = arena_zalloc(job->arena, room, sizeof *job->names);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count + 1 == room) {
            const char **larger = arena_zalloc(job->arena, room * 2, sizeof *larger);
            memcpy(larger, job->names, count * sizeof *larger);
            job->names = larger;
            room *= 2;
        }
        job->names[count++] = arena_text(job->arena, entry->d_name);
    }
    if (errno != 0)
        return disk_error(job->arena, "list", job->path, errno);
    qsort(job->names, count, sizeof *job->names, compare_names);
    return NULL;
}

static void
list_work(void *argument)
{
    struct path_job *job = argument;
    job->err = list_names(job);
}

struct error *
folder_list(const char *path, struct arena *arena, const char ***names)
{
    struct path_job job = {.path = path, .arena = arena};
    pool_run_unbounded(list_work, &job);
    *names = job.names;
    return job.err;
}

static void
sync_folder_work(void *argument)
{
    struct path_job *job = argument;
    job->err = sync_folder(job->path, job->arena);
}

struct error *
folder_sync(const char *path, struct arena *arena)
{
    struct path_job job = {.path = path, .arena = arena};
    pool_run_unbounded(sync_folder_work, &job);
    return job.err;
}

/* ---- names ---- */

static void
rename_work(void *argument)
{
    struct path_job *job = argument;
    if (rename(job->path, job->other) != 0)
        job->err = disk_error(job->arena, "rename", job->path, errno);
}

struct error *
file_rename(const char *from, const char *to, struct arena *arena)
{
    struct path_job job = {.path = from, .other = to, .arena = arena};
    pool_run_unbounded(rename_work, &job);
    return job.err;
}

static void
remove_work(void *argument)
{
    struct path_job *job = argument;
    if (remove(job->path) != 0) /* an empty folder too */
        job->err = disk_error(job->arena, "remove", job->path, errno);
}

struct error *
file_remove(const char *path, struct arena *arena)
{
    struct path_job job = {.path = path, .arena = arena};
    pool_run_unbounded(remove_work, &job);
    return job.err;
}

static void
mode_work(void *argument)
{
    struct path_job *job = argument;
    if (chmod(job->path, job->mode) != 0)
        job->err = disk_error(job->arena, "set the mode of", job->path, errno);
}

struct error *
file_set_mode(const char *path, unsigned mode, struct arena *arena)
{
    struct path_job job = {.path = path, .mode = mode, .arena = arena};
    pool_run_unbounded(mode_work, &job);
    return job.err;
}

static void
stat_work(void *argument)
{
    struct path_job *job = argument;
    struct stat stat_buffer;
    if (stat(job->path, &stat_buffer) != 0) {
        job->err = disk_error(job->arena, "stat", job->path, errno);
        return;
    }
    job->modified = stat_buffer.st_mtim.tv_sec * NS_PER_S + stat_buffer.st_mtim.tv_nsec;
    job->size = (uint64_t)stat_buffer.st_size;
}

struct error *
file_stat(const char *path, int64_t *modified, uint64_t *size, struct arena *arena)
{
    struct path_job job = {.path = path, .arena = arena};
    pool_run_unbounded(stat_work, &job);
    *modified = job.modified;
    *size = job.size;
    return job.err;
}
