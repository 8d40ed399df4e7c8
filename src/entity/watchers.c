/* watchers.c - see watchers.h. */
#include "entity/watchers.h"

#include <stdio.h>

#include "base/check.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/vector.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "entity/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "fiber/tls.h"
#include "route/ask.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAUSE_MIN    (200 * NS_PER_MS)
#define PAUSE_MAX    (2 * NS_PER_S) /* a source that was repaired is followed again soon */
#define PAGE_ROWS    1000
#define FAILURE_SIZE 512

/* The plugins: a new one is a row here, a word in entities.types.*.watcher and a function. */
static const struct watcher_kind kinds[] = {
    {"file", watch_file},
    {"http", watch_http},
};

struct watcher {
    struct watchers *watchers;
    struct watch_source source;
    const struct watcher_kind *kind; /* NULL: nothing to do */
    struct fiber *fiber;             /* NULL: does not run here */
    char failure[FAILURE_SIZE];
    uint64_t failures, changes;
    int64_t success_time;
    int64_t pause;
    struct counter *failure_counter, *change_counter;
};

struct watchers {
    struct watchers_options options;
    struct route_service service;
    struct latch fibers;
    bool is_stopping;
    struct watcher all[]; /* one per type */
};

/* --- applying what a source says -------------------------------------------------------------- */

struct source_changes {
    struct arena *arena;
    vector_of(struct entity_change) all;
    size_t new_count; /* rows that are not there yet */
};

static void
add_change(struct source_changes *source_changes, const struct watcher *watcher,
           enum entity_verb verb, const char *key, const char *region)
{
    struct entity_change change = {verb, watcher->source.type->name, key, region, "watcher"};
    vector_push_in(&source_changes->all, source_changes->arena, change);
}

/* What the source says of one entity, if that differs from the row. */
static struct error *
compare(const struct watcher *watcher, const struct mapping_entry *entry,
        struct source_changes *source_changes)
{
    const struct watchers_options *options = &watcher->watchers->options;
    const struct entity *known =
        domains_find_entity(options->domains, watcher->source.type->name, entry->key);
    bool is_there = known != NULL && !known->is_deleted;
    if (entry->region == NULL) {
        if (is_there)
            add_change(source_changes, watcher, ENTITY_DELETE, entry->key, "");
        return NULL;
    }
    if (cluster_group_find_region(options->group, entry->region) == NULL)
        return error_new(source_changes->arena, ERR_BAD_REQUEST,
                         "'%s' is in region '%s', which is not one of clusterGroupMetadata.regions",
                         entry->key, entry->region);
    if (is_there && strcmp(known->region, entry->region) == 0)
        return NULL;
    source_changes->new_count += known == NULL;
    add_change(source_changes, watcher, ENTITY_SET, entry->key, entry->region);
    return NULL;
}

/* Rows of watchers that the source no longer names. Yields. */
static struct error *
find_gone(const struct watcher *watcher, const struct mapping *mapping,
          struct source_changes *source_changes)
{
    struct slice token = {0}, next = {0};
    do {
        struct entity_records page;
        struct error *err =
            domains_list_entities(watcher->watchers->options.domains, watcher->source.type->name,
                                  token, PAGE_ROWS, source_changes->arena, &page, &next);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < page.count; i++) {
            const STORED(EntityRecord) *row = page.records[i];
            if (!row->is_deleted && strcmp(row->writer, "watcher") == 0 &&
                mapping_find(mapping, row->key) == NULL)
                add_change(source_changes, watcher, ENTITY_DELETE, row->key, "");
        }
        token = next;
    } while (token.length > 0);
    return NULL;
}

/* Everything is looked at before anything is written, so that a source with one mistake changes
 * nothing. *count: rows that differed. Yields. */
