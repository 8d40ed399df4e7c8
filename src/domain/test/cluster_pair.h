/* cluster_pair.h - two clusters without a network, for tests: each an owner of domains on a store
 * in memory; the test carries the messages. Everything that is not expected ends the test. */
#ifndef CADENZA_DOMAIN_TEST_CLUSTER_PAIR_H
#define CADENZA_DOMAIN_TEST_CLUSTER_PAIR_H

#include "domain/domains.h"
#include "store/memory/memory.h"

#define EAST                    0 /* the primary cluster */
#define WEST                    1
#define SOUTH                   2 /* is in the group, and does not run */
#define CLUSTER_PAIR_GROUP_SIZE 3

struct side {
    struct memory_base *base;
    struct store *store;
    struct cluster_group group;
    struct domains *domains;
    uint64_t replicated; /* how far its log was carried to the other one */
};

struct cluster_pair {
    struct arena *arena;
    struct dynamic *dynamic;
    struct metrics *metrics; /* of west */
    struct side side[2];
};

/* Increment 10; initial versions 0, 1, 2. */
extern const struct cluster cluster_pair_group[CLUSTER_PAIR_GROUP_SIZE];

/* Runs a test on so many loops, with two fresh clusters (cluster_pair_linux.c). */
void cluster_pair_run(unsigned loops, void (*test)(struct cluster_pair *cluster_pair));
/* A test that runs so: PAIR_TEST(suite, title, cluster_pair_run(1, body), "D-045"). */
#define PAIR_TEST(suite, title, run, ...)                                                          \
    TEST_IN(suite, title, struct cluster_pair *cluster_pair, run, ##__VA_ARGS__)
/* Opens both on what their stores have: those that crashed. */
void cluster_pair_restart(struct cluster_pair *cluster_pair);
void cluster_pair_open(struct cluster_pair *cluster_pair);
void cluster_pair_close(struct cluster_pair *cluster_pair);
/* Another host of a cluster, on the same store, that looks for what others write. */
struct domains *cluster_pair_open_twin(struct cluster_pair *cluster_pair, int side,
                                       struct store **store);
/* The owner of one. */
struct domains *cluster_pair_domains(struct cluster_pair *cluster_pair, int side);
/* Closes it and opens it again on what its store has. */
void cluster_pair_reopen(struct cluster_pair *cluster_pair, int index);

/* What clients ask for. A global domain lists all clusters. */
must_use struct error *cluster_pair_try_register(struct domains *domains, const char *name,
                                                 bool is_global, struct arena *arena);
void cluster_pair_register(struct cluster_pair *cluster_pair, int side, const char *name,
                           bool is_global);
void cluster_pair_describe(struct cluster_pair *cluster_pair, int side, const char *name,
                           const char *description);
void cluster_pair_failover(struct cluster_pair *cluster_pair, int side, const char *name, int to);
/* Deprecates first: two changes. */
void cluster_pair_delete(struct cluster_pair *cluster_pair, int side, const char *name);

/* What is in a log now; does not wait. */
struct domain_changes cluster_pair_read_log(struct cluster_pair *cluster_pair, int side,
                                            uint64_t after, size_t count_max);
/* All clusters have handled all of one side's log: it may be trimmed. */
void cluster_pair_acknowledge(struct cluster_pair *cluster_pair, int side);
/* Carries what is new in one side's log to the other side. */
void cluster_pair_replicate(struct cluster_pair *cluster_pair, int from);

#endif
