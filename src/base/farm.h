/* farm.h - FarmHash's Fingerprint32: the number by which a workflow id finds its shard.
 *
 * The shard of an id is farm_fingerprint32(id) % number of shards, as in Cadence; so the value may
 * never change, on any machine. */
#ifndef CADENZA_BASE_FARM_H
#define CADENZA_BASE_FARM_H

#include "base/slice.h"

uint32_t farm_fingerprint32(struct slice bytes);

#endif
