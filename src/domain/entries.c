/* entries.c - see entries.h. */
#include "domain/entries.h"

#include <assert.h>
#include <string.h>

#include "base/check.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The three generated types are what we take them for. */
#define SAME_SHAPE(type)                                                                           \
    static_assert(sizeof(type) == sizeof(struct data_entry) &&                                     \
                      offsetof(type, key) == offsetof(struct data_entry, key) &&                   \
                      offsetof(type, value) == offsetof(struct data_entry, value),                 \
                  "a data entry has another shape")
SAME_SHAPE(API(Domain__DataEntry));
SAME_SHAPE(API(RegisterDomainRequest__DataEntry));
SAME_SHAPE(API(UpdateDomainRequest__DataEntry));

API(Domain__DataEntry) **
data_merge(size_t old_count, void *old, size_t fresh_count, void *fresh, struct arena *arena,
           size_t *count)
{
    *count = old_count + fresh_count;
    API(Domain__DataEntry) **merged = arena_zalloc(arena, *count, sizeof *merged);
    for (size_t i = 0; i < *count; i++) {
        const struct data_entry *entry = i < old_count
                                             ? ((struct data_entry **)old)[i]
                                             : ((struct data_entry **)fresh)[i - old_count];
        merged[i] = message_new(arena, API_TYPE(domain__data_entry));
        merged[i]->key = entry->key;
        merged[i]->value = entry->value;
    }
    wire_map_sort(arena, merged, count);
    check(*count <= old_count + fresh_count);
    return merged;
}

static API(BadBinaries__BinariesEntry) *
bad_binary_at(const API(BadBinaries__BinariesEntry) *entry, int64_t now, struct arena *arena)
{
    API(BadBinaryInfo) *info = message_new(arena, API_TYPE(bad_binary_info));
    if (entry->value != NULL) {
        info->reason = entry->value->reason;
        info->operator_ = entry->value->operator_;
    }
    info->created_time = presence_make_timestamp(arena, now);
    API(BadBinaries__BinariesEntry) *copy =
        message_new(arena, API_TYPE(bad_binaries__binaries_entry));
    copy->key = entry->key;
    copy->value = info;
    return copy;
}

API(BadBinaries) *
bad_binaries_merge(const API(BadBinaries) *old, const API(BadBinaries) *fresh, int64_t now,
                   struct arena *arena)
{
    size_t old_count = old == NULL ? 0 : old->n_binaries,
           fresh_count = fresh == NULL ? 0 : fresh->n_binaries;
    API(BadBinaries) *merged = message_new(arena, API_TYPE(bad_binaries));
    merged->n_binaries = old_count + fresh_count;
    merged->binaries = arena_zalloc(arena, merged->n_binaries, sizeof *merged->binaries);
    for (size_t i = 0; i < merged->n_binaries; i++)
        merged->binaries[i] = i < old_count
                                  ? old->binaries[i]
                                  : bad_binary_at(fresh->binaries[i - old_count], now, arena);
    wire_map_sort(arena, merged->binaries, &merged->n_binaries);
    check(merged->n_binaries <= old_count + fresh_count);
    return merged;
}

bool
bad_binaries_remove(API(BadBinaries) *binaries, const char *checksum)
{
    for (size_t i = 0; i < binaries->n_binaries; i++) {
        if (strcmp(binaries->binaries[i]->key, checksum) != 0)
            continue;
        size_t behind = binaries->n_binaries - i - 1;
        memmove(&binaries->binaries[i], &binaries->binaries[i + 1],
                behind * sizeof *binaries->binaries);
        binaries->n_binaries--;
        return true;
    }
    return false;
}
