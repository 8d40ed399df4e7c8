/* decide_told.h - what a message of another cluster says of a domain: for decide_replicated.c,
 * which merges it. Whatever makes no sense is an error, ERR_BAD_REQUEST: the message is parked. */
#ifndef CADENZA_DOMAIN_DECIDE_TOLD_H
#define CADENZA_DOMAIN_DECIDE_TOLD_H

#include "domain/decide_common.h"

/* What is decided here is given once, to all steps. */
struct merge {
    const ADMIN(DomainTaskAttributes) *task;
    const char *source;
    const struct domain_rules *rules;
    const struct domain_moment *moment;
    struct arena *arena;
    STORED(FailoverRecord)
    *told; /* the failover that the change is, as its maker made it; or NULL */
    struct told_drains drains;
    int64_t moved_version; /* of the domain, as the source has it */
};

/* Is it a message that can be applied? Of a delete only that it names a domain. */
must_use struct error *told_check_form(const struct merge *merge);
/* Fills in what the message tells beside the domain; its form is good. */
must_use struct error *told_read(struct merge *merge);
/* The domain as the source has it; what a message leaves blank is filled in. */
API(Domain) *told_domain(const struct merge *merge);

#endif
