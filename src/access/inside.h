/* inside.h - what the files of access/ share. Only they include it. */
#ifndef CADENZA_ACCESS_INSIDE_H
#define CADENZA_ACCESS_INSIDE_H

#include "access/access.h"
#include "base/map.h"

/* --- keys (keys.c) ---- */

/* Public keys, as PEM. */
struct access_keys {
    struct slice own;    /* of tokens without a key id; empty: there is none */
    struct map *by_name; /* key id → struct slice; NULL: there are none */
};
/* `public_key_file` and `key_set_file`: "" for none. In the arena, but for the map. Yields. */
must_use struct error *access_keys_load(const char *public_key_file, const char *key_set_file,
                                        struct arena *arena, struct access_keys *keys);
void access_keys_free(struct access_keys *keys);

/* --- tokens (tokens.c) ---- */

/* What a token says of who shows it. */
struct claims {
    const char *name;   /* "": does not say */
    const char *groups; /* between blanks */
    bool is_admin;
    int64_t expires; /* wall clock */
};
struct token_rules {
    const struct access_keys *keys;
    const char *groups_path, *admin_path; /* of tokens with a key id; "": as others say it */
    int64_t life_max;                     /* ns */
    int64_t skew;                         /* ns that clocks may differ */
};
/* Texts live in the arena. No yield. Returns why it is not good; NULL: it is. */
must_use const char *claims_read(struct slice token, const struct token_rules *rules, int64_t now,
                                 struct arena *arena, struct claims *claims);

/* --- permissions (permissions.c) ---- */

enum permission {
    PERMISSION_NONE,  /* everybody may */
    PERMISSION_KNOWN, /* everybody with a good token */
    PERMISSION_READ,  /* of the domain */
    PERMISSION_WRITE, /* of the domain */
    PERMISSION_POLL,  /* of the domain */
    PERMISSION_ADMIN,
};
/* Of the method with this index (wire/services.h). */
enum permission permission_of(size_t index);
/* The domain that a request is about, by whatever field names it; NULL: none, or none that is
 * there. */
const struct domain *permission_domain(const struct domains *domains,
                                       const ProtobufCMessage *request, struct arena *arena);
/* Do such groups suffice? */
bool permission_suits(enum permission permission, const char *groups, const struct domain *domain);

#endif
