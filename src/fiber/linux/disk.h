/* disk.h - what the files of this folder that work on the disk share. All of it blocks: for the
 * pool's threads. */
#ifndef CADENZA_FIBER_LINUX_DISK_H
#define CADENZA_FIBER_LINUX_DISK_H

#include "base/error.h"

/* "doing path: reason", ERR_NOT_FOUND for ENOENT, otherwise ERR_IO. */
must_use struct error *disk_error(struct arena *arena, const char *doing, const char *path,
                                  int reason);
/* Reads until `room` is full or the file ends. */
must_use struct error *disk_read(int descriptor, const char *path, uint64_t offset, void *bytes,
                                 size_t room, size_t *count, struct arena *arena);
/* Writes all. */
must_use struct error *disk_write(int descriptor, const char *path, uint64_t offset,
                                  const void *bytes, size_t count, struct arena *arena);

#endif
