/* archive.h - closed runs in files: histories and records of lists that outlive their retention.
 *
 * A history is a file <hash of domain id><of workflow id><of run id>_<version>.history in the
 * folder that the domain's URI names, a record <close time>_<hash of run id>.visibility in the
 * folder of its domain's id there; names and contents are those of Cadence's filestore, so either
 * reads what the other wrote.
 *
 * Promises:
 *   1. What archive_port's put returned for is durable: written beside, synced, renamed, and the
 *      folder and those above it synced. A reader sees a whole file or none.
 *   2. Putting a run again writes the same again; two owners of a shard that do so at a time do not
 *      get in each other's way.
 *   3. A file system that hangs takes at most ARCHIVE_PUTS_MAX + 1 threads of the pool.
 *
 * All calls yield and may be made on every loop, unless they say otherwise. */
#ifndef CADENZA_ARCHIVE_ARCHIVE_H
#define CADENZA_ARCHIVE_ARCHIVE_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "config/dynamic.h"
#include "route/archive.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "visibility/query.h"

#define ARCHIVE_PUTS_MAX 2

enum archive_kind { ARCHIVE_HISTORY, ARCHIVE_VISIBILITY };

/* What the config says of one kind. */
struct archive_settings {
    bool is_enabled;  /* status: enabled; else nothing is archived or read */
    bool is_readable; /* enableRead */
    bool has_files;   /* there is a provider filestore */
    unsigned file_mode, dir_mode;
    bool is_default_enabled; /* domainDefaults: of new domains that say nothing */
    const char *default_uri;
};
/* Reads archival and domainDefaults.archival. Errors: ERR_BAD_REQUEST, which names the key. Does
 * not yield. Texts are the config's. */
must_use struct error *archive_settings_read(const struct config *config, struct arena *arena,
                                             struct archive_settings settings[2]);

struct archive_options {
    struct archive_settings settings[2]; /* by enum archive_kind */
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics;
    const char *owner; /* who we are among all that write to the same folders */
};

struct archive;
struct archive *archive_new(const struct archive_options *options);
/* Nobody calls any more. NULL is fine. */
void archive_free(struct archive *archive);

/* Does this cluster archive, and read, at the moment? No yield. */
bool archive_is_enabled(const struct archive *archive, enum archive_kind kind);
bool archive_is_readable(const struct archive *archive, enum archive_kind kind);
/* Can a domain be given this URI? Errors: ERR_BAD_REQUEST in Cadence's words. */
must_use struct error *archive_check_uri(struct archive *archive, enum archive_kind kind,
                                         const char *uri, struct arena *arena);
/* What shards put closed runs into. */
struct archive_port archive_port(struct archive *archive);

/* --- reading -------------------------------------------------------------------------------- */

struct archive_history_question {
    const char *uri, *domain_id, *workflow_id, *run_id;
    int64_t version_hint; /* of the last event, most likely; others are looked for */
    size_t events_max;    /* 1 or more; a page has whole batches, so it may have more */
    struct slice token;   /* empty: from the start; else what the page before gave */
};
struct archive_history_page {
    struct slice events; /* History.events records */
    struct slice token;  /* empty: it was the last page */
};
/* Errors: ERR_ENTITY_NOT_EXISTS, ERR_BAD_REQUEST (a token that is none, a URI), ERR_CORRUPT,
 * ERR_IO, ERR_SERVICE_BUSY. */
must_use struct error *archive_read_history(struct archive *archive,
                                            const struct archive_history_question *question,
                                            struct arena *arena, struct archive_history_page *page);
/* Is it a token of such a page? No yield. */
bool archive_is_history_token(struct slice token);

struct archive_list_question {
    const char *uri, *domain_id;
    const struct query *query; /* its order is ignored */
    const struct attribute_set *attributes;
    size_t page_size; /* 1 or more */
    struct slice token;
};
struct archive_list_page {
    API(WorkflowExecutionInfo) **info; /* the latest closed first */
    size_t count;
    struct slice token; /* empty: it was the last page. A page may be short and have one */
};
/* Errors: as above. */
must_use struct error *archive_list(struct archive *archive,
                                    const struct archive_list_question *question,
                                    struct arena *arena, struct archive_list_page *page);

#endif
