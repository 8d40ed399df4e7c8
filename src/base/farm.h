/* farm.h - FarmHash's fingerprints: the number by which a workflow id finds its shard, and the one
 * that names its files in an archive.
 *
 * The shard of an id is farm_fingerprint32(id) % number of shards, as in Cadence; so the values may
 * never change, on any machine. */
#ifndef CADENZA_BASE_FARM_H
#define CADENZA_BASE_FARM_H

#include "base/slice.h"

uint32_t farm_fingerprint32(struct slice bytes);
uint64_t farm_fingerprint64(struct slice bytes);

#endif
