/* send.h - a call goes to another cluster. Only files of api/forward/ include it. */
#ifndef CADENZA_API_FORWARD_SEND_H
#define CADENZA_API_FORWARD_SEND_H

#include "api/inside.h"

/* The cluster of the group with this name; NULL: it cannot be called from here (unknown, disabled,
 * or without an address). No yield. */
const struct cluster *forward_find_callable(const struct api *api, const char *name);
/* Sends `message`, the request of the call, with the headers of the call; the other cluster's
 * answer becomes that of the call, as it came. Yields. Errors: the other cluster's,
 * ERR_UNAVAILABLE. */
must_use struct error *forward_send(struct rpc_call *call, struct slice message,
                                    const char *domain_name, const char *cluster_name);

#endif
