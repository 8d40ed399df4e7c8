/* folder.c - a data folder says what it is before anybody opens what is in it.
 *
 *   - DIR/CADENZA: the identity (identity.c)
 *   - DIR/cadenza.lock: locked by the process that has the folder open; contains its pid
 *   - DIR/rocks/: RocksDB's files
 *   - DIR/torn/: unfinished writes that were cut off the log (wal.c), kept for inspection
 *
 * The identity is written before the database is made and says "made" only after: so a folder whose
 * database is gone is distinguished from one that never had any, and does not get a new, empty one.
 * Likewise it says "being restored" before the first file of a backup is copied and "made" only
 * after the last: half a backup does not open.
 *
 * The lock file is made once and stays, so it tells the folder from its copies: the identity has
 * its place (inode and birth time). A folder whose lock file has another one is a copy, perhaps an
 * old one that was put back, and its opening notes that before the first write. */
#include <inttypes.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "fiber/file.h"
#include "store/rocks/inside.h"

#define LOCK_NAME "cadenza.lock"

char *
folder_join(struct arena *arena, const char *path, const char *name)
{
    return arena_format(arena, "%s/%s", path, name);
}

/* --- what is there ---------------------------------------------------------------------------- */

static struct error *
identity_compare(const char *path, const struct folder_identity *found,
                 const struct folder_identity *wanted, struct arena *arena)
{
    if (strcmp(found->cluster_name, wanted->cluster_name) != 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "data folder %s belongs to cluster \"%s\", not to \"%s\"", path,
                         found->cluster_name, wanted->cluster_name);
    if (found->shard_count != wanted->shard_count)
        return error_new(arena, ERR_BAD_REQUEST,
                         "data folder %s was made with %" PRIu32 " shards, not %" PRIu32
                         ": the number never changes (persistence.numHistoryShards)",
                         path, found->shard_count, wanted->shard_count);
    return NULL;
}

/* Errors ERR_BAD_REQUEST if the folder is there and holds anything of somebody. */
static struct error *
folder_check_empty(const char *path, struct arena *arena)
{
    const char **names;
    struct error *err = folder_list(path, arena, &names);
    if (err != NULL)
        return err->kind == ERR_NOT_FOUND ? NULL : err;
    for (size_t i = 0; names[i] != NULL; i++) {
        bool is_ours = strcmp(names[i], LOCK_NAME) == 0 ||
                       strncmp(names[i], FOLDER_IDENTITY, strlen(FOLDER_IDENTITY)) == 0;
        if (is_ours || strcmp(names[i], "lost+found") == 0) /* a file system of its own has one */
            continue;
        return error_new(arena, ERR_BAD_REQUEST,
                         "folder %s is neither empty nor a cadenza data folder: it holds \"%s\"",
                         path, names[i]);
    }
    return NULL;
}

/* --- the lock --------------------------------------------------------------------------------- */

/* "process 123", as far as the lock file says. */
static const char *
lock_holder(const char *name, struct arena *arena)
{
    struct slice text;
    struct error *err = file_load(name, 64, arena, &text);
    uint64_t pid;
    while (err == NULL && text.length > 0 && text.data[text.length - 1] <= ' ')
        text.length--;
    if (err != NULL || !text_parse_uint64(text, 1, INT32_MAX, &pid))
        return "another process";
    return arena_format(arena, "process %" PRIu64, pid);
}

static struct error *
folder_lock(struct folder *folder, struct arena *arena)
{
    check(folder->lock == NULL);
    char *name = folder_join(arena, folder->path, LOCK_NAME);
    struct error *err = file_open(name, FILE_READ | FILE_WRITE | FILE_CREATE, arena, &folder->lock);
    if (err != NULL)
        return error_wrap(err, "lock data folder %s", folder->path);
    err = file_lock(folder->lock, arena);
    if (err != NULL && err->kind == ERR_BUSY)
        return error_new(arena, ERR_BUSY, "data folder %s is in use by %s", folder->path,
                         lock_holder(name, arena));
    if (err != NULL)
        return error_wrap(err, "lock data folder %s", folder->path);
    char *pid = arena_format(arena, "%-19ld\n", (long)getpid()); /* covers a longer one before */
    err = file_write(folder->lock, 0, pid, strlen(pid), arena);
    if (err == NULL) /* a lock file that a power cut takes would make the folder a copy */
        err = file_sync(folder->lock, arena);
    if (err == NULL)
        err = file_place(folder->lock, &folder->place.inode, &folder->place.born, arena);
    return err;
}

/* --- the place -------------------------------------------------------------------------------- */

bool
folder_is_copy(const struct folder *folder)
{
    const struct folder_place *here = &folder->place, *then = &folder->identity.place;
    if (then->inode == 0 || here->inode == 0)
        return false;
    bool has_births = then->born > 0 && here->born > 0;
    return then->inode != here->inode || (has_births && then->born != here->born);
}

