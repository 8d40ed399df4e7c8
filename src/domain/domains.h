/* domains.h - the owner of all domains: decides changes in order, makes them durable, tells every
 * loop.
 *
 * The owner lives on loop 0 (route/). A change is decided on the newest state, adopted in memory
 * and submitted in one step without a yield; the answer waits until it is durable and every loop
 * has it. So a call that follows an answer, on any connection, sees what was answered. The guard of
 * the partition is the cluster's notification version: each change expects n and leaves n + 1.
 *
 * When a commit fails, everything decided after it is void: the owner forgets its state, reads all
 * domains again and goes on. A change that was fenced (another host of the cluster wrote in
 * between) is decided again on what is true then. */
#ifndef CADENZA_DOMAIN_DOMAINS_H
#define CADENZA_DOMAIN_DOMAINS_H

#include "base/log.h"
#include "config/dynamic.h"
#include "domain/decide.h"
#include "store/store.h"

struct domains;

struct domains_options {
    struct store *store;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    const struct log *log;
    bool is_catching_up;      /* restored, and other clusters of the group may know more */
    int64_t refresh_interval; /* look for changes by other hosts on the same store, ns; 0: this host
                                 is alone */
};

/* Reads all domains and tells every loop. On loop 0. Yields. Errors: those of the store,
 * ERR_CORRUPT. */
must_use struct error *domains_open(const struct domains_options *options, struct arena *arena,
                                    struct domains **domains);
/* On loop 0, when nobody calls any more. Yields. */
void domains_close(struct domains *domains);

/* --- reading: the calling loop's newest durable state; no yield
 * ----------------------------------- */

/* NULL: none. Lives until the next yield; domain_take to keep it. */
struct domain *domains_find_name(const struct domains *domains, const char *name);
struct domain *domains_find_id(const struct domains *domains, const char *id);
/* Up to `count_max` domains in order of name, after `after` ("" from the start). */
size_t domains_list(const struct domains *domains, const char *after, struct domain **found,
                    size_t count_max);
size_t domains_count(const struct domains *domains);
/* The notification version that this loop has been told of. */
uint64_t domains_notification_version(const struct domains *domains);

/* --- changing: from any loop; yields.
 * -------------------------------------------------------------- */

/* Each answers with the domain as it is afterwards, one reference for the caller; NULL where
 * `changed` is NULL. Errors: as domain_decide_*; ERR_SERVICE_BUSY (too many changes wait);
 * ERR_UNAVAILABLE, ERR_OUTCOME_UNKNOWN (the store), ERR_DEADLINE and ERR_CANCELLED (it may have
 * been done). */
must_use struct error *domains_register(struct domains *domains,
                                        const API(RegisterDomainRequest) *request,
                                        struct arena *arena, struct domain **changed);
must_use struct error *domains_update(struct domains *domains,
                                      const API(UpdateDomainRequest) *request, struct arena *arena,
                                      struct domain **changed);
must_use struct error *domains_deprecate(struct domains *domains,
                                         const API(DeprecateDomainRequest) *request,
                                         struct arena *arena, struct domain **changed);

#endif
