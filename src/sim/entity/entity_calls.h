/* entity_calls.h - requests that write one entity. Only files of sim/ include it. */
#ifndef CADENZA_SIM_ENTITY_ENTITY_CALLS_H
#define CADENZA_SIM_ENTITY_ENTITY_CALLS_H

#include "cadenza/admin/v1/service.pb-c.h"
#include "wire/names.h"

struct arena;

#define TYPE_OF(name) (&cadenza__admin__v1__##name##__descriptor)

/* In the arena; the texts stay the caller's. */
STORE_API(SetEntitiesRequest) *entity_set_request(struct arena *arena, const char *type,
                                                  const char *key, const char *region);
STORE_API(DeleteEntitiesRequest) *entity_delete_request(struct arena *arena, const char *type,
                                                        const char *key);

#endif
