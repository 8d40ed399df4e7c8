/* entity.c - EntityAPI: rows of the entity table, for operators and for other clusters.
 *
 * The primary cluster writes rows. Another cluster that is asked asks the primary, and takes over
 * the answer: so its caller sees the rows here, too, before replication brings them. */
#include "api/entity/entity.h"

#include "api/inside.h"
#include "base/check.h"
#include "base/vector.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "entity/watchers.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define ENTITY_TYPE_OF(name) (&cadenza__admin__v1__##name##__descriptor)
#define SET_PATH             "/cadenza.admin.v1.EntityAPI/SetEntities"
#define DELETE_PATH          "/cadenza.admin.v1.EntityAPI/DeleteEntities"
#define GET_PATH             "/cadenza.admin.v1.EntityAPI/GetEntity"
#define PAGE_DEFAULT         1000
#define PLACES_MAX           1000 /* in one call */

/* --- showing ---------------------------------------------------------------------------------- */

static STORE_API(Entity) *
show(const STORED(EntityRecord) *row, struct arena *arena)
{
    STORE_API(Entity) *shown = message_new(arena, ENTITY_TYPE_OF(entity));
    shown->type = arena_text(arena, row->type);
    shown->key = arena_text(arena, row->key);
    shown->region = arena_text(arena, row->region);
    shown->writer = arena_text(arena, row->writer);
    shown->failover_version = row->failover_version;
    shown->last_updated_nanoseconds = row->last_updated_time;
    shown->is_deleted = row->is_deleted;
    return shown;
}

/* A row that another cluster showed. */
static STORED(EntityRecord) *
row_of(const STORE_API(Entity) *shown, struct arena *arena)
{
    STORED(EntityRecord) *row = message_new(arena, STORED_TYPE(entity_record));
    row->format = ENTITY_RECORD_FORMAT;
    row->type = shown->type;
    row->key = shown->key;
    row->region = shown->region;
    row->writer = shown->writer;
    row->failover_version = shown->failover_version;
    row->last_updated_time = shown->last_updated_nanoseconds;
    row->is_deleted = shown->is_deleted;
    return row;
}

/* --- listing ---------------------------------------------------------------------------------- */

/* The rows {domain}.{region}: all of them on the first page. */
static void
add_rows_of_domains(struct rpc_call *call, STORE_API(ListEntitiesResponse) *response)
{
    const struct api_options *options = &api_of(call)->options;
    vector_of(STORE_API(Entity) *) shown = {0};
    const char *after = "";
    struct domain *domain = NULL;
    while (domains_list(options->domains, after, &domain, 1) == 1) {
        STORED(EntityRecord) **rows = NULL;
        size_t count = entity_rows_of_domain(domain, options->group, call->arena, &rows);
        for (size_t i = 0; i < count; i++)
            vector_push_in(&shown, call->arena, show(rows[i], call->arena));
        after = domain->name;
    }
    response->entities = shown.items;
    response->n_entities = shown.count;
}

struct error *
api_list_entities(struct rpc_call *call)
{
    const STORE_API(ListEntitiesRequest) *request =
        (const STORE_API(ListEntitiesRequest) *)call->request;
    STORE_API(ListEntitiesResponse) *response = (STORE_API(ListEntitiesResponse) *)call->response;
    struct slice token = slice_of(request->next_page_token.data, request->next_page_token.len);
    struct slice next;
    struct entity_records page;
    if (request->page_size < 0 || request->page_size > PAGE_DEFAULT)
        return error_new(call->arena, ERR_BAD_REQUEST, "page_size: %d is not from 0 to %d.",
                         request->page_size, PAGE_DEFAULT);
    bool is_of_domains = strcmp(request->type, ENTITY_TYPE_DOMAIN) == 0;
    if (token.length == 0 && (request->type[0] == '\0' || is_of_domains))
        add_rows_of_domains(call, response);
    if (is_of_domains)
        return NULL;
    size_t count_max = request->page_size == 0 ? PAGE_DEFAULT : (size_t)request->page_size;
    struct error *err = domains_list_entities(api_of(call)->options.domains, request->type, token,
                                              count_max, call->arena, &page, &next);
    if (err != NULL)
        return err;
    size_t first = response->n_entities;
    STORE_API(Entity) **all = arena_zalloc(call->arena, first + page.count + 1, sizeof *all);
    if (first > 0)
        memcpy(all, response->entities, first * sizeof *all);
    response->entities = all;
    for (size_t i = 0; i < page.count; i++) {
        if (!page.records[i]->is_deleted || request->has_deleted)
            all[response->n_entities++] = show(page.records[i], call->arena);
    }
    response->next_page_token.data = (uint8_t *)next.data;
    response->next_page_token.len = next.length;
    return NULL;
}

