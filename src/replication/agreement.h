/* agreement.h - clusters that meet compare what they are configured with.
 *
 * Every answer to a follower says what the source has in clusterGroupMetadata, as far as all of a
 * group must agree. A follower that has something else applies nothing of it: a version would mean
 * another cluster here. A Cadence cluster says nothing, and is followed. */
#ifndef CADENZA_REPLICATION_AGREEMENT_H
#define CADENZA_REPLICATION_AGREEMENT_H

#include "cluster/group.h"

/* What this cluster says of itself: a uber.cadence.admin.v1.GroupSettings. */
struct slice agreement_tell(const struct cluster_group *group, struct arena *arena);

/* What a follower knows of one peer. */
struct agreement {
    void *agreed; /* what it said last and is fine; NULL: nothing yet */
    size_t length;
    bool is_broken; /* what it said last is not */
};
/* Compares what the peer said; empty: it said nothing, which is fine. Errors: ERR_BAD_REQUEST with
 * both values (and is_broken), or it cannot be read. */
must_use struct error *agreement_check(struct agreement *agreement,
                                       const struct cluster_group *group,
                                       const struct cluster *peer, struct slice said,
                                       struct arena *arena);
void agreement_free(struct agreement *agreement);

#endif
