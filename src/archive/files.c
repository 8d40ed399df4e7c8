/* files.c - one file into an archive, whole or not at all. See inside.h.
 *
 * It is written beside, under a name that nobody else writes to and that no reader takes for a
 * file of the archive; synced, renamed, and its folder synced. Folders are made first, and each is
 * durable before anything is put into it: somebody else may have made it and not synced it yet, so
 * all of them are synced once, and then known. What a crash leaves beside is garbage. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/farm.h"
#include "fiber/file.h"
#include "fiber/mark.h"

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

/* Some failure: it may be that somebody took the folder away. */
static void
folder_forget(struct archive *archive, const char *folder)
{
    atomic_store(folder_slot(archive, folder), 0);
}

/* One folder, in one that is durable. Where we may not look at the parent, it is not ours and was
 * there before. */
static struct error *
make_folder(const struct parcel *parcel, const char *path, const char *parent)
{
    int64_t modified;
    uint64_t size;
    struct arena *arena = parcel->arena;
    struct error *err = file_stat(path, &modified, &size, arena);
    bool is_new = err != NULL && err->kind == ERR_NOT_FOUND;
    if (err != NULL && !is_new)
        return err;
    if (is_new) {
        err = folder_create(path, arena);
        if (err == NULL)
            err = file_set_mode(path, parcel->archive->options.settings[parcel->kind].dir_mode,
                                arena);
        if (err != NULL)
            return err;
    }
    err = folder_sync(parent, arena);
    return is_new ? err : NULL;
}

/* The folder and all above it. */
static struct error *
make_folders(const struct parcel *parcel, const char *folder)
{
    struct error *err = NULL;
    check(folder[0] == '/');
    if (folder_is_known(parcel->archive, folder))
        return NULL;
    const char *parent = "/";
    for (const char *at = folder; err == NULL && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char *path = arena_text_of(parcel->arena, slice_of(folder, (size_t)(at - folder)));
        at += strspn(at, "/");
        err = make_folder(parcel, path, parent);
        parent = path;
    }
    if (err == NULL)
        folder_note(parcel->archive, folder);
    return err;
}

/* --- the file ---- */

static void
close_file(struct parcel *parcel)
{
    if (parcel->file != NULL)
        file_close(parcel->file);
    parcel->file = NULL;
}

void
parcel_drop(struct parcel *parcel)
{
    close_file(parcel);
    if (parcel->path == NULL)
        return;
    struct error *err = file_remove(parcel->path, parcel->arena);
    if (err != NULL)
        log_debug(parcel->archive->options.log, "A file beside an archive stays.", log_error(err));
    parcel->path = NULL;
}

/* An error ends it. */
static struct error *
settle(struct parcel *parcel, struct error *err)
{
    if (err == NULL)
        return NULL;
    parcel_drop(parcel);
    folder_forget(parcel->archive, parcel->folder);
    mark("archive_file_failed");
    return err;
}

struct error *
parcel_open(struct parcel *parcel, const char *root, const char *owner)
{
    check(parcel->file == NULL && strchr(parcel->name, '/') == NULL);
    struct error *err = make_folders(parcel, root);
    if (err == NULL)
        err = make_folders(parcel, parcel->folder);
    if (err != NULL)
        return settle(parcel, err);
    const char *path = arena_format(parcel->arena, "%s/.%s.%s.new", root, parcel->name, owner);
    err = file_open(path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, parcel->arena, &parcel->file);
    if (err == NULL)
        parcel->path = path;
    return settle(parcel, err);
}

struct error *
parcel_append(struct parcel *parcel, struct slice bytes)
{
    check(parcel->file != NULL);
    struct error *err =
        file_write(parcel->file, parcel->size, bytes.data, bytes.length, parcel->arena);
    parcel->size += bytes.length;
    return settle(parcel, err);
}

struct error *
parcel_deliver(struct parcel *parcel)
{
    struct arena *arena = parcel->arena;
    check(parcel->file != NULL && parcel->path != NULL);
    const char *path = arena_format(arena, "%s/%s", parcel->folder, parcel->name);
    struct error *err = file_set_mode(
        parcel->path, parcel->archive->options.settings[parcel->kind].file_mode, arena);
#ifndef CADENZA_PLANT_archive_unsynced
    if (err == NULL)
        err = file_sync(parcel->file, arena);
#endif
    close_file(parcel);
    if (err == NULL)
        err = file_rename(parcel->path, path, arena);
    if (err != NULL)
        return settle(parcel, err);
    parcel->path = NULL;
#ifndef CADENZA_PLANT_archive_unsynced
    err = folder_sync(parcel->folder, arena);
#endif
    return settle(parcel, err);
}