/* --- one -------------------------------------------------------------------------------------- */

static struct error *
refuse_unknown(const char *type, const char *key, struct arena *arena)
{
    return error_new(arena, ERR_ENTITY_NOT_EXISTS, "There is no entity '%s' of type '%s'.", key,
                     type);
}

static void
add_homes(struct rpc_call *call, const struct entity *entity,
          STORE_API(GetEntityResponse) *response)
{
    const struct api_options *options = &api_of(call)->options;
    size_t count = domains_count(options->domains);
    response->homes = arena_zalloc(call->arena, count + 1, sizeof *response->homes);
    const char *after = "";
    struct domain *domain = NULL;
    while (response->n_homes < count && domains_list(options->domains, after, &domain, 1) == 1) {
        after = domain->name;
        if (!domain_uses_entities(domain, entity->type))
            continue;
        struct active_cluster active = entity_active(entity, domain, options->group);
        STORE_API(EntityHome) *home = message_new(call->arena, ENTITY_TYPE_OF(entity_home));
        home->domain = arena_text(call->arena, domain->name);
        home->cluster = arena_text(call->arena, active.cluster_name);
        home->failover_version = active.failover_version;
        response->homes[response->n_homes++] = home;
    }
}

struct error *
api_get_entity(struct rpc_call *call)
{
    const STORE_API(GetEntityRequest) *request = (const STORE_API(GetEntityRequest) *)call->request;
    STORE_API(GetEntityResponse) *response = (STORE_API(GetEntityResponse) *)call->response;
    const struct entity *entity =
        domains_find_entity(api_of(call)->options.domains, request->type, request->key);
    if (entity == NULL)
        return refuse_unknown(request->type, request->key, call->arena);
    response->entity = show(entity_record(entity, call->arena), call->arena);
    add_homes(call, entity, response);
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* The rows as they are now, in the order of the places. */
static void
show_places(struct rpc_call *call, STORE_API(EntityPlace) *const *places, size_t count,
            STORE_API(Entity) ***entities, size_t *shown_count)
{
    check(count <= PLACES_MAX && *shown_count == 0);
    *entities = arena_zalloc(call->arena, count + 1, sizeof **entities);
    for (size_t i = 0; i < count; i++) {
        const struct entity *entity =
            domains_find_entity(api_of(call)->options.domains, places[i]->type, places[i]->key);
        if (entity != NULL)
            (*entities)[(*shown_count)++] = show(entity_record(entity, call->arena), call->arena);
    }
}

static struct error *
write_places(struct rpc_call *call, STORE_API(EntityPlace) *const *places, size_t count,
             enum entity_verb verb, const char *writer)
{
    check(count > 0 && count <= PLACES_MAX); /* check_count has refused others */
    struct entity_change *changes = arena_zalloc(call->arena, count + 1, sizeof *changes);
    for (size_t i = 0; i < count; i++)
        changes[i] = (struct entity_change){verb, places[i]->type, places[i]->key,
                                            places[i]->region, writer};
    return domains_set_entities(api_of(call)->options.domains, changes, count, call->arena);
}

/* Rows of a type that is not configured would have no owner. (Those that follow from domains are
 * refused in other words by domain/entity.c.) */
static struct error *
check_types(struct rpc_call *call, STORE_API(EntityPlace) *const *places, size_t count)
{
    const struct entity_types *types = api_of(call)->options.entity_types;
    for (size_t i = 0; i < count; i++) {
        const char *type = places[i]->type, *known = "";
        if (type[0] == '\0' || entity_types_find(types, type) != NULL ||
            strcmp(type, SCOPE_REGION) == 0 || strcmp(type, ENTITY_TYPE_DOMAIN) == 0)
            continue;
        for (size_t t = 0; types != NULL && t < types->count; t++)
            known =
                arena_format(call->arena, "%s%s%s", known, t == 0 ? "" : ", ", types->all[t].name);
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "Type '%s' is not one of entities.types in the configuration: %s.", type,
                         known[0] == '\0' ? "none" : known);
    }
    return NULL;
}

