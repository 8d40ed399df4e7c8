/* peer_settings.h - clusters that follow each other compare their group settings.
 *
 * Every answer to a follower carries the part of the source's clusterGroupMetadata on which all of
 * a group must agree. A follower with other settings applies nothing of the answer: a failover
 * version would mean another cluster here. A Cadence cluster sends no settings, and is followed. */
#ifndef CADENZA_REPLICATION_PEER_SETTINGS_H
#define CADENZA_REPLICATION_PEER_SETTINGS_H

#include "cluster/group.h"

/* The settings of this cluster: a uber.cadence.admin.v1.GroupSettings. */
struct slice group_settings_encode(const struct cluster_group *group, struct arena *arena);

/* What a follower knows of one peer. */
struct peer_settings {
    void *accepted; /* the settings that were compared last and agree; NULL: none yet */
    size_t length;
    bool has_conflict; /* the last ones do not agree */
};
/* Compares what the peer sent; empty: it sent nothing, which is fine. Errors: ERR_BAD_REQUEST with
 * both values (and has_conflict is set), or with what cannot be read. */
must_use struct error *peer_settings_check(struct peer_settings *peer_settings,
                                           const struct cluster_group *group,
                                           const struct cluster *peer, struct slice received,
                                           struct arena *arena);
void peer_settings_free(struct peer_settings *peer_settings);

#endif
