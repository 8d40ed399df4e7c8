/* own_writes.h - what a connection wrote recently, so that its lists show it. Only files of api/
 * include it.
 *
 * Lists are a moment behind what was committed. A client that starts a run and lists runs then, on
 * the same connection, expects to see it: such a list waits for the shards that the connection
 * wrote to, for a bounded time, and is answered then in any case. Lists of other connections do not
 * wait. */
#ifndef CADENZA_API_VISIBILITY_OWN_WRITES_H
#define CADENZA_API_VISIBILITY_OWN_WRITES_H

#include "api/inside.h"

/* A run of the workflow id was begun or ended for the call. No yield. */
void own_writes_note(struct rpc_call *call, const char *workflow_id);
/* Waits until lists show what the call's connection has noted. Yields. */
void own_writes_wait(struct rpc_call *call, const char *domain);

#endif