/* Warns of sources that will overwrite what is written by hand, each type once. */
static size_t
warn_of_sources(struct rpc_call *call, STORE_API(EntityPlace) *const *places, size_t count,
                char ***warnings)
{
    const struct entity_types *types = api_of(call)->options.entity_types;
    size_t found = 0, type_count = types == NULL ? 0 : types->count;
    *warnings = arena_zalloc(call->arena, type_count + 1, sizeof **warnings);
    for (size_t t = 0; t < type_count; t++) {
        const struct entity_type *type = &types->all[t];
        bool is_named = false;
        for (size_t i = 0; i < count; i++)
            is_named = is_named || strcmp(places[i]->type, type->name) == 0;
        if (!is_named || strcmp(type->watcher, "none") == 0)
            continue;
        bool is_file = strcmp(type->watcher, "file") == 0;
        (*warnings)[found++] =
            arena_format(call->arena,
                         "Entities of type '%s' follow the source %s: what it says of them "
                         "overwrites this the next time that it is read; change it there, too.",
                         type->name, is_file ? type->file : type->url);
    }
    return found;
}

static struct error *
check_count(size_t count, struct arena *arena)
{
    if (count > 0 && count <= PLACES_MAX)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "places: %zu of them; 1 to %d go into one call.",
                     count, PLACES_MAX);
}

static bool
is_primary(const struct api *api)
{
    return cluster_group_is_primary(api->options.group);
}

/* Stores here what the primary answered. */
static struct error *
take_over(struct api *api, STORE_API(Entity) *const *entities, size_t count, struct arena *arena)
{
    struct entity_records rows = {arena_zalloc(arena, count + 1, sizeof *rows.records), count};
    for (size_t i = 0; i < count; i++)
        rows.records[i] = row_of(entities[i], arena);
    return domains_apply_entities(api->options.domains, api->options.group->primary->name, &rows,
                                  arena);
}

static struct error *
call_primary(struct api *api, const char *path, const ProtobufCMessage *request,
             const ProtobufCMessageDescriptor *type, ProtobufCMessage **response,
             struct arena *arena)
{
    const char *primary = api->options.group->primary->name;
    check(!is_primary(api));
    probe("entity_asked_of_primary");
    struct error *err = api_call_cluster(api, primary, path, request, arena, type, response);
    return err == NULL ? NULL
                       : error_wrap(err, "asking cluster %s, where entities are written", primary);
}

