/* limits.c - records of workflow ids that are in use. See limits.h.
 *
 * Invariants, asserted by limits_check:
 *   1. Every record is in `by_key` and in `used`, the longest unused first; there are records_max
 * at most.
 *   2. A record's domain is in `domains`, and counts it.
 *   3. A side that was never used counts nothing. */
#include "engine/limits/limits.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/limit.h"
#include "base/memory.h"
#include "engine/limits/inside.h"
#include "fiber/probe.h"

#define RECORDS_MAX 16384 /* per shard: ids that may be used within one second */
#define PUSHED_OF   8     /* so many of the longest unused are looked at to push one out */
#define SECOND      1000000000LL

struct record_side {
    struct limit bucket;
    int64_t second; /* which one `count` is of */
    uint32_t count, count_before;
    int64_t limited_second; /* when one was last held off, or would have been */
    bool is_used;
    bool is_new; /* its bucket is not made yet */
};

struct record {
    struct list node; /* of limits->used */
    int64_t used;     /* monotonic */
    struct limits_domain *domain;
    const char *workflow_id;
    struct record_side sides[LIMITS_SIDES];
    char key[]; /* domain id, NUL, workflow id, NUL */
};

struct id_limits {
    struct limits_options options;
    struct map *by_key;  /* domain id, NUL, workflow id → struct record */
    struct map *domains; /* id → struct limits_domain */
    struct list used;
    struct buffer key; /* of the record that is looked for */
    struct limits_named named;
};

struct side_keys {
    enum dynamic_key rate, is_collected, is_enforced;
};
static const struct side_keys side_keys[LIMITS_SIDES] = {
    [LIMITS_EXTERNAL] = {DYNAMIC_WORKFLOW_ID_EXTERNAL_RPS, DYNAMIC_WORKFLOW_ID_EXTERNAL_COLLECTED,
                         DYNAMIC_WORKFLOW_ID_EXTERNAL_ENFORCED},
    [LIMITS_INTERNAL] = {DYNAMIC_WORKFLOW_ID_INTERNAL_RPS, DYNAMIC_WORKFLOW_ID_INTERNAL_COLLECTED,
                         DYNAMIC_WORKFLOW_ID_INTERNAL_ENFORCED},
};

/* --- records ---- */

static struct slice
record_key(const struct record *record)
{
    const char *end = record->workflow_id + strlen(record->workflow_id);
    return slice_of(record->key, (size_t)(end - record->key));
}

static void
record_check(const struct id_limits *limits, const struct record *record)
{
    check(map_get(limits->by_key, record_key(record)) == record);
    check(map_get(limits->domains, slice_text(record->key)) == record->domain);
    check(record->domain->record_count > 0);
    for (int side = 0; side < LIMITS_SIDES; side++)
        check(record->sides[side].is_used || record->sides[side].count == 0);
}

/* Walks over all records where CHECK_DEEPLY says so: with each tick, not with each call. */
static void
limits_check(const struct id_limits *limits)
{
    size_t count = 0;
    int64_t used = INT64_MIN;
    check(map_count(limits->by_key) <= limits->options.records_max);
    check(list_is_empty(&limits->used) == (map_count(limits->by_key) == 0));
    check(map_count(limits->domains) > 0 || map_count(limits->by_key) == 0);
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &limits->used) {
        const struct record *record = list_entry(node, struct record, node);
        check(record->used >= used);
        used = record->used;
        record_check(limits, record);
        count++;
    }
    check(count == map_count(limits->by_key));
}

struct id_limits *
limits_new(const struct limits_options *options)
{
    struct id_limits *limits = memory_zalloc(1, sizeof *limits);
    limits->options = *options;
    if (limits->options.records_max == 0)
        limits->options.records_max = RECORDS_MAX;
    limits_named_init(&limits->named, options->log);
    limits->by_key = map_new();
    limits->domains = map_new();
    list_init(&limits->used);
    return limits;
}

/* A second of a record is over: its count goes to the metrics. */
static void
side_end_second(struct record *record, enum limits_side side, int64_t second)
{
    struct record_side *its = &record->sides[side];
    if (its->second == second)
        return;
    check(its->second < second);
    if (its->count > 0)
        limits_domain_observe(record->domain, side, its->second, its->count);
    its->count_before = its->second + 1 == second ? its->count : 0;
    its->count = 0;
    its->second = second;
}

static void
record_forget(struct id_limits *limits, struct record *record)
{
    for (int side = 0; side < LIMITS_SIDES; side++)
        if (record->sides[side].is_used)
            side_end_second(record, (enum limits_side)side, record->sides[side].second + 1);
    check(map_remove(limits->by_key, record_key(record)) == record);
    list_remove(&record->node);
    check(record->domain->record_count > 0);
    record->domain->record_count--;
    memory_free(record);
}

void
limits_free(struct id_limits *limits)
{
    if (limits == NULL)
        return;
    limits_check(limits);
    while (!list_is_empty(&limits->used))
        record_forget(limits, list_entry(limits->used.next, struct record, node));
    check(map_count(limits->by_key) == 0);
    size_t cursor = 0;
    void *domain;
    while (map_next(limits->domains, &cursor, NULL, &domain))
        limits_domain_free(domain);
    map_free(limits->domains);
    map_free(limits->by_key);
    buffer_free(&limits->key);
    limits_named_free(&limits->named);
    memory_free(limits);
}

