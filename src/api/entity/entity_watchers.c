/* entity_watchers.c - EntityAPI.ListWatchers: the state of what keeps the entity table up to date,
 * and which of its rows mean nothing in a domain. */
#include "api/entity/entity.h"
#include "api/inside.h"
#include "base/vector.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "entity/watchers.h"
#include "wire/message.h"

#define ENTITY_TYPE_OF(name) (&cadenza__admin__v1__##name##__descriptor)
#define PAGE_ROWS            1000

/* --- entities in regions that domains do not have ----------------------------------------------
 */

/* Entities of one type in one region. */
struct placed {
    const char *type, *region, *key; /* key: of the first one */
    int64_t count;
};

struct placed_list {
    vector_of(struct placed) all; /* few: types times regions */
};

static void
count_placed(struct placed_list *list, const STORED(EntityRecord) *row, struct arena *arena)
{
    for (size_t i = 0; i < list->all.count; i++) {
        struct placed *placed = &list->all.items[i];
        if (strcmp(placed->type, row->type) == 0 && strcmp(placed->region, row->region) == 0) {
            placed->count++;
            return;
        }
    }
    vector_push_in(&list->all, arena, (struct placed){row->type, row->region, row->key, 1});
}

/* Deleted ones, too: they may have workflows. Yields. */
static struct error *
read_placed(struct rpc_call *call, struct placed_list *list)
{
    struct slice token = {0}, next = {0};
    do {
        struct entity_records page;
        struct error *err = domains_list_entities(api_of(call)->options.domains, "", token,
                                                  PAGE_ROWS, call->arena, &page, &next);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < page.count; i++)
            count_placed(list, page.records[i], call->arena);
        token = next;
    } while (token.length > 0);
    return NULL;
}

static STORE_API(EntityGap) *
show_gap(const struct placed *placed, const struct domain *domain, struct arena *arena)
{
    STORE_API(EntityGap) *gap = message_new(arena, ENTITY_TYPE_OF(entity_gap));
    gap->domain = arena_text(arena, domain->name);
    gap->type = (char *)placed->type;
    gap->region = (char *)placed->region;
    gap->key = (char *)placed->key;
    gap->entities = placed->count;
    return gap;
}

static struct error *
show_gaps(struct rpc_call *call, STORE_API(ListWatchersResponse) *response)
{
    const struct api_options *options = &api_of(call)->options;
    struct placed_list list = {0};
    vector_of(STORE_API(EntityGap) *) gaps = {0};
    const char *after = "";
    struct domain *domain = NULL;
    struct error *err = read_placed(call, &list);
    while (err == NULL && domains_list(options->domains, after, &domain, 1) == 1) {
        after = domain->name;
        for (size_t i = 0; i < list.all.count; i++) {
            const struct placed *placed = &list.all.items[i];
            struct cluster_attribute region = {SCOPE_REGION, placed->region};
            if (domain_uses_entities(domain, placed->type) &&
                !domain_has_attribute(domain, &region))
                vector_push_in(&gaps, call->arena, show_gap(placed, domain, call->arena));
        }
    }
    response->gaps = gaps.items;
    response->n_gaps = gaps.count;
    return err;
}

/* --- watchers --------------------------------------------------------------------------------- */

static STORE_API(EntityWatcher) *
show_watcher(const struct watcher_state *state, struct arena *arena)
{
    STORE_API(EntityWatcher) *shown = message_new(arena, ENTITY_TYPE_OF(entity_watcher));
    bool is_file = strcmp(state->type->watcher, "file") == 0;
    shown->type = (char *)state->type->name;
    shown->source = (char *)state->type->source;
    shown->creates = state->type->creates;
    shown->kind = (char *)state->type->watcher;
    shown->place = (char *)(is_file ? state->type->file : state->type->url);
    shown->is_running = state->is_running;
    shown->failure = (char *)state->failure;
    shown->failures = (int64_t)state->failures;
    shown->changes = (int64_t)state->changes;
    shown->success_nanoseconds = state->success_time;
    return shown;
}

struct error *
api_list_watchers(struct rpc_call *call)
{
    STORE_API(ListWatchersResponse) *response = (STORE_API(ListWatchersResponse) *)call->response;
    const struct api_options *options = &api_of(call)->options;
    struct watchers *watchers = options->watchers == NULL ? NULL : atomic_load(options->watchers);
    struct watcher_state *states = NULL;
    size_t count = 0;
    struct error *err = watchers_list(watchers, call->arena, &states, &count);
    if (err != NULL)
        return err;
    response->watchers = arena_zalloc(call->arena, count + 1, sizeof *response->watchers);
    for (size_t i = 0; i < count; i++)
        response->watchers[response->n_watchers++] = show_watcher(&states[i], call->arena);
    response->primary = (char *)options->group->primary->name;
    response->rows = (int64_t)domains_entity_count(options->domains);
    response->rows_max = response->rows + (int64_t)domains_entity_room(options->domains);
    return show_gaps(call, response);
}
