/* entity.c - what workflows belong to, and where it is: admin entity. */
#include <jansson.h>
#include <string.h>

#include "base/vector.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/admin/doctor.h"
#include "cli/base/inside.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "wire/names.h"

#define TIMEOUT         (10 * NS_PER_S)
#define TYPE_OF(name)   (&cadenza__admin__v1__##name##__descriptor)
#define ENTITY_API(rpc) "/cadenza.admin.v1.EntityAPI/" rpc
#define PAGE_MAX        1000

/* --- printing --------------------------------------------------------------------------------- */

static json_t *
entity_json(const STORE_API(Entity) *entity)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:s}", "type", entity->type, "key",
                     entity->key, "region", entity->region, "failoverVersion",
                     (json_int_t)entity->failover_version, "lastUpdated",
                     (json_int_t)entity->last_updated_nanoseconds, "isDeleted", entity->is_deleted,
                     "writer", entity->writer);
}

static void
table_head(struct table *table)
{
    table_add(table, "TYPE", "KEY", "REGION", "VERSION", "UPDATED", "BY");
}

static void
table_add_entity(struct table *table, const STORE_API(Entity) *entity, struct arena *arena)
{
    table_add(table, entity->type, entity->key,
              entity->is_deleted ? arena_format(arena, "%s (deleted)", entity->region)
                                 : entity->region,
              arena_format(arena, "%lld", (long long)entity->failover_version),
              render_time(entity->last_updated_nanoseconds, arena), entity->writer);
}

static void
print_entities(struct cli_call *call, STORE_API(Entity) *const *entities, size_t count)
{
    if (call->as_json) {
        json_t *all = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(all, entity_json(entities[i]));
        cli_print_json(all);
        return;
    }
    struct table table = {.columns = 6, .arena = call->arena};
    table_head(&table);
    for (size_t i = 0; i < count; i++)
        table_add_entity(&table, entities[i], call->arena);
    cli_print("%s", table_text(&table));
}

/* --- reading ---------------------------------------------------------------------------------- */

struct error *
cli_entity_list(struct cli_call *call)
{
    int64_t left;
    struct error *err = cli_number(call, "count", 1, 1000000, INT64_MAX, &left);
    if (err != NULL)
        return err;
    STORE_API(ListEntitiesRequest) request = CADENZA__ADMIN__V1__LIST_ENTITIES_REQUEST__INIT;
    const char *type = cli_text(call, "entity_type");
    request.type = (char *)(type == NULL ? "" : type);
    request.has_deleted = cli_is_on(call, "with_deleted");
    vector_of(STORE_API(Entity) *) all = {0};
    do {
        ProtobufCMessage *answer = NULL;
        request.page_size = left < PAGE_MAX ? (int32_t)left : PAGE_MAX;
        err = cli_ask(call, ENTITY_API("ListEntities"), &request.base, TIMEOUT,
                      TYPE_OF(list_entities_response), &answer);
        if (err != NULL)
            return err;
        const STORE_API(ListEntitiesResponse) *page = (STORE_API(ListEntitiesResponse) *)answer;
        for (size_t i = 0; i < page->n_entities && left > 0; i++, left--)
            vector_push_in(&all, call->arena, page->entities[i]);
        request.next_page_token = page->next_page_token;
    } while (request.next_page_token.len > 0 && left > 0);
    print_entities(call, all.items, all.count);
    return NULL;
}

static void
print_homes(struct cli_call *call, const STORE_API(GetEntityResponse) *response)
{
    struct table table = {.columns = 3, .arena = call->arena};
    table_add(&table, "DOMAIN", "ACTIVE IN", "VERSION");
    for (size_t i = 0; i < response->n_homes; i++) {
        const STORE_API(EntityHome) *home = response->homes[i];
        bool is_known = home->cluster[0] != '\0';
        table_add(&table, home->domain,
                  is_known ? home->cluster : "unchanged: the domain does not have the region",
                  is_known ? arena_format(call->arena, "%lld", (long long)home->failover_version)
                           : "");
    }
    if (response->n_homes > 0)
        cli_print("\n%s", table_text(&table));
}

