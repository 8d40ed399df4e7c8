/* dynamic_inside.h - what dynamic.c (values) and dynamic_follow.c (the file) share. */
#ifndef CADENZA_CONFIG_DYNAMIC_INSIDE_H
#define CADENZA_CONFIG_DYNAMIC_INSIDE_H

#include "base/list.h"
#include "config/dynamic_set.h"
#include "fiber/sync.h"

struct dynamic {
    const struct log *log;
    struct arena *arena;                      /* defaults and the name of the file */
    struct value defaults[DYNAMIC_KEY_COUNT]; /* parsed once */
    struct dynamic_set *current;              /* NULL: no file; atomic, read by every loop */
    struct dynamic_set *stored;               /* over it; NULL: none; atomic as well */
    struct list retired;                      /* old sets that a loop may still read */
    struct latch open;                        /* the follower and each retired set */

    struct {
        struct fiber *fiber; /* NULL: no file is followed */
        const char *file;
        int64_t interval;
        int64_t modified; /* of what was read last, good or bad */
        uint64_t size;
        bool is_lost; /* the file could not be read at the last check; logged once */
    } follower;
};

/* Posts again what a full mailbox refused. */
void dynamic_retry_retired(struct dynamic *dynamic);
/* Asks the follower to end; the latch says when it has. */
void dynamic_stop_following(struct dynamic *dynamic);

#endif
