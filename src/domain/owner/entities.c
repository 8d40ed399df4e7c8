/* entities.c - the table of entities: writing, following and reading it. See domains.h.
 *
 * The table is a part of the domains: its rows are in their partition, a change of rows leaves the
 * next notification version and a row of the log, and reaches every loop and listener in order with
 * the changes of domains. So a step of a shard is decided on one version of both. */
#include <stdlib.h>

#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "route/owner.h"
#include "store/key.h"
#include "wire/message.h"

/* --- writing ---------------------------------------------------------------------------------- */

static struct entity_rules
entity_rules_now(const struct change_request *change_request, const struct domain_rules *rules)
{
    const struct domains *domains = change_request->domains;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    return (struct entity_rules){
        .group = domains->options.group,
        .name_length_max = rules->name_length_max,
        .count = (int64_t)map_count(domains->newest.entities),
        .count_max = dynamic_integer(domains->options.dynamic, DYNAMIC_ENTITIES_MAX, &filter),
        .is_catching_up = rules->is_catching_up,
    };
}

static INTERNAL(EntityChange) change_to_message(const struct entity_change *change)
{
    static const INTERNAL(EntityVerb) verbs[] = {
        [ENTITY_SET] = INTERNAL_VALUE(ENTITY_VERB__ENTITY_VERB_SET),
        [ENTITY_ADD] = INTERNAL_VALUE(ENTITY_VERB__ENTITY_VERB_ADD),
        [ENTITY_DELETE] = INTERNAL_VALUE(ENTITY_VERB__ENTITY_VERB_DELETE),
    };
    INTERNAL(EntityChange) message = INTERNAL_VALUE(ENTITY_CHANGE__INIT);
    message.verb = verbs[change->verb];
    message.type = (char *)change->type;
    message.key = (char *)change->key;
    message.region = change->region == NULL ? "" : (char *)change->region;
    message.writer = (char *)change->writer;
    return message;
}

static struct entity_change
change_from_message(const INTERNAL(EntityChange) * message)
{
    bool is_set = message->verb == INTERNAL_VALUE(ENTITY_VERB__ENTITY_VERB_SET);
    bool is_add = message->verb == INTERNAL_VALUE(ENTITY_VERB__ENTITY_VERB_ADD);
    return (struct entity_change){is_set   ? ENTITY_SET
                                  : is_add ? ENTITY_ADD
                                           : ENTITY_DELETE,
                                  message->type, message->key, message->region, message->writer};
}

/* Of the rows, each is named once: nothing of the first is seen by the second. */
static struct error *
decide_changes(const struct change_request *change_request, const struct domain_rules *rules,
               const struct domain_moment *moment, struct domain_decision *decision)
{
    const INTERNAL(EntityChanges) *requested = change_request->request;
    struct entity_rules entity_rules = entity_rules_now(change_request, rules);
    check(requested->n_changes > 0 && requested->n_changes <= ENTITIES_PER_CHANGE);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    decision->entities =
        arena_zalloc(change_request->arena, requested->n_changes, sizeof(STORED(EntityRecord) *));
    for (size_t i = 0; i < requested->n_changes; i++) {
        struct entity_change one = change_from_message(requested->changes[i]);
        const struct entity *current =
            domain_cache_find_entity(&change_request->domains->newest, one.type, one.key);
        STORED(EntityRecord) *next = NULL;
        struct error *err =
            entity_decide(current, &one, &entity_rules, moment->now, change_request->arena, &next);
        if (err != NULL)
            return err;
        if (next == NULL)
            continue;
        entity_rules.count += current == NULL;
        decision->entities[decision->entity_count++] = next;
    }
    if (decision->entity_count > 0)
        decision->what = ENTITIES_CHANGED;
    return NULL;
}

static struct error *
serve_set_entities(void *domains, struct owner owner, const void *request, struct arena *arena,
                   void *answer)
{
    struct change_request change_request = {.domains = domains,
                                            .name = "",
                                            .request = request,
                                            .decide = decide_changes,
                                            .arena = arena};
    return change_request_serve(&change_request, answer);
}

/* Lost: who writes them does so again (a client's start, an operator, a watcher that looks at
 * its source again), and what is there already changes nothing. Never twice: an entity may have
 * moved on in between. */
static const struct route_question set_entities_question = {
    .name = "domains.set_entities",
    .request = INTERNAL_TYPE(entity_changes),
    .answer = INTERNAL_TYPE(changed_domain),
    .serve = serve_set_entities,
};