struct error *
cli_entity_get(struct cli_call *call)
{
    STORE_API(GetEntityRequest) request = CADENZA__ADMIN__V1__GET_ENTITY_REQUEST__INIT;
    request.type = (char *)call->words[0];
    request.key = (char *)call->words[1];
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, ENTITY_API("GetEntity"), &request.base, TIMEOUT,
                                TYPE_OF(get_entity_response), &answer);
    if (err != NULL)
        return err;
    STORE_API(GetEntityResponse) *response = (STORE_API(GetEntityResponse) *)answer;
    if (!call->as_json) {
        print_entities(call, &response->entity, 1);
        print_homes(call, response);
        return NULL;
    }
    json_t *shown = entity_json(response->entity), *homes = json_array();
    for (size_t i = 0; i < response->n_homes; i++)
        json_array_append_new(homes,
                              json_pack("{s:s, s:s, s:I}", "domain", response->homes[i]->domain,
                                        "cluster", response->homes[i]->cluster, "failoverVersion",
                                        (json_int_t)response->homes[i]->failover_version));
    json_object_set_new(shown, "homes", homes);
    cli_print_json(shown);
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void
print_warnings(char *const *warnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cli_note("Warning: %s\n", warnings[i]);
}

struct error *
cli_entity_set(struct cli_call *call)
{
    STORE_API(EntityPlace) place = CADENZA__ADMIN__V1__ENTITY_PLACE__INIT;
    STORE_API(EntityPlace) *places[] = {&place};
    STORE_API(SetEntitiesRequest) request = CADENZA__ADMIN__V1__SET_ENTITIES_REQUEST__INIT;
    place.type = (char *)call->words[0];
    place.key = (char *)call->words[1];
    place.region = (char *)call->words[2];
    request.places = places;
    request.n_places = 1;
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, ENTITY_API("SetEntities"), &request.base, TIMEOUT,
                                TYPE_OF(set_entities_response), &answer);
    if (err != NULL)
        return err;
    const STORE_API(SetEntitiesResponse) *response = (STORE_API(SetEntitiesResponse) *)answer;
    print_entities(call, response->entities, response->n_entities);
    print_warnings(response->warnings, response->n_warnings);
    return NULL;
}

struct error *
cli_entity_delete(struct cli_call *call)
{
    STORE_API(EntityPlace) place = CADENZA__ADMIN__V1__ENTITY_PLACE__INIT;
    STORE_API(EntityPlace) *places[] = {&place};
    STORE_API(DeleteEntitiesRequest) request = CADENZA__ADMIN__V1__DELETE_ENTITIES_REQUEST__INIT;
    place.type = (char *)call->words[0];
    place.key = (char *)call->words[1];
    request.places = places;
    request.n_places = 1;
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, ENTITY_API("DeleteEntities"), &request.base, TIMEOUT,
                                TYPE_OF(delete_entities_response), &answer);
    if (err != NULL)
        return err;
    const STORE_API(DeleteEntitiesResponse) *response = (STORE_API(DeleteEntitiesResponse) *)answer;
    print_entities(call, response->entities, response->n_entities);
    print_warnings(response->warnings, response->n_warnings);
    return NULL;
}

/* --- watchers --------------------------------------------------------------------------------- */

static const char *
state_of(const STORE_API(EntityWatcher) *watcher, const char *primary, struct arena *arena)
{
    if (strcmp(watcher->kind, "none") == 0)
        return "-";
    if (!watcher->is_running)
        return arena_format(arena, "runs in %s", primary);
    if (watcher->failure[0] != '\0')
        return arena_format(arena, "failing (%lld times): %s", (long long)watcher->failures,
                            watcher->failure);
    return watcher->success_nanoseconds == 0
               ? "starting"
               : arena_format(arena, "well at %s",
                              render_time(watcher->success_nanoseconds, arena));
}

