/* test_shim_disk.c - what is synced and what is not, and what a power cut takes back; see
 * test_shim.c. */
#include "store/rocks/test_shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t
draw(void)
{
    shim.seed = shim.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return shim.seed >> 33;
}

bool
is_below(const char *path)
{
    size_t length = strlen(shim.folder);
    return length > 0 && strncmp(path, shim.folder, length) == 0;
}

/* ---- files ---- */

struct tracked *
find_file(const char *path)
{
    for (int i = 0; i < shim.file_count; i++)
        if (strcmp(shim.files[i].path, path) == 0)
            return &shim.files[i];
    return NULL;
}

struct tracked *
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

void
keep_bytes(const char *path, int64_t at, size_t length)
{
    struct tracked *file = find_file(path);
    if (file == NULL || at < 0 || at >= file->synced)
        return;
    if ((int64_t)length > file->synced - at)
        length = (size_t)(file->synced - at);
    /* tidy: allow malloc - the shim stands below everything that we have */
    struct overwritten *lost = malloc(sizeof *lost + length);
    int reader = REAL(open)(path, O_RDONLY);
    if (lost == NULL || reader < 0 || pread(reader, lost->bytes, length, at) != (ssize_t)length)
        abort();
    close(reader);
    *lost = (struct overwritten){.before = file->lost, .at = at, .length = length};
    file->lost = lost;
}

void
set_synced(struct tracked *file, int64_t size)
{
    file->synced = size;
    while (file->lost != NULL) {
        struct overwritten *lost = file->lost;
        file->lost = lost->before;
        /* tidy: allow free - as above */
        free(lost);
    }
}

static bool
is_folder_of(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           strchr(path + length + 1, '/') == NULL;
}

bool
path_of(int descriptor, char path[PATH_ROOM])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_ROOM - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return is_below(path) || is_folder_of(path, shim.folder);
}

/* ---- names ---- */

void
keep_spare(const char *path, char spare[PATH_ROOM])
{
    snprintf(spare, PATH_ROOM, "%.400s/spare%d", shim.spare, shim.spares++);
    if (REAL(link)(path, spare) != 0)
        spare[0] = '\0';
}

struct journal_entry *
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

void
journal_forget(const char *folder)
{
    int kept = 0;
    for (int i = 0; i < shim.journal_count; i++)
        if (!is_folder_of(folder, shim.journal[i].path))
            shim.journal[kept++] = shim.journal[i];
    shim.journal_count = kept;
}

/* Writes a path again whose folder `from` is now called `to`. */
static void
follow(char path[PATH_ROOM], const char *from, const char *to)
{
    size_t length = strlen(from);
    if (strncmp(path, from, length) != 0 || path[length] != '/')
        return;
    char old[PATH_ROOM];
    snprintf(old, PATH_ROOM, "%s", path + length);
    snprintf(path, PATH_ROOM, "%.250s%.250s", to, old);
}

void
follow_all(const char *from, const char *to)
{
    for (int i = 0; i < shim.file_count; i++)
        follow(shim.files[i].path, from, to);
    for (int i = 0; i < shim.journal_count; i++) {
        follow(shim.journal[i].path, from, to);
        follow(shim.journal[i].from, from, to);
    }
}

static void
journal_undo(const struct journal_entry *entry)
{
    if (entry->change == CHANGE_MADE) { /* a folder goes with all that is in it, synced or not */
        char lost[PATH_ROOM];
        snprintf(lost, PATH_ROOM, "%.400s/lost%d", shim.spare, shim.spares++);
        REAL(rename)(entry->path, lost);
    }
    if (entry->change == CHANGE_MOVED) {
        REAL(rename)(entry->path, entry->from);
        follow_all(entry->path, entry->from);
    }
    if (entry->spare[0] != '\0')
        REAL(rename)(entry->spare, entry->path);
}

/* ---- the power goes ---- */

/* How a file loses what is not synced. */
enum loss { LOSE_ALL, LOSE_END, LOSE_SOME, LOSSES };

static void
put_back(int descriptor, const struct overwritten *lost, int64_t from, int64_t to)
{
    if (from < to && REAL(pwrite)(descriptor, lost->bytes + (from - lost->at), (size_t)(to - from),
                                  from) != to - from)
        abort();
}

/* Bytes written over synced ones, newest first: all from `keep` on are what they were, or those of
 * some sectors. */
static void
lose_overwritten(int descriptor, const struct tracked *file, enum loss loss, int64_t keep)
{
    for (const struct overwritten *lost = file->lost; lost != NULL; lost = lost->before) {
        int64_t end = lost->at + (int64_t)lost->length;
        if (end > file->synced) /* it was cut since */
            end = file->synced;
        if (loss != LOSE_SOME)
            put_back(descriptor, lost, lost->at > keep ? lost->at : keep, end);
        for (int64_t at = lost->at; loss == LOSE_SOME && at < end;) {
            int64_t next = (at / SECTOR + 1) * SECTOR;
            if (draw() % 2 == 0)
                put_back(descriptor, lost, at, next < end ? next : end);
            at = next;
        }
    }
}

static void
lose_pages(int descriptor, int64_t from, int64_t size)
{
    static const char zeros[PAGE];
    for (int64_t page = from; page < size; page = (page / PAGE + 1) * PAGE) {
        int64_t end = (page / PAGE + 1) * PAGE;
        size_t length = (size_t)((end < size ? end : size) - page);
        if (draw() % 2 == 0 && REAL(pwrite)(descriptor, zeros, length, page) < 0)
            abort();
    }
}

static int64_t
first_loose(const struct tracked *file)
{
    int64_t first = file->synced;
    for (const struct overwritten *lost = file->lost; lost != NULL; lost = lost->before)
        if (lost->at < first)
            first = lost->at;
    return first;
}

static void
lose_bytes(const struct tracked *file)
{
    struct stat traits;
    int descriptor = REAL(open)(file->path, O_RDWR);
    if (descriptor < 0)
        return;
    int64_t size = fstat(descriptor, &traits) == 0 ? traits.st_size : 0;
    int64_t keep = first_loose(file);
    enum loss loss = (enum loss)(draw() % LOSSES);
    if (loss == LOSE_END && size > keep)
        keep += (int64_t)(draw() % (uint64_t)(size - keep));
    lose_overwritten(descriptor, file, loss, keep);
    if (loss == LOSE_SOME)
        lose_pages(descriptor, file->synced, size);
    else if (size > file->synced &&
             REAL(ftruncate)(descriptor, keep > file->synced ? keep : file->synced) != 0)
        abort();
    close(descriptor);
}

void
power_cut(void)
{
    for (int i = 0; i < shim.file_count; i++)
        lose_bytes(&shim.files[i]);
    for (int i = shim.journal_count - 1; i >= 0; i--)
        journal_undo(&shim.journal[i]);
    _exit(POWER_EXIT);
}
