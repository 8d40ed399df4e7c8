/* access.h - who may do what.
 *
 * Callers show a token (JWT, RS256) in the header `cadence-authorization`. It names their groups,
 * or says that they are administrators, who may do everything. What others may do with a domain,
 * the domain's data says: READ_GROUPS read, PROCESS_GROUPS poll, WRITE_GROUPS do all of it. Calls
 * that are about no domain are for administrators, but for a few that everybody may make. */
#ifndef CADENZA_ACCESS_ACCESS_H
#define CADENZA_ACCESS_ACCESS_H

#include "config/config.h"
#include "config/dynamic.h"
#include "domain/domains.h"
#include "rpc/service.h"

struct access;

struct access_options {
    const struct config *config;
    const struct dynamic *dynamic;
    const struct domains *domains;
    const struct log *log; /* may be NULL */
};

/* Reads the keys, and again when their files change; a file that cannot be used is logged, and the
 * keys read before stay in use. On loop 0. *access is NULL where authorization is off. Yields.
 * Errors: ERR_BAD_REQUEST naming the key of the config, or the file, and what is wrong with it. */
must_use struct error *access_open(const struct access_options *options, struct arena *arena,
                                   struct access **access);
/* Stops watching the files and frees everything, when no call is served any more. Yields, and
 * ignores cancel. */
void access_free(struct access *access);

/* May the call be made? For rpc_service_guard. No yield. Error: ERR_ACCESS_DENIED. */
must_use struct error *access_check(void *access, struct rpc_call *call);
/* May the caller see the domain? Everybody may where `access` is NULL. No yield. */
bool access_may_read(struct access *access, struct rpc_call *call, const struct domain *domain);

/* May everybody see that a domain is there, and where? No yield. */
bool access_shows_names(const struct access *access);

/* The name that the caller's token says, or "". In the call's arena. No yield. */
const char *access_caller_name(struct access *access, struct rpc_call *call);

#endif
