/* group_history.h - what each cluster of a group wrote, and what the failover histories say of it,
 * read from the stores after the run.
 *
 * A client cannot know whether its failover moved anything: the answer shows the domain after it,
 * and others move the domain at the same time. The cluster that was asked knows: its log has the
 * record after each write, so two writes that follow each other show what the second one moved.
 * Those are the failovers that every cluster's history must tell, no more and no less. Of a domain
 * with attributes that includes its own active cluster: such a domain takes a new version with each
 * failover, also when it is told to stay or when only an attribute moves, but it has moved only if
 * the version before belongs to another cluster.
 *
 * The domain itself is in the end where the move of it put it that made the greatest version of all
 * such moves: what others did to attributes at the same time undoes none of them. */
#ifndef CADENZA_SIM_GROUP_GROUP_HISTORY_H
#define CADENZA_SIM_GROUP_GROUP_HISTORY_H

#include "sim/group/group_load.h"

/* One write of a global domain in one cluster. Versions by MOVES_*; -1: there is none. */
struct group_write {
    unsigned domain;   /* its number in the ledger */
    bool is_made_here; /* a client asked for it here; otherwise another cluster told it */
    bool has_before;   /* the log shows the record before it as well */
    int64_t before[MOVES_END], after[MOVES_END];
    int64_t moved; /* the version that moved the domain itself last, as its record says */
};

/* One failover, as a history tells it. Versions by MOVES_*; -1: that did not move. */
struct group_event {
    unsigned domain;
    int origin;               /* the cluster that was asked */
    int64_t failover_version; /* of the domain, as the failover left it */
    int64_t from[MOVES_END], to[MOVES_END];
    bool is_superseded;
};

/* One part of it. */
struct group_move {
    unsigned what; /* MOVES_* */
    int64_t from, to;
};

struct group_events {
    struct group_event *all;
    size_t count, room;
};

/* All that one cluster's store tells. */
struct group_records {
    struct group_write *writes; /* in order */
    size_t write_count, write_room;
    struct group_events history;      /* in order of group_events_sort */
    bool is_whole[GROUP_DOMAINS_MAX]; /* by domain: the log has it from its first write on */
    size_t newest[GROUP_DOMAINS_MAX]; /* by domain: its last write, counted from 1; 0: none */
};

/* Reads the store of a cluster into `past`, which is zeroed. In a fiber of any host. Yields.
 * Errors: ERR_CORRUPT, a row does not make sense. */
must_use struct error *group_records_read(const struct group_load *load, unsigned cluster,
                                          struct arena *arena, struct group_records *records);
/* Adds the failovers that clients asked of this cluster and that its log shows. */
void group_records_made(const struct group_load *load, unsigned cluster,
                        const struct group_records *records, struct arena *arena,
                        struct group_events *made);
/* False: it makes no sense, a version of another cluster for instance. */
bool group_move_read(const API(ClusterFailover) *failover, struct group_move *move);
/* By domain, version and origin, so that the rest can be searched. */
void group_events_sort(struct group_events *events);
/* The one of the same domain, version and origin; NULL: none. */
const struct group_event *group_events_find(const struct group_events *events,
                                            const struct group_event *event);
/* They moved the same, from and to the same versions. */
bool group_event_is_same_move(const struct group_event *one, const struct group_event *other);

/* Compares the pasts of all clusters, one each, with each other and with the ledger: what was
 * acknowledged was written where it was asked; all histories tell exactly what was written, and
 * what they call superseded is. Domains that are not there any more
 * are left out. */
void group_records_audit(struct group_load *load, const struct group_records *all_records,
                         const bool is_there[GROUP_DOMAINS_MAX], struct arena *arena);

#endif
