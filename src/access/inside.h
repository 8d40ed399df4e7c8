/* inside.h - what the files of access/ share. Only they include it. */
#ifndef CADENZA_ACCESS_INSIDE_H
#define CADENZA_ACCESS_INSIDE_H

#include "access/access.h"
#include "base/map.h"
#include "fiber/sync.h"

/* --- keys (keys.c) ---- */

/* Public keys, as PEM. */
struct access_keys {
    struct slice own;    /* of tokens without a key id; empty: there is none */
    struct map *by_name; /* key id → struct slice; NULL: there are none */
    struct slice set;    /* the file that these are from */
};
/* `public_key_file` and `key_set_file`: "" for none. In the arena, but for the map. Yields. */
must_use struct error *access_keys_load(const char *public_key_file, const char *key_set_file,
                                        struct arena *arena, struct access_keys *keys);
/* Frees the map; the rest is the arena's. */
void access_keys_free(struct access_keys *keys);

/* --- tokens (tokens.c) ---- */

/* What a token says of who shows it. */
struct token_claims {
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
must_use const char *token_claims_read(struct slice token, const struct token_rules *rules,
                                       int64_t now, struct arena *arena,
                                       struct token_claims *token_claims);

/* --- permissions (permissions.c) ---- */

/* The domain that a call is about; NULL: none, or none that is there. */
const struct domain *permission_domain(const struct domains *domains, const struct rpc_call *call);
/* Do such groups suffice for the domain (NULL: not known, then never)? For permissions on a domain
 * and PERMISSION_ADMIN. */
bool permission_suits(enum permission permission, const char *groups, const struct domain *domain);

/* --- who keeps them (access.c), and keys that change (key_set.c) ---- */

/* Keys as they were read once: never changed, but replaced. */
struct key_set {
    struct arena *arena;
    struct access_keys keys;
};

/* What one loop knows; only that loop touches it. */
struct loop_tokens {
    struct map *by_text; /* tokens that were good → struct token_claims */
    struct arena *arena; /* of these */
    struct key_set *key_set;
};

struct access {
    struct access_options options;
    struct arena *arena;
    const char *key_file, *set_file; /* "": none */
    struct token_rules rules;        /* the keys are a loop's */
    bool shows_names;                /* of domains, to everybody */
    struct loop_tokens *loops;
    unsigned loop_count;
    struct key_set *key_set; /* the newest, which all loops have */
    struct fiber *watcher;   /* NULL: not yet */
    struct latch watching;
    bool is_closing;
    bool is_stale; /* what the files say now cannot be used */
};

/* From the files. Yields. Errors as access_open. */
must_use struct error *access_key_set_load(const struct access *access, struct arena *arena,
                                           struct key_set **key_set);
/* NULL: nothing happens. */
void access_key_set_free(struct key_set *key_set);
/* This loop uses these keys from now on, and forgets every token that it remembered. No yield. */
void access_use_key_set(struct access *access, struct key_set *key_set);
/* Looks at the files every few seconds, on loop 0. */
void access_start_watching(struct access *access);
/* Ends that, if it was started. Yields, and ignores cancel. */
void access_stop_watching(struct access *access);

#endif
