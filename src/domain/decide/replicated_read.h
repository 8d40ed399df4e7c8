/* replicated_read.h - what a message of another cluster says of a domain: for replicated.c,
 * which merges it. What makes no sense is an error, ERR_BAD_REQUEST: the
 * message becomes a dead letter. */
#ifndef CADENZA_DOMAIN_DECIDE_REPLICATED_READ_H
#define CADENZA_DOMAIN_DECIDE_REPLICATED_READ_H

#include "domain/decide/common.h"

/* What all steps of a merge are given. */
struct domain_merge {
    const ADMIN(DomainTaskAttributes) *task;
    const char *source;
    const struct domain_rules *rules;
    const struct domain_moment *moment;
    struct arena *arena;
    STORED(FailoverRecord)
    *replicated; /* the failover that the change is, as its maker made it; or NULL */
    struct replicated_drains drains;
    int64_t moved_version; /* of the domain, as the source has it */
};

/* Is it a message that can be applied? Of a delete only that it names a domain. */
must_use struct error *replicated_check_form(const struct domain_merge *domain_merge);
/* Fills in what the message says beside the domain; replicated_check_form has passed. */
must_use struct error *replicated_read(struct domain_merge *domain_merge);
/* The domain as the source has it; what a message leaves blank is filled in. */
API(Domain) *replicated_domain(const struct domain_merge *domain_merge);

#endif
