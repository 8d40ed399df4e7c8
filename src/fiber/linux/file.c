/* file.c - open files: each call is one job of the pool.
 *
 * A job works on the caller's struct and arena while the caller waits for it, so nothing is copied
 * between. */
#include "fiber/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/disk.h"
#include "fiber/linux/inside.h"

struct file {
    int descriptor;
    char *path; /* for messages */
};

struct error *
disk_error(struct arena *arena, const char *doing, const char *path, int reason)
{
    return error_new(arena, reason == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s %s: %s", doing, path,
                     strerrordesc_np(reason));
}

struct error *
disk_read(int descriptor, const char *path, uint64_t offset, void *bytes, size_t room,
          size_t *count, struct arena *arena)
{
    *count = 0;
    while (*count < room) {
        ssize_t got =
            pread(descriptor, (char *)bytes + *count, room - *count, (off_t)(offset + *count));
        if (got == 0)
            break;
        if (got > 0)
            *count += (size_t)got;
        else if (errno != EINTR)
            return disk_error(arena, "read", path, errno);
    }
    return NULL;
}

struct error *
disk_write(int descriptor, const char *path, uint64_t offset, const void *bytes, size_t count,
           struct arena *arena)
{
    for (size_t done = 0; done < count;) {
        ssize_t put =
            pwrite(descriptor, (const char *)bytes + done, count - done, (off_t)(offset + done));
        if (put > 0)
            done += (size_t)put;
        else if (put == 0 || errno != EINTR)
            return disk_error(arena, "write", path, put == 0 ? ENOSPC : errno);
    }
    return NULL;
}

/* ---- open, close ---- */

struct open_job {
    const char *path;
    unsigned flags;
    int descriptor;
    int reason;
};

static void
open_work(void *argument)
{
    struct open_job *job = argument;
    int flags = O_CLOEXEC;
    bool writes = (job->flags & FILE_WRITE) != 0;
    flags |= !writes ? O_RDONLY : (job->flags & FILE_READ) != 0 ? O_RDWR : O_WRONLY;
    flags |= (job->flags & FILE_CREATE) != 0 ? O_CREAT : 0;
    flags |= (job->flags & FILE_EXCLUSIVE) != 0 ? O_EXCL : 0;
    flags |= (job->flags & FILE_TRUNCATE) != 0 ? O_TRUNC : 0;
    job->descriptor = open(job->path, flags, 0644);
    job->reason = errno;
}

struct error *
file_open(const char *path, unsigned flags, struct arena *arena, struct file **file)
{
    check((flags & (FILE_READ | FILE_WRITE)) != 0);
    check((flags & FILE_WRITE) != 0 || (flags & (FILE_CREATE | FILE_TRUNCATE)) == 0);
    *file = NULL;
    struct open_job job = {.path = path, .flags = flags};
    pool_run_unbounded(open_work, &job);
    if (job.descriptor < 0)
        return disk_error(arena, "open", path, job.reason);
    *file = memory_zalloc(1, sizeof **file);
    (*file)->descriptor = job.descriptor;
    size_t size = strlen(path) + 1;
    (*file)->path = memory_alloc(size);
    memcpy((*file)->path, path, size);
    return NULL;
}

void
file_close(struct file *file)
{
    close(file->descriptor); /* gives the lock back too */
    memory_free(file->path);
    memory_free(file);
}

/* ---- read, write, sync ---- */

struct file_job {
    struct file *file;
    uint64_t offset;
    void *room;        /* reading */
    const void *bytes; /* writing */
    size_t count;
    size_t done;
    struct arena *arena;
    struct error *err;
};

static void
read_work(void *argument)
{
    struct file_job *job = argument;
    job->err = disk_read(job->file->descriptor, job->file->path, job->offset, job->room, job->count,
                         &job->done, job->arena);
}

struct error *
file_read(struct file *file, uint64_t offset, void *bytes, size_t room, size_t *count,
          struct arena *arena)
{
    struct file_job job = {
        .file = file, .offset = offset, .room = bytes, .count = room, .arena = arena};
    pool_run_unbounded(read_work, &job);
    *count = job.done;
    return job.err;
}

static void
write_work(void *argument)
{
    struct file_job *job = argument;
    job->err = disk_write(job->file->descriptor, job->file->path, job->offset, job->bytes,
                          job->count, job->arena);
}

struct error *
file_write(struct file *file, uint64_t offset, const void *bytes, size_t count, struct arena *arena)
{
    struct file_job job = {
        .file = file, .offset = offset, .bytes = bytes, .count = count, .arena = arena};
    pool_run_unbounded(write_work, &job);
    return job.err;
}

static void
sync_work(void *argument)
{
    struct file_job *job = argument;
    if (fdatasync(job->file->descriptor) != 0)
        job->err = disk_error(job->arena, "sync", job->file->path, errno);
}

struct error *
file_sync(struct file *file, struct arena *arena)
{
    struct file_job job = {.file = file, .arena = arena};
    pool_run_unbounded(sync_work, &job);
    return job.err;
}

static void
size_work(void *argument)
{
    struct file_job *job = argument;
    struct stat stat;
    if (fstat(job->file->descriptor, &stat) != 0)
        job->err = disk_error(job->arena, "stat", job->file->path, errno);
    else
        job->done = (size_t)stat.st_size;
}

struct error *
file_size(struct file *file, uint64_t *size, struct arena *arena)
{
    struct file_job job = {.file = file, .arena = arena};
    pool_run_unbounded(size_work, &job);
    *size = job.done;
    return job.err;
}

struct place_job {
    struct file *file;
    struct statx traits;
    int reason; /* 0: it went well */
};

static void
place_work(void *argument)
{
    struct place_job *job = argument;
    int failed =
        statx(job->file->descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &job->traits);
    job->reason = failed ? errno : 0;
}

struct error *
file_place(struct file *file, uint64_t *inode, int64_t *born, struct arena *arena)
{
    struct place_job job = {.file = file};
    pool_run_unbounded(place_work, &job);
    const struct statx *traits = &job.traits;
    *inode = traits->stx_ino;
    *born = (traits->stx_mask & STATX_BTIME) == 0
                ? 0
                : traits->stx_btime.tv_sec * NS_PER_S + traits->stx_btime.tv_nsec;
    return job.reason == 0 ? NULL : disk_error(arena, "stat", file->path, job.reason);
}

/* A lock of the open file, not of the process (as fcntl's would be): a second opening of the same
 * file in this process is kept out too, and closing another descriptor of it does not drop the
 * lock. */
struct error *
file_lock(struct file *file, struct arena *arena)
{
    if (flock(file->descriptor, LOCK_EX | LOCK_NB) == 0)
        return NULL;
    if (errno == EWOULDBLOCK)
        return error_new(arena, ERR_BUSY, "%s is locked by another process", file->path);
    return disk_error(arena, "lock", file->path, errno);
}
