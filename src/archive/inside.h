/* inside.h - what the files of archive/ share. */
#ifndef CADENZA_ARCHIVE_INSIDE_H
#define CADENZA_ARCHIVE_INSIDE_H

#include <stdatomic.h>

#include "archive/archive.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "wire/names.h"

#define FOLDERS_KNOWN 64

struct archive {
    struct archive_options options;
    atomic_int puts, reads; /* under way, on all loops */
    _Atomic(uint64_t)
        folders[FOLDERS_KNOWN]; /* fingerprints of those that are durable, as we know */
    struct counter *successes[2], *failures[2];
};

/* --- uri.c: pure ---- */

/* The folder that a URI names. Errors: ERR_BAD_REQUEST in Cadence's words. */
must_use struct error *archive_uri_folder(const char *uri, struct arena *arena,
                                          const char **folder);

/* --- names.c: pure ---- */

const char *archive_history_prefix(const char *domain_id, const char *workflow_id,
                                   const char *run_id, struct arena *arena);
const char *archive_history_name(const char *prefix, int64_t version, struct arena *arena);
/* The version in a name that begins with the prefix; false: another run's, or not such a name. */
must_use bool archive_history_version(const char *name, const char *prefix, int64_t *version);
const char *archive_record_name(int64_t close_time, const char *run_id, struct arena *arena);
/* What a name of a record says; false: not such a name. */
struct record_name {
    const char *name;
    int64_t close_time;
    uint64_t run_hash;
};
must_use bool archive_record_name_read(const char *name, struct record_name *read);
/* In the order of lists: the latest first. */
int archive_record_name_compare(const struct record_name *one, const struct record_name *other);

/* --- record.c: pure ---- */

/* A visibility record as Cadence's filestore writes it, and back. */
struct slice archive_record_write(const struct archive_run *run,
                                  const API(WorkflowExecutionInfo) *info, struct arena *arena);
must_use struct error *archive_record_read(struct slice json, struct arena *arena,
                                           API(WorkflowExecutionInfo) **info);

/* --- batches.c: pure ---- */

/* Batches of an archived history from somewhere in its file. */
struct batches {
    struct slice bytes; /* of the file, from where a batch or the file begins */
    bool is_end;        /* the bytes go up to the end of the file */
    size_t events_max, bytes_max;
    /* Found. */
    size_t used;         /* bytes that were read */
    struct slice events; /* History.events records */
    size_t event_count;
    bool is_last; /* no batch is left */
};
/* Reads whole batches until there are enough, or the bytes end. Nothing found and not the last: a
 * batch has more bytes. Errors: ERR_CORRUPT. */
must_use struct error *batches_read(struct batches *batches, struct arena *arena);

/* --- files.c ---- */

/* A file on its way. */
struct archive_file {
    struct archive *archive;
    enum archive_kind kind;
    const char *folder, *name; /* where it will be */
    const char *path;          /* where it is */
    struct file *file;
    uint64_t size;
    struct arena *arena;
};
/* Makes the folders and opens the temporary file; archive_file_append adds to it,
 * archive_file_publish makes it durable under its name. After an error of any of them it is gone.
 */
must_use struct error *archive_file_open(struct archive_file *archive_file, const char *root,
                                         const char *mark);
must_use struct error *archive_file_append(struct archive_file *archive_file, struct slice bytes);
must_use struct error *archive_file_publish(struct archive_file *archive_file);
void archive_file_drop(struct archive_file *archive_file);

/* --- archive.c ---- */

/* One reader at a time; waits for its turn. Errors: ERR_SERVICE_BUSY; those of waiting. */
must_use struct error *archive_enter_reader(struct archive *archive, struct arena *arena);
void archive_leave_reader(struct archive *archive);

/* --- put.c ---- */

must_use struct error *archive_put(void *archive, const struct archive_run *run,
                                   struct arena *arena);

#endif
