/* test_shim.c - a disk that fails when it is told to: preloaded into a test process, never part of
 * the server.
 *
 * It stands between the process and the C library for files below one folder, counts what changes
 * them, and at the n-th such call does one of three things:
 *
 *   error  the call fails with EIO or ENOSPC; a write leaves half of its bytes. Once, or from then
 * on for ever. lie    from then on syncs say yes and do nothing. power  the power goes: everything
 * that was not synced is taken back, and the process is gone.
 *
 * What "not synced" means: bytes of a file behind its size at its last sync; a name made, moved or
 * removed since the last sync of its folder. Names are taken back from a journal (what they would
 * lose is linked into a spare folder first). Of unsynced bytes a power cut keeps none, or a part,
 * or all with pages of zeros in them, by seed: disks do all three.
 *
 * Told by the environment: FAULT_FOLDER, FAULT_SPARE (same file system), FAULT_AT (n, 0: never),
 * FAULT_ACTION (eio, enospc, full, lie, power), FAULT_SEED, FAULT_COUNT (a file that gets the
 * number of calls at exit). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX   4096
#define JOURNAL_MAX 8192
#define PATH_ROOM   512
#define PAGE        4096
#define POWER_EXIT  99

enum action { ACTION_NONE, ACTION_EIO, ACTION_ENOSPC, ACTION_FULL, ACTION_LIE, ACTION_POWER };
enum change { CHANGE_MADE, CHANGE_MOVED, CHANGE_REMOVED };

struct tracked {
    char path[PATH_ROOM];
    int64_t synced; /* size at its last sync */
};

struct journal_entry {
    enum change change;
    char path[PATH_ROOM];  /* the name that came or went */
    char from[PATH_ROOM];  /* moved: its name before */
    char spare[PATH_ROOM]; /* what the name stood for before; empty: nothing */
};

static struct {
    pthread_mutex_t lock;
    bool is_ready;
    char folder[PATH_ROOM], spare[PATH_ROOM], count_file[PATH_ROOM];
    uint64_t at, calls, seed;
    enum action action;
    bool is_full; /* from now on */
    int spares;
    struct tracked files[FILES_MAX];
    int file_count;
    struct journal_entry journal[JOURNAL_MAX];
    int journal_count;
} shim = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The next function of that name: the C library's. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static uint64_t
draw(void)
{
    shim.seed = shim.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return shim.seed >> 33;
}

/* ---- what it was told ---- */

static void
copy_setting(const char *name, char place[PATH_ROOM])
{
    const char *value = getenv(name);
    snprintf(place, PATH_ROOM, "%s", value == NULL ? "" : value);
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

static bool
is_below(const char *path)
{
    size_t length = strlen(shim.folder);
    return length > 0 && strncmp(path, shim.folder, length) == 0;
}

/* ---- files ---- */

static struct tracked *
find_file(const char *path)
{
    for (int i = 0; i < shim.file_count; i++)
        if (strcmp(shim.files[i].path, path) == 0)
            return &shim.files[i];
    return NULL;
}

static struct tracked *
track(const char *path, int64_t synced)
{
    struct tracked *file = find_file(path);
    if (file != NULL)
        return file;
    if (shim.file_count == FILES_MAX)
        abort();
    file = &shim.files[shim.file_count++];
    snprintf(file->path, PATH_ROOM, "%s", path);
    file->synced = synced;
    return file;
}

/* The path of an open file of the folder; false: it is none of ours. */
static bool
path_of(int descriptor, char path[PATH_ROOM])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_ROOM - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return is_below(path);
}

static bool
is_folder_of(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           strchr(path + length + 1, '/') == NULL;
}

/* ---- names ---- */

/* Keeps what `path` stands for under a name in the spare folder. */
static void
keep_spare(const char *path, char spare[PATH_ROOM])
{
    snprintf(spare, PATH_ROOM, "%.400s/spare%d", shim.spare, shim.spares++);
    if (link(path, spare) != 0)
        spare[0] = '\0';
}

static struct journal_entry *
journal(enum change change, const char *path)
{
    if (shim.journal_count == JOURNAL_MAX)
        abort();
    struct journal_entry *entry = &shim.journal[shim.journal_count++];
    memset(entry, 0, sizeof *entry);
    entry->change = change;
    snprintf(entry->path, PATH_ROOM, "%s", path);
    return entry;
}

/* The folder was synced: its names stay. */
static void
journal_forget(const char *folder)
{
    int kept = 0;
    for (int i = 0; i < shim.journal_count; i++)
        if (!is_folder_of(folder, shim.journal[i].path))
            shim.journal[kept++] = shim.journal[i];
    shim.journal_count = kept;
}

static void
journal_undo(const struct journal_entry *entry)
{
    if (entry->change == CHANGE_MADE)
        REAL(unlink)(entry->path);
    if (entry->change == CHANGE_MOVED)
        REAL(rename)(entry->path, entry->from);
    if (entry->spare[0] != '\0')
        REAL(rename)(entry->spare, entry->path);
}

/* ---- the power goes ---- */

static void
lose_bytes(const struct tracked *file)
{
    struct stat facts;
    int descriptor = REAL(open)(file->path, O_RDWR);
    if (descriptor < 0)
        return;
    int64_t size = fstat(descriptor, &facts) == 0 ? facts.st_size : 0;
    int64_t loose = size - file->synced;
    uint64_t way = draw() % 3;
    if (loose > 0 && way == 0)
        way = (uint64_t)REAL(ftruncate)(descriptor, file->synced);
    else if (loose > 0 && way == 1)
        way = (uint64_t)REAL(ftruncate)(descriptor,
                                        file->synced + (int64_t)(draw() % (uint64_t)loose));
    for (int64_t page = file->synced; way == 2 && page < size; page = (page / PAGE + 1) * PAGE) {
        static const char zeros[PAGE];
        int64_t end = (page / PAGE + 1) * PAGE;
        size_t length = (size_t)((end < size ? end : size) - page);
        if (draw() % 2 == 0 && REAL(pwrite)(descriptor, zeros, length, page) < 0)
            abort();
    }
    close(descriptor);
}

static void
power_cut(void)
{
    for (int i = 0; i < shim.file_count; i++)
        lose_bytes(&shim.files[i]);
    for (int i = shim.journal_count - 1; i >= 0; i--)
        journal_undo(&shim.journal[i]);
    _exit(POWER_EXIT);
}

/* ---- every call ---- */

/* Counts a call; the errno it has to fail with, or 0. Holds the lock. */
static int
step(void)
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
    struct stat facts;
    bool is_new = stat(path, &facts) != 0;
    int failure = step();
    if (failure == 0 && is_new && shim.is_full)
        failure = ENOSPC;
    if (failure != 0)
        return leave(failure);
    int descriptor = REAL(open)(path, flags, mode);
    failure = descriptor < 0 ? errno : 0;
    if (descriptor >= 0 && is_new)
        journal(CHANGE_MADE, path);
    if (descriptor >= 0) {
        struct tracked *file = track(path, is_new ? 0 : facts.st_size);
        if (is_new || (flags & O_TRUNC) != 0)
            file->synced = 0;
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
    int failure = path_of(descriptor, path) ? step() : 0;
    if (failure != 0)
        return leave(failure);
    leave(0);
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
    struct stat facts;
    if (failure != 0 || shim.action == ACTION_LIE || fstat(descriptor, &facts) != 0)
        return leave(failure);
    struct tracked *file = find_file(path);
    if (S_ISDIR(facts.st_mode))
        journal_forget(path);
    else if (file != NULL)
        file->synced = facts.st_size;
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
