/* disk.c - paths on a simulated disk, and the disk as a whole. */
#include "fiber/sim/disk.h"

#include <string.h>

#include "base/check.h"
#include "fiber/file.h"

struct disk *
disk_new(struct world *world)
{
    struct heap *before = heap_select(world->heap);
    struct disk *disk = memory_zalloc(1, sizeof *disk);
    disk->world = world;
    list_init(&disk->nodes);
    disk->root = node_new(disk, true);
    node_hold(disk->root);
    heap_select(before);
    return disk;
}

void
disk_free(struct disk *disk)
{
    node_release(disk->root);
    check_that(list_is_empty(&disk->nodes), "a file outlived its disk");
    memory_free(disk);
}

/* Nodes that no durable name leads to go with their last reference. Each is held until the walk has
 * passed it: so only what lies behind can vanish. */
void
disk_crash(struct disk *disk)
{
    list_each(link, &disk->nodes)
        node_hold(list_entry(link, struct node, link));
    list_each(link, &disk->nodes)
        node_crash(list_entry(link, struct node, link));
    list_each_safe(link, &disk->nodes)
        node_release(list_entry(link, struct node, link));
}

void
disk_drop_handles(struct host *host)
{
    for (struct list *link; (link = list_pop_front(&host->files)) != NULL;) {
        struct file *file = list_entry(link, struct file, link);
        if (file->node->lock_holder == file)
            file->node->lock_holder = NULL;
        node_release(file->node);
        file->node = NULL;
    }
}

/* --- paths ----------------------------------------------------------------------------------- */

/* Copies the next name of *path into `name` and moves on; false: there is none. Empty names and "."
 * are skipped. */
static bool
path_next(const char **path, char name[NAME_SIZE])
{
    for (;;) {
        *path += strspn(*path, "/");
        size_t length = strcspn(*path, "/");
        if (length == 0)
            return false;
        check_that(length < NAME_SIZE, "a name of %zu bytes: %s", length, *path);
        memcpy(name, *path, length);
        name[length] = '\0';
        *path += length;
        check_that(strcmp(name, "..") != 0, "\"..\" in a path is not simulated");
        if (strcmp(name, ".") != 0)
            return true;
    }
}

struct node *
disk_find(struct disk *disk, const char *path)
{
    struct node *node = disk->root;
    char name[NAME_SIZE];
    while (node != NULL && path_next(&path, name))
        node = node->is_folder ? node_find_entry(node, name) : NULL;
    return node;
}

enum disk_result
disk_find_parent(struct disk *disk, const char *path, struct node **folder, char name[NAME_SIZE])
{
    struct node *node = disk->root;
    char next[NAME_SIZE];
    if (!path_next(&path, name))
        return DISK_IS_FOLDER; /* the root */
    while (path_next(&path, next)) {
        node = node_find_entry(node, name);
        if (node == NULL)
            return DISK_NOT_FOUND;
        if (!node->is_folder)
            return DISK_NOT_FOLDER;
        memcpy(name, next, NAME_SIZE);
    }
    *folder = node;
    return DISK_FINE;
}

/* --- names ----------------------------------------------------------------------------------- */

enum disk_result
disk_open(struct disk *disk, const char *path, unsigned flags, struct node **result)
{
    struct node *folder;
    char name[NAME_SIZE];
    enum disk_result failure = disk_find_parent(disk, path, &folder, name);
    if (failure != DISK_FINE)
        return failure;
    struct node *node = node_find_entry(folder, name);
    if (node == NULL && (flags & FILE_CREATE) == 0)
        return DISK_NOT_FOUND;
    if (node != NULL && (flags & FILE_EXCLUSIVE) != 0)
        return DISK_EXISTS;
    if (node != NULL && node->is_folder)
        return DISK_IS_FOLDER;
    if (node == NULL) {
        node = node_new(disk, false);
        node_set_entry(folder, name, node, NULL);
    } else if ((flags & FILE_TRUNCATE) != 0 && node->seen.size > 0) {
        node_truncate(node);
    }
    *result = node;
    return DISK_FINE;
}

enum disk_result
disk_create_folder(struct disk *disk, const char *path)
{
    struct node *folder = disk->root;
    char name[NAME_SIZE];
    while (path_next(&path, name)) {
        struct node *node = node_find_entry(folder, name);
        if (node != NULL && !node->is_folder)
            return DISK_NOT_FOLDER;
        if (node == NULL) {
            node = node_new(disk, true);
            node_set_entry(folder, name, node, NULL);
        }
        folder = node;
    }
    return DISK_FINE;
}

static enum disk_result
check_replaceable(const struct node *moved, const struct node *replaced)
{
    if (replaced == NULL || replaced == moved)
        return DISK_FINE;
    if (replaced->is_folder != moved->is_folder)
        return replaced->is_folder ? DISK_IS_FOLDER : DISK_NOT_FOLDER;
    if (replaced->is_folder && tree_count(replaced->seen_entries) > 0)
        return DISK_NOT_EMPTY;
    return DISK_FINE;
}

/* Within a folder a rename is one change, between two it is one in each. */
enum disk_result
disk_rename(struct disk *disk, const char *from, const char *to)
{
    struct node *from_folder, *to_folder;
    char from_name[NAME_SIZE], to_name[NAME_SIZE];
    enum disk_result failure = disk_find_parent(disk, from, &from_folder, from_name);
    if (failure == DISK_FINE)
        failure = disk_find_parent(disk, to, &to_folder, to_name);
    if (failure != DISK_FINE)
        return failure;
    struct node *node = node_find_entry(from_folder, from_name);
    if (node == NULL)
        return DISK_NOT_FOUND;
    failure = check_replaceable(node, node_find_entry(to_folder, to_name));
    if (failure != DISK_FINE || node == node_find_entry(to_folder, to_name))
        return failure;
    if (from_folder == to_folder) {
        node_set_entry(to_folder, to_name, node, from_name);
    } else {
        node_set_entry(to_folder, to_name, node, NULL);
        node_set_entry(from_folder, from_name, NULL, NULL);
    }
    return DISK_FINE;
}

enum disk_result
disk_remove(struct disk *disk, const char *path)
{
    struct node *folder;
    char name[NAME_SIZE];
    enum disk_result failure = disk_find_parent(disk, path, &folder, name);
    if (failure != DISK_FINE)
        return failure;
    struct node *node = node_find_entry(folder, name);
    if (node == NULL)
        return DISK_NOT_FOUND;
    if (node->is_folder && tree_count(node->seen_entries) > 0)
        return DISK_NOT_EMPTY;
    node_set_entry(folder, name, NULL, NULL);
    return DISK_FINE;
}
