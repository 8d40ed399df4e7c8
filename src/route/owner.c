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

unsigned
route_place_count(void)
{
    return loop_count();
}

unsigned
route_place_of(struct owner owner)
{
    check(owner.kind != OWNER_PLACE || owner.number < loop_count());
    check(owner.kind != OWNER_OF_DOMAINS || owner.number == 0);
    return (unsigned)(owner.number % loop_count());
}

struct loop *
route_loop_of(struct owner owner)
{
    return loop_at(route_place_of(owner));
}

unsigned
route_place_here(void)
{
    return loop_index(loop_self());
}

struct owner
route_here(void)
{
    return owner_at_place(loop_index(loop_self()));
}

bool
route_is_here(struct owner owner)
{
    return route_place_of(owner) == loop_index(loop_self());
}
