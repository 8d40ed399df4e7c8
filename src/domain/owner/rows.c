/* rows.c - the form of domains, and of what goes with them, in the store.
 *
 *   domain           id → DomainRecord; of a deleted domain the last one, with that status
 *   domain-name      name → id
 *   domain-log       notification version → DomainChange
 *   domain-failover  id, failover version (newest first), time (newest first), record id →
 *                    FailoverRecord
 *   domain-position  "from:<cluster>", "follower:<name>", POSITION_DEAD → DomainPosition
 *   entity           type, key → EntityRecord, deleted ones too */
#include "base/check.h"
#include "domain/owner/inside.h"
#include "store/key.h"
#include "wire/message.h"

struct slice
failover_key(const STORED(FailoverRecord) *failover, struct arena *arena)
{
    check(failover->domain_id[0] != '\0' && failover->failover_version >= 0);
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(failover->domain_id));
    key_u64_descending(&key, (uint64_t)failover->failover_version);
    key_u64_descending(&key, (uint64_t)failover->created_time);
    key_text(&key, slice_text(failover->id));
    return key_end(&key);
}

void
batch_add_failover(struct batch *batch, const STORED(FailoverRecord) *failover)
{
    STORED(FailoverRecord) stored = *failover;
    stored.format = FAILOVER_RECORD_FORMAT;
    batch_put(batch, ROW_DOMAIN_FAILOVER, failover_key(failover, batch->arena),
              message_encode(batch->arena, &stored.base));
}

void
batch_add_position(struct batch *batch, const char *name, int64_t handled)
{
    check(name[0] != '\0');
    STORED(DomainPosition) *position = message_new(batch->arena, STORED_TYPE(domain_position));
    position->format = POSITION_FORMAT;
    position->handled = handled;
    batch_put(batch, ROW_DOMAIN_POSITION, key_of_text(name, batch->arena),
              message_encode(batch->arena, &position->base));
}

static int
operation_of(const struct domain_decision *decision)
{
    switch (decision->what) {
    case DOMAIN_CREATED:
        return ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    case DOMAIN_UPDATED:
        return ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    case DOMAIN_DELETED:
        return ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
    case ENTITIES_CHANGED:
    case DOMAIN_UNCHANGED:
        break;
    }
    check_that(false, "a decision that changes no domain is written as one that does");
    return 0;
}

/* The name may be another domain's: of one that was deleted and never known here. */
static bool
has_name(const struct domains *domains, const struct domain *domain)
{
    const struct domain *named = domain_cache_find_name(&domains->newest, domain->name);
    return named != NULL && strcmp(named->id, domain->id) == 0;
}

void
batch_add_change(struct batch *batch, const struct change *change,
                 const struct domain_decision *decision, bool is_replicated)
{
    struct arena *arena = batch->arena;
    const struct domain *domain = change->domain;
    check(batch->guard_next == change->version);
    check(decision->next->notification_version == (int64_t)change->version);
    struct slice by_id = key_of_text(domain->id, arena);
    struct slice by_name = key_of_text(domain->name, arena);
    batch_put(batch, ROW_DOMAIN, by_id, domain->bytes);
    if (!domain_cache_is_deleted(domain))
        batch_put(batch, ROW_DOMAIN_NAME, by_name, slice_text(domain->id));
    else if (has_name(change->domains, domain))
        batch_delete(batch, ROW_DOMAIN_NAME, by_name);
    STORED(DomainChange) *logged = message_new(arena, STORED_TYPE(domain_change));
    logged->format = DOMAIN_CHANGE_FORMAT;
    logged->operation = operation_of(decision);
    logged->record = decision->next;
    logged->is_replicated = is_replicated;
    logged->failover = decision->failover;
    batch_put(batch, ROW_DOMAIN_LOG, key_of_number(change->version, arena),
              message_encode(arena, &logged->base));
    if (decision->failover != NULL && !decision->failover->is_superseded)
        batch_add_failover(batch, decision->failover);
}

void
batch_add_entities(struct batch *batch, const struct change *change, bool is_replicated)
{
    struct arena *arena = batch->arena;
    check(change->entity_count > 0 && batch->guard_next == change->version);
    STORED(DomainChange) *logged = message_new(arena, STORED_TYPE(domain_change));
    logged->format = DOMAIN_CHANGE_FORMAT;
    logged->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    logged->is_replicated = is_replicated;
    logged->n_entities = change->entity_count;
    logged->entities = arena_zalloc(arena, change->entity_count, sizeof *logged->entities);
    for (size_t i = 0; i < change->entity_count; i++) {
        const struct entity *entity = change->entities[i];
        struct key_writer key;
        key_begin(&key, arena);
        key_text(&key, slice_text(entity->type));
        key_text(&key, slice_text(entity->key));
        logged->entities[i] = entity_record(entity, arena);
        batch_put(batch, ROW_ENTITY, key_end(&key),
                  message_encode(arena, &logged->entities[i]->base));
    }
    batch_put(batch, ROW_DOMAIN_LOG, key_of_number(change->version, arena),
              message_encode(arena, &logged->base));
}