static struct error *
write_rows(struct watcher *watcher, const struct watch_update *update, struct arena *arena,
           size_t *count)
{
    const struct watchers_options *options = &watcher->watchers->options;
    check(cluster_group_is_primary(options->group));
    struct source_changes source_changes = {.arena = arena};
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < update->mapping.count; i++)
        err = compare(watcher, &update->mapping.entries[i], &source_changes);
    if (err == NULL && update->is_all)
        err = find_gone(watcher, &update->mapping, &source_changes);
    if (err == NULL && source_changes.new_count > domains_entity_room(options->domains))
        err = error_new(arena, ERR_LIMIT_EXCEEDED,
                        "it names %zu new entities, and there is room for %zu; system.entitiesMax "
                        "raises that",
                        source_changes.new_count, domains_entity_room(options->domains));
    *count = source_changes.all.count;
    return err != NULL || *count == 0
               ? err
               : domains_set_entities(options->domains, source_changes.all.items, *count, arena);
}

/* If no answer came, the rows may have been written: then they no longer differ, and the rest is
 * written now. Yields. */
static struct error *
apply(struct watcher *watcher, const struct watch_update *update, struct arena *arena)
{
    size_t count = 0, left = 0;
    struct error *err = write_rows(watcher, update, arena, &count);
    if (err != NULL && err->kind == ERR_UNAVAILABLE)
        err = write_rows(watcher, update, arena, &left);
    if (err != NULL)
        return err;
    if (count > 0)
        probe("entities_watched");
    watcher->changes += count;
    counter_add(watcher->change_counter, count);
    return NULL;
}

/* --- a fiber per source ----------------------------------------------------------------------- */

static void
note_failure(struct watcher *watcher, const struct error *err)
{
    bool is_known = strncmp(watcher->failure, err->message, FAILURE_SIZE - 1) == 0;
    probe("entity_source_failed");
    watcher->failures++;
    counter_add(watcher->failure_counter, 1);
    snprintf(watcher->failure, FAILURE_SIZE, "%s", err->message);
    if (!is_known)
        log_warn(watcher->watchers->options.log,
                 "A source of entities cannot be followed; their rows stay as they are.",
                 log_text("type", watcher->source.type->name), log_error(err));
}

static void
note_success(struct watcher *watcher)
{
    if (watcher->failure[0] != '\0')
        log_info(watcher->watchers->options.log, "A source of entities is followed again.",
                 log_text("type", watcher->source.type->name));
    watcher->failure[0] = '\0';
    watcher->success_time = clock_wall();
    watcher->pause = PAUSE_MIN;
}

static struct error *
poll_source(struct watcher *watcher, struct arena *arena)
{
    struct watch_update update = {0};
    struct error *err = watcher->kind->next(&watcher->source, arena, &update);
    check(err != NULL || update.has_any || update.mapping.count == 0);
    if (err == NULL && update.has_any)
        err = apply(watcher, &update, arena);
    if (err != NULL) /* ask for the whole mapping again, so that nothing is missed */
        watcher->source.position = (struct watch_position){0};
    return err;
}

static void
run_watcher(void *argument)
{
    struct watcher *watcher = argument;
    while (!watcher->watchers->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = poll_source(watcher, arena);
        if (watcher->watchers->is_stopping)
            break;
        if (err == NULL) {
            note_success(watcher);
            continue;
        }
        note_failure(watcher, err);
        check(watcher->pause >= PAUSE_MIN && watcher->pause <= PAUSE_MAX);
        if (fiber_sleep(watcher->pause, arena) != NULL)
            break;
        watcher->pause = watcher->pause * 2 > PAUSE_MAX ? PAUSE_MAX : watcher->pause * 2;
    }
    watcher->fiber = NULL;
    latch_done(&watcher->watchers->fibers);
}

