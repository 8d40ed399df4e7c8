/* domain.c - see domain.h. A record is always made from its stored bytes, so that what is held in
 * memory cannot differ from what a restart would read. */
#include "domain/domain.h"

#include "base/check.h"
#include "wire/message.h"
#include "wire/presence.h"

struct error *
domain_decode(struct slice bytes, struct arena *arena, struct domain **domain)
{
    struct arena *own = arena_new(bytes.length * 2 + 512);
    struct domain *made = arena_make(own, struct domain);
    made->arena = own;
    made->bytes = arena_slice(own, bytes);
    STORED(DomainRecord) *record = NULL;
    struct error *err =
        message_decode_as(own, ERR_CORRUPT, STORED_TYPE(domain_record), made->bytes, &record);
    const char *fault = NULL;
    if (err != NULL)
        fault = err->message;
    else if (record->format != DOMAIN_RECORD_FORMAT)
        fault = "its format is not known to this version of the server";
    else if (record->domain == NULL || record->domain->id[0] == '\0' ||
             record->domain->name[0] == '\0')
        fault = "it has no name or id";
    if (fault != NULL) {
        struct error *corrupt =
            error_new(arena, ERR_CORRUPT, "a stored domain record cannot be read: %s", fault);
        arena_free(own);
        return corrupt;
    }
    made->record = record;
    made->id = record->domain->id;
    made->name = record->domain->name;
    atomic_init(&made->references, 1);
    *domain = made;
    return NULL;
}

int64_t
domain_record_moved_version(const STORED(DomainRecord) *record)
{
    struct maybe_int64 moved = presence_read_int64(record->moved_version);
    return moved.is_set ? moved.value : record->domain->failover_version;
}

struct domain *
domain_from_record(const STORED(DomainRecord) *record)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice bytes = message_encode(arena, &record->base);
    struct domain *domain = NULL;
    struct error *err = domain_decode(bytes, arena, &domain);
    check_that(err == NULL, "a record that we made does not decode: %s", err->message);
    return domain;
}

struct domain *
domain_take(struct domain *domain)
{
    unsigned before = atomic_fetch_add_explicit(&domain->references, 1, memory_order_relaxed);
    check(before > 0);
    return domain;
}

void
domain_drop(struct domain *domain)
{
    if (domain == NULL)
        return;
    unsigned before = atomic_fetch_sub_explicit(&domain->references, 1, memory_order_acq_rel);
    check(before > 0);
    if (before == 1)
        arena_free(domain->arena);
}

struct error *
domain_error_unknown(const char *name_or_id, struct arena *arena)
{
    return error_new(arena, ERR_ENTITY_NOT_EXISTS, "Domain %s does not exist.", name_or_id);
}

bool
domain_has_cluster(const API(Domain) *domain, const char *cluster_name)
{
    for (size_t i = 0; i < domain->n_clusters; i++) {
        if (strcmp(domain->clusters[i]->cluster_name, cluster_name) == 0)
            return true;
    }
    return false;
}
