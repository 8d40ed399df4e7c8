/* applied_domains.h - what the shard knows of the domains (applied_domains.c). */
#ifndef CADENZA_ENGINE_SHARD_APPLIED_DOMAINS_H
#define CADENZA_ENGINE_SHARD_APPLIED_DOMAINS_H

#include "base/vector.h"
#include "engine/shard/shard.h"

struct tenure;

struct applied_domains {
    uint64_t handled;   /* notification version that steps are decided on: its batch is submitted */
    uint64_t failovers; /* that were handled up to there, in the shard's whole life */
    ticket_t ticket;    /* of the newest batch that moved it */
    uint64_t missed_from; /* what the last owner had handled */
    /* What this loop has learnt since then. */
    uint64_t known, failovers_known;
    vector_of(struct domain *) changed; /* in order; one reference each */
    bool has_entities_changed;          /* rows of the entity table, too */
    /* Runs that entities may have moved are walked over; once more when that is done. */
    bool is_handing_over, is_handover_due;
    /* How far it has reported to be, so that the log of the domains can be trimmed; 0: not yet. */
    uint64_t noted;
    bool is_noting;
};

/* The shard is notified of changes of domains from now on. */
void applied_domains_listen(struct shard *shard);
/* An owner before us had handled `version`, and so many failovers: waits until this host knows it
 * too, then catches up. When it returns without an error the shard knows what this loop knows;
 * else shard->is_behind says whether it failed for want of an answer only. Yields. */
must_use struct error *applied_domains_begin(struct tenure *tenure, uint64_t version,
                                             uint64_t failovers, struct arena *arena);
void applied_domains_free(struct tenure *tenure);
/* Brings the applied domains to what this loop knows, by a batch of its own: before deciding. No
 * yield. Errors: ERR_SERVICE_BUSY (no room). */
must_use struct error *applied_domains_catch_up(struct tenure *tenure, struct arena *arena);
/* Batches up to `durable` are: another one may go. */
void applied_domains_release(struct tenure *tenure, ticket_t durable);

#endif
