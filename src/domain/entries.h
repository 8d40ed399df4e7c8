/* entries.h - the maps inside a domain: its data and its bad binaries, merged and kept good
 * (wire/maps.h).
 *
 * Domain.data, RegisterDomainRequest.data and UpdateDomainRequest.data have entry types of their
 * own with the same two fields, so here they are one struct data_entry (checked in entries.c). */
#ifndef CADENZA_DOMAIN_ENTRIES_H
#define CADENZA_DOMAIN_ENTRIES_H

#include <stdbool.h>

#include "base/arena.h"
#include "cadenza/storage/v1/domain.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

struct data_entry {
    ProtobufCMessage base;
    char *key;
    char *value;
};

/* `old` with `fresh` over it, as entries of Domain.data. Both are arrays of pointers to data
 * entries of any of the three types; of repeated keys the last one counts. */
API(Domain__DataEntry) **data_merge(size_t old_count, void *old, size_t fresh_count, void *fresh,
                                    struct arena *arena, size_t *count);

/* The data that clients are shown: the domain's own, and under FailoverHistory the recent failovers
 * of an active-passive domain as a JSON list, newest first, with the keys eventTime, fromCluster,
 * toCluster, failoverType and reason (blank ones left out). */
API(Domain__DataEntry) **domain_shown_data(const STORED(DomainRecord) *record, struct arena *arena,
                                           size_t *count);

/* A copy of `old` (NULL: none) with `fresh` (NULL: none) over it; the new ones created at `now`. */
API(BadBinaries) *bad_binaries_merge(const API(BadBinaries) *old, const API(BadBinaries) *fresh,
                                     int64_t now, struct arena *arena);
/* False: there is no such checksum. */
bool bad_binaries_remove(API(BadBinaries) *binaries, const char *checksum);

#endif
