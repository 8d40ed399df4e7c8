/* disk_node.c - files and folders with two states, seen and durable, and the changes between them.
 *
 * What a crash keeps of the changes of one node is drawn: nothing, all, the first few, or each by
 * the toss of a coin; the last kept write may be torn at any byte. A write kept without an earlier
 * one leaves zeros between. A real system also writes back by itself what is old: beyond
 * CHANGES_MAX the oldest change becomes durable, which also bounds memory for a file that nobody
 * ever syncs. */
#include <string.h>

#include "base/check.h"
#include "fiber/sim/disk.h"

#define CHANGES_MAX 4096

/* --- bytes ----------------------------------------------------------------------------------- */

static void
bytes_put(struct bytes *bytes, uint64_t offset, const void *data, size_t count)
{
    uint64_t end = offset + count;
    if (end > bytes->capacity) {
        uint64_t capacity = bytes->capacity == 0 ? 256 : bytes->capacity;
        while (capacity < end)
            capacity *= 2;
        bytes->data = memory_realloc(bytes->data, capacity);
        memset(bytes->data + bytes->capacity, 0, capacity - bytes->capacity);
        bytes->capacity = capacity;
    }
    if (count > 0)
        memcpy(bytes->data + offset, data, count);
    if (end > bytes->size && count > 0)
        bytes->size = end;
}

/* Beyond its size there are zeros, always: a later write may leave a hole. */
static void
bytes_truncate(struct bytes *bytes)
{
    if (bytes->size > 0)
        memset(bytes->data, 0, bytes->size);
    bytes->size = 0;
}

static void
bytes_copy(struct bytes *to, const struct bytes *from)
{
    bytes_truncate(to);
    bytes_put(to, 0, from->data, from->size);
}

/* --- life ------------------------------------------------------------------------------------ */

struct node *
node_new(struct disk *disk, bool is_folder)
{
    struct node *node = memory_zalloc(1, sizeof *node);
    node->disk = disk;
    node->is_folder = is_folder;
    node->number = ++disk->numbers;
    node->modified = disk->world->now;
    list_init(&node->changes);
    list_push_back(&disk->nodes, &node->link);
    if (is_folder) {
        node->seen_entries = tree_new();
        node->durable_entries = tree_new();
    }
    return node;
}

void
node_hold(struct node *node)
{
    node->references++;
}

static void
entries_clear(struct tree *entries)
{
    for (struct tree_row *row; (row = tree_first(entries)) != NULL;)
        node_release(tree_remove(entries, row->key));
}

static void
entries_set(struct tree *entries, const char *name, struct node *node)
{
    struct node *before;
    if (node != NULL) {
        node_hold(node);
        before = tree_put(entries, slice_text(name), node);
    } else {
        before = tree_remove(entries, slice_text(name));
    }
    node_release(before);
}

static void
change_free(struct node *node, struct disk_change *change)
{
    list_remove(&change->node);
    node->change_count--;
    for (unsigned i = 0; i < 2; i++) {
        node_release(change->nodes[i]);
        memory_free(change->names[i]);
    }
    memory_free(change->bytes);
    memory_free(change);
}

static void
node_forget_changes(struct node *node)
{
    while (!list_is_empty(&node->changes))
        change_free(node, list_entry(node->changes.next, struct disk_change, node));
}

void
node_release(struct node *node)
{
    if (node == NULL)
        return;
    check(node->references > 0);
    if (--node->references > 0)
        return;
    check(node->lock_holder == NULL);
    list_remove(&node->link);
    node_forget_changes(node);
    if (node->is_folder) {
        entries_clear(node->seen_entries);
        entries_clear(node->durable_entries);
        tree_free(node->seen_entries);
        tree_free(node->durable_entries);
    }
    memory_free(node->seen.data);
    memory_free(node->durable.data);
    memory_free(node);
}

/* --- changes --------------------------------------------------------------------------------- */

