/* merge_fixture.h - three or four clusters as pure records, without a store: for merge_test.c. */
#ifndef CADENZA_DOMAIN_TEST_MERGE_FIXTURE_H
#define CADENZA_DOMAIN_TEST_MERGE_FIXTURE_H

#include "base/random.h"
#include "base/test.h"
#include "domain/test/samples.h"

enum {
    NODES_MAX = SAMPLE_CLUSTERS,
    STEPS = 120,
    DOMAINS_MAX = STEPS,
    MESSAGES_MAX = 8 * STEPS,
    ENTRIES_MAX = 16 * STEPS,
    DEAD_LETTERS_MAX = 16 * STEPS
};

struct packet {
    int source;
    struct slice bytes; /* ReplicationTask */
};

struct entry {
    const char *domain_id;
    int64_t failover_version;
};

struct node {
    int index;
    uint64_t notification_version;
    struct domain *known[DOMAINS_MAX]; /* deleted ones too: their last record */
    size_t known_count;
    struct packet sent[MESSAGES_MAX];
    size_t sent_count;
    size_t position[NODES_MAX]; /* in order: how much of each log was read */
    bool is_received[NODES_MAX][MESSAGES_MAX];
    struct entry history[ENTRIES_MAX];
    size_t history_count;
    struct packet dead_letters[DEAD_LETTERS_MAX];
    size_t dead_letter_count;
};

struct merge_fixture {
    struct arena *arena;
    struct random random;
    bool is_ordered;
    bool is_relaying; /* what came from one is passed on to the others */
    uint64_t now;     /* counts moments, of all nodes */
    int count;        /* of clusters */
    struct node *nodes;
    struct cluster clusters[SAMPLE_CLUSTERS];
    struct cluster_group groups[SAMPLE_CLUSTERS]; /* by current cluster */
    struct entry made[ENTRIES_MAX]; /* every failover that was acknowledged somewhere */
    size_t made_count;
    struct entry moved[ENTRIES_MAX]; /* those that moved a domain itself, and where each began */
    size_t moved_count;
};

/* Uniform in 0 .. bound - 1. */
uint64_t below(struct merge_fixture *merge_fixture, uint64_t bound);
bool is_deleted(const struct domain *domain);
/* NULL: none; deleted ones have no name. */
struct domain *find_name(const struct node *node, const char *name);
/* Where it is, deleted or not; NULL: not known. */
struct domain **find_id(struct node *node, const char *id);
bool has_entry(const struct entry *entries, size_t count, const char *domain_id,
               int64_t failover_version);
/* The samples, all of them enabled. */
void make_group(struct merge_fixture *merge_fixture);
struct domain_rules rules_of(const struct merge_fixture *merge_fixture, const struct node *node);
struct domain_moment next_moment(struct merge_fixture *merge_fixture, const struct node *node);
/* Sends the others a change that was just stored. */
void announce(struct merge_fixture *merge_fixture, struct node *node, const char *id,
              const struct domain_decision *decision);
/* Stores what was decided, as an owner would, and checks what the change did. */
void store(struct merge_fixture *merge_fixture, struct node *node,
           const struct domain_decision *decision);

/* A random cluster is asked for a random thing; if it agrees, the change is sent to the others. */
void step_request(struct merge_fixture *merge_fixture);

#endif
