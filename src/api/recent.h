/* recent.h - what a connection wrote of late, so that its lists show it. Inside of api/.
 *
 * Lists are a moment behind what was committed. A client that starts a run and lists runs then, on
 * the same connection, expects to see it: such a list waits for the shards that the connection
 * wrote to, for a bounded time, and answers then in any case. Others do not wait. */
#ifndef CADENZA_API_RECENT_H
#define CADENZA_API_RECENT_H

#include "api/inside.h"

/* A run of the workflow id was begun or ended for the call. No yield. */
void recent_note(struct rpc_call *call, const char *workflow_id);
/* Waits until lists show what the call's connection has noted. Yields. */
void recent_wait(struct rpc_call *call, const char *domain);

#endif
