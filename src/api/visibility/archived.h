/* archived.h - what is answered from the archive. Only files of api/ include it. */
#ifndef CADENZA_API_VISIBILITY_ARCHIVED_H
#define CADENZA_API_VISIBILITY_ARCHIVED_H

#include "api/inside.h"
#include "rpc/service.h"

/* Is a history asked for that the archive may have? By its token, or since `err` says that there is
 * no such run any more (NULL: that is not known yet). */
bool archived_has_history(struct rpc_call *call, const struct error *err);
/* Answers with a page of it; only if archived_has_history. Yields. */
must_use struct error *archived_get_history(struct rpc_call *call);

/* May a domain have these URIs? "": none is given. Yields. Errors: ERR_BAD_REQUEST. */
must_use struct error *archived_check_uris(struct rpc_call *call, const char *history,
                                           const char *visibility);

#endif
