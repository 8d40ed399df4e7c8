/* domain.h - one domain at one moment: an immutable record, shared by counting references.
 *
 * Every loop holds the newest one that has reached it; code that keeps one across a yield takes a
 * reference. */
#ifndef CADENZA_DOMAIN_DOMAIN_H
#define CADENZA_DOMAIN_DOMAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cadenza/storage/v1/domain.pb-c.h"
#include "wire/names.h"

#define DOMAIN_RECORD_FORMAT 1

struct domain {
    atomic_uint references;
    struct arena *arena;                /* holds all of it */
    const STORED(DomainRecord) *record; /* as decoded; record->domain is never NULL */
    const char *id, *name;              /* of record->domain */
    struct slice bytes;                 /* as stored */
    /* This cluster lost memory and has not read again what the others know of this domain
     * (design/031): what is active here is pending. Of a global domain; not stored. */
    bool is_recovering;
};

/* The highest versions of this cluster that the others have in histories of a domain; -1: none. */
struct heard_versions {
    int64_t version;
    int64_t entity_version; /* of runs of entities */
    /* So many rounds of versions are left out besides: somebody was not asked. */
    int64_t rounds_skipped;
};

/* Decodes a stored record; the caller has one reference. Errors: ERR_CORRUPT naming what is wrong.
 */
must_use struct error *domain_decode(struct slice bytes, struct arena *arena,
                                     struct domain **domain);
/* The failover version that moved the domain to where it is by default, which distinguishes two
 * such moves. Never above its failover version, which other failovers raise too, and of the same
 * cluster. */
int64_t domain_record_moved_version(const STORED(DomainRecord) *record);
/* A copy of a record that was built elsewhere; the caller has one reference. */
struct domain *domain_from_record(const STORED(DomainRecord) *record);
struct domain *domain_take(struct domain *domain);
/* Gives a reference back; the last one frees. NULL is fine. */
void domain_drop(struct domain *domain);
/* The refusal for a name or id that no domain has. */
must_use struct error *domain_error_unknown(const char *name_or_id, struct arena *arena);
/* What a call is told that cannot wait, with the name of the domain. */
#define DOMAIN_IS_RECOVERING                                                                       \
    "This cluster lost memory (its store was restored or copied), and domain %s waits until it "   \
    "has read from the other clusters what it had. Nothing was done, try again."
/* Is the cluster one of the domain's? */
bool domain_has_cluster(const API(Domain) *domain, const char *cluster_name);

#endif
