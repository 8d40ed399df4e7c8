/* domain_log.h - looks at a cluster's log of domain changes in its store: one row per write, no
 * gap, no repeat. For simulated clusters and for folders that a killed process left. */
#ifndef CADENZA_SIM_WORLD_DOMAIN_LOG_H
#define CADENZA_SIM_WORLD_DOMAIN_LOG_H

#include "store/store.h"

/* The notification versions in the log follow each other by exactly one and end at the guard of the
 * partition; no two domains were written last by the same version. Nobody may change a domain
 * meanwhile. Yields. Errors: ERR_CORRUPT says what is wrong; the store's. */
must_use struct error *domain_log_check(struct store *store, struct arena *arena);

/* Calls `visit` for every row of a kind in the domains partition, in the order of keys, until it
 * returns an error. What is read stays in the arena. Yields. Errors: those of `visit`; the store's.
 */
must_use struct error *
domain_rows_visit(struct store *store, enum row_kind kind, struct arena *arena,
                  struct error *(*visit)(void *context, const struct row *row, struct arena *arena),
                  void *context);

#endif
