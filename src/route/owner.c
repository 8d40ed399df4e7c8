/* owner.c - see owner.h. */
#include "route/owner.h"

#include "base/check.h"
#include "base/farm.h"
#include "base/map.h"
#include "route/inside.h"

uint32_t
route_shard_of(struct slice workflow_id, uint32_t shard_count)
{
    check(shard_count > 0);
    return farm_fingerprint32(workflow_id) % shard_count;
}

uint64_t
route_list_hash(struct slice domain_id, struct slice name, unsigned type, unsigned partition)
{
    return (map_hash(name) ^ map_hash(domain_id) * 31) + type + partition;
}

/* A division takes as long as all the rest: there are as many places as a power of two, mostly. */
static unsigned
place_among(unsigned count, struct owner owner)
{
    check(owner.kind != OWNER_PLACE || owner.number < count);
    check(owner.kind != OWNER_OF_DOMAINS || owner.number == 0);
    bool is_power = (count & (count - 1)) == 0;
    return (unsigned)(is_power ? owner.number & (count - 1) : owner.number % count);
}

unsigned
route_place_of(struct owner owner)
{
    return place_among(loop_count(), owner);
}

struct loop *
route_loop_of(struct owner owner, struct loop *self)
{
    unsigned place = place_among(loop_head(self)->count, owner);
    return place == loop_index(self) ? self : loop_at(place);
}

bool
route_is_here(struct owner owner)
{
    const struct loop *self = loop_self();
    return place_among(loop_head(self)->count, owner) == loop_index(self);
}
