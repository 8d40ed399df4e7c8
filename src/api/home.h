/* home.h - where the workflow that a call is about has its home. Inside of api/. */
#ifndef CADENZA_API_HOME_H
#define CADENZA_API_HOME_H

#include "api/inside.h"
#include "domain/active.h"

/* Fills in what a start belongs to that does not say so (domain_choose_attribute), unless another
 * cluster has sent it on. True: the request is not what came any more. Does not yield. */
bool home_choose(struct rpc_call *call);

/* One time that the active cluster of a workflow is looked for, for /metrics (G-056). */
struct home_lookup {
    const char *function, *domain;
    bool is_active_active;
    int64_t began;
};
struct home_lookup home_lookup_begin(const struct rpc_call *call, const struct domain *domain,
                                     const char *function);
void home_lookup_end(const struct rpc_call *call, const struct home_lookup *lookup, bool is_found);

#endif
