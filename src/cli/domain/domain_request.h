/* domain_request.h - from flags to the requests of the domain API. Pure. Inside cli/ only.
 *
 * What a flag says is checked as far as its form goes; whether the domain can be so is the server's
 * answer. Errors: ERR_BAD_REQUEST, a sentence that names the flag. */
#ifndef CADENZA_CLI_DOMAIN_DOMAIN_REQUEST_H
#define CADENZA_CLI_DOMAIN_DOMAIN_REQUEST_H

#include "base/error.h"
#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* The name that --domain or the environment gives. */
must_use struct error *domain_need_name(const struct domain_flags *flags, struct arena *arena);
/* A new domain, with cadence's defaults: global, kept for three days. */
must_use struct error *domain_make_register(const struct domain_flags *flags, struct arena *arena,
                                            API(RegisterDomainRequest) **request);
/* A change: the update mask names what was given, nothing else. `person` is who marks a binary
 * bad. */
must_use struct error *domain_make_update(const struct domain_flags *flags, const char *person,
                                          struct arena *arena, API(UpdateDomainRequest) **request);
must_use struct error *domain_make_failover(const struct domain_flags *flags, struct arena *arena,
                                            API(FailoverDomainRequest) **request);
/* --pagesize; `otherwise` if it is not given. */
must_use struct error *domain_read_page_size(const struct domain_flags *flags, int32_t otherwise,
                                             struct arena *arena, int32_t *size);

#endif
