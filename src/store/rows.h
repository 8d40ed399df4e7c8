/* rows.h - every kind of row the store holds, in one table: where it lives, how it is read, how it
 * is deleted.
 *
 * Engines choose their layout by this table (rocks: a column family per way of access), and check
 * callers against it. Adding a kind is adding a line; its number is stored, so lines are never
 * moved or reused.
 *
 * Access: FORWARD rows are read by key or scanned forward inside one partition only. ORDERED rows
 * may also be scanned backwards and walked across partitions. ONCE rows are put once and deleted
 * once, by single deletes or never by anything else (an engine may then forget the pair cheaply);
 * they get no range deletes. ONCE_RANGE rows are put once and deleted by ranges only. MANY rows may
 * be overwritten and deleted any way. */
#ifndef CADENZA_STORE_ROWS_H
#define CADENZA_STORE_ROWS_H

#include <stdint.h>

#include "base/slice.h"

enum partition_kind {
    PARTITION_SYSTEM = 1,     /* one: what the data folder itself has to say */
    PARTITION_DOMAINS = 2,    /* one: all domains; guard = notification version */
    PARTITION_SHARD = 3,      /* by number; guard = range id */
    PARTITION_TASK_LIST = 4,  /* by name; guard = range id of the task list */
    PARTITION_SETTINGS = 5,   /* one: dynamic settings that were stored; guard = their changes */
    PARTITION_ATTRIBUTES = 6, /* one: search attributes that were added; guard = their changes */
    PARTITION_AUDIT = 7,      /* one: what operators did; guard = number of the newest record */
    PARTITION_KIND_END
};

/* A slice of the store that is written by one owner at a time and fenced by one guard. */
struct partition {
    enum partition_kind kind;
    uint32_t number;   /* of a shard; 0 otherwise */
    struct slice name; /* of a task list; empty otherwise */
};

enum row_access { ROW_FORWARD, ROW_ORDERED };
enum row_life { ROW_MANY, ROW_ONCE, ROW_ONCE_RANGE };

/* X(kind, number, partition, access, life, name for people) */
#define ROW_KINDS(X)                                                                               \
    X(ROW_META, 1, PARTITION_SYSTEM, ROW_ORDERED, ROW_MANY, "meta")                                \
    X(ROW_DOMAIN, 2, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain")                           \
    X(ROW_DOMAIN_NAME, 3, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-name")                 \
    X(ROW_DOMAIN_LOG, 4, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-log")                   \
    X(ROW_SHARD, 5, PARTITION_SHARD, ROW_ORDERED, ROW_MANY, "shard")                               \
    X(ROW_CURRENT, 6, PARTITION_SHARD, ROW_FORWARD, ROW_MANY, "current-run")                       \
    X(ROW_RUN, 7, PARTITION_SHARD, ROW_FORWARD, ROW_MANY, "run")                                   \
    X(ROW_PENDING, 8, PARTITION_SHARD, ROW_FORWARD, ROW_MANY, "pending")                           \
    X(ROW_HISTORY, 9, PARTITION_SHARD, ROW_ORDERED, ROW_ONCE_RANGE, "history-node")                \
    X(ROW_TRANSFER, 10, PARTITION_SHARD, ROW_FORWARD, ROW_ONCE, "transfer")                        \
    X(ROW_TIMER, 11, PARTITION_SHARD, ROW_FORWARD, ROW_ONCE, "timer")                              \
    X(ROW_REPLICATION, 12, PARTITION_SHARD, ROW_FORWARD, ROW_MANY, "replication")                  \
    X(ROW_DEAD_LETTER, 13, PARTITION_SHARD, ROW_ORDERED, ROW_MANY, "dead-letter")                  \
    X(ROW_TASK_LIST, 14, PARTITION_TASK_LIST, ROW_ORDERED, ROW_MANY, "task-list")                  \
    X(ROW_TASK, 15, PARTITION_TASK_LIST, ROW_ORDERED, ROW_ONCE_RANGE, "task")                      \
    X(ROW_DOMAIN_FAILOVER, 16, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-failover")        \
    X(ROW_DOMAIN_DEAD_LETTER, 17, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-dead-letter")  \
    X(ROW_DOMAIN_POSITION, 18, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-position")        \
    X(ROW_SETTING, 19, PARTITION_SETTINGS, ROW_ORDERED, ROW_MANY, "setting")                       \
    X(ROW_VISIBLE, 20, PARTITION_SHARD, ROW_FORWARD, ROW_ONCE_RANGE, "visible")                    \
    X(ROW_SEARCH_ATTRIBUTE, 21, PARTITION_ATTRIBUTES, ROW_ORDERED, ROW_MANY, "search-attribute")   \
    X(ROW_ISOLATION_GROUPS, 22, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "isolation-groups")      \
    X(ROW_AUDIT, 23, PARTITION_AUDIT, ROW_ORDERED, ROW_MANY, "audit")                              \
    X(ROW_DIVERGENCE, 24, PARTITION_SHARD, ROW_ORDERED, ROW_MANY, "divergence")                    \
    X(ROW_DOMAIN_DRAIN, 25, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "domain-drain")              \
    X(ROW_ENTITY, 26, PARTITION_DOMAINS, ROW_ORDERED, ROW_MANY, "entity")

enum row_kind {
#define X(kind, number, partition, access, life, name) kind = number,
    ROW_KINDS(X)
#undef X
        ROW_KIND_END
};

struct row_traits {
    enum partition_kind partition;
    enum row_access access;
    enum row_life life;
    const char *name;
};
/* The line of the table; NULL for a number that is not a kind. */
const struct row_traits *row_traits(enum row_kind kind);

#define PARTITION_OF_SYSTEM     ((struct partition){.kind = PARTITION_SYSTEM})
#define PARTITION_OF_DOMAINS    ((struct partition){.kind = PARTITION_DOMAINS})
#define PARTITION_OF_SETTINGS   ((struct partition){.kind = PARTITION_SETTINGS})
#define PARTITION_OF_AUDIT      ((struct partition){.kind = PARTITION_AUDIT})
#define PARTITION_OF_ATTRIBUTES ((struct partition){.kind = PARTITION_ATTRIBUTES})
#define PARTITION_OF_SHARD(n)   ((struct partition){.kind = PARTITION_SHARD, .number = (n)})

#endif
