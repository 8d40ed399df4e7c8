/* maps.c - maps as sorted arrays.
 *
 * A stable merge sort, because of equal keys the last one sent counts. Most maps arrive in order or
 * hold one entry, so that is checked first. */
#include "wire/maps.h"

#include <string.h>

#include "base/check.h"
#include "wire/message.h"

bool
wire_map_is_entry(const ProtobufCMessageDescriptor *type)
{
    static const char suffix[] = "Entry";
    if (type->n_fields != 2)
        return false;
    const ProtobufCFieldDescriptor *key = &type->fields[0];
    const ProtobufCFieldDescriptor *value = &type->fields[1];
    size_t length = strlen(type->short_name);
    return key->id == 1 && value->id == 2 && strcmp(key->name, "key") == 0 &&
           strcmp(value->name, "value") == 0 && length > sizeof suffix - 1 &&
           strcmp(type->short_name + length - (sizeof suffix - 1), suffix) == 0;
}

static const void *
entry_field(const ProtobufCMessage *entry, unsigned index)
{
    return (const char *)entry + entry->descriptor->fields[index].offset;
}

/* Keys of the wire are strings, int32 and int64; no other type is used. */
static int
entry_compare(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    const void *left = entry_field(a, 0), *right = entry_field(b, 0);
    switch (a->descriptor->fields[0].type) {
    case PROTOBUF_C_TYPE_STRING:
        return strcmp(*(char *const *)left, *(char *const *)right);
    case PROTOBUF_C_TYPE_INT32:
        return (*(const int32_t *)left > *(const int32_t *)right) -
               (*(const int32_t *)left < *(const int32_t *)right);
    case PROTOBUF_C_TYPE_INT64:
        return (*(const int64_t *)left > *(const int64_t *)right) -
               (*(const int64_t *)left < *(const int64_t *)right);
    default:
        unreachable("a map with keys of type %d", (int)a->descriptor->fields[0].type);
    }
}

static void
entry_complete(struct arena *arena, ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    if (value->type != PROTOBUF_C_TYPE_MESSAGE)
        return;
    ProtobufCMessage **place = (ProtobufCMessage **)((char *)entry + value->offset);
    if (*place == NULL)
        *place = message_new(arena, value->descriptor);
}

static bool
entries_rise(ProtobufCMessage *const *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (entry_compare(entries[i - 1], entries[i]) >= 0)
            return false;
    return true;
}

/* Merges from[low, middle) and from[middle, high) into to[low, high). */
static void
merge_runs(ProtobufCMessage **from, ProtobufCMessage **to, size_t low, size_t middle, size_t high)
{
    size_t left = low, right = middle;
    for (size_t i = low; i < high; i++) {
        bool is_left =
            right == high || (left < middle && entry_compare(from[left], from[right]) <= 0);
        to[i] = is_left ? from[left++] : from[right++];
    }
    check(left == middle && right == high);
}

static void
entries_merge_sort(ProtobufCMessage **entries, ProtobufCMessage **room, size_t count)
{
    ProtobufCMessage **from = entries, **to = room;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = middle + width < count ? middle + width : count;
            merge_runs(from, to, low, middle, high);
        }
        ProtobufCMessage **swap = from;
        from = to;
        to = swap;
    }
    if (from != entries)
        memcpy(entries, from, count * sizeof *entries);
}

/* Of neighbours with equal keys the last stays. Returns how many are left. */
static size_t
entries_unique(ProtobufCMessage **entries, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_again = kept > 0 && entry_compare(entries[kept - 1], entries[i]) == 0;
        kept -= is_again;
        entries[kept++] = entries[i];
    }
    check(kept <= count);
    return kept;
}

void
wire_map_sort_messages(struct arena *arena, ProtobufCMessage **entries, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        check(wire_map_is_entry(entries[i]->descriptor));
        entry_complete(arena, entries[i]);
    }
    if (entries_rise(entries, *count))
        return;
    entries_merge_sort(entries, arena_alloc(arena, *count * sizeof *entries), *count);
    *count = entries_unique(entries, *count);
}

ProtobufCMessage *
wire_map_find_message(ProtobufCMessage *const *entries, size_t count, const char *key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        check(entries[middle]->descriptor->fields[0].type == PROTOBUF_C_TYPE_STRING);
        int order = strcmp(*(char *const *)entry_field(entries[middle], 0), key);
        if (order == 0)
            return entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