struct error *
api_set_entities(struct rpc_call *call)
{
    const STORE_API(SetEntitiesRequest) *request =
        (const STORE_API(SetEntitiesRequest) *)call->request;
    STORE_API(SetEntitiesResponse) *response = (STORE_API(SetEntitiesResponse) *)call->response;
    struct error *err = check_count(request->n_places, call->arena);
    if (err != NULL)
        return err;
    if (is_primary(api_of(call)) || api_is_forwarded(call)) {
        err = check_types(call, request->places, request->n_places);
        if (err == NULL)
            err = write_places(call, request->places, request->n_places,
                               request->only_new ? ENTITY_ADD : ENTITY_SET,
                               request->is_start ? "start" : "operator");
        if (err == NULL)
            show_places(call, request->places, request->n_places, &response->entities,
                        &response->n_entities);
        if (err == NULL && !request->is_start)
            response->n_warnings =
                warn_of_sources(call, request->places, request->n_places, &response->warnings);
        return err;
    }
    ProtobufCMessage *answer = NULL;
    err = call_primary(api_of(call), SET_PATH, &request->base,
                       ENTITY_TYPE_OF(set_entities_response), &answer, call->arena);
    if (err != NULL)
        return err;
    *response = *(STORE_API(SetEntitiesResponse) *)answer;
    return take_over(api_of(call), response->entities, response->n_entities, call->arena);
}

struct error *
api_delete_entities(struct rpc_call *call)
{
    const STORE_API(DeleteEntitiesRequest) *request =
        (const STORE_API(DeleteEntitiesRequest) *)call->request;
    STORE_API(DeleteEntitiesResponse) *response =
        (STORE_API(DeleteEntitiesResponse) *)call->response;
    struct error *err = check_count(request->n_places, call->arena);
    if (err != NULL)
        return err;
    if (is_primary(api_of(call)) || api_is_forwarded(call)) {
        err = write_places(call, request->places, request->n_places, ENTITY_DELETE, "operator");
        if (err == NULL)
            show_places(call, request->places, request->n_places, &response->entities,
                        &response->n_entities);
        if (err == NULL)
            response->n_warnings =
                warn_of_sources(call, request->places, request->n_places, &response->warnings);
        return err;
    }
    ProtobufCMessage *answer = NULL;
    err = call_primary(api_of(call), DELETE_PATH, &request->base,
                       ENTITY_TYPE_OF(delete_entities_response), &answer, call->arena);
    if (err != NULL)
        return err;
    *response = *(STORE_API(DeleteEntitiesResponse) *)answer;
    return take_over(api_of(call), response->entities, response->n_entities, call->arena);
}

/* --- for starts ------------------------------------------------------------------------------- */

struct error *
entity_create(struct api *api, const char *type, const char *key, const char *region,
              struct arena *arena)
{
    if (is_primary(api)) {
        struct entity_change change = {ENTITY_ADD, type, key, region, "start"};
        return domains_set_entities(api->options.domains, &change, 1, arena);
    }
    STORE_API(EntityPlace) place = CADENZA__ADMIN__V1__ENTITY_PLACE__INIT;
    STORE_API(EntityPlace) *places[] = {&place};
    STORE_API(SetEntitiesRequest) request = CADENZA__ADMIN__V1__SET_ENTITIES_REQUEST__INIT;
    place.type = (char *)type;
    place.key = (char *)key;
    place.region = (char *)region;
    request.places = places;
    request.n_places = 1;
    request.only_new = request.is_start = true;
    ProtobufCMessage *answer = NULL;
    struct error *err = call_primary(api, SET_PATH, &request.base,
                                     ENTITY_TYPE_OF(set_entities_response), &answer, arena);
    if (err != NULL)
        return err;
    const STORE_API(SetEntitiesResponse) *made = (STORE_API(SetEntitiesResponse) *)answer;
    return take_over(api, made->entities, made->n_entities, arena);
}

struct error *
entity_learn(struct api *api, const char *type, const char *key, struct arena *arena)
{
    if (is_primary(api))
        return NULL;
    STORE_API(GetEntityRequest) request = CADENZA__ADMIN__V1__GET_ENTITY_REQUEST__INIT;
    request.type = (char *)type;
    request.key = (char *)key;
    ProtobufCMessage *answer = NULL;
    struct error *err = call_primary(api, GET_PATH, &request.base,
                                     ENTITY_TYPE_OF(get_entity_response), &answer, arena);
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    STORE_API(Entity) *entity = ((STORE_API(GetEntityResponse) *)answer)->entity;
    return entity == NULL ? NULL : take_over(api, &entity, 1, arena);
}
