/* known.c - open runs that the writer met lately, so that the change that closes one need not be
 * looked up.
 *
 * Two generations: when the younger is full the older goes. What is forgotten is found in the
 * tables, so the bound costs time, never a correct answer. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

#define GENERATION_MAX 8192 /* runs, of about 100 bytes each */
#define RUN_ID_MAX     40

struct known_entry {
    struct known_run run;
    uint8_t length;
    uint8_t run_id[RUN_ID_MAX];
};

static void
free_generation(struct map64 *generation)
{
    void *known_entry;
    for (size_t cursor = 0; map64_next(generation, &cursor, NULL, &known_entry);)
        memory_free(known_entry);
    map64_free(generation);
}

void
known_open(struct known_runs *runs)
{
    runs->young = map64_new();
    runs->old = map64_new();
}

void
known_close(struct known_runs *runs)
{
    free_generation(runs->young);
    free_generation(runs->old);
}

void
known_forget(struct known_runs *runs)
{
    known_close(runs);
    known_open(runs);
}

/* Takes it out, if it is the one. */
static bool
take(struct map64 *generation, uint64_t hash, int64_t domain, struct slice run_id,
     struct known_run *run)
{
    struct known_entry *known_entry = map64_get(generation, hash);
    if (known_entry == NULL || known_entry->run.domain != domain ||
        !slice_equal(slice_of(known_entry->run_id, known_entry->length), run_id))
        return false;
    *run = known_entry->run;
    map64_remove(generation, hash);
    memory_free(known_entry);
    return true;
}

bool
known_take(struct known_runs *runs, int64_t domain, struct slice run_id, struct known_run *run)
{
    uint64_t hash = map_hash(run_id);
    return take(runs->young, hash, domain, run_id, run) ||
           take(runs->old, hash, domain, run_id, run);
}

void
known_put(struct known_runs *runs, struct slice run_id, const struct known_run *run)
{
    check(run->id > 0);
    if (run_id.length > RUN_ID_MAX)
        return;
    if (map64_count(runs->young) >= GENERATION_MAX) {
        free_generation(runs->old);
        runs->old = runs->young;
        runs->young = map64_new();
    }
    struct known_entry *known_entry = memory_alloc(sizeof *known_entry);
    known_entry->run = *run;
    known_entry->length = (uint8_t)run_id.length;
    memcpy(known_entry->run_id, run_id.data, run_id.length);
    memory_free(map64_put(runs->young, map_hash(run_id), known_entry));
    check(map64_count(runs->young) <= GENERATION_MAX);
}
