/* file.h - files as a database needs them. All calls yield (the pool does the work) and copy
 * nothing twice.
 *
 * What was written is durable only after file_sync; a new, renamed or removed name only after
 * folder_sync of its folder. The simulated disk takes this at its word: on a crash it loses or
 * tears what was not synced. Every failure is ERR_IO (ERR_NOT_FOUND for a missing file) and names
 * the path. */
#ifndef CADENZA_FIBER_FILE_H
#define CADENZA_FIBER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct file;

enum { FILE_READ = 1, FILE_WRITE = 2, FILE_CREATE = 4, FILE_EXCLUSIVE = 8, FILE_TRUNCATE = 16 };
must_use struct error *file_open(const char *path, unsigned flags, struct arena *arena,
                                 struct file **file);
/* Up to `room` bytes at `offset`; *count < room only at the end of the file. */
must_use struct error *file_read(struct file *file, uint64_t offset, void *bytes, size_t room,
                                 size_t *count, struct arena *arena);
/* All `count` bytes at `offset`, or an error. */
must_use struct error *file_write(struct file *file, uint64_t offset, const void *bytes,
                                  size_t count, struct arena *arena);
must_use struct error *file_sync(struct file *file, struct arena *arena);
must_use struct error *file_size(struct file *file, uint64_t *size, struct arena *arena);
/* What tells this file from its copies: the number of its inode and when that was made (wall ns; 0:
 * the file system does not say). Both outlive writes, renames and restarts. */
must_use struct error *file_place(struct file *file, uint64_t *inode, int64_t *born,
                                  struct arena *arena);
/* Takes the whole-file lock of this process. ERR_BUSY: another process holds it. */
must_use struct error *file_lock(struct file *file, struct arena *arena);
void file_close(struct file *file);

/* The whole file, at most `size_max` bytes, in the arena. */
must_use struct error *file_load(const char *path, size_t size_max, struct arena *arena,
                                 struct slice *bytes);
/* Writes beside, syncs, renames over, syncs the folder: afterwards the file has these bytes, or the
 * old ones. */
must_use struct error *file_save(const char *path, struct slice bytes, struct arena *arena);
/* Creates a folder and its parents; fine if it is there. */
must_use struct error *folder_create(const char *path, struct arena *arena);
/* Names in a folder, sorted, without "." and "..", NULL-terminated. */
must_use struct error *folder_list(const char *path, struct arena *arena, const char ***names);
must_use struct error *folder_sync(const char *path, struct arena *arena);
must_use struct error *file_rename(const char *from, const char *to, struct arena *arena);
must_use struct error *file_remove(const char *path, struct arena *arena);
/* Who may do what with a file or folder: permission bits as of chmod. In simulation: no effect. */
must_use struct error *file_set_mode(const char *path, unsigned mode, struct arena *arena);
/* Modification time (wall ns) and size. */
must_use struct error *file_stat(const char *path, int64_t *modified, uint64_t *size,
                                 struct arena *arena);

#endif
