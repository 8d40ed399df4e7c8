/* quota.h - how often something may happen in the whole process: rates by name that many threads
 * share.
 *
 * A quota is one number, the moment at which the rate would be used up if nothing more came: taking
 * is one compare and swap. Look a quota up once and keep it; looking up takes a short lock. Quotas
 * are never removed before all of them are. */
#ifndef CADENZA_BASE_QUOTA_H
#define CADENZA_BASE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct quotas;
struct quota;

struct quotas *quotas_new(void);
void quotas_free(struct quotas *quotas);
/* The same name gives the same quota. */
struct quota *quotas_find(struct quotas *quotas, struct slice name);

/* Takes one at this moment (monotonic, ns) of a rate per second; what was not used is saved, a
 * second's worth at most. False: there is none. At a rate of 0 there never is; without an end of
 * time (2^31 - 1 or more) there always is. The rate may differ from call to call. */
bool quota_take(struct quota *quota, double rate, int64_t now);

#endif
