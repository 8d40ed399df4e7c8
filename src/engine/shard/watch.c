/* watch.c - who waits for durable news of a run: records in lists, by run id. See shard.h.
 *
 * A watch does not keep its run in memory: a step of the run fires it by the run's id, even if
 * it was loaded again meanwhile. Only to begin a watch the run must be in memory, since what is
 * durable of it is known there; if it is not, the watch fires at once and its owner looks again. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/watches.h"
#include "engine/shard/workflows.h"

struct watched {
    struct list watches; /* struct run_watch; never empty */
    struct slice run_id; /* in the same block */
};

/* Each list has somebody who waits, and who waits knows his list: by that he is taken back. */
static size_t
watched_check(const struct watched *watched)
{
    size_t count = 0;
    list_each(node, &watched->watches) {
        const struct run_watch *watch = list_entry(node, struct run_watch, node);
        check(watch->watched == watched && watch->fire != NULL);
        count++;
    }
    return count;
}

void
watches_check(const struct tenure *tenure)
{
    size_t cursor = 0;
    struct slice run_id;
    void *value;
    check(!tenure->is_over || map_count(tenure->watched) == 0); /* all were fired */
    if (!CHECK_DEEPLY || map_count(tenure->watched) > CHECK_ROWS_MAX)
        return;
    while (map_next(tenure->watched, &cursor, &run_id, &value)) {
        const struct watched *watched = value;
        check(slice_equal(run_id, watched->run_id) && run_id.length > 0);
        check(watched_check(watched) > 0);
    }
}

void
watches_init(struct tenure *tenure)
{
    tenure->watched = map_new();
}

void
watches_free(struct tenure *tenure)
{
    check(map_count(tenure->watched) == 0);
    map_free(tenure->watched);
}

static struct watched *
watched_of(struct tenure *tenure, const char *run_id)
{
    struct slice key = slice_text(run_id);
    struct watched *watched = map_get(tenure->watched, key);
    if (watched != NULL)
        return watched;
    watched = memory_alloc(sizeof *watched + key.length);
    list_init(&watched->watches);
    memcpy(watched + 1, key.data, key.length);
    watched->run_id = slice_of(watched + 1, key.length);
    map_put(tenure->watched, key, watched);
    return watched;
}

static void
watched_drop(struct tenure *tenure, struct watched *watched)
{
    check(list_is_empty(&watched->watches));
    struct watched *removed = map_remove(tenure->watched, watched->run_id);
    check(removed == watched);
    memory_free(watched);
}

static void
watched_add(struct watched *watched, struct run_watch *watch)
{
    check(watch->watched == NULL && list_is_empty(&watch->node));
    list_push_back(&watched->watches, &watch->node);
    watch->watched = watched;
}

/* What is durable of the run says more than the watcher knows, or nothing is known. */
static bool
has_changes(struct tenure *tenure, const struct run_key *key, int64_t next_event_id)
{
    struct arena *arena = arena_new(512);
    struct workflow *workflow = workflow_find(tenure, key, arena);
    arena_free(arena);
    const struct loaded_run *loaded =
        workflow == NULL ? NULL : workflow_find_run(workflow, key->run_id);
    return loaded == NULL || loaded->is_durably_closed ||
           loaded->durable_next_event_id > next_event_id;
}

void
shard_watch(struct shard *shard, const struct run_key *key, struct run_watch *watch)
{
    check(list_is_empty(&watch->node) && key->run_id[0] != '\0');
    struct tenure *tenure = shard->tenure;
    shard_check(shard);
    if (tenure == NULL)
        watch->fire(watch, true);
    else if (has_changes(tenure, key, watch->next_event_id))
        watch->fire(watch, false);
    else
        watched_add(watched_of(tenure, key->run_id), watch);
    if (shard->tenure != NULL)
        watches_check(shard->tenure);
}

void
shard_unwatch(struct shard *shard, struct run_watch *watch)
{
    struct watched *watched = watch->watched;
    shard_check(shard);
    check(watched == NULL || (shard->tenure != NULL && !list_is_empty(&watch->node)));
    list_remove(&watch->node);
    watch->watched = NULL;
    if (watched != NULL && list_is_empty(&watched->watches))
        watched_drop(shard->tenure, watched); /* lists of other tenures are empty: all were fired */
    if (shard->tenure != NULL)
        watches_check(shard->tenure);
}

/* Fires all of a list. One that fires may take others back, or start again. */
static void
fire_all(struct list *watches, bool is_lost)
{
    for (struct list *node; (node = list_pop_front(watches)) != NULL;) {
        struct run_watch *watch = list_entry(node, struct run_watch, node);
        check(watch->watched == NULL);
        watch->fire(watch, is_lost);
    }
}

/* Moves the watches out that wait for no more than this. */
static void
watched_take(struct watched *watched, int64_t next_event_id, struct list *taken)
{
    list_each_safe(node, &watched->watches) {
        struct run_watch *watch = list_entry(node, struct run_watch, node);
        if (watch->next_event_id >= next_event_id)
            continue;
        list_remove(node);
        check(watch->watched == watched);
        watch->watched = NULL;
        list_push_back(taken, node);
    }
}

bool
watches_has(const struct tenure *tenure, const char *run_id)
{
    return map_get(tenure->watched, slice_text(run_id)) != NULL;
}

void
watches_fire(struct tenure *tenure, const char *run_id, int64_t next_event_id, bool is_closed)
{
    struct watched *watched = map_get(tenure->watched, slice_text(run_id));
    if (watched == NULL)
        return;
    struct list taken = LIST_INIT(taken);
    watched_take(watched, is_closed ? INT64_MAX : next_event_id, &taken);
    if (list_is_empty(&watched->watches))
        watched_drop(tenure, watched);
    watches_check(tenure);
    fire_all(&taken, false);
}

void
watches_lose(struct tenure *tenure)
{
    check(tenure->is_over);
    struct list taken = LIST_INIT(taken);
    size_t cursor = 0;
    void *value;
    while (map_next(tenure->watched, &cursor, NULL, &value)) {
        struct watched *watched = value;
        watched_take(watched, INT64_MAX, &taken);
        watched_drop(tenure, watched);
    }
    fire_all(&taken, true);
}
