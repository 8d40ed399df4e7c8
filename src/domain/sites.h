/* sites.h - two clusters without a network, for tests: each an owner of domains on a store in
 * memory; the test carries the messages. Everything that is not expected ends the test. */
#ifndef CADENZA_DOMAIN_SITES_H
#define CADENZA_DOMAIN_SITES_H

#include "domain/domains.h"
#include "store/memory/memory.h"

#define EAST           0 /* the primary cluster */
#define WEST           1
#define SOUTH          2 /* is in the group, and does not run */
#define SITES_CLUSTERS 3

struct site {
    struct memory_base *base;
    struct store *store;
    struct cluster_group group;
    struct domains *domains;
    uint64_t fed; /* how far its log was carried to the other one */
};

struct sites {
    struct arena *arena;
    struct dynamic *dynamic;
    struct metrics *metrics; /* of west */
    struct site site[2];
};

/* Increment 10; initial versions 0, 1, 2. */
extern const struct cluster sites_clusters[SITES_CLUSTERS];

/* Runs a test on so many loops, with two fresh sites (sites_linux.c). */
void sites_run(unsigned loops, void (*test)(struct sites *sites));
/* The same in a simulated world (sites_sim.c). */
void sites_play(void (*test)(struct sites *sites));
/* The same, and the host crashes right after west wrote a row for which is_last() holds, whatever
 * else is under way: `before` never returns. It starts again on what its stores have, for `after`.
 */
void sites_play_crash(void (*before)(struct sites *sites),
                      bool (*is_last)(enum row_kind kind, struct slice value, struct arena *arena),
                      void (*after)(struct sites *sites));
/* Opens both on what their stores have: those that crashed. */
void sites_restart(struct sites *sites);
void sites_open(struct sites *sites);
void sites_close(struct sites *sites);
/* Another host of a cluster, on the same store, that looks for what others write. */
struct domains *sites_open_twin(struct sites *sites, int site, struct store **store);
/* The owner of one. */
struct domains *sites_at(struct sites *sites, int site);
/* Closes it and opens it again on what its store has. */
void sites_reopen(struct sites *sites, int index);

/* What clients ask for. A global domain lists all clusters. */
must_use struct error *sites_try_register(struct domains *domains, const char *name, bool is_global,
                                          struct arena *arena);
void sites_register(struct sites *sites, int site, const char *name, bool is_global);
void sites_describe(struct sites *sites, int site, const char *name, const char *description);
void sites_failover(struct sites *sites, int site, const char *name, int to);
/* Deprecates first: two changes. */
void sites_delete(struct sites *sites, int site, const char *name);

/* What is in a log now; does not wait. */
struct domain_changes sites_read_log(struct sites *sites, int site, uint64_t after,
                                     size_t count_max);
/* All clusters have handled all of a site's log: it may be trimmed. */
void sites_acknowledge(struct sites *sites, int site);
/* Carries what is new in one site's log to the other site. */
void sites_feed(struct sites *sites, int from);

#endif
