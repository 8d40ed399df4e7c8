/* test_shim.c - a disk that fails on command: preloaded into a test process, never part of
 * the server.
 *
 * It stands between the process and the C library for files below one folder, counts what changes
 * them, and at the n-th such call does one of three things:
 *
 *   error  the call fails with EIO or ENOSPC; a write leaves half of its bytes. Once, or from then
 *          on for ever.
 *   lie    from then on syncs say yes and do nothing.
 *   power  the power goes: everything that was not synced is taken back, and the process is gone.
 *
 * What "not synced" means: bytes of a file that were written since its last sync, behind its size
 * of then or over what was there; a name made, linked, moved or removed since the last sync of its
 * folder; all that is in a folder whose own name is lost. Names are taken back from a journal (what
 * they would lose is linked into a spare folder first). Of unsynced bytes a power cut keeps none,
 * or those before some offset, or some: behind the old size pages are zeros then, and before it
 * sectors are as they were. By seed: disks do all three. test_shim_disk.c does all that.
 *
 * Told by the environment: FAULT_FOLDER, FAULT_SPARE (same file system), FAULT_AT (n, 0: never),
 * FAULT_ACTION (eio, enospc, full, lie, power), FAULT_SEED, FAULT_COUNT (a file that gets the
 * number of calls at exit), FAULT_ENDING (only the making of files with this ending counts). */
#include "store/rocks/test_shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct shim shim = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what it was told ---- */

static void
copy_setting(const char *name, char location[PATH_ROOM])
{
    const char *value = getenv(name);
    snprintf(location, PATH_ROOM, "%s", value == NULL ? "" : value);
}

static void
prepare(void)
{
    static const char *const words[] = {"none", "eio", "enospc", "full", "lie", "power"};
    if (shim.is_ready)
        return;
    shim.is_ready = true;
    copy_setting("FAULT_FOLDER", shim.folder);
    copy_setting("FAULT_SPARE", shim.spare);
    copy_setting("FAULT_COUNT", shim.count_file);
    copy_setting("FAULT_ENDING", shim.ending);
    char number[PATH_ROOM], action[PATH_ROOM];
    copy_setting("FAULT_AT", number);
    shim.at = strtoull(number, NULL, 10);
    copy_setting("FAULT_SEED", number);
    shim.seed = strtoull(number, NULL, 10);
    copy_setting("FAULT_ACTION", action);
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
        if (strcmp(action, words[i]) == 0)
            shim.action = (enum action)i;
}

__attribute__((destructor)) static void
report_calls(void)
{
    if (shim.count_file[0] == '\0')
        return;
    FILE *file = fopen(shim.count_file, "w");
    if (file == NULL)
        return;
    fprintf(file, "%llu\n", (unsigned long long)shim.calls);
    fclose(file);
}

/* ---- every call ---- */

/* Counts a call; the errno it has to fail with, or 0. Holds the lock. */
static int
count_call(void)
{
    if (++shim.calls == shim.at) {
        if (shim.action == ACTION_POWER || shim.action == ACTION_LIE)
            power_cut();
        shim.is_full = shim.action == ACTION_FULL;
        if (shim.action == ACTION_EIO)
            return EIO;
        if (shim.action == ACTION_ENOSPC)
            return ENOSPC;
    }
    return 0;
}

/* The same, unless only files with some ending count. */
static int
step(void)
{
    return shim.ending[0] == '\0' ? count_call() : 0;
}

/* The same for a file that is opened for writing. */
static int
step_open(const char *path, bool is_new)
{
    size_t length = strlen(path), ending = strlen(shim.ending);
    bool is_counted =
        is_new && length >= ending && strcmp(path + length - ending, shim.ending) == 0;
    return is_counted ? count_call() : step();
}

/* Locks; true if the path is ours. Unlock in any case. */
static bool
enter(const char *path)
{
    pthread_mutex_lock(&shim.lock);
    prepare();
    return path != NULL && is_below(path);
}

static int
leave(int failure)
{
    pthread_mutex_unlock(&shim.lock);
    if (failure == 0)
        return 0;
    errno = failure;
    return -1;
}

static int
open_for_writing(const char *path, int flags, mode_t mode)
{
    struct stat traits;
    bool is_new = stat(path, &traits) != 0;
    int failure = step_open(path, is_new);
    if (failure == 0 && is_new && shim.is_full)
        failure = ENOSPC;
    if (failure != 0)
        return leave(failure);
    int descriptor = REAL(open)(path, flags, mode);
    failure = descriptor < 0 ? errno : 0;
    if (descriptor >= 0 && is_new)
        journal(CHANGE_MADE, path);
    if (descriptor >= 0) {
        struct tracked *file = track(path, is_new ? 0 : traits.st_size);
        if (is_new || (flags & O_TRUNC) != 0)
            set_synced(file, 0);
    }
    leave(0);
    errno = failure;
    return descriptor;
}

int
open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (enter(path) && (flags & O_ACCMODE) != O_RDONLY)
        return open_for_writing(path, flags, mode);
    leave(0);
    return REAL(open)(path, flags, mode);
}

