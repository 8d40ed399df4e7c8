/* audit.h - who did what and when: calls that change domains or the server itself, and how they
 * ended. */
#ifndef CADENZA_AUDIT_AUDIT_H
#define CADENZA_AUDIT_AUDIT_H

#include "access/access.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "config/dynamic.h"
#include "rpc/service.h"
#include "store/store.h"
#include "wire/names.h"

struct audit;

struct audit_options {
    struct store *store;
    const struct dynamic *dynamic;
    struct access *access; /* knows the names of callers; NULL: they have none */
    const struct log *log; /* may be NULL */
};

/* On loop 0. */
struct audit *audit_new(const struct audit_options *options);
/* When there are no more calls. */
void audit_free(struct audit *audit);
/* A call has ended, `err` NULL: well. For rpc_service_watch. Yields. */
void audit_note(void *audit, struct rpc_call *call, const struct error *err);

struct audit_filter {
    const char *domain;    /* "": of all, and of none */
    const char *operation; /* "": any */
    uint64_t before;       /* number of a record: only older ones; 0: from the newest on */
    size_t count_max;
};
/* Records, the newest first. *next is what `before` has to be for more; 0: that was all.
 * Yields. */
must_use struct error *audit_list(struct audit *audit, const struct audit_filter *filter,
                                  struct arena *arena, STORE_API(AuditRecord) ***records,
                                  size_t *count, uint64_t *next);

#endif