struct error *
domains_set_entities(struct domains *domains, const struct entity_change *changes, size_t count,
                     struct arena *arena)
{
    size_t room = count < ENTITIES_PER_CHANGE ? count : ENTITIES_PER_CHANGE;
    INTERNAL(EntityChange) *messages = arena_zalloc(arena, room, sizeof *messages);
    INTERNAL(EntityChange) **pointers = arena_zalloc(arena, room, sizeof *pointers);
    for (size_t i = 0; i < count;) {
        INTERNAL(EntityChanges) part = INTERNAL_VALUE(ENTITY_CHANGES__INIT);
        part.changes = pointers;
        for (; part.n_changes < room && i < count; i++) {
            messages[part.n_changes] = change_to_message(&changes[i]);
            pointers[part.n_changes] = &messages[part.n_changes];
            part.n_changes++;
        }
        struct error *err =
            domains_ask_for_change(domains, &set_entities_question, &part, arena, NULL);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* --- what comes from other clusters ----------------------------------------------------------- */

/* A row that can never be applied is left out and logged: it comes again with the next change of
 * the entity. */
static struct error *
decide_rows(const struct change_request *change_request, const struct domain_rules *rules,
            const struct domain_moment *moment, struct domain_decision *decision)
{
    const INTERNAL(ReplicatedEntities) *requested = change_request->request;
    const struct domains *domains = change_request->domains;
    check(requested->n_records > 0 && requested->n_records <= ENTITIES_PER_CHANGE);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    decision->entities =
        arena_zalloc(change_request->arena, requested->n_records, sizeof(*decision->entities));
    for (size_t i = 0; i < requested->n_records; i++) {
        STORED(EntityRecord) *row = requested->records[i];
        bool is_newer = false;
        struct error *err = entity_decide_replicated(
            domain_cache_find_entity(&domains->newest, row->type, row->key), row,
            domains->options.group, change_request->arena, &is_newer);
        if (err != NULL)
            log_fail(domains->options.log, "A row of the entity table cannot be applied.",
                     log_text("source-cluster", change_request->source), log_error(err));
        if (is_newer)
            decision->entities[decision->entity_count++] = row;
    }
    if (decision->entity_count > 0)
        decision->what = ENTITIES_CHANGED;
    return NULL;
}

static struct error *
serve_apply_entities(void *domains, struct owner owner, const void *argument, struct arena *arena,
                     void *answer)
{
    const INTERNAL(ReplicatedEntities) *request = argument;
    struct change_request change_request = {.domains = domains,
                                            .name = "",
                                            .request = request,
                                            .decide = decide_rows,
                                            .source = request->source,
                                            .arena = arena};
    return change_request_serve(&change_request, answer);
}

/* Lost: they are fetched and applied again. Twice: each row has a version, and is not newer than
 * itself. */
static const struct route_question apply_entities_question = {
    .name = "domains.apply_entities",
    .request = INTERNAL_TYPE(replicated_entities),
    .answer = INTERNAL_TYPE(changed_domain),
    .serve = serve_apply_entities,
    .may_come_twice = true,
};

struct error *
domains_apply_entities(struct domains *domains, const char *source,
                       const struct entity_records *records, struct arena *arena)
{
    for (size_t i = 0; i < records->count;) {
        size_t left = records->count - i;
        INTERNAL(ReplicatedEntities) part = INTERNAL_VALUE(REPLICATED_ENTITIES__INIT);
        part.source = (char *)source;
        part.records = &records->records[i];
        part.n_records = left > ENTITIES_PER_CHANGE ? ENTITIES_PER_CHANGE : left;
        struct error *err =
            domains_ask_for_change(domains, &apply_entities_question, &part, arena, NULL);
        if (err != NULL)
            return err;
        probe("entities_applied");
        i += part.n_records;
    }
    return NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static const struct domain_cache *
domain_cache_here(const struct domains *domains)
{
    return &domains->domain_caches[route_place_here()];
}

const struct entity *
domains_find_entity(const struct domains *domains, const char *type, const char *key)
{
    return domain_cache_find_entity(domain_cache_here(domains), type, key);
}

size_t
domains_entity_count(const struct domains *domains)
{
    return map_count(domain_cache_here(domains)->entities);
}

size_t
domains_entity_room(const struct domains *domains)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    int64_t most = dynamic_integer(domains->options.dynamic, DYNAMIC_ENTITIES_MAX, &filter);
    int64_t count = (int64_t)domains_entity_count(domains);
    return most > count ? (size_t)(most - count) : 0;
}

/* Of a run whose entity is not known here: its events came before the row. The cluster that wrote
 * them knows the row, and is asked; that says nothing about which cluster may write. */
static struct active_cluster
active_by_writer(const struct domain *domain, const struct cluster_attribute *attribute,
                 int64_t last_version, const struct cluster_group *group)
{
    const struct cluster *writer = cluster_group_of_version(group, last_version);
    if (writer == NULL || writer == group->current)
        return domain_active_run(domain, attribute, last_version, group);
    probe("entity_not_known_yet");
    return (struct active_cluster){
        .status = ACTIVE_ELSEWHERE, .cluster_name = writer->name, .failover_version = last_version};
}

/* Do runs of the attribute go where an entity is? */
static bool
is_followed(const struct domain *domain, const struct cluster_attribute *attribute)
{
    return attribute != NULL && attribute->scope != NULL && attribute->name != NULL &&
           domain_resolves_entities(domain, attribute->scope) &&
           strcmp(attribute->scope, SCOPE_REGION) != 0;
}

bool
domains_takes_runs(const struct domains *domains, const struct domain *domain,
                   const struct cluster_attribute *attribute)
{
    const struct entity *entity =
        is_followed(domain, attribute)
            ? domains_find_entity(domains, attribute->scope, attribute->name)
            : NULL;
    return entity == NULL || !entity->is_deleted;
}

struct error *
domains_refuse_unresolved(const struct domains *domains, const struct domain *domain,
                          const struct cluster_attribute *attribute, struct arena *arena)
{
    const struct entity *entity = domains_find_entity(domains, attribute->scope, attribute->name);
    return error_new(arena, ERR_BAD_REQUEST,
                     "Cannot start workflow for '%s' of type '%s': it is in region '%s', which "
                     "domain %s does not have; 'cadenza domain update --active_clusters "
                     "region.%s:<cluster>' adds it.",
                     attribute->name, attribute->scope, entity == NULL ? "" : entity->region,
                     domain->name, entity == NULL ? "<region>" : entity->region);
}

struct active_cluster
domains_active_run(const struct domains *domains, const struct domain *domain,
                   const struct cluster_attribute *attribute, int64_t last_version)
{
    const struct cluster_group *group = domains->options.group;
    if (!is_followed(domain, attribute))
        return domain_active_run(domain, attribute, last_version, group);
    const struct entity *entity = domains_find_entity(domains, attribute->scope, attribute->name);
    return entity != NULL ? entity_active_run(entity, domain, last_version, group)
                          : active_by_writer(domain, attribute, last_version, group);
}

static int
compare_versions(const void *one, const void *other)
{
    const struct entity *left = *(struct entity *const *)one;
    const struct entity *right = *(struct entity *const *)other;
    if (left->notification_version != right->notification_version)
        return left->notification_version < right->notification_version ? -1 : 1;
    int order = strcmp(left->type, right->type);
    return order != 0 ? order : strcmp(left->key, right->key);
}

size_t
entities_after(const struct domain_cache *domain_cache, const struct domain_cache *known,
               uint64_t after, struct arena *arena, struct entity ***found)
{
    size_t count = 0, cursor = 0;
    void *value = NULL;
    struct slice name;
    *found = arena_zalloc(arena, map_count(domain_cache->entities), sizeof(struct entity *));
    while (map_next(domain_cache->entities, &cursor, &name, &value)) {
        struct entity *entity = value;
        const struct entity *older = known == NULL ? NULL : map_get(known->entities, name);
        bool is_known =
            older != NULL && older->notification_version >= entity->notification_version;
        if (entity->notification_version > after && !is_known)
            (*found)[count++] = entity;
    }
    qsort(*found, count, sizeof(struct entity *), compare_versions);
    return count;
}

/* `from` of the scan: behind the token, or the beginning of the type. */
static struct error *
list_scan(const char *type, struct slice token, size_t count_max, struct arena *arena,
          struct scan *scan)
{
    struct slice rest = token, text;
    struct slice prefix = slice_of("", 0);
    if (type[0] != '\0')
        prefix = key_of_text(type, arena);
    *scan = (struct scan){.partition = PARTITION_OF_DOMAINS,
                          .kind = ROW_ENTITY,
                          .from = prefix,
                          .rows_max = count_max};
    if (prefix.length > 0)
        scan->to = key_after_prefix(prefix, arena);
    if (token.length == 0)
        return NULL;
    if (!key_take_text(&rest, arena, &text) || !key_take_text(&rest, arena, &text) ||
        rest.length != 0)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    scan->from = key_after(token, arena);
    return NULL;
}

struct error *
domains_list_entities(struct domains *domains, const char *type, struct slice token,
                      size_t count_max, struct arena *arena, struct entity_records *records,
                      struct slice *next)
{
    check(count_max > 0);
    struct scan scan;
    struct rows rows;
    *next = slice_of("", 0);
    struct error *err = list_scan(type, token, count_max, arena, &scan);
    if (err == NULL)
        err = store_scan(domains->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    *records = (struct entity_records){
        arena_zalloc(arena, rows.count, sizeof(STORED(EntityRecord) *)), rows.count};
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(entity_record), rows.row[i].value,
                                &records->records[i]);
    check(rows.count > 0 || !rows.has_more);
    if (err == NULL && rows.has_more)
        *next = rows.row[rows.count - 1].key;
    return err;
}
