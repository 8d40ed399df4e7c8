/* versions.h - the version history of one branch: which failover version wrote which events.
 *
 * A list of (last event id, failover version), the oldest first: events 1 to 5 of versions 1, 1, 1,
 * 2, 2 are (3, 1) (5, 2). That is all that two clusters need to compare their histories without
 * reading them, because of one rule that holds over all clusters:
 *
 *   A failover version belongs to one cluster, and that cluster writes it in one history alone. So
 *   an event is named by its id and its version, and two histories that have an event in common
 * have everything before it in common.
 *
 * Lists are values: never written to; a change makes a new one in an arena. Pure. */
#ifndef CADENZA_ENGINE_BRANCHES_VERSIONS_H
#define CADENZA_ENGINE_BRANCHES_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "uber/cadence/admin/v1/history.pb-c.h"
#include "wire/names.h"

#define VERSION_NONE ((int64_t)-24) /* of events in a domain that is in one cluster only */

/* In a list: the last event of a version. Elsewhere: any event. */
struct version_item {
    int64_t event_id;
    int64_t event_version;
};
struct versions {
    const struct version_item *items;
    size_t count;
};

bool version_item_equal(struct version_item one, struct version_item other);
bool versions_equal(struct versions one, struct versions other);
/* At least one item; ids from 1 on and versions both rise. What comes from elsewhere may not. */
bool versions_are_valid(struct versions versions);

/* The newest event. There is one. */
struct version_item versions_last(struct versions versions);
/* The version of an event; it must be there. */
int64_t versions_of_event(struct versions versions, int64_t event_id);
/* Does the history have this very event? */
bool versions_contain(struct versions versions, struct version_item event);

/* The list once events up to `event.event_id` were added with its version: the same version moves
 * the last item, a higher one adds an item. A lower version or id is a bug. */
struct versions versions_append(struct versions versions, struct version_item event,
                                struct arena *arena);
/* The list up to an event, which must be in it. */
struct versions versions_until(struct versions versions, struct version_item event,
                               struct arena *arena);
/* The newest event that both have. False: there is none; then they are not of one run, or no
 * cluster of the group can have written both. */
must_use bool versions_find_common(struct versions one, struct versions other,
                                   struct version_item *common);

/* From records and messages, into the arena; and back. */
struct versions versions_read(STORED(VersionItem) *const *items, size_t count, struct arena *arena);
struct versions versions_receive(ADMIN(VersionHistoryItem) *const *items, size_t count,
                                 struct arena *arena);
STORED(VersionItem) **versions_store(struct versions versions, struct arena *arena);
ADMIN(VersionHistoryItem) **versions_send(struct versions versions, struct arena *arena);

#endif
