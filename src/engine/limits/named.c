/* named.c - which workflow ids the log has named lately. See inside.h.
 *
 * An operator has to see each id that is above its limit at least once a minute, however long that
 * lasts, and not much more often, even if it comes in bursts and its record is forgotten between
 * them. So what was named is remembered apart from the records. Memory is bounded: the log gets at
 * most LINES_PER_S lines a second, and a name is remembered for NAMED_EVERY. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/limits/inside.h"

#define LINES_PER_S 20 /* of one shard: a storm of many ids must not fill the disk */
#define SECOND      1000000000LL
#define NAMED_EVERY (50 * SECOND) /* less than a minute: the next call may be seconds away */
#define NAMED_MAX   (LINES_PER_S * (NAMED_EVERY / SECOND + 1)) /* the first second has a bucket */

struct named_id {
    struct list node; /* of limits_named->oldest */
    int64_t time;
    size_t key_size;
    char key[]; /* the side, domain id, NUL, workflow id */
};

void
limits_named_init(struct limits_named *named, const struct log *log)
{
    *named = (struct limits_named){.is_silent = log == NULL, .ids = map_new()};
    if (log != NULL)
        named->log = *log;
    named->log.service = "cadence-history";
    list_init(&named->oldest);
    limit_init(&named->lines, LINES_PER_S, 0);
}

static void
forget_oldest(struct limits_named *named)
{
    struct named_id *id = list_entry(named->oldest.next, struct named_id, node);
    check(map_remove(named->ids, slice_of(id->key, id->key_size)) == id);
    list_remove(&id->node);
    memory_free(id);
}

void
limits_named_free(struct limits_named *named)
{
    while (!list_is_empty(&named->oldest))
        forget_oldest(named);
    check(map_count(named->ids) == 0);
    map_free(named->ids);
    buffer_free(&named->key);
}

void
limits_named_tick(struct limits_named *named, int64_t now)
{
    while (!list_is_empty(&named->oldest)) {
        const struct named_id *id = list_entry(named->oldest.next, struct named_id, node);
        check(id->time <= now);
        if (now - id->time < NAMED_EVERY)
            return;
        forget_oldest(named);
    }
}

/* False: it was named lately, or the log has had its lines of this second. */
static bool
remember(struct limits_named *named, struct slice key, int64_t now)
{
    limits_named_tick(named, now);
    if (map_get(named->ids, key) != NULL || limit_take(&named->lines, now) > 0)
        return false;
    struct named_id *id = memory_zalloc(1, sizeof *id + key.length);
    id->time = now;
    id->key_size = key.length;
    memcpy(id->key, key.data, key.length);
    list_init(&id->node);
    list_push_back(&named->oldest, &id->node);
    check(map_put(named->ids, key, id) == NULL);
    check(map_count(named->ids) <= NAMED_MAX);
    return true;
}

void
limits_named_say(struct limits_named *named, enum limits_side side, const struct limits_key *key,
                 bool is_counted, int64_t now)
{
    if (named->is_silent)
        return;
    buffer_clear(&named->key);
    buffer_append_u8(&named->key, (uint8_t)side);
    buffer_append(&named->key, slice_of(key->domain_id, strlen(key->domain_id) + 1));
    buffer_append_text(&named->key, key->workflow_id);
    if (!remember(named, buffer_slice(&named->key), now)) {
        named->left_out += is_counted;
        return;
    }
    log_info(&named->log, "Rate limiting workflowID",
             log_text("request-type", side == LIMITS_EXTERNAL ? "external" : "internal"),
             log_text("wf-domain-id", key->domain_id), log_text("wf-domain-name", key->domain_name),
             log_text("wf-id", key->workflow_id),
             log_number("lines-left-out", (int64_t)named->left_out));
    named->left_out = 0;
}
