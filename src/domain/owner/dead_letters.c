/* dead_letters.c - messages of other clusters that cannot be applied, kept until an operator
 * decides about them. See domains.h.
 *
 * An id is one more than the highest there ever was, which is kept in a row of its own, so that
 * ids do not come back after a purge. Several hosts on one store step by a random distance instead,
 * since writes beside the domains do not fence each other. A message that comes again (its position
 * was not stored before a crash) is found among the newest and not kept twice. */
#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/message.h"

#define LETTERS_COMPARED 100
#define PAGE_ROWS        1000
#define REASONS_MAX      10 /* that one merge tells */
#define STEP_MAX         (1u << 20)

static struct error *
decode_letter(const struct row *row, struct arena *arena, uint64_t *id,
              const STORED(DomainDeadLetter) **letter)
{
    STORED(DomainDeadLetter) *decoded = NULL;
    struct slice key = row->key;
    struct error *err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_dead_letter),
                                          row->value, &decoded);
    if (err != NULL || !key_take_u64(&key, id) || decoded->format != DEAD_LETTER_FORMAT ||
        decoded->task == NULL)
        return error_new(arena, ERR_CORRUPT, "a dead letter of the domains cannot be read");
    *letter = decoded;
    return NULL;
}

/* --- keeping ------------------------------------------------------------------------------------
 */

static bool
is_same_message(const STORED(DomainDeadLetter) *letter, const char *source, struct slice task,
                struct arena *arena)
{
    return strcmp(letter->source, source) == 0 &&
           slice_equal(message_encode(arena, &letter->task->base), task);
}

static struct error *
find_dead_letter(struct domains *domains, const char *source, const ADMIN(ReplicationTask) *task,
                 struct arena *arena, bool *is_found)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_DEAD_LETTER,
                        .rows_max = LETTERS_COMPARED,
                        .is_backward = true};
    struct rows rows;
    struct slice bytes = message_encode(arena, &task->base);
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    *is_found = false;
    for (size_t i = 0; err == NULL && i < rows.count && !*is_found; i++) {
        const STORED(DomainDeadLetter) *letter = NULL;
        uint64_t id = 0;
        err = decode_letter(&rows.row[i], arena, &id, &letter);
        *is_found = err == NULL && is_same_message(letter, source, bytes, arena);
    }
    return err;
}

struct new_dead_letter {
    struct domains *domains;
    STORED(DomainDeadLetter) *letter;
};

static void
fill_letter(void *context, struct batch *batch)
{
    const struct new_dead_letter *new_dead_letter = context;
    struct domains *domains = new_dead_letter->domains;
    bool is_alone = domains->options.refresh_interval == 0;
    check(domains->dead_newest < INT64_MAX - STEP_MAX);
    domains->dead_newest += 1 + (is_alone ? 0 : entropy_below(STEP_MAX));
    batch_put(batch, ROW_DOMAIN_DEAD_LETTER, key_of_number(domains->dead_newest, batch->arena),
              message_encode(batch->arena, &new_dead_letter->letter->base));
    batch_add_position(batch, POSITION_DEAD, (int64_t)domains->dead_newest);
}

struct error *
dead_letter_add(struct domains *domains, const char *source, const ADMIN(ReplicationTask) *task,
                const char *reason, struct arena *arena)
{
    check(source[0] != '\0' && reason[0] != '\0');
    bool is_found = false;
    struct error *err = find_dead_letter(domains, source, task, arena, &is_found);
    if (err != NULL || is_found)
        return err;
    STORED(DomainDeadLetter) *letter = message_new(arena, STORED_TYPE(domain_dead_letter));
    letter->format = DEAD_LETTER_FORMAT;
    letter->source = (char *)source;
    letter->task = (ADMIN(ReplicationTask) *)task;
    letter->reason = (char *)reason;
    letter->parked_time = clock_wall();
    struct new_dead_letter new_dead_letter = {domains, letter};
    log_warn(domains->options.log,
             "A domain change of another cluster cannot be applied; kept as a dead letter.",
             log_text("source-cluster", source), log_text("error", reason));
    return domains_write(domains, fill_letter, &new_dead_letter, arena);
}

uint64_t
domains_newest_dead_letter(const struct domains *domains)
{
    check(route_is_here(owner_of_domains()));
    return domains->dead_newest;
}

/* --- reading, counting --------------------------------------------------------------------------
 */

