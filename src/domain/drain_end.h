/* drain_end.h - how a drain to this cluster leaves the record of its domain, and what else the
 * coordinator of graceful failovers (src/failover/) asks of the owner of the domains: nobody else
 * does. On loop 0.
 *
 * The coordinator has rows of its own in the partition of the domains, under the key of their drain
 * (ROW_DOMAIN_DRAIN). They are deleted by the commit that ends the drain or reports its end. */
#ifndef CADENZA_DOMAIN_DRAIN_END_H
#define CADENZA_DOMAIN_DRAIN_END_H

#include "domain/domains.h"
#include "domain/drain.h"
#include "store/key.h"

/* The key of a row of a drain, up to where rows of the same drain differ. */
struct key_writer drain_key_begin(const char *domain_id, const char *scope, const char *name,
                                  int64_t failover_version, struct arena *arena);

/* A change that takes a drain out of its record, and is not its end by the coordinator, leaves a
 * DrainLeftRecord in its commit, under the key of the drain and then "": so what ended it is known
 * even if this host crashes. */
#define DRAIN_LEFT_FORMAT 1

/* Ends a drain: what was pending is active. Nothing changes if it is no longer pending, or with
 * another version. *is_done: it is this that ended it. Durable when it returns. Yields. Errors: as
 * the changers of domains.h. */
must_use struct error *domains_end_drain(struct domains *domains, const struct drain_end *end,
                                         struct arena *arena, bool *is_done);
/* Something else ended it: makes its entry in the history durable (NULL: there is nothing to enter)
 * as a change of the domain that changes nothing else, and is replicated to the other clusters like
 * any other. If the domain is gone, no other cluster is sent it. Yields. Errors: as above. */
must_use struct error *domains_report_drain(struct domains *domains, const struct drain_end *end,
                                            struct arena *arena);
/* The entry in the history of the failover that began the drain, with that outcome; nothing is
 * written. NULL: there is none, or it has one already. Yields. Errors: the store's. */
must_use struct error *domains_find_drained(struct domains *domains, const char *domain_id,
                                            const STORED(Drain) *drain,
                                            STORED(DrainOutcome) *outcome, struct arena *arena,
                                            STORED(FailoverRecord) **failover);

/* Makes a batch durable that changes no domain and leaves the guard as it is; `fill` writes its
 * steps, without a yield, and may run again when another host was faster. Yields. Errors: as the
 * changers of domains.h. */
must_use struct error *domains_write(struct domains *domains,
                                     void (*fill)(void *context, struct batch *batch),
                                     void *context, struct arena *arena);
/* Waits until all that was decided so far is durable. Yields. */
must_use struct error *domains_wait_newest(struct domains *domains, struct arena *arena);
/* Reads what other hosts wrote, if they did; *guard is the store's. Yields. */
must_use struct error *domains_read_others(struct domains *domains, struct arena *arena,
                                           uint64_t *guard);

#endif
