/* versions.c - the version history of one branch. See versions.h. */
#include "engine/branches/versions.h"

#include <string.h>

#include "base/check.h"
#include "wire/message.h"

bool
version_item_equal(struct version_item one, struct version_item other)
{
    return one.event_id == other.event_id && one.event_version == other.event_version;
}

/* Are the first `count` items the same? */
static bool
begin_alike(struct versions one, struct versions other, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!version_item_equal(one.items[i], other.items[i]))
            return false;
    return true;
}

bool
versions_equal(struct versions one, struct versions other)
{
    return one.count == other.count && begin_alike(one, other, one.count);
}

bool
versions_are_valid(struct versions versions)
{
    struct version_item before = {0, INT64_MIN};
    for (size_t i = 0; i < versions.count; i++) {
        struct version_item item = versions.items[i];
        if (item.event_version < 0 && item.event_version != VERSION_NONE)
            return false;
        if (item.event_id <= before.event_id || item.event_version <= before.event_version)
            return false;
        before = item;
    }
    return versions.count > 0;
}

struct version_item
versions_last(struct versions versions)
{
    check(versions.count > 0);
    return versions.items[versions.count - 1];
}

/* The index of the item that the event belongs to by its id; count: it is beyond the last. */
static size_t
find_event(struct versions versions, int64_t event_id)
{
    size_t i = 0;
    while (i < versions.count && versions.items[i].event_id < event_id)
        i++;
    return i;
}

int64_t
versions_of_event(struct versions versions, int64_t event_id)
{
    size_t index = find_event(versions, event_id);
    check_that(event_id > 0 && index < versions.count, "no event %lld", (long long)event_id);
    return versions.items[index].event_version;
}

bool
versions_contain(struct versions versions, struct version_item event)
{
    size_t index = find_event(versions, event.event_id);
    return event.event_id > 0 && index < versions.count &&
           versions.items[index].event_version == event.event_version;
}

/* The first `count` items and room for one more. */
static struct version_item *
copy_items(struct versions versions, size_t count, struct arena *arena)
{
    struct version_item *items = arena_zalloc(arena, count + 1, sizeof *items);
    if (count > 0)
        memcpy(items, versions.items, count * sizeof *items);
    return items;
}

struct versions
versions_append(struct versions versions, struct version_item event, struct arena *arena)
{
    size_t kept = versions.count;
    if (kept > 0) {
        struct version_item last = versions_last(versions);
        check_that(event.event_id > last.event_id && event.event_version >= last.event_version,
                   "event %lld of version %lld behind event %lld of version %lld",
                   (long long)event.event_id, (long long)event.event_version,
                   (long long)last.event_id, (long long)last.event_version);
        kept -= event.event_version == last.event_version;
    }
    check(event.event_id > 0);
    struct version_item *items = copy_items(versions, kept, arena);
    items[kept] = event;
    return (struct versions){items, kept + 1};
}

struct versions
versions_until(struct versions versions, struct version_item event, struct arena *arena)
{
    check(versions_contain(versions, event));
    size_t index = find_event(versions, event.event_id);
    struct version_item *items = copy_items(versions, index, arena);
    items[index] = event;
    return (struct versions){items, index + 1};
}

bool
versions_find_common(struct versions one, struct versions other, struct version_item *common)
{
    size_t i = one.count, j = other.count;
    while (i > 0 && j > 0) {
        struct version_item mine = one.items[i - 1], theirs = other.items[j - 1];
        if (mine.event_version == theirs.event_version) {
            *common = mine.event_id < theirs.event_id ? mine : theirs;
            return i == j && begin_alike(one, other, i - 1);
        }
        if (mine.event_version > theirs.event_version)
            i--;
        else
            j--;
    }
    return false;
}

/* ---- records and messages ---- */

struct versions
versions_read(STORED(VersionItem) *const *items, size_t count, struct arena *arena)
{
    struct version_item *copy = arena_zalloc(arena, count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct version_item){items[i]->event_id, items[i]->event_version};
    return (struct versions){copy, count};
}

struct versions
versions_receive(ADMIN(VersionHistoryItem) *const *items, size_t count, struct arena *arena)
{
    struct version_item *copy = arena_zalloc(arena, count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct version_item){items[i]->event_id, items[i]->version};
    return (struct versions){copy, count};
}

STORED(VersionItem) **
versions_store(struct versions versions, struct arena *arena)
{
    STORED(VersionItem) **items = arena_zalloc(arena, versions.count + 1, sizeof *items);
    for (size_t i = 0; i < versions.count; i++) {
        items[i] = message_new(arena, STORED_TYPE(version_item));
        items[i]->event_id = versions.items[i].event_id;
        items[i]->event_version = versions.items[i].event_version;
    }
    return items;
}

ADMIN(VersionHistoryItem) **
versions_send(struct versions versions, struct arena *arena)
{
    ADMIN(VersionHistoryItem) **items = arena_zalloc(arena, versions.count + 1, sizeof *items);
    for (size_t i = 0; i < versions.count; i++) {
        items[i] = message_new(arena, ADMIN_TYPE(version_history_item));
        items[i]->event_id = versions.items[i].event_id;
        items[i]->version = versions.items[i].event_version;
    }
    return items;
}
