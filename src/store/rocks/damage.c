/* damage.c - what of the files cannot be read, as far as it is known: reported to operators.
 *
 * RocksDB checks every block and every large value that it reads, and names the table, the offset
 * and the size of a block that is not what was written. Reads note that here, and so does the pass
 * over everything (scrub.c). A place is noted once. How many rows it has is unknown, since they
 * cannot be read: it is estimated from the size of the block and the number of rows of its table.
 * How many runs have rows there is counted by the keys of other rows (damage_runs.c).
 *
 * A place is forgotten when a whole pass did not meet it: its table was replaced. Any thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/rocks/inside.h"

#define LARGE_VALUES "a file of large values"

/* What RocksDB says of a block: "… in PATH/000012.sst offset 4096 size 8177". */
static bool
parse_words(const char *words, struct damage *damage)
{
    const char *end = strstr(words, ".sst offset ");
    if (end == NULL)
        return false;
    const char *name = end;
    while (name > words && name[-1] >= '0' && name[-1] <= '9')
        name--;
    size_t length = (size_t)(end - name) + 4;
    if (length >= sizeof damage->file)
        return false;
    memcpy(damage->file, name, length);
    damage->file[length] = '\0';
    char *rest;
    damage->offset = strtoull(end + 12, &rest, 10);
    damage->bytes = strncmp(rest, " size ", 6) == 0 ? strtoull(rest + 6, NULL, 10) : 0;
    return true;
}

/* About how many rows a block has: as many of its table's as its share of the bytes. */
static uint64_t
estimate_rows(const struct rocks *rocks, const struct damage *damage)
{
    uint64_t rows = 0;
    const rocksdb_livefiles_t *files = rocksdb_livefiles(rocks->tables.db);
    for (int i = 0; i < rocksdb_livefiles_count(files); i++) {
        const char *name = rocksdb_livefiles_name(files, i);
        uint64_t size = rocksdb_livefiles_size(files, i);
        if (strcmp(name + strspn(name, "/"), damage->file) == 0 && size > 0)
            rows = (rocksdb_livefiles_entries(files, i) * damage->bytes + size - 1) / size;
    }
    rocksdb_livefiles_destroy(files);
    return rows;
}

/* What rows are there: those of the row before it, as far as is known. */
static void
describe_rows(struct slice before, struct damage *damage)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    unsigned kind;
    struct partition partition;
    if (before.length == 0 || layout_take(&before, arena, &kind, &partition) != NULL)
        return;
    const char *name = kind == LAYOUT_GUARD ? "guard" : row_traits(kind)->name;
    snprintf(damage->rows_of, sizeof damage->rows_of, "%s, %s", name,
             partition_name(partition, arena));
}

static struct damage *
find_location(struct damages *damages, const struct damage *damage)
{
    for (size_t i = 0; i < damages->count; i++) {
        struct damage *known = &damages->location[i];
        if (known->offset == damage->offset && strcmp(known->file, damage->file) == 0)
            return known;
    }
    return NULL;
}

static void
count_locations(struct rocks *rocks)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < rocks->damages.count; i++)
        rows += rocks->damages.location[i].rows;
    gauge_set(rocks->metrics.damaged_places, (int64_t)rocks->damages.count);
    gauge_set(rocks->metrics.damaged_rows, (int64_t)rows);
}

static void
add_knowledge(struct damage *known, const struct damage *damage)
{
    known->has_range = true;
    known->range = damage->range;
    memcpy(known->rows_of, damage->rows_of, sizeof known->rows_of);
}

/* True: it was not known. */
static bool
add_location(struct rocks *rocks, const struct damage *damage)
{
    struct damages *damages = &rocks->damages;
    lock_take(&damages->lock);
    struct damage *known = find_location(damages, damage);
    if (known != NULL)
        known->pass = damages->pass;
    if (known != NULL && damage->has_range) /* a read does not know */
        add_knowledge(known, damage);
    bool is_new = known == NULL && damages->count < ROCKS_DAMAGES_MAX;
    if (is_new)
        damages->location[damages->count++] = *damage;
    count_locations(rocks);
    lock_leave(&damages->lock);
    return is_new;
}

