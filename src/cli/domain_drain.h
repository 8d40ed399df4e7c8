/* domain_drain.h - a graceful failover as it goes on, for people. Inside cli/ only. */
#ifndef CADENZA_CLI_DOMAIN_DRAIN_H
#define CADENZA_CLI_DOMAIN_DRAIN_H

#include "cli/inside.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* What was seen of a graceful failover. */
struct drain_sight {
    const char *domain, *target;
    const API(FailoverInfo) *info; /* the newest; NULL: it was over before it was looked at */
    int64_t passed;                /* ns since it began */
    bool is_timed_out;             /* its time was over before all shards were ready */
    const char *active;            /* who is active at the end; NULL: it goes on */
    /* How it ended, where the server tells; else NULL, and what was seen has to do. */
    const API(FailoverOutcome) *outcome;
};

/* Where it is: "orders moves to cluster1: 12 of 16 shards, 0.2 s". */
const char *drain_line(const struct drain_sight *sight, struct arena *arena);
/* What came of it, in a sentence or two. */
const char *drain_report(const struct drain_sight *sight, struct arena *arena);

/* Follows the graceful failover of a domain until it is over and tells what came of it. `begun`: as
 * it was answered to whoever began it, at `began` (monotonic); NULL: somebody else did. Yields.
 * Errors: the server's; ERR_ENTITY_NOT_EXISTS (none is under way, and begun is NULL). */
must_use struct error *domain_follow_drain(struct cli_call *call, const char *name,
                                           const API(Domain) *begun, int64_t began);

#endif