/* Makes the first `length` bytes of a change durable; other kinds of change are never torn. */
static void
change_apply(struct node *node, const struct disk_change *change, size_t length)
{
    switch (change->kind) {
    case CHANGE_WRITE:
        bytes_put(&node->durable, change->offset, change->bytes, length);
        return;
    case CHANGE_TRUNCATE:
        bytes_truncate(&node->durable);
        return;
    case CHANGE_ENTRY:
        for (unsigned i = 0; i < 2 && change->names[i] != NULL; i++)
            entries_set(node->durable_entries, change->names[i], change->nodes[i]);
        return;
    }
    unreachable("kind of change %d", (int)change->kind);
}

static struct disk_change *
change_add(struct node *node, int kind)
{
    struct disk_change *change = memory_zalloc(1, sizeof *change);
    change->kind = kind;
    list_push_back(&node->changes, &change->node);
    node->change_count++;
    node->modified = node->disk->world->now;
    return change;
}

static void
node_write_back(struct node *node)
{
    while (node->change_count > CHANGES_MAX) {
        struct disk_change *oldest = list_entry(node->changes.next, struct disk_change, node);
        change_apply(node, oldest, oldest->length);
        change_free(node, oldest);
    }
}

void
node_write(struct node *node, uint64_t offset, const void *bytes, size_t count)
{
    check(!node->is_folder);
    struct disk_change *change = change_add(node, CHANGE_WRITE);
    change->offset = offset;
    change->length = count;
    change->bytes = memory_alloc(count);
    if (count > 0)
        memcpy(change->bytes, bytes, count);
    bytes_put(&node->seen, offset, bytes, count);
    node_write_back(node);
}

void
node_truncate(struct node *node)
{
    check(!node->is_folder);
    change_add(node, CHANGE_TRUNCATE);
    bytes_truncate(&node->seen);
    node_write_back(node);
}

void
node_sync(struct node *node)
{
    while (!list_is_empty(&node->changes)) {
        struct disk_change *change = list_entry(node->changes.next, struct disk_change, node);
        change_apply(node, change, change->length);
        change_free(node, change);
    }
}

static void
change_add_name(struct node *folder, struct disk_change *change, unsigned index, const char *name,
                struct node *node)
{
    change->names[index] = world_text(folder->disk->world, name);
    change->nodes[index] = node;
    if (node != NULL)
        node_hold(node);
    entries_set(folder->seen_entries, name, node);
}

void
node_set_entry(struct node *folder, const char *name, struct node *node, const char *other_name)
{
    check(folder->is_folder);
    struct disk_change *change = change_add(folder, CHANGE_ENTRY);
    change_add_name(folder, change, 0, name, node);
    if (other_name != NULL)
        change_add_name(folder, change, 1, other_name, NULL);
    node_write_back(folder);
}

struct node *
node_find_entry(const struct node *folder, const char *name)
{
    return tree_get(folder->seen_entries, slice_text(name));
}

/* --- crash ----------------------------------------------------------------------------------- */

/* mode 0: nothing, 1: all, 2: the first few, 3: the first few, each by the toss of a coin. */
static void
node_keep_some(struct node *node)
{
    struct world *world = node->disk->world;
    uint64_t mode = random_below(&world->chance, 4);
    size_t count = node->change_count;
    if (mode == 0)
        count = 0;
    else if (mode > 1)
        count = random_below(&world->chance, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct disk_change *change = list_entry(node->changes.next, struct disk_change, node);
        bool is_kept = mode < 3 || world_once_in(world, 2);
        size_t length = change->length;
        if (is_kept && i + 1 == count && length > 0 && world_once_in(world, 2))
            length = random_below(&world->chance, length);
        if (is_kept)
            change_apply(node, change, length);
        change_free(node, change);
    }
}

static void
node_show_durable(struct node *node)
{
    if (!node->is_folder) {
        bytes_copy(&node->seen, &node->durable);
        return;
    }
    entries_clear(node->seen_entries);
    for (struct tree_row *row = tree_first(node->durable_entries); row != NULL;
         row = tree_next(row)) {
        node_hold(row->value);
        tree_put(node->seen_entries, row->key, row->value);
    }
}

void
node_crash(struct node *node)
{
    if (list_is_empty(&node->changes))
        return; /* seen and durable are the same */
    node_keep_some(node);
    node_forget_changes(node);
    node_show_durable(node);
}
