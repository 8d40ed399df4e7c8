/* admin.h - what operators can do with a store, as far as its engine can. */
#ifndef CADENZA_STORE_ADMIN_H
#define CADENZA_STORE_ADMIN_H

#include "store/store.h"

/* --- of an open store ------------------------------------------------------------------------- */

/* What the engine is called among operators: "embedded". */
const char *store_name(const struct store *store);
/* Can no other host have this store open? The engine knows: it holds a lock, or many may share it.
 */
bool store_is_alone(const struct store *store);
/* Makes `folder`, which must not exist, a backup of this moment, while the store works on; all of
 * it is read back. A backup that fails leaves no folder. Yields, for as long as that takes. Errors:
 * ERR_BAD_REQUEST (it exists, or this engine makes no backups), ERR_CORRUPT (the first damage),
 * ERR_UNAVAILABLE, ERR_IO. */
must_use struct error *store_backup(struct store *store, const char *folder, struct arena *arena);
/* What is known to be damaged and cannot be read, in one sentence; NULL: nothing is known. Never
 * yields; any thread. */
const char *store_damage(const struct store *store, struct arena *arena);
/* Does it have all that was ever acknowledged with it? If not, it has to be asked of other clusters
 * before anything is decided. Durable until store_set_whole. Never yields. */
enum store_memory {
    STORE_WHOLE,
    STORE_RESTORED, /* comes from a backup */
    STORE_COPIED,   /* does not lie where it was written: an old copy, perhaps */
};
enum store_memory store_memory(const struct store *store);
/* "whole", "restored", "copied". */
const char *store_memory_word(enum store_memory memory);
/* What it lost was read from the others, as far as they have it: forgets the mark, durably. Yields.
 * Errors: ERR_UNAVAILABLE, ERR_IO (the mark stays). */
must_use struct error *store_set_whole(struct store *store, struct arena *arena);

/* --- of a store that nobody has open ---------------------------------------------------------- */

struct store_kind_count {
    const char *name; /* of the row kind; "guard" for guards */
    uint64_t rows;
    uint64_t bytes; /* of keys and values */
};
struct store_level {
    const char *family;
    int level;
    uint64_t files;
    uint64_t bytes;
};
struct store_info {
    unsigned format;
    const char *cluster_name;
    uint32_t shard_count;
    enum store_memory memory; /* that it will say at the next opening */
    bool was_closed; /* the last process closed it; else its log is replayed at the next opening */
    uint64_t log_files, log_bytes;
    uint64_t torn_bytes; /* of a last write that never finished: the next start sets it aside */
    const char *note;    /* that in a sentence, for people; NULL: none */
    uint64_t table_files, table_bytes;
    uint64_t large_files, large_bytes; /* with values that are in no table */
    uint64_t large_dead_bytes;         /* of these: whose rows are gone */
    uint64_t sequence;                 /* writes since the beginning */
    struct store_level *levels;
    size_t level_count;
    struct store_kind_count *kinds; /* in order of their numbers, guards first */
    size_t kind_count;
};

#define STORE_PROBLEMS_MAX 100
struct store_check {
    struct store_info info;
    uint64_t rows;         /* looked at */
    uint64_t partitions;   /* with a guard */
    uint64_t problems;     /* how many in all */
    const char **sentence; /* the first STORE_PROBLEMS_MAX of them */
};

#endif
