/* group_load.h - clients of a group: they register, update, fail over, deprecate and delete domains
 * at all clusters, and remember what they were told and what they saw.
 *
 * A worker alone changes the settings of its domains, so it knows what must be true of them;
 * failovers come from every worker, at every cluster, also at the same time. What is checked while
 * the load runs: what one cluster shows never goes back (failover version, versions of attributes,
 * settings, being there at all); each version belongs to the cluster that is shown as active;
 * clusters that are not primary refuse settings of global domains. If there are namesakes, the
 * name of some global domains is taken in another cluster, by a local one: what that cluster is
 * told is a dead letter there until the namesake is gone (group_namesakes.c). group_verify.c looks
 * at the end. The ledger is the test's, outside of every host. */
#ifndef CADENZA_SIM_GROUP_GROUP_LOAD_H
#define CADENZA_SIM_GROUP_GROUP_LOAD_H

#include "sim/world/client_pool.h"

#define GROUP_DOMAINS_MAX   40
#define GROUP_FAILOVERS_MAX 256 /* acknowledged, of one domain */
#define GROUP_ATTRIBUTES    3

/* What a failover can move: the domain's active cluster, or the one of an attribute. */
enum { MOVES_DOMAIN, MOVES_FIRST_ATTRIBUTE, MOVES_END = MOVES_FIRST_ATTRIBUTE + GROUP_ATTRIBUTES };
/* Names of the attributes; the cluster is not set. */
extern const struct load_attribute group_attributes[GROUP_ATTRIBUTES];

/* What was shown through one cluster, newest of each. */
struct group_observation {
    bool is_there;
    uint32_t sequence;
    int64_t failover_version[MOVES_END];
};

/* An acknowledged failover. It may have moved nothing: a domain that was told to stay, for instance
 * (group_history.h). */
struct group_failover {
    uint8_t what;             /* MOVES_* */
    uint8_t cluster;          /* that was asked */
    int64_t failover_version; /* of what was to move, as the answer shows it */
    int64_t domain_version;   /* of the domain, likewise */
};

struct group_domain {
    char name[16];
    unsigned owner; /* the worker that changes its settings */
    unsigned home; /* whom settings are asked of: the primary cluster, or where a local one lives */
    bool is_global, is_active_active;
    unsigned first_active; /* cluster; of a global one, as it was registered */
    unsigned namesake; /* cluster where a local domain of this name was asked for first; 0: none */
    bool namesake_tried;
    bool is_registered; /* acknowledged */
    uint32_t sequence_tried, sequence_acknowledged;
    bool deprecation_tried, is_deprecated;
    bool deletion_tried, is_deleted;
    struct group_observation observed[SIM_GROUP_MAX];
    unsigned failover_count;
    struct group_failover failovers[GROUP_FAILOVERS_MAX];
};

struct group_load {
    struct sim *sim;
    struct client_pool client_pool;
    bool has_namesakes; /* set by the test before the world runs: names are taken elsewhere */
    uint64_t calls, acknowledged, refused, failed, failovers;
    uint64_t namesakes, dead_letters; /* found after the storm */
    /* Of domains with attributes: found in all histories; acknowledged, and nothing was written. */
    uint64_t own_moves, stays;
    struct verdict verdict;
    unsigned domain_count;
    struct group_domain domains[GROUP_DOMAINS_MAX];
};

/* `workers` workers on the client host, which starts now. Free with memory_free. */
struct group_load *group_load_start(struct sim *sim, unsigned workers, int64_t think_max);
/* Lets the workers end, removes what keeps clusters from agreeing (group_namesakes.c), lets the
 * group settle, then compares all clusters with each other and with the ledger. Runs the world.
 * load->verdict says what it came to. */
void group_load_verify(struct group_load *load);

/* --- for the files of the load ------------------------------------------------------------------
 */

/* Compares what a cluster shows with `before`, what it had shown when it was asked, and notes it.
 */
void group_observation_note(struct group_load *load, struct group_domain *domain, unsigned cluster,
                            const struct group_observation *before, const API(Domain) *shown);
/* Runs as a client, after the storm: removes the namesakes, then lets every cluster try its dead
 * letters again. */
void group_remove_namesakes(struct group_load *load, struct load_clients *clients);
/* Is it the namesake that the cluster shows? */
bool group_is_namesake(const struct group_domain *domain, unsigned cluster,
                       const API(Domain) *shown);
/* The version of what is shown, by MOVES_*; -1: it has no such attribute. */
int64_t group_shown_version(const API(Domain) *shown, unsigned what);
/* The number of a cluster by its name; -1: none. */
int group_cluster_number(const char *name);
/* What `failover` moves by its attribute; -1: an attribute that no domain has. */
int group_moved(const API(ClusterAttribute) *attribute);

#endif
