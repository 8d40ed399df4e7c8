/* types.h - the types of entities that a server knows: how starts name them, what happens with
 * unknown keys, and what keeps their rows. Read from the config's section `entities` at start. */
#ifndef CADENZA_ENTITY_TYPES_H
#define CADENZA_ENTITY_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"

struct entity_type {
    const char *name;    /* of the type: a scope of domains */
    const char *source;  /* what starts say for it */
    bool creates;        /* a start with an unknown key makes its row */
    const char *watcher; /* "none", or the name of a kind in watchers.c */
    const char *file, *url;
    /* Of https: the authority that vouches for the server ("": the system's authorities), the name
     * that it must prove ("": the host of the URL), and what is shown to it ("": nothing). */
    const char *authority_file, *server_name, *certificate_file, *key_file;
    int64_t interval, wait; /* ns */
};

struct entity_types {
    const struct entity_type *all;
    size_t count;
};

/* Lives in `arena`. Errors: ERR_BAD_REQUEST, all faults together, one per line. */
must_use struct error *entity_types_load(const struct config *config, struct arena *arena,
                                         struct entity_types *types);
/* Is its source one that is asked over TLS? */
bool entity_type_is_secure(const struct entity_type *type);
/* NULL: none. */
const struct entity_type *entity_types_find(const struct entity_types *types, const char *name);
const struct entity_type *entity_types_find_source(const struct entity_types *types,
                                                   const char *source);

#endif
