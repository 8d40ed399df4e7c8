/* restore_script.h - what the scenarios of a cluster that lost memory share: runs before and after
 * a backup, and what has to be true when it has recovered. Only tests include it. */
#ifndef CADENZA_SIM_PEERS_RESTORE_SCRIPT_H
#define CADENZA_SIM_PEERS_RESTORE_SCRIPT_H

#include "sim/scripts/script_drain.h"

#define LOST_RUNS_MAX 16

/* A run as cluster 1 had it before the cluster was set back: nothing of this may change. */
struct lost_run {
    const char *id, *run_id;
    size_t events;
    struct slice bytes;
};
struct lost_time {
    struct lost_run runs[LOST_RUNS_MAX];
    unsigned count;
    int64_t version; /* the highest of any event, and of the domain */
};

/* A backup of a cluster that runs. */
void script_keep(struct script *script, unsigned cluster);
/* It crashes, if it runs, and is its backup again; it does not run then. */
void script_set_back(struct script *script, unsigned cluster);
/* The same, and it is started. */
void script_restore(struct script *script, unsigned cluster);
/* Does its store say that it lost memory? */
bool script_is_recovering(const struct script *script, unsigned cluster);
void script_await_whole(struct script *script, unsigned cluster);
/* Two clusters do not hear each other, or do again. */
void script_cut(struct script *script, unsigned one, unsigned other);
void script_join(struct script *script, unsigned one, unsigned other);

/* Runs of all kinds begin in cluster 0, and a backup of it is made. */
void lost_begin(struct script *script);
/* The time that is going to be lost: runs begin, go on and end. All clusters know it then. */
void lost_live(struct script *script, struct lost_time *lost);
/* Every run of that time is in every cluster as it was, and perhaps goes on. */
void lost_expect_all(struct script *script, const struct lost_time *lost);
/* The ids of that time are taken wherever they are asked for; the cluster is active then. */
void lost_expect_taken(struct script *script, unsigned cluster);
/* The next event of an old run, and of one of that time, has a version above all before; all
 * clusters agree on everything in the end, and no event ever had two contents. */
void lost_expect_goes_on(struct script *script, unsigned cluster, const struct lost_time *lost);
/* The usual end: all of the above at the cluster. */
void lost_expect_recovered(struct script *script, unsigned cluster, const struct lost_time *lost);

/* The domain as a cluster shows it, or NULL: nobody answers soon. */
int64_t lost_domain_version(struct script *script, unsigned cluster);

#endif