static void
print_watchers(const STORE_API(ListWatchersResponse) *response, struct arena *arena)
{
    struct table table = {.columns = 6, .arena = arena};
    table_add(&table, "TYPE", "SOURCE", "UNKNOWN KEYS", "WATCHER", "CHANGES", "STATE");
    for (size_t i = 0; i < response->n_watchers; i++) {
        const STORE_API(EntityWatcher) *watcher = response->watchers[i];
        table_add(&table, watcher->type, watcher->source, watcher->creates ? "create" : "refuse",
                  watcher->place[0] == '\0'
                      ? watcher->kind
                      : arena_format(arena, "%s %s", watcher->kind, watcher->place),
                  arena_format(arena, "%lld", (long long)watcher->changes),
                  state_of(watcher, response->primary, arena));
    }
    cli_print("%s\n%lld of %lld rows are used; they are written in cluster %s.\n",
              table_text(&table), (long long)response->rows, (long long)response->rows_max,
              response->primary);
}

static struct error *
ask_watchers(struct cli_call *call, const STORE_API(ListWatchersResponse) **response)
{
    STORE_API(ListWatchersRequest) request = CADENZA__ADMIN__V1__LIST_WATCHERS_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, ENTITY_API("ListWatchers"), &request.base, TIMEOUT,
                                TYPE_OF(list_watchers_response), &answer);
    *response = (const STORE_API(ListWatchersResponse) *)answer;
    return err;
}

void
doctor_check_entities(struct doctor *doctor)
{
    const STORE_API(ListWatchersResponse) *response = NULL;
    struct arena *arena = doctor->call->arena;
    struct error *err = ask_watchers(doctor->call, &response);
    if (err != NULL) {
        doctor_find_unanswered(doctor, "where its entities are", err);
        return;
    }
    for (size_t i = 0; i < response->n_gaps; i++) {
        const STORE_API(EntityGap) *gap = response->gaps[i];
        doctor_find(
            doctor,
            arena_format(
                arena,
                "%lld entities of type %s (%s%s) are in region %s, which domain %s does not have: "
                "workflows of these entities stay in their cluster, and no new ones can start.",
                (long long)gap->entities, gap->type, gap->key, gap->entities > 1 ? ", ..." : "",
                gap->region, gap->domain),
            arena_format(arena,
                         "cadenza domain update --domain %s --active_clusters "
                         "region.%s:CLUSTER adds the region; or correct the source.",
                         gap->domain, gap->region));
    }
}

struct error *
cli_entity_watchers(struct cli_call *call)
{
    const STORE_API(ListWatchersResponse) *response = NULL;
    struct error *err = ask_watchers(call, &response);
    if (err != NULL)
        return err;
    if (!call->as_json) {
        print_watchers(response, call->arena);
        return NULL;
    }
    json_t *all = json_array();
    for (size_t i = 0; i < response->n_watchers; i++) {
        const STORE_API(EntityWatcher) *watcher = response->watchers[i];
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:b, s:s, s:s, s:b, s:s, s:I, s:I, s:I}", "type",
                           watcher->type, "source", watcher->source, "creates", watcher->creates,
                           "kind", watcher->kind, "place", watcher->place, "isRunning",
                           watcher->is_running, "failure", watcher->failure, "failures",
                           (json_int_t)watcher->failures, "changes", (json_int_t)watcher->changes,
                           "success", (json_int_t)watcher->success_nanoseconds));
    }
    cli_print_json(json_pack("{s:o, s:s, s:I, s:I}", "watchers", all, "primary", response->primary,
                             "rows", (json_int_t)response->rows, "rowsMax",
                             (json_int_t)response->rows_max));
    return NULL;
}
