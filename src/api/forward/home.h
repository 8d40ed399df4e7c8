/* home.h - the home of the workflow that a call is about. Only files of api/ include it. */
#ifndef CADENZA_API_FORWARD_HOME_H
#define CADENZA_API_FORWARD_HOME_H

#include "api/inside.h"
#include "domain/active.h"

/* Completes a start that does not say what its run belongs to (domain_choose_attribute), unless
 * another cluster has sent it on. True: the request differs from the bytes that came. No yield. */
bool home_choose(struct rpc_call *call);

/* One lookup of the active cluster of a workflow, for /metrics (G-056): begun, and counted when it
 * ends. */
struct home_lookup {
    const char *function, *domain;
    bool is_active_active;
    int64_t began;
};
struct home_lookup home_lookup_begin(const struct rpc_call *call, const struct domain *domain,
                                     const char *function);
void home_lookup_end(const struct rpc_call *call, const struct home_lookup *lookup, bool is_found);

#endif