void
damage_note(struct rocks *rocks, const char *words, struct slice before,
            const struct damage_range *range, uint64_t location)
{
    struct damage damage = {.pass = rocks->damages.pass, .has_range = range != NULL};
    if (range != NULL)
        damage.range = *range;
    if (strncmp(words, "Corruption", 10) != 0)
        return;
    if (!parse_words(words, &damage)) {
        if (location == 0)
            return; /* a large value that a call met: the pass will find it */
        memcpy(damage.file, LARGE_VALUES, sizeof LARGE_VALUES);
        damage.offset = location;
        damage.rows = 1;
    } else {
        damage.rows = estimate_rows(rocks, &damage);
    }
    describe_rows(before, &damage);
    if (!add_location(rocks, &damage))
        return;
    log_fail(rocks->log,
             "A part of the store cannot be read: it is damaged. Calls about its "
             "rows fail, all others go on. Restore a backup, or take what other "
             "clusters have.",
             log_text("file", damage.file), log_number("offset", (int64_t)damage.offset),
             log_number("bytes", (int64_t)damage.bytes),
             log_number("rows-about", (int64_t)damage.rows), log_text("rows-of", damage.rows_of),
             log_text("words", words));
}

void
damage_read_failed(struct rocks *rocks, const char *words)
{
    if (strncmp(words, "Corruption", 10) != 0)
        return;
    counter_add(rocks->metrics.damaged_reads, 1);
    damage_note(rocks, words, slice_of(NULL, 0), NULL, 0);
}

void
damage_pass_over(struct rocks *rocks)
{
    struct damages *damages = &rocks->damages;
    lock_take(&damages->lock);
    size_t kept = 0;
    for (size_t i = 0; i < damages->count; i++)
        if (damages->location[i].pass == damages->pass)
            damages->location[kept++] = damages->location[i];
    damages->count = kept;
    damages->pass++;
    count_locations(rocks);
    lock_leave(&damages->lock);
}

/* --- telling ---------------------------------------------------------------------------------- */

/* One file of the list: all its places, from `first` on. */
static const char *
describe_file(const struct damages *damages, size_t first, struct arena *arena)
{
    const struct damage *of = &damages->location[first];
    uint64_t places = 0, rows = 0;
    for (size_t i = first; i < damages->count; i++) {
        bool is_same = strcmp(damages->location[i].file, of->file) == 0;
        places += is_same;
        rows += is_same ? damages->location[i].rows : 0;
    }
    return arena_format(arena, "%s (%" PRIu64 " %s, about %" PRIu64 " rows%s%s)", of->file, places,
                        places == 1 ? "place" : "places", rows, of->rows_of[0] == '\0' ? "" : ": ",
                        of->rows_of);
}

static bool
is_first_of_file(const struct damages *damages, size_t location)
{
    for (size_t i = 0; i < location; i++)
        if (strcmp(damages->location[i].file, damages->location[location].file) == 0)
            return false;
    return true;
}

const char *
rocks_damage(const struct store *store, struct arena *arena)
{
    struct damages *damages = &rocks_of(store)->damages;
    const char *text = NULL;
    lock_take(&damages->lock);
    for (size_t i = 0; i < damages->count; i++)
        if (is_first_of_file(damages, i))
            text = arena_format(arena, "%s%s%s", text == NULL ? "" : text, text == NULL ? "" : "; ",
                                describe_file(damages, i, arena));
    if (text != NULL)
        text =
            arena_format(arena, "Parts of the store are damaged and cannot be read: %s%s%s", text,
                         damages->count == ROCKS_DAMAGES_MAX ? "; and perhaps more" : "",
                         damages->has_runs
                             ? arena_format(arena, "; %" PRIu64 " runs at the most have rows there",
                                            damages->runs)
                             : "");
    lock_leave(&damages->lock);
    return text;
}
