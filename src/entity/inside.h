/* inside.h - what a kind of watcher has to do. Only files of entity/ include it.
 *
 * A kind is one function and a row in the table of watchers.c: it waits until its source has
 * something new, and returns it. Everything else (applying, failing, trying again) is common. */
#ifndef CADENZA_ENTITY_INSIDE_H
#define CADENZA_ENTITY_INSIDE_H

#include "entity/mapping.h"
#include "entity/watchers.h"

struct watch_update {
    bool has_any; /* else there was nothing new within a while */
    bool is_all;  /* the mapping is all that there is; else what changed */
    struct mapping mapping;
};

/* How far a kind has read; all of it is reset after an update that could not be applied. */
struct watch_position {
    bool is_begun;    /* it has read something since the last reset */
    int64_t modified; /* of the file */
    uint64_t size;
    char version[256]; /* of the HTTP source */
};

/* What a watcher follows. */
struct watch_source {
    const struct entity_type *type;
    struct watch_position position;
    struct tls *tls; /* of https, made when it is first asked; NULL: not yet */
};

struct watcher_kind {
    const char *name; /* of setting entities.types.*.watcher */
    /* Waits for news; texts in the arena. Yields. */
    struct error *(*next)(struct watch_source *source, struct arena *arena,
                          struct watch_update *update);
};

struct error *watch_file(struct watch_source *source, struct arena *arena,
                         struct watch_update *update);
struct error *watch_http(struct watch_source *source, struct arena *arena,
                         struct watch_update *update);

#endif