static struct error *
scan_letters(struct domains *domains, uint64_t after_id, uint64_t to_id, size_t count_max,
             struct arena *arena, struct rows *rows)
{
    *rows = (struct rows){0};
    if (after_id >= to_id)
        return NULL;
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_DEAD_LETTER,
                        .from = key_of_number(after_id + 1, arena),
                        .rows_max = count_max};
    if (to_id < UINT64_MAX)
        scan.to = key_of_number(to_id + 1, arena);
    return store_scan(domains->options.store, &scan, arena, rows);
}

struct error *
domains_read_dead_letters(struct domains *domains, uint64_t after_id, uint64_t to_id,
                          size_t count_max, struct arena *arena,
                          struct domain_dead_letters *letters)
{
    struct rows rows;
    struct error *err = scan_letters(domains, after_id, to_id, count_max, arena, &rows);
    if (err != NULL)
        return err;
    *letters = (struct domain_dead_letters){.count = rows.count, .has_more = rows.has_more};
    letters->id = arena_zalloc(arena, rows.count, sizeof *letters->id);
    letters->letter = arena_zalloc(arena, rows.count, sizeof *letters->letter);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = decode_letter(&rows.row[i], arena, &letters->id[i], &letters->letter[i]);
    return err;
}

struct error *
domains_count_dead_letters(struct domains *domains, struct arena *arena, uint64_t *count)
{
    struct rows rows = {.has_more = true};
    uint64_t after = 0;
    *count = 0;
    while (rows.has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct error *err = scan_letters(domains, after, UINT64_MAX, PAGE_ROWS, page, &rows);
        if (err != NULL)
            return error_copy(arena, err);
        *count += rows.count;
        check(rows.count > 0 || !rows.has_more);
        if (rows.has_more && !key_take_u64(&rows.row[rows.count - 1].key, &after))
            return error_new(arena, ERR_CORRUPT, "the key of a dead letter is not a number");
    }
    return NULL;
}

/* --- purging, merging ---------------------------------------------------------------------------
 */

static void
fill_purge(void *context, struct batch *batch)
{
    const uint64_t *to_id = context;
    struct slice to =
        *to_id < UINT64_MAX ? key_of_number(*to_id + 1, batch->arena) : (struct slice){0};
    batch_delete_range(batch, ROW_DOMAIN_DEAD_LETTER, key_of_number(0, batch->arena), to);
}

struct error *
domains_purge_dead_letters(struct domains *domains, uint64_t to_id, struct arena *arena)
{
    check(route_is_here(owner_of_domains()));
    if (domains->dead_newest == 0)
        return NULL;
    return domains_write(domains, fill_purge, &to_id, arena);
}

/* One letter that stays; `arena` is the caller's. */
static void
note_remaining(struct domain_merged *merged, uint64_t id, const char *source, const char *reason,
               struct arena *arena)
{
    if (merged->left++ < REASONS_MAX)
        merged->reasons =
            arena_format(arena, "%s%smessage %llu of cluster %s: %s", merged->reasons,
                         merged->left == 1 ? "" : " ", (unsigned long long)id, source, reason);
}

/* Tries one page; *after becomes the last id of it. */
static struct error *
merge_page(struct domains *domains, uint64_t *after, uint64_t to_id, struct arena *arena,
           struct arena *result, struct domain_merged *merged, bool *has_more)
{
    struct domain_dead_letters letters;
    struct error *err =
        domains_read_dead_letters(domains, *after, to_id, LETTERS_COMPARED, arena, &letters);
    for (size_t i = 0; err == NULL && i < letters.count; i++) {
        const STORED(DomainDeadLetter) *letter = letters.letter[i];
        const char *reason = NULL;
        check(letters.id[i] > *after && letters.id[i] <= to_id);
        err = apply_try(domains, letter->source, letter->task, letters.id[i], arena, &reason);
        if (err == NULL && reason != NULL)
            note_remaining(merged, letters.id[i], letter->source, reason, result);
        if (err == NULL && reason == NULL) {
            probe("domain_dead_letter_merged");
            merged->applied++;
        }
        *after = letters.id[i];
    }
    *has_more = err == NULL && letters.has_more;
    return err;
}

struct error *
domains_merge_dead_letters(struct domains *domains, uint64_t to_id, struct arena *arena,
                           struct domain_merged *merged)
{
    check(route_is_here(owner_of_domains()));
    uint64_t after = 0;
    bool has_more = true;
    *merged = (struct domain_merged){.reasons = ""};
    while (has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct error *err = merge_page(domains, &after, to_id, page, arena, merged, &has_more);
        if (err != NULL)
            return error_copy(arena, err);
    }
    return NULL;
}
