/* follow.c - how far each log was followed: the followers of ours, and our positions in the logs of
 * other clusters. See domains.h.
 *
 * The log is trimmed with the writes that are made anyway, a hundred rows at a time, up to the
 * lowest follower. The newest rows stay in any case: hosts on the same store read them instead of
 * everything (reload.c). */
#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"
#include "store/key.h"
#include "wire/message.h"

#define ROWS_KEPT     100 /* of the log, though everybody has handled them */
#define ROWS_TRIMMED  100 /* at once, at least */
#define FOLLOWER      "follower:"
#define FROM          "from:"
#define CLUSTER       "cluster:"
#define POSITIONS_MAX 10000

/* --- what the store has -------------------------------------------------------------------------
 */

static void
set_follower(struct domains *domains, const char *name, uint64_t handled)
{
    struct log_follower *log_follower = map_get(domains->followers, slice_text(name));
    if (log_follower == NULL) {
        log_follower = memory_zalloc(1, sizeof *log_follower);
        map_put(domains->followers, slice_text(name), log_follower);
    }
    log_follower->handled = handled;
}

static struct error *
take_position(struct domains *domains, const struct row *row, struct arena *arena)
{
    struct slice key = row->key, name;
    STORED(DomainPosition) *position = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_position), row->value, &position);
    if (err != NULL || !key_take_text(&key, arena, &name) || position->format != POSITION_FORMAT)
        return error_new(arena, ERR_CORRUPT, "a position of the domains cannot be read");
    const char *text = arena_text_of(arena, name);
    if (strncmp(text, FOLLOWER, strlen(FOLLOWER)) == 0)
        set_follower(domains, text + strlen(FOLLOWER), (uint64_t)position->handled);
    if (strcmp(text, POSITION_DEAD) == 0)
        domains->dead_newest = (uint64_t)position->handled;
    return NULL;
}

struct error *
follow_read(struct domains *domains, struct arena *arena)
{
    struct scan scan = {
        .partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN_POSITION, .rows_max = POSITIONS_MAX};
    struct rows rows;
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = take_position(domains, &rows.row[i], arena);
    return err;
}

void
follow_free(struct domains *domains)
{
    void *log_follower = NULL;
    size_t cursor = 0;
    while (map_next(domains->followers, &cursor, NULL, &log_follower))
        memory_free(log_follower);
    map_free(domains->followers);
}

/* --- followers of our log -----------------------------------------------------------------------
 */

/* How far all enabled clusters of the group are, including those that this one has never heard
 * from: they must not miss anything. */
static uint64_t
lowest_cluster(const struct domains *domains, struct arena *arena)
{
    const struct cluster_group *group = domains->options.group;
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        if (cluster == group->current || !cluster->is_enabled)
            continue;
        int64_t handled =
            domains_follower_position(domains, arena_format(arena, CLUSTER "%s", cluster->name));
        uint64_t known = handled < 0 ? 0 : (uint64_t)handled;
        lowest = known < lowest ? known : lowest;
    }
    return lowest;
}

/* The same, with all other followers. A cluster that left the group, or was switched off, is not
 * waited for. */
static uint64_t
lowest_follower(const struct domains *domains, struct arena *arena)
{
    uint64_t lowest = lowest_cluster(domains, arena);
    struct slice name;
    void *value = NULL;
    size_t cursor = 0;
    while (map_next(domains->followers, &cursor, &name, &value)) {
        const struct log_follower *log_follower = value;
        bool is_cluster = slice_starts_with(name, slice_text(CLUSTER));
        if (!is_cluster && log_follower->handled < lowest)
            lowest = log_follower->handled;
    }
    return lowest;
}

void
follow_trim(struct domains *domains, struct batch *batch)
{
    uint64_t guard = writer_guard(domains->writer);
    check(domains->log_floor <= guard);
    if (guard < domains->log_floor + ROWS_KEPT + ROWS_TRIMMED)
        return;
    uint64_t lowest = lowest_follower(domains, batch->arena);
    uint64_t to = lowest < guard - ROWS_KEPT ? lowest : guard - ROWS_KEPT;
    check(to + ROWS_KEPT <= guard);
    if (to < domains->log_floor + ROWS_TRIMMED)
        return;
    batch_delete_range(batch, ROW_DOMAIN_LOG, key_of_number(0, batch->arena),
                       key_of_number(to + 1, batch->arena));
    domains->log_floor = to; /* if this batch fails, it is read again */
}

struct position_update {
    struct domains *domains;
    const char *name;
    int64_t handled;
};

static void
fill_follower(void *context, struct batch *batch)
{
    const struct position_update *position_update = context;
    set_follower(position_update->domains, position_update->name,
                 (uint64_t)position_update->handled);
    batch_add_position(batch, arena_format(batch->arena, FOLLOWER "%s", position_update->name),
                       position_update->handled);
    follow_trim(position_update->domains, batch);
}