static const struct watcher_kind *
find_kind(const char *name)
{
    for (size_t i = 0; i < array_length(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

static void
start(struct watchers *watchers, size_t index)
{
    struct watcher *watcher = &watchers->all[index];
    const struct entity_type *type = &watchers->options.types->all[index];
    const char *labels[] = {"type", type->name, NULL};
    *watcher = (struct watcher){.watchers = watchers,
                                .source.type = type,
                                .kind = find_kind(type->watcher),
                                .pause = PAUSE_MIN};
    if (watcher->kind == NULL || !cluster_group_is_primary(watchers->options.group))
        return;
    watcher->failure_counter =
        metrics_counter(watchers->options.metrics, "cadence_entity_source_failures",
                        "Looks at a source of entities that failed, and changed nothing.", labels);
    watcher->change_counter =
        metrics_counter(watchers->options.metrics, "cadence_entity_source_changes",
                        "Rows of the entity table that a source changed.", labels);
    latch_add(&watchers->fibers, 1);
    watcher->fiber = fiber_start("entity watcher", run_watcher, watcher);
}

struct watchers *
watchers_start(const struct watchers_options *options)
{
    check(route_is_here(owner_of_domains()));
    size_t count = options->types->count;
    struct watchers *watchers =
        memory_zalloc(1, sizeof *watchers + count * sizeof watchers->all[0]);
    watchers->options = *options;
    watchers->service.context = watchers;
    latch_init(&watchers->fibers, 0);
    for (size_t i = 0; i < count; i++)
        start(watchers, i);
    return watchers;
}

void
watchers_stop(struct watchers *watchers)
{
    if (watchers == NULL)
        return;
    check(route_is_here(owner_of_domains()) && !watchers->is_stopping);
    watchers->is_stopping = true;
    for (size_t i = 0; i < watchers->options.types->count; i++) {
        if (watchers->all[i].fiber != NULL)
            fiber_cancel(watchers->all[i].fiber);
    }
    latch_wait(&watchers->fibers);
    for (size_t i = 0; i < watchers->options.types->count; i++)
        tls_free(watchers->all[i].source.tls);
    memory_free(watchers);
}

/* --- listing ------------------------------------------------------------------------------ */

static struct error *
serve_list(void *context, struct owner owner, const void *request, struct arena *arena,
           void *result)
{
    const struct watchers *watchers = context;
    INTERNAL(EntityWatcherStates) *answer = result;
    size_t count = watchers->options.types->count;
    answer->watchers = arena_zalloc(arena, count, sizeof *answer->watchers);
    for (; answer->n_watchers < count; answer->n_watchers++) {
        const struct watcher *watcher = &watchers->all[answer->n_watchers];
        INTERNAL(EntityWatcherState) *state =
            message_new(arena, INTERNAL_TYPE(entity_watcher_state));
        state->type = (char *)watcher->source.type->name;
        state->is_running = watcher->fiber != NULL;
        state->failure = presence_make_bytes(arena_slice(arena, slice_text(watcher->failure)));
        state->failures = watcher->failures;
        state->changes = watcher->changes;
        state->success_time = watcher->success_time;
        answer->watchers[answer->n_watchers] = state;
    }
    return NULL;
}

/* Reads. Lost: an operator asks again. */
static const struct route_question list_question = {
    .name = "watchers.list",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(entity_watcher_states),
    .serve = serve_list,
    .may_come_twice = true,
};

struct error *
watchers_list(struct watchers *watchers, struct arena *arena, struct watcher_state **states,
              size_t *count)
{
    INTERNAL(Empty) request = INTERNAL_VALUE(EMPTY__INIT);
    INTERNAL(EntityWatcherStates) answer = INTERNAL_VALUE(ENTITY_WATCHER_STATES__INIT);
    *count = 0;
    struct error *err = watchers == NULL || watchers->options.types->count == 0
                            ? NULL
                            : route_ask(owner_of_domains(), &watchers->service, &list_question,
                                        &request, arena, &answer);
    *states = arena_zalloc(arena, answer.n_watchers + 1, sizeof **states);
    for (size_t i = 0; err == NULL && i < answer.n_watchers; i++) {
        const INTERNAL(EntityWatcherState) *state = answer.watchers[i];
        struct watcher_state *shown = &(*states)[*count];
        *shown = (struct watcher_state){
            .type = entity_types_find(watchers->options.types, state->type),
            .is_running = state->is_running,
            .failure = arena_text_of(arena, presence_read_bytes(state->failure)),
            .failures = state->failures,
            .changes = state->changes,
            .success_time = state->success_time,
        };
        *count += shown->type != NULL; /* a host with other settings may have more */
    }
    return err;
}
