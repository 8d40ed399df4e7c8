/* entity_calls.c - see entity_calls.h. */
#include "sim/entity/entity_calls.h"

#include "base/arena.h"
#include "wire/message.h"

static STORE_API(EntityPlace) **
make_entity_place(struct arena *arena, const char *type, const char *key, const char *region)
{
    STORE_API(EntityPlace) **places = arena_zalloc(arena, 1, sizeof *places);
    places[0] = message_new(arena, TYPE_OF(entity_place));
    places[0]->type = (char *)type;
    places[0]->key = (char *)key;
    places[0]->region = (char *)region;
    return places;
}

STORE_API(SetEntitiesRequest) *
entity_set_request(struct arena *arena, const char *type, const char *key, const char *region)
{
    STORE_API(SetEntitiesRequest) *request = message_new(arena, TYPE_OF(set_entities_request));
    request->places = make_entity_place(arena, type, key, region);
    request->n_places = 1;
    return request;
}

STORE_API(DeleteEntitiesRequest) *
entity_delete_request(struct arena *arena, const char *type, const char *key)
{
    STORE_API(DeleteEntitiesRequest) *request =
        message_new(arena, TYPE_OF(delete_entities_request));
    request->places = make_entity_place(arena, type, key, "");
    request->n_places = 1;
    return request;
}