enum store_memory
folder_memory(const struct folder *folder)
{
    enum store_memory noted = folder->identity.memory;
    return noted == STORE_WHOLE && folder_is_copy(folder) ? STORE_COPIED : noted;
}

void
folder_take_place(struct folder *folder)
{
    folder->identity.memory = folder_memory(folder);
    if (folder_is_copy(folder))
        folder->identity.raise_guards = true;
    folder->identity.place = folder->place;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* May what is in the locked folder be opened? */
static struct error *
identity_check(const struct folder *folder, const struct folder_identity *wanted,
               struct arena *arena)
{
    if (folder->identity.is_restoring)
        return error_new(arena, ERR_BAD_REQUEST,
                         "data folder %s was being restored from a backup and that did not finish: "
                         "remove it and restore again",
                         folder->path);
    return wanted == NULL ? NULL : identity_compare(folder->path, &folder->identity, wanted, arena);
}

/* The identity of the locked folder, or a new one if `wanted` allows. */
static struct error *
folder_identify(struct folder *folder, const struct folder_identity *wanted, struct arena *arena)
{
    struct folder_identity *identity = &folder->identity;
    struct error *err = folder_read_identity(folder->path, folder->arena, identity);
    if (err == NULL)
        return identity_check(folder, wanted, arena);
    if (err->kind != ERR_NOT_FOUND)
        return error_copy(arena, err);
    check(wanted != NULL);
    *identity =
        (struct folder_identity){.format = FOLDER_FORMAT,
                                 .cluster_name = arena_text(folder->arena, wanted->cluster_name),
                                 .shard_count = wanted->shard_count,
                                 .place = folder->place,
                                 .was_closed = true};
    return folder_save(folder, arena);
}

/* Before the lock file is made in it: is the folder ours, or free? */
static struct error *
folder_approve(const char *path, bool may_make, struct arena *arena)
{
    struct folder_identity found;
    struct error *err = folder_read_identity(path, arena, &found);
    if (err == NULL || err->kind != ERR_NOT_FOUND)
        return err;
    if (!may_make)
        return error_new(arena, ERR_BAD_REQUEST, "%s is not a cadenza data folder", path);
    err = folder_check_empty(path, arena);
    return err != NULL ? err : folder_create(path, arena);
}

static struct folder *
folder_new(const char *path)
{
    struct arena *own = arena_new(0);
    struct folder *folder = arena_make(own, struct folder);
    folder->arena = own;
    folder->path = arena_text(own, path);
    folder->database = folder_join(own, path, "rocks");
    return folder;
}

struct error *
folder_open(const char *path, const struct folder_identity *wanted, struct arena *arena,
            struct folder **result)
{
    check(wanted == NULL || (wanted->cluster_name != NULL && wanted->shard_count > 0));
    struct error *err = folder_approve(path, wanted != NULL, arena);
    if (err != NULL)
        return err;
    struct folder *folder = folder_new(path);
    err = folder_lock(folder, arena);
    if (err == NULL)
        err = folder_identify(folder, wanted, arena);
    if (err != NULL) {
        folder_close(folder);
        return err;
    }
    *result = folder;
    return NULL;
}

/* The folder is empty, without even an identity: a folder with one has, or had, a
 * database.
 */
static struct error *
folder_check_free(const char *path, struct arena *arena)
{
    struct folder_identity found;
    struct error *err = folder_read_identity(path, arena, &found);
    if (err == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s is a data folder already: a restore makes one",
                         path);
    return err->kind == ERR_NOT_FOUND ? folder_check_empty(path, arena) : err;
}

struct error *
folder_open_for_restore(const char *path, const struct folder_identity *identity,
                        struct arena *arena, struct folder **result)
{
    struct error *err = folder_check_free(path, arena);
    if (err == NULL)
        err = folder_create(path, arena);
    if (err != NULL)
        return err;
    struct folder *folder = folder_new(path);
    err = folder_lock(folder, arena);
    if (err == NULL)
        err = folder_check_free(path, arena); /* now that nobody else can fill it */
    folder->identity = *identity;
    folder->identity.cluster_name = arena_text(folder->arena, identity->cluster_name);
    folder->identity.is_restoring = true;
    folder->identity.place = folder->place;
    if (err == NULL)
        err = folder_save(folder, arena);
    if (err != NULL) {
        folder_close(folder);
        return err;
    }
    *result = folder;
    return NULL;
}

struct error *
folder_save(struct folder *folder, struct arena *arena)
{
    return folder_write_identity(folder->path, &folder->identity, arena);
}

void
folder_close(struct folder *folder)
{
    if (folder->lock != NULL)
        file_close(folder->lock); /* lets go of the lock */
    arena_free(folder->arena);
}
