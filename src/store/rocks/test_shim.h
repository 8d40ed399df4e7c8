/* test_shim.h - what the two files of the shim share: test_shim.c, which stands in the way of
 * calls, and test_shim_disk.c, which knows what a power cut would leave of the disk. */
#ifndef CADENZA_STORE_ROCKS_TEST_SHIM_H
#define CADENZA_STORE_ROCKS_TEST_SHIM_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The process that it is loaded into must not meet names of the shim, but for the calls. */
#pragma GCC visibility push(hidden)

#define FILES_MAX   4096
#define JOURNAL_MAX 8192
#define PATH_ROOM   512
#define PAGE        4096
#define SECTOR      512
#define POWER_EXIT  99

enum action { ACTION_NONE, ACTION_EIO, ACTION_ENOSPC, ACTION_FULL, ACTION_LIE, ACTION_POWER };
enum change { CHANGE_MADE, CHANGE_MOVED, CHANGE_REMOVED };

/* Bytes of a file that were synced, before they were rewritten. */
struct overwritten {
    struct overwritten *before; /* the one written before this one */
    int64_t at;
    size_t length;
    char bytes[];
};

struct tracked {
    char path[PATH_ROOM];
    int64_t synced;           /* size at its last sync */
    struct overwritten *lost; /* since its last sync, newest first */
};

struct journal_entry {
    enum change change;
    char path[PATH_ROOM];  /* the name that came or went */
    char from[PATH_ROOM];  /* moved: its name before */
    char spare[PATH_ROOM]; /* what the name stood for before; empty: nothing */
};

/* All of it under the lock. */
struct shim {
    pthread_mutex_t lock;
    bool is_ready;
    char folder[PATH_ROOM], spare[PATH_ROOM], count_file[PATH_ROOM];
    char ending[PATH_ROOM]; /* of the new files that alone count; empty: every call counts */
    uint64_t at, calls, seed;
    enum action action;
    bool is_full; /* from now on */
    int spares;
    struct tracked files[FILES_MAX];
    int file_count;
    struct journal_entry journal[JOURNAL_MAX];
    int journal_count;
};
extern struct shim shim;

/* The next function of that name: the C library's. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* --- test_shim_disk.c: all hold the lock ------------------------------------------------------ */

/* Is the path one of the folder that is watched? */
bool is_below(const char *path);
/* The path of an open file of the folder, or of the folder above, which holds its name; false: it
 * is not ours. */
bool path_of(int descriptor, char path[PATH_ROOM]);
/* What is known of a file; NULL: nothing. */
struct tracked *find_file(const char *path);
/* The same, known from now on with so many bytes synced if it was not. */
struct tracked *track(const char *path, int64_t synced);
/* `length` bytes are going to be written at `at`: keeps those that are synced. */
void keep_bytes(const char *path, int64_t at, size_t length);
/* All bytes of the file are synced, and it is that long. */
void set_synced(struct tracked *file, int64_t size);
/* Keeps what `path` stands for under a name in the spare folder. */
void keep_spare(const char *path, char spare[PATH_ROOM]);
/* Notes that a name came or went. */
struct journal_entry *journal(enum change change, const char *path);
/* The folder was synced: its names stay. */
void journal_forget(const char *folder);
/* A folder was moved: everything known below it has moved along. */
void follow_all(const char *from, const char *to);
/* Takes back what was not synced, and ends the process. */
void power_cut(void);

#pragma GCC visibility pop

#endif
