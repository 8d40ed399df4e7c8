/* decide.h - what becomes of a domain when somebody wants to change it: pure, no I/O, no clock, no
 * yield.
 *
 * (the record now, the request, the rules, the moment) → the record afterwards, or a refusal in the
 * words that Cadence's users know. The owner (domains.h) stores it; nothing here knows how. */
#ifndef CADENZA_DOMAIN_DECIDE_H
#define CADENZA_DOMAIN_DECIDE_H

#include <stdbool.h>

#include "base/uuid.h"
#include "cluster/group.h"
#include "domain/domain.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"

/* The settings that deciding depends on, read before. */
struct domain_rules {
    const struct cluster_group *group;
    int64_t retention_days_min;
    int64_t retention_days_max;
    int64_t name_length_max;
    int64_t bad_binaries_max;
    const char *const *required_data_keys; /* NULL-terminated */
    bool is_catching_up; /* restored from a backup: the group may know newer global domains */
    bool is_admin_protected;
    const char *admin_token;
};

/* What only the moment knows. */
struct domain_moment {
    int64_t now;       /* wall, ns */
    struct uuid fresh; /* a new id (version 7) */
};

/* Each fills *next with a record in `arena` whose notification version the owner sets. `current` is
 * the domain that has the request's name, NULL: none. Errors: ERR_BAD_REQUEST,
 * ERR_DOMAIN_ALREADY_EXISTS, ERR_ENTITY_NOT_EXISTS. */
must_use struct error *domain_decide_register(const struct domain *current,
                                              const API(RegisterDomainRequest) *request,
                                              const struct domain_rules *rules,
                                              const struct domain_moment *moment,
                                              struct arena *arena, STORED(DomainRecord) **next);
must_use struct error *domain_decide_update(const struct domain *current,
                                            const API(UpdateDomainRequest) *request,
                                            const struct domain_rules *rules,
                                            const struct domain_moment *moment, struct arena *arena,
                                            STORED(DomainRecord) **next);
must_use struct error *domain_decide_deprecate(const struct domain *current,
                                               const API(DeprecateDomainRequest) *request,
                                               const struct domain_rules *rules,
                                               const struct domain_moment *moment,
                                               struct arena *arena, STORED(DomainRecord) **next);

/* The refusal for a name or id that no domain has. */
must_use struct error *domain_error_unknown(const char *name_or_id, struct arena *arena);

/* Archival of history or visibility: whether it is on, and where to. Once there is a URI it stays.
 */
struct archival {
    int status; /* ARCHIVAL_STATUS_*; 0 in a request: not given */
    const char *uri;
};
/* The state after a request. Errors: ERR_BAD_REQUEST (another URI than the one it has; enabled
 * without any). */
must_use struct error *archival_next(struct archival now, struct archival request,
                                     struct arena *arena, struct archival *next);

#endif
