/* backup.c - a checkpoint of a store that works, and the way back.
 *
 * A backup is a data folder already: RocksDB's checkpoint (table files linked, nothing copied on
 * the same file system, no log: memtables are flushed for it) and an identity that says "restored,
 * guards to be raised". So even who copies a backup by hand gets a folder that knows where it comes
 * from. Restoring copies: the backup stays what it is.
 *
 * A backup's identity is written last, when all of it was read and found whole: a folder without
 * it is not a backup. A folder that is restored
 * into has one from the beginning, which says that it is not whole, and is locked: a crash leaves
 * nothing that opens as a store which never heard that its guards have to be raised. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/file.h"
#include "store/rocks/inside.h"

#define COPY_CHUNK (1 << 20)

/* --- backup ---------------------------------------------------------------------------------- */

struct checkpoint {
    struct rocks *rocks;
    const char *database; /* where it goes; must not exist */
    char *failure;
};

static void
checkpoint_run(void *argument)
{
    struct checkpoint *work = argument;
    rocksdb_checkpoint_t *checkpoint =
        rocksdb_checkpoint_object_create(work->rocks->tables.db, &work->failure);
    if (checkpoint == NULL)
        return;
    rocksdb_checkpoint_create(checkpoint, work->database, 0, &work->failure);
    rocksdb_checkpoint_object_destroy(checkpoint);
}

static struct error *
check_absent(const char *folder, struct arena *arena)
{
    const char **names;
    struct error *err = folder_list(folder, arena, &names);
    if (err != NULL && err->kind == ERR_NOT_FOUND)
        return NULL;
    if (err != NULL)
        return err;
    return error_new(arena, ERR_BAD_REQUEST, "%s exists already: a backup makes its own folder",
                     folder);
}

static int
discard_one(const char *path, const struct stat *traits, int type, struct FTW *walk)
{
    (void)traits;
    (void)walk;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

/* What remains of a folder that cannot be removed is not a backup: it has no identity. */
static void
discard(void *argument)
{
    nftw(argument, discard_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Fills the new folder. */
static struct error *
backup_into(struct rocks *rocks, const char *folder, struct arena *arena)
{
    struct checkpoint work = {.rocks = rocks, .database = folder_join(arena, folder, "rocks")};
    runway_pause(rocks);
    struct error *err = pool_run(checkpoint_run, &work, arena);
    runway_resume(rocks);
    if (err == NULL && work.failure != NULL)
        err = setup_error(arena, work.failure, "make a checkpoint");
    if (err != NULL)
        return err;
    struct folder_identity identity = rocks->folder->identity;
    check(identity.is_made);
    identity.was_closed = true;
    identity.memory = STORE_RESTORED;
    identity.place = (struct folder_place){.inode = 0}; /* of the one who opens it */
    identity.raise_guards = true;
    err = inspect_backup(folder, &identity, arena);
    return err != NULL ? err : folder_write_identity(folder, &identity, arena);
}

static struct error *
backup(struct rocks *rocks, const char *folder, struct arena *arena)
{
    struct error *err = check_absent(folder, arena);
    if (err != NULL)
        return error_wrap(err, "back up");
    err = folder_create(folder, arena);
    if (err == NULL)
        err = backup_into(rocks, folder, arena);
    if (err == NULL)
        return NULL;
    struct error *busy = pool_run(discard, arena_text(arena, folder), arena);
    (void)busy; /* it stays, and is not taken for a backup */
    return error_wrap(err, "back up");
}

struct error *
rocks_backup(struct store *store, const char *folder, struct arena *arena)
{
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    err = backup(rocks_of(store), folder, arena);
    store_leave(store);
    return err;
}

/* --- restore --------------------------------------------------------------------------------- */

struct copying {
    const char *from, *to; /* paths */
    struct arena *arena;
    struct error *err;
};

static bool
copy_bytes(int from, int to, uint8_t *room)
{
    for (;;) {
        ssize_t count = read(from, room, COPY_CHUNK);
        if (count <= 0)
            return count == 0 && fsync(to) == 0;
        for (ssize_t done = 0; done < count;) {
            ssize_t written = write(to, room + done, (size_t)(count - done));
            if (written <= 0)
                return false;
            done += written;
        }
    }
}

static void
copy_file(void *argument)
{
    struct copying *copying = argument;
    int from = open(copying->from, O_RDONLY | O_CLOEXEC);
    int to = open(copying->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_good = from >= 0 && to >= 0;
    if (is_good)
        is_good = copy_bytes(from, to, arena_alloc(copying->arena, COPY_CHUNK));
    if (!is_good)
        copying->err = error_new(copying->arena, ERR_IO, "copy %s to %s: %s", copying->from,
                                 copying->to, strerror(errno));
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
}

/* All files of a folder that has no folders in it. */
static struct error *
copy_folder(const char *from, const char *to, struct arena *arena)
{
    const char **names;
    struct error *err = folder_list(from, arena, &names);
    if (err == NULL)
        err = folder_create(to, arena);
    for (size_t i = 0; err == NULL && names[i] != NULL; i++) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        struct copying copying = {.from = folder_join(scratch, from, names[i]),
                                  .to = folder_join(scratch, to, names[i]),
                                  .arena = scratch};
        err = pool_run(copy_file, &copying, arena);
        if (err == NULL)
            err = error_copy(arena, copying.err);
    }
    return err == NULL ? folder_sync(to, arena) : err;
}

struct error *
rocks_restore(const char *backup, const char *path, struct arena *arena)
{
    struct folder_identity identity;
    struct error *err = folder_read_identity(backup, arena, &identity);
    bool is_backup = err == NULL && identity.raise_guards && !identity.is_restoring &&
                     identity.memory == STORE_RESTORED;
    if ((err == NULL && !is_backup) || (err != NULL && err->kind == ERR_NOT_FOUND))
        return error_new(arena, ERR_BAD_REQUEST, "%s is not a backup", backup);
    struct folder *folder = NULL;
    if (err == NULL)
        err = folder_open_for_restore(path, &identity, arena, &folder);
    if (err == NULL)
        err = copy_folder(folder_join(arena, backup, "rocks"), folder->database, arena);
    if (err == NULL) {
        folder->identity.is_restoring = false;
        err = folder_save(folder, arena);
    }
    if (folder != NULL)
        folder_close(folder);
    return err == NULL ? NULL : error_wrap(err, "restore %s from %s", path, backup);
}
