/* files.c - one file into an archive, as a whole or not at all. See inside.h.
 *
 * It is written under a temporary name, which nobody else writes to and no reader takes for a file
 * of the archive; then it is synced and renamed, and its folder is synced. Folders are made first,
 * and each is durable before anything is put into it: another process may have made it and not
 * synced it yet, so all of them are synced once and then remembered. Temporary files that a crash
 * leaves are garbage. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/farm.h"
#include "fiber/file.h"
#include "fiber/probe.h"

/* --- folders ---- */

static _Atomic(uint64_t) *
folder_slot(struct archive *archive, const char *folder)
{
    return &archive->folders[farm_fingerprint64(slice_text(folder)) % FOLDERS_KNOWN];
}

static bool
folder_is_known(struct archive *archive, const char *folder)
{
    return atomic_load(folder_slot(archive, folder)) == farm_fingerprint64(slice_text(folder));
}

static void
folder_note(struct archive *archive, const char *folder)
{
    atomic_store(folder_slot(archive, folder), farm_fingerprint64(slice_text(folder)));
}

/* After a failure: the folder may have been removed. */
static void
folder_forget(struct archive *archive, const char *folder)
{
    atomic_store(folder_slot(archive, folder), 0);
}

/* One folder, in one that is durable. If we may not look at the parent, the folder is not ours and
 * was there before. */
static struct error *
make_folder(const struct archive_file *archive_file, const char *path, const char *parent)
{
    int64_t modified;
    uint64_t size;
    struct arena *arena = archive_file->arena;
    struct error *err = file_stat(path, &modified, &size, arena);
    bool is_new = err != NULL && err->kind == ERR_NOT_FOUND;
    if (err != NULL && !is_new)
        return err;
    if (is_new) {
        err = folder_create(path, arena);
        if (err == NULL)
            err = file_set_mode(
                path, archive_file->archive->options.settings[archive_file->kind].dir_mode, arena);
        if (err != NULL)
            return err;
    }
    err = folder_sync(parent, arena);
    return is_new ? err : NULL;
}

/* The folder and all above it. */
static struct error *
make_folders(const struct archive_file *archive_file, const char *folder)
{
    struct error *err = NULL;
    check(folder[0] == '/');
    if (folder_is_known(archive_file->archive, folder))
        return NULL;
    const char *parent = "/";
    for (const char *at = folder; err == NULL && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char *path =
            arena_text_of(archive_file->arena, slice_of(folder, (size_t)(at - folder)));
        at += strspn(at, "/");
        err = make_folder(archive_file, path, parent);
        parent = path;
    }
    if (err == NULL)
        folder_note(archive_file->archive, folder);
    return err;
}

/* --- the file ---- */

static void
close_file(struct archive_file *archive_file)
{
    if (archive_file->file != NULL)
        file_close(archive_file->file);
    archive_file->file = NULL;
}

void
archive_file_drop(struct archive_file *archive_file)
{
    close_file(archive_file);
    if (archive_file->path == NULL)
        return;
    struct error *err = file_remove(archive_file->path, archive_file->arena);
    if (err != NULL)
        log_debug(archive_file->archive->options.log,
                  "An unfinished file of an archive could not be removed.", log_error(err));
    archive_file->path = NULL;
}

/* An error ends it. */
static struct error *
complete(struct archive_file *archive_file, struct error *err)
{
    if (err == NULL)
        return NULL;
    archive_file_drop(archive_file);
    folder_forget(archive_file->archive, archive_file->folder);
    probe("archive_file_failed");
    return err;
}

struct error *
archive_file_open(struct archive_file *archive_file, const char *root, const char *owner)
{
    check(archive_file->file == NULL && archive_file->path == NULL && archive_file->size == 0);
    check(strchr(archive_file->name, '/') == NULL);
    struct error *err = make_folders(archive_file, root);
    if (err == NULL)
        err = make_folders(archive_file, archive_file->folder);
    if (err != NULL)
        return complete(archive_file, err);
    const char *path =
        arena_format(archive_file->arena, "%s/.%s.%s.new", root, archive_file->name, owner);
    err = file_open(path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, archive_file->arena,
                    &archive_file->file);
    if (err == NULL)
        archive_file->path = path;
    return complete(archive_file, err);
}

struct error *
archive_file_append(struct archive_file *archive_file, struct slice bytes)
{
    check(archive_file->file != NULL && archive_file->path != NULL);
    struct error *err = file_write(archive_file->file, archive_file->size, bytes.data, bytes.length,
                                   archive_file->arena);
    archive_file->size += bytes.length;
    return complete(archive_file, err);
}

struct error *
archive_file_publish(struct archive_file *archive_file)
{
    struct arena *arena = archive_file->arena;
    check(archive_file->file != NULL && archive_file->path != NULL);
    const char *path = arena_format(arena, "%s/%s", archive_file->folder, archive_file->name);
    struct error *err =
        file_set_mode(archive_file->path,
                      archive_file->archive->options.settings[archive_file->kind].file_mode, arena);
#ifndef CADENZA_FAULT_archive_unsynced
    if (err == NULL)
        err = file_sync(archive_file->file, arena);
#endif
    close_file(archive_file);
    if (err == NULL)
        err = file_rename(archive_file->path, path, arena);
    if (err != NULL)
        return complete(archive_file, err);
    archive_file->path = NULL;
#ifndef CADENZA_FAULT_archive_unsynced
    err = folder_sync(archive_file->folder, arena);
#endif
    return complete(archive_file, err);
}