/* The tokens that an id gains if it is forgotten now. */
static double
record_worth(const struct record *record, int64_t now)
{
    double worth = 0;
    for (int side = 0; side < LIMITS_SIDES; side++) {
        const struct record_side *its = &record->sides[side];
        double missing = its->is_used && !its->is_new ? limit_missing(&its->bucket, now) : 0;
        worth = missing > worth ? missing : worth;
    }
    return worth;
}

/* Of the longest unused the one with the fullest bucket goes: an id at its limit must not start
 * with a full bucket again because many others came. */
static void
push_out(struct id_limits *limits, int64_t now)
{
    struct record *pushed = NULL;
    int looked = 0;
    probe("limits_record_pushed_out");
    list_each(node, &limits->used) {
        struct record *record = list_entry(node, struct record, node);
        if (pushed == NULL || record_worth(record, now) < record_worth(pushed, now))
            pushed = record;
        if (++looked == PUSHED_OF)
            break;
    }
    record_forget(limits, pushed);
    check(map_count(limits->by_key) < limits->options.records_max);
}

static struct record *
record_new(struct id_limits *limits, const struct limits_key *key, struct slice bytes, int64_t now)
{
    if (map_count(limits->by_key) >= limits->options.records_max)
        push_out(limits, now);
    struct limits_domain *domain = map_get(limits->domains, slice_text(key->domain_id));
    if (domain == NULL) {
        domain = limits_domain_new(limits->options.metrics, key->domain_name);
        map_put(limits->domains, slice_text(key->domain_id), domain);
    }
    struct record *record = memory_zalloc(1, sizeof *record + bytes.length + 1);
    memcpy(record->key, bytes.data, bytes.length);
    record->workflow_id = record->key + strlen(key->domain_id) + 1;
    record->domain = domain;
    record->used = now;
    domain->record_count++;
    list_init(&record->node);
    check(map_put(limits->by_key, bytes, record) == NULL);
    return record;
}

static struct record *
record_find(struct id_limits *limits, const struct limits_key *key, int64_t now)
{
    buffer_clear(&limits->key);
    buffer_append(&limits->key, slice_of(key->domain_id, strlen(key->domain_id) + 1));
    buffer_append_text(&limits->key, key->workflow_id);
    struct record *record = map_get(limits->by_key, buffer_slice(&limits->key));
    if (record == NULL)
        record = record_new(limits, key, buffer_slice(&limits->key), now);
    list_remove(&record->node);
    check(list_is_empty(&limits->used) ||
          now >= list_entry(limits->used.prev, struct record, node)->used); /* rule 1 */
    list_push_back(&limits->used, &record->node);
    check(now >= record->used);
    record->used = now;
    return record;
}

/* --- taking ---- */

/* What the domain's settings say at this moment. */
struct terms {
    bool is_collected, is_enforced;
    int64_t rate;
};

static struct terms
terms_of(const struct id_limits *limits, enum limits_side side, const char *domain_name)
{
    const struct dynamic *dynamic = limits->options.dynamic;
    const struct side_keys *keys = &side_keys[side];
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name;
    return (struct terms){.is_collected = dynamic_flag(dynamic, keys->is_collected, &filter),
                          .is_enforced = dynamic_flag(dynamic, keys->is_enforced, &filter),
                          .rate = dynamic_integer(dynamic, keys->rate, &filter)};
}

/* The record, with a count of this second. */
static struct record *
record_use(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
           int64_t now)
{
    struct record *record = record_find(limits, key, now);
    struct record_side *its = &record->sides[side];
    if (!its->is_used) {
        its->second = now / SECOND;
        its->limited_second = INT64_MIN;
        its->is_new = true;
    }
    its->is_used = true;
    side_end_second(record, side, now / SECOND);
    check(its->second == now / SECOND);
    return record;
}

/* The bucket, with the rate that holds now; a new one is full. */
static struct limit *
side_bucket(struct record_side *side, int64_t rate, int64_t now)
{
    if (side->is_new)
        limit_init(&side->bucket, (double)rate, now);
    else if (side->bucket.rate != (double)rate)
        limit_set_rate(&side->bucket, (double)rate, now);
    side->is_new = false;
    return &side->bucket;
}

enum taking {
    TAKING,       /* one more */
    TAKING_AGAIN, /* it was counted before */
    TAKING_FREE,  /* one more, unless it would be held off */
};

static int64_t
held_off(enum limits_side side, int64_t wait)
{
    check(wait > 0);
    probe(side == LIMITS_EXTERNAL ? "limits_call_refused" : "limits_task_delayed");
    return wait < LIMITS_KEPT ? wait : LIMITS_KEPT;
}

