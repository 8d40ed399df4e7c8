/* disk.h - the disk of a simulated host, for the files of this folder only.
 *
 * A disk is a tree of nodes: folders with entries, files with bytes. Every node has two states:
 * what the running process sees, and what is durable; between them lies an ordered list of changes
 * that were not synced yet. A sync applies the list to the durable state. A crash applies a part of
 * it, drawn by the seed, and then makes that what is seen. So nobody can rely on an order between
 * unsynced changes, as nobody can on a real disk.
 *
 * Paths: "a/b", "./a//b" and "/a/b" are the same; there is no "..". */
#ifndef CADENZA_FIBER_SIM_DISK_H
#define CADENZA_FIBER_SIM_DISK_H

#include "base/arena.h"
#include "base/tree.h"
#include "fiber/sim/inside.h"

enum disk_result {
    DISK_FINE,
    DISK_NOT_FOUND,
    DISK_EXISTS,
    DISK_IS_FOLDER,
    DISK_NOT_FOLDER,
    DISK_NOT_EMPTY,
    DISK_FULL,
    DISK_LOCKED,
};

/* Something that was done and not synced yet. */
struct disk_change {
    struct list node;
    enum { CHANGE_WRITE, CHANGE_TRUNCATE, CHANGE_ENTRY } kind;
    uint64_t offset; /* of a write */
    size_t length;
    uint8_t *bytes;
    char *names[2];        /* of an entry change: names in the folder; a rename within it has two */
    struct node *nodes[2]; /* what they lead to from now on; NULL: removed */
};

struct bytes {
    uint8_t *data;
    uint64_t size, capacity;
};

struct node {
    struct list link; /* in disk->nodes, oldest first */
    struct disk *disk;
    unsigned references; /* entries seen and durable, changes, handles */
    bool is_folder;
    struct list changes; /* struct change, oldest first */
    size_t change_count;
    uint64_t number;                             /* no other node of this disk ever had it */
    int64_t modified;                            /* virtual time */
    struct bytes seen, durable;                  /* of a file */
    struct tree *seen_entries, *durable_entries; /* of a folder: name → struct node */
    struct file *lock_holder;
};

struct disk {
    struct world *world;
    struct node *root;
    struct list nodes;
    uint64_t numbers; /* of nodes, given out so far */
};

/* An open handle; lies in the host's heap. */
struct file {
    struct list link; /* in host->files */
    struct host *host;
    struct node *node;
    char *path;
    unsigned flags;
    unsigned calls; /* under way */
};

struct disk *disk_new(struct world *world);
void disk_free(struct disk *disk);
/* The power failed: decides what was kept. No handle may be open. */
void disk_crash(struct disk *disk);
/* The process is gone: closes its handles and gives up its locks. Their memory is the heap's. */
void disk_drop_handles(struct host *host);

/* --- disk_node.c: nodes and their bytes ------------------------------------------------------ */

/* A new node, referenced by nobody yet. */
struct node *node_new(struct disk *disk, bool is_folder);
void node_hold(struct node *node);
/* Frees it with the last reference, and what only it led to. NULL is fine. */
void node_release(struct node *node);
void node_write(struct node *node, uint64_t offset, const void *bytes, size_t count);
void node_truncate(struct node *node);
/* Makes all changes of a node durable. */
void node_sync(struct node *node);
/* Lets a name of a folder lead to `node` (NULL: nowhere), and in the same stroke `other_name`
 * nowhere (may be NULL). */
void node_set_entry(struct node *folder, const char *name, struct node *node,
                    const char *other_name);
struct node *node_find_entry(const struct node *folder, const char *name);
/* Applies a drawn part of what was not synced, forgets the rest, and shows what is durable. */
void node_crash(struct node *node);

/* --- disk.c: paths --------------------------------------------------------------------------- */

/* The node at a path; NULL: none. */
struct node *disk_find(struct disk *disk, const char *path);
/* The folder that a path's last name is in, and that name (at most 255 bytes). DISK_NOT_FOUND: no
 * such folder. */
#define NAME_SIZE 256
enum disk_result disk_find_parent(struct disk *disk, const char *path, struct node **folder,
                                  char name[NAME_SIZE]);
enum disk_result disk_open(struct disk *disk, const char *path, unsigned flags, struct node **node);
enum disk_result disk_create_folder(struct disk *disk, const char *path);
enum disk_result disk_rename(struct disk *disk, const char *from, const char *to);
enum disk_result disk_remove(struct disk *disk, const char *path);

#endif
