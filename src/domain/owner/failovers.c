/* failovers.c - the history of failovers, newest first. See domains.h.
 *
 * A failover is entered with the change that it is. One that came too late changes nothing and is
 * entered on its own, unless the history has it already: then it came again, and all that may be
 * new in it is how graceful failovers ended.
 *
 * A page token is the rest of the last row's key behind the domain's id. */
#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/message.h"

/* --- reading ------------------------------------------------------------------------------------
 */

static bool
is_token(struct slice token, struct arena *arena)
{
    uint64_t number = 0;
    struct slice id;
    return key_take_u64(&token, &number) && key_take_u64(&token, &number) &&
           key_take_text(&token, arena, &id) && token.length == 0;
}

static struct slice
join(struct slice one, struct slice other, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, one.length + other.length);
    memcpy(bytes, one.data, one.length);
    memcpy(bytes + one.length, other.data, other.length);
    return slice_of(bytes, one.length + other.length);
}

static struct error *
decode_failover(struct slice bytes, struct arena *arena, const STORED(FailoverRecord) **failover)
{
    STORED(FailoverRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(failover_record), bytes, &record);
    if (err != NULL || record->format != FAILOVER_RECORD_FORMAT)
        return error_new(arena, ERR_CORRUPT, "a row of the failover history cannot be read");
    *failover = record;
    return NULL;
}

struct error *
domains_list_failovers(struct domains *domains, const char *domain_id, struct slice token,
                       size_t count_max, struct arena *arena, struct domain_failovers *failovers)
{
    check(count_max > 0);
    if (token.length > 0 && !is_token(token, arena))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    struct slice prefix = key_of_text(domain_id, arena);
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_FAILOVER,
                        .from = token.length > 0 ? key_after(join(prefix, token, arena), arena)
                                                 : prefix,
                        .to = key_after_prefix(prefix, arena),
                        .rows_max = count_max};
    struct rows rows;
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    *failovers = (struct domain_failovers){.count = rows.count};
    failovers->failover = arena_zalloc(arena, rows.count, sizeof *failovers->failover);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = decode_failover(rows.row[i].value, arena, &failovers->failover[i]);
    if (err == NULL && rows.has_more) {
        check(rows.count > 0);
        struct slice key = rows.row[rows.count - 1].key;
        failovers->token = slice_of(key.data + prefix.length, key.length - prefix.length);
    }
    return err;
}

/* --- how graceful failovers ended ---------------------------------------------------------------
 */

/* Does the entry say how a drain of it ended? */
static bool
has_outcome(const STORED(FailoverRecord) *failover, const char *scope, const char *name)
{
    for (size_t i = 0; i < failover->n_outcomes; i++) {
        const STORED(DrainOutcome) *outcome = failover->outcomes[i];
        if (strcmp(outcome->scope, scope) == 0 && strcmp(outcome->name, name) == 0)
            return true;
    }
    return false;
}

static void
add_outcome(STORED(FailoverRecord) *failover, STORED(DrainOutcome) *outcome, struct arena *arena)
{
    check(!CHECK_DEEPLY || !has_outcome(failover, outcome->scope, outcome->name));
    STORED(DrainOutcome) **all =
        arena_zalloc(arena, failover->n_outcomes + 1, sizeof(STORED(DrainOutcome) *));
    for (size_t i = 0; i < failover->n_outcomes; i++)
        all[i] = failover->outcomes[i];
    all[failover->n_outcomes++] = outcome;
    failover->outcomes = all;
}

struct error *
domains_find_drained(struct domains *domains, const char *domain_id, const STORED(Drain) *drain,
                     STORED(DrainOutcome) *outcome, struct arena *arena,
                     STORED(FailoverRecord) **failover)
{
    STORED(FailoverRecord) named = {.domain_id = (char *)domain_id,
                                    .failover_version = drain->domain_failover_version,
                                    .created_time = drain->start_time,
                                    .id = drain->failover_id};
    bool is_found = false;
    struct slice bytes;
    *failover = NULL;
    struct error *err = store_get(domains->options.store, PARTITION_OF_DOMAINS, ROW_DOMAIN_FAILOVER,
                                  failover_key(&named, arena), arena, &is_found, &bytes);
    if (err != NULL || !is_found)
        return err;
    STORED(FailoverRecord) *record = NULL;
    err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(failover_record), bytes, &record);
    if (err != NULL || has_outcome(record, drain->scope, drain->name))
        return err;
    add_outcome(record, outcome, arena);
    *failover = record;
    return NULL;
}

/* --- entering -----------------------------------------------------------------------------------
 */

static void
fill_failover(void *context, struct batch *batch)
{
    batch_add_failover(batch, context);
}

/* Adds the outcomes of drains that were not known; false: there are none. */
static bool
add_ends(STORED(FailoverRecord) *known, const STORED(FailoverRecord) *replicated,
         struct arena *arena)
{
    bool is_new = false;
    check(known->failover_version == replicated->failover_version);
    for (size_t i = 0; i < replicated->n_outcomes; i++) {
        STORED(DrainOutcome) *outcome = replicated->outcomes[i];
        if (has_outcome(known, outcome->scope, outcome->name))
            continue;
        add_outcome(known, outcome, arena);
        is_new = true;
    }
    return is_new;
}

struct error *
failovers_enter_late(struct domains *domains, const STORED(FailoverRecord) *failover,
                     struct arena *arena)
{
    bool is_known = false;
    struct slice bytes;
    struct error *err = store_get(domains->options.store, PARTITION_OF_DOMAINS, ROW_DOMAIN_FAILOVER,
                                  failover_key(failover, arena), arena, &is_known, &bytes);
    if (err != NULL)
        return err;
    if (!is_known) {
        probe(failover->is_superseded ? "failover_superseded" : "failover_entered_late");
        return domains_write(domains, fill_failover, (void *)failover, arena);
    }
    const STORED(FailoverRecord) *known = NULL;
    err = decode_failover(bytes, arena, &known);
    if (err != NULL || !add_ends((STORED(FailoverRecord) *)known, failover, arena))
        return err;
    probe("failover_end_entered_late");
    return domains_write(domains, fill_failover, (void *)known, arena);
}