static int64_t
take(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
     enum taking taking, int64_t now)
{
    struct terms terms = terms_of(limits, side, key->domain_name);
    if (!terms.is_collected || (taking == TAKING_AGAIN && !terms.is_enforced))
        return 0;
    struct record *record = record_use(limits, side, key, now);
    struct limit *bucket = side_bucket(&record->sides[side], terms.rate, now);
    if (taking == TAKING_FREE && terms.is_enforced && !limit_has(bucket, now))
        return LIMITS_KEPT;
    record->sides[side].count += taking != TAKING_AGAIN;
    int64_t wait = limit_take(bucket, now);
    if (wait == 0)
        return 0;
    record->sides[side].limited_second = now / SECOND;
    if (taking != TAKING_AGAIN)
        limits_domain_count_limited(record->domain, side);
    limits_named_say(&limits->named, side, key, taking != TAKING_AGAIN, now);
    if (terms.is_enforced)
        return held_off(side, wait);
    probe("limits_shadow");
    return 0;
}

int64_t
limits_take(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
            int64_t now)
{
    return take(limits, side, key, TAKING, now);
}

int64_t
limits_take_again(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
                  int64_t now)
{
    return take(limits, side, key, TAKING_AGAIN, now);
}

bool
limits_take_free(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
                 int64_t now)
{
    return take(limits, side, key, TAKING_FREE, now) == 0;
}

void
limits_count(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
             int64_t now)
{
    if (!terms_of(limits, side, key->domain_name).is_collected)
        return;
    struct record *record = record_use(limits, side, key, now);
    record->sides[side].count++;
    limits_domain_count_limited(record->domain, side);
    limits_named_say(&limits->named, side, key, true, now);
}

/* --- time ---- */

static void
forget_unused(struct id_limits *limits, int64_t now)
{
    while (!list_is_empty(&limits->used)) {
        struct record *record = list_entry(limits->used.next, struct record, node);
        if (now - record->used <= LIMITS_KEPT)
            return;
        record_forget(limits, record);
    }
}

void
limits_tick(struct id_limits *limits, int64_t now)
{
    forget_unused(limits, now);
    limits_named_tick(&limits->named, now);
    limits_check(limits);
    size_t cursor = 0;
    struct slice id;
    void *value;
    while (map_next(limits->domains, &cursor, &id, &value)) {
        struct limits_domain *domain = value;
        limits_domain_tick(domain, now / SECOND);
        if (domain->record_count == 0 && limits_domain_is_quiet(domain)) {
            map_remove(limits->domains, id);
            limits_domain_free(domain);
        }
    }
}

bool
limits_is_idle(const struct id_limits *limits)
{
    return map_count(limits->domains) == 0;
}

/* --- the hottest ---- */

static uint32_t
rate_of(const struct record_side *side, int64_t second)
{
    if (!side->is_used || side->second + 1 < second)
        return 0;
    if (side->second < second)
        return side->count;
    return side->count > side->count_before ? side->count : side->count_before;
}

uint32_t
limits_hotter(const struct limits_rate *rate)
{
    const uint32_t *both = rate->rate;
    return both[LIMITS_EXTERNAL] > both[LIMITS_INTERNAL] ? both[LIMITS_EXTERNAL]
                                                         : both[LIMITS_INTERNAL];
}

/* Insertion into the few that are kept. */
static void
keep_hottest(struct limits_rate *rates, size_t *count, size_t count_max,
             const struct limits_rate *rate)
{
    size_t place = count_max - 1;
    if (*count < count_max)
        place = (*count)++;
    else if (limits_hotter(&rates[place]) >= limits_hotter(rate))
        return;
    for (; place > 0 && limits_hotter(&rates[place - 1]) < limits_hotter(rate); place--)
        rates[place] = rates[place - 1];
    check(place < *count && *count <= count_max);
    rates[place] = *rate;
}

static struct limits_rate
record_rate(const struct record *record, int64_t second)
{
    struct limits_rate rate = {.domain_id = record->key,
                               .domain_name = record->domain->name,
                               .workflow_id = record->workflow_id};
    for (int side = 0; side < LIMITS_SIDES; side++) {
        const struct record_side *its = &record->sides[side];
        rate.rate[side] = rate_of(its, second);
        rate.is_limited[side] = its->is_used && its->limited_second >= second - 1;
    }
    return rate;
}

size_t
limits_hottest(const struct id_limits *limits, const char *domain_id, int64_t now, size_t count_max,
               struct arena *arena, struct limits_rate **rates)
{
    check(count_max > 0);
    size_t count = 0;
    *rates = arena_zalloc(arena, count_max, sizeof **rates);
    list_each(node, &limits->used) {
        const struct record *record = list_entry(node, struct record, node);
        if (domain_id != NULL && strcmp(record->key, domain_id) != 0)
            continue;
        struct limits_rate rate = record_rate(record, now / SECOND);
        if (limits_hotter(&rate) > 0)
            keep_hottest(*rates, &count, count_max, &rate);
    }
    for (size_t i = 0; i < count; i++) {
        struct limits_rate *rate = &(*rates)[i];
        rate->domain_id = arena_text(arena, rate->domain_id);
        rate->domain_name = arena_text(arena, rate->domain_name);
        rate->workflow_id = arena_text(arena, rate->workflow_id);
    }
    return count;
}