/* Fails a write, half done; or says how it is to go on. */
static int
fail_write(int descriptor, const void *bytes, size_t count)
{
    int failure = step();
    if (shim.is_full)
        failure = ENOSPC;
    if (failure != 0 && count > 1 && REAL(write)(descriptor, bytes, count / 2) < 0)
        failure = EIO;
    return failure;
}

ssize_t
write(int descriptor, const void *bytes, size_t count)
{
    char path[PATH_ROOM];
    pthread_mutex_lock(&shim.lock);
    prepare();
    if (!path_of(descriptor, path)) {
        leave(0);
        return REAL(write)(descriptor, bytes, count);
    }
    keep_bytes(path, lseek(descriptor, 0, SEEK_CUR), count);
    int failure = fail_write(descriptor, bytes, count);
    ssize_t written = failure != 0 ? -1 : REAL(write)(descriptor, bytes, count);
    if (written < 0 && failure == 0)
        failure = errno;
    leave(failure);
    return written;
}

ssize_t
pwrite(int descriptor, const void *bytes, size_t count, off_t offset)
{
    char path[PATH_ROOM];
    pthread_mutex_lock(&shim.lock);
    prepare();
    bool is_ours = path_of(descriptor, path);
    int failure = is_ours ? step() : 0;
    if (is_ours && shim.is_full)
        failure = ENOSPC;
    if (is_ours && failure == 0)
        keep_bytes(path, offset, count);
    if (leave(failure) != 0)
        return -1;
    return REAL(pwrite)(descriptor, bytes, count, offset);
}

static int
sync_with(int descriptor, int (*sync)(int descriptor))
{
    char path[PATH_ROOM];
    pthread_mutex_lock(&shim.lock);
    prepare();
    if (!path_of(descriptor, path)) {
        leave(0);
        return sync(descriptor);
    }
    int failure = step();
    struct stat traits;
    if (failure != 0 || shim.action == ACTION_LIE || fstat(descriptor, &traits) != 0)
        return leave(failure);
    struct tracked *file = find_file(path);
    if (S_ISDIR(traits.st_mode))
        journal_forget(path);
    else if (file != NULL)
        set_synced(file, traits.st_size);
    return leave(0); /* the model is enough: nobody pulls the real plug */
}

int
fsync(int descriptor)
{
    return sync_with(descriptor, REAL(fsync));
}

int
fdatasync(int descriptor)
{
    return sync_with(descriptor, REAL(fdatasync));
}

int
fallocate(int descriptor, int mode, off_t offset, off_t length)
{
    char path[PATH_ROOM];
    pthread_mutex_lock(&shim.lock);
    prepare();
    int failure = path_of(descriptor, path) ? step() : 0;
    if (leave(failure) != 0)
        return -1;
    return REAL(fallocate)(descriptor, mode, offset, length);
}

int
ftruncate(int descriptor, off_t length)
{
    char path[PATH_ROOM];
    pthread_mutex_lock(&shim.lock);
    prepare();
    bool is_ours = path_of(descriptor, path);
    int failure = is_ours ? step() : 0;
    struct tracked *file = is_ours ? find_file(path) : NULL;
    if (failure == 0 && file != NULL && file->synced > length)
        file->synced = length;
    if (leave(failure) != 0)
        return -1;
    return REAL(ftruncate)(descriptor, length);
}

int
rename(const char *from, const char *to)
{
    if (!enter(from)) {
        leave(0);
        return REAL(rename)(from, to);
    }
    int failure = step();
    if (failure != 0)
        return leave(failure);
    struct journal_entry *entry = journal(CHANGE_MOVED, to);
    snprintf(entry->from, PATH_ROOM, "%s", from);
    keep_spare(to, entry->spare);
    int result = REAL(rename)(from, to);
    struct tracked *old = find_file(to), *file = find_file(from);
    if (old != NULL)
        old->path[0] = '\0';
    if (file != NULL)
        snprintf(file->path, PATH_ROOM, "%s", to);
    follow_all(from, to);
    leave(0);
    return result;
}

int
unlink(const char *path)
{
    if (!enter(path)) {
        leave(0);
        return REAL(unlink)(path);
    }
    int failure = step();
    if (failure != 0)
        return leave(failure);
    struct journal_entry *entry = journal(CHANGE_REMOVED, path);
    keep_spare(path, entry->spare);
    int result = REAL(unlink)(path);
    leave(0);
    return result;
}

int
mkdir(const char *path, mode_t mode)
{
    if (!enter(path)) {
        leave(0);
        return REAL(mkdir)(path, mode);
    }
    int failure = step();
    if (failure == 0 && shim.is_full)
        failure = ENOSPC;
    if (failure == 0 && REAL(mkdir)(path, mode) != 0)
        failure = errno;
    if (failure == 0)
        journal(CHANGE_MADE, path);
    return leave(failure);
}

int
link(const char *from, const char *to)
{
    if (!enter(to)) {
        leave(0);
        return REAL(link)(from, to);
    }
    int failure = step();
    if (failure == 0 && REAL(link)(from, to) != 0)
        failure = errno;
    if (failure == 0)
        journal(CHANGE_MADE, to);
    return leave(failure);
}
