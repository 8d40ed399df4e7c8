/* file_whole.c - whole files at once, and a test's hands on a disk. */
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "fiber/file.h"
#include "fiber/sim/disk.h"

static struct error *
load_open(struct file *file, const char *path, size_t size_max, struct arena *arena,
          struct slice *bytes)
{
    uint64_t size;
    struct error *err = file_size(file, &size, arena);
    if (err != NULL)
        return err;
    if (size > size_max)
        return error_new(arena, ERR_IO, "read %s: %llu bytes, at most %zu are expected", path,
                         (unsigned long long)size, size_max);
    size_t count = 0;
    uint8_t *room = arena_alloc(arena, size);
    err = file_read(file, 0, room, size, &count, arena);
    *bytes = slice_of(room, count);
    return err;
}

struct error *
file_load(const char *path, size_t size_max, struct arena *arena, struct slice *bytes)
{
    struct file *file;
    struct error *err = file_open(path, FILE_READ, arena, &file);
    if (err != NULL)
        return err;
    err = load_open(file, path, size_max, arena, bytes);
    file_close(file);
    return err;
}

static struct error *
save_beside(const char *path, struct slice bytes, struct arena *arena)
{
    struct file *file;
    struct error *err = file_open(path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, arena, &file);
    if (err != NULL)
        return err;
    err = file_write(file, 0, bytes.data, bytes.length, arena);
    if (err == NULL)
        err = file_sync(file, arena);
    file_close(file);
    return err;
}

/* "a/b" → "a", "b" → ".". */
static const char *
folder_of(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path ? "/" : arena_text_of(arena, slice_of(path, (size_t)(slash - path)));
}

struct error *
file_save(const char *path, struct slice bytes, struct arena *arena)
{
    const char *beside = arena_format(arena, "%s.new", path);
    struct error *err = save_beside(beside, bytes, arena);
    if (err == NULL)
        err = file_rename(beside, path, arena);
    if (err == NULL)
        err = folder_sync(folder_of(path, arena), arena);
    return err == NULL ? NULL : error_wrap(err, "save %s", path);
}

/* --- for tests ------------------------------------------------------------------------------- */

void
host_fail_disk(struct host *host, bool is_failing)
{
    world_trace(host->world, host, 0, STEP_FAULT, "disk", is_failing);
    host->is_disk_failing = is_failing;
}

void
host_crash_at_write(struct host *host, uint64_t count)
{
    host->crash_at = count == 0 ? 0 : host->disk_writes + count;
}

uint64_t
host_disk_writes(const struct host *host)
{
    return host->disk_writes;
}
