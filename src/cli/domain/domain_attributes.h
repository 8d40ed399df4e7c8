/* domain_attributes.h - lists that people type for domains: clusters, data, and which cluster is
 * active for which cluster attribute. Pure: text in, messages out. Inside cli/ only. */
#ifndef CADENZA_CLI_DOMAIN_DOMAIN_ATTRIBUTES_H
#define CADENZA_CLI_DOMAIN_DOMAIN_ATTRIBUTES_H

#include "base/error.h"
#include "cli/base/inside.h"
#include "uber/cadence/api/v1/domain.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* A key and its value. */
struct domain_datum {
    const char *key, *value;
};

/* Names with commas or blanks between, of all uses of the flag. Errors: ERR_BAD_REQUEST (none at
 * all, one twice). */
must_use struct error *domain_read_clusters(const struct flag_list *list, struct arena *arena,
                                            API(ClusterReplicationConfiguration) ***clusters,
                                            size_t *count);
/* --domain_data k1=v1,k2=v2 and --domain_data_entry k=v. Errors: ERR_BAD_REQUEST (no '=', no key, a
 * key twice). */
must_use struct error *domain_read_data(const struct domain_flags *flags, struct arena *arena,
                                        struct domain_datum **data, size_t *count);
/* --active_clusters or --active_clusters_json, and --active_clusters_by_region; NULL if none is
 * given. Errors: ERR_BAD_REQUEST
 * (both, another form, an attribute twice). */
must_use struct error *domain_read_active_clusters(const struct domain_flags *flags,
                                                   struct arena *arena,
                                                   API(ActiveClusters) **active);

/* "city.oslo", "city.*" (its name is empty then). Errors: ERR_BAD_REQUEST (another form). */
must_use struct error *domain_read_attribute(const char *flag, const char *text,
                                             struct arena *arena, API(ClusterAttribute) **read);
/* --remove_attributes and --force, into the request. Errors: ERR_BAD_REQUEST (another form). */
must_use struct error *domain_read_removed(const struct domain_flags *flags, struct arena *arena,
                                           API(UpdateDomainRequest) *request);
/* What is active in one cluster of the domain, as a failover to another one. Errors:
 * ERR_BAD_REQUEST (nothing is). */
must_use struct error *domain_leave(const API(Domain) *domain, const char *from, const char *to,
                                    struct arena *arena, API(FailoverDomainRequest) *request);

#endif