struct error *
domains_set_follower_position(struct domains *domains, const char *log_follower, uint64_t handled,
                              struct arena *arena)
{
    check(route_is_here(owner_of_domains()));
    check(log_follower[0] != '\0');
    uint64_t known = handled < domains->durable ? handled : domains->durable;
    const struct log_follower *before = map_get(domains->followers, slice_text(log_follower));
    if (known == 0 || (before != NULL && before->handled >= known))
        return domains_wait_newest(domains, arena);
    if (domains->options.refresh_interval >
        0) { /* other hosts have followers that we do not know */
        struct error *err = follow_read(domains, arena);
        if (err != NULL)
            return err;
    }
    struct position_update position_update = {domains, log_follower, (int64_t)known};
    return domains_write(domains, fill_follower, &position_update, arena);
}

static struct error *
serve_note_follower(void *domains, struct owner owner, const void *argument, struct arena *arena,
                    void *answer)
{
    const INTERNAL(FollowerPosition) *position = argument;
    int64_t before = domains_follower_position(domains, position->follower);
    if (before >= 0 && position->handled < (uint64_t)before + position->distance)
        return NULL;
    return domains_set_follower_position(domains, position->follower, position->handled, arena);
}

/* Lost: the next one says it; meanwhile the log is kept for longer than it has to be. Twice: the
 * position is there already. */
static const struct route_question note_follower_question = {
    .name = "domains.note_follower",
    .request = INTERNAL_TYPE(follower_position),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_note_follower,
    .may_come_twice = true,
};

struct error *
domains_note_follower(struct domains *domains, const char *log_follower, uint64_t handled,
                      uint64_t distance, struct arena *arena)
{
    INTERNAL(FollowerPosition) position = INTERNAL_VALUE(FOLLOWER_POSITION__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    position.follower = (char *)log_follower;
    position.handled = handled;
    position.distance = distance;
    return domains_ask(domains, &note_follower_question, &position, arena, &answer);
}

int64_t
domains_follower_position(const struct domains *domains, const char *log_follower)
{
    check(route_is_here(owner_of_domains()));
    const struct log_follower *known = map_get(domains->followers, slice_text(log_follower));
    return known == NULL ? -1 : (int64_t)known->handled;
}

bool
domains_follower_begins(struct domains *domains, const char *follower, int64_t retrieved)
{
    check(route_is_here(owner_of_domains()));
    struct log_follower *known = map_get(domains->followers, slice_text(follower));
    if (!domains->options.is_catching_up)
        return false;
    bool is_told =
        known != NULL && known->is_given && retrieved >= 0 && (uint64_t)retrieved == known->given;
    if (is_told)
        known->has_begun = true;
    return !is_told;
}

void
domains_note_given(struct domains *domains, const char *follower, uint64_t given)
{
    check(route_is_here(owner_of_domains()));
    if (!domains->options.is_catching_up)
        return;
    if (map_get(domains->followers, slice_text(follower)) == NULL)
        set_follower(domains, follower, 0);
    struct log_follower *known = map_get(domains->followers, slice_text(follower));
    known->is_given = true;
    known->given = given;
}

bool
domains_follower_has_begun(const struct domains *domains, const char *follower)
{
    const struct log_follower *known = map_get(domains->followers, slice_text(follower));
    return known != NULL && known->has_begun;
}

/* --- our places in the logs of others -----------------------------------------------------------
 */

struct error *
domains_position(struct domains *domains, const char *source, struct arena *arena, int64_t *handled)
{
    check(route_is_here(owner_of_domains()) && source[0] != '\0');
    bool is_found = false;
    struct slice bytes;
    struct slice key = key_of_text(arena_format(arena, FROM "%s", source), arena);
    *handled = -1;
    struct error *err = store_get(domains->options.store, PARTITION_OF_DOMAINS, ROW_DOMAIN_POSITION,
                                  key, arena, &is_found, &bytes);
    if (err != NULL || !is_found)
        return err;
    STORED(DomainPosition) *position = NULL;
    err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_position), bytes, &position);
    if (err != NULL || position->format != POSITION_FORMAT)
        return error_new(arena, ERR_CORRUPT, "the position in the log of %s cannot be read",
                         source);
    *handled = position->handled;
    return NULL;
}

static void
fill_position(void *context, struct batch *batch)
{
    const struct position_update *position_update = context;
    batch_add_position(batch, arena_format(batch->arena, FROM "%s", position_update->name),
                       position_update->handled);
}

struct error *
domains_set_position(struct domains *domains, const char *source, int64_t handled,
                     struct arena *arena)
{
    check(route_is_here(owner_of_domains()) && source[0] != '\0');
    if (domains->durable ==
        0) /* an empty cluster: starting again costs nothing, a write would count */
        return NULL;
    struct position_update position_update = {domains, source, handled};
    return domains_write(domains, fill_position, &position_update, arena);
}
