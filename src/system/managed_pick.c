/* managed_pick.c - which domains are moved, and where to. See managed.h. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "domain/attributes.h"
#include "domain/domain.h"
#include "system/managed.h"
#include "wire/maps.h"

#define DATA_MANAGED     "IsManagedByCadence"
#define DATA_PREFERRED   "PreferredCluster"
#define DATA_PREFERENCES "ClusterAttributePreferences"
#define DATA_TIMEOUT     "FailoverTimeoutInSeconds"

/* The value of a key of the domain's data; "": none. */
static const char *
read_data(const API(Domain) *domain, const char *key)
{
    const API(Domain__DataEntry) *entry = wire_map_find(domain->data, domain->n_data, key);
    return entry == NULL || entry->value == NULL ? "" : entry->value;
}

/* "true", however it is written, with or without space around it. */
static bool
is_true(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)text[0])) {
        text++;
        length--;
    }
    return length == strlen("true") && strncasecmp(text, "true", length) == 0;
}

static bool
is_eligible(const API(Domain) *domain)
{
    return domain->is_global_domain && is_true(read_data(domain, DATA_MANAGED)) &&
           domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED) &&
           domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

static bool
is_named(const char *name, const char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* A domain may set the timeout of its failovers; anything that is not such a number is ignored. */
static int64_t
read_timeout(const API(Domain) *domain)
{
    const char *text = read_data(domain, DATA_TIMEOUT);
    char *end;
    long long seconds = strtoll(text, &end, 10);
    bool is_good = end != text && *end == '\0' && seconds > 0 && seconds <= INT32_MAX;
    return is_good ? seconds : 0;
}

static void
move_attribute(struct managed_move *move, const struct attribute *attribute, const char *target)
{
    move->attributes[move->attribute_count++] = (struct managed_attribute){
        attribute->scope, attribute->name, target, attribute->cluster_name};
}

/* Room for the attributes that may move. */
static void
make_room(struct managed_move *move, size_t count, struct arena *arena)
{
    if (count > 0)
        move->attributes = arena_zalloc(arena, count, sizeof move->attributes[0]);
}

/* --- out of some clusters ---- */

/* Attributes that are listed: all, or those that are active in a source. True: one is. */
static bool
move_listed(const struct managed_params *params, const struct attributes *attributes,
            bool is_second, struct managed_move *move, struct arena *arena)
{
    bool is_any = false;
    make_room(move, params->attribute_count, arena);
    for (size_t i = 0; i < params->attribute_count; i++) {
        const struct attribute *found =
            attributes_find(attributes, params->attributes[i].scope, params->attributes[i].name);
        if (found == NULL)
            continue;
        bool is_there = is_named(found->cluster_name, params->sources, params->source_count);
        is_any = is_any || is_there;
        if (is_there || !is_second)
            move_attribute(move, found, params->target);
    }
    return is_any;
}

static bool
pick_failover(const struct managed_params *params, const API(Domain) *domain, bool is_second,
              struct arena *arena, struct managed_move *move)
{
    const char *active = domain->active_cluster_name;
    struct attributes attributes = attributes_read(domain->active_clusters, arena);
    bool is_there = is_named(active, params->sources, params->source_count);
    bool is_any = move_listed(params, &attributes, is_second, move, arena);
    check(move->attribute_count <= params->attribute_count);
    if (is_there || (is_any && !is_second)) {
        move->target = params->target;
        move->previous = arena_text(arena, active);
    }
    return is_there || is_any;
}

/* --- where its data prefer it ---- */

static void
move_preferred(const API(Domain) *domain, struct managed_move *move, struct arena *arena)
{
    struct managed_attribute *preferences;
    size_t count;
    struct attributes attributes = attributes_read(domain->active_clusters, arena);
    const char *text = read_data(domain, DATA_PREFERENCES);
    if (text[0] == '\0' || !managed_read_preferences(text, arena, &preferences, &count))
        return;
    make_room(move, count, arena);
    for (size_t i = 0; i < count; i++) {
        const struct attribute *found =
            attributes_find(&attributes, preferences[i].scope, preferences[i].name);
        if (found != NULL && strcmp(found->cluster_name, preferences[i].target) != 0)
            move_attribute(move, found, preferences[i].target);
    }
}

static bool
pick_rebalance(const API(Domain) *domain, bool is_second, struct arena *arena,
               struct managed_move *move)
{
    const char *preferred = read_data(domain, DATA_PREFERRED);
    const char *active = domain->active_cluster_name;
    if (preferred[0] != '\0' && strcmp(preferred, active) != 0 &&
        domain_has_cluster(domain, preferred)) {
        move->target = arena_text(arena, preferred);
        move->previous = arena_text(arena, active);
    }
    if (is_second)
        move_preferred(domain, move, arena);
    return move->target[0] != '\0' || move->attribute_count > 0;
}

bool
managed_pick(enum managed_kind kind, const struct managed_params *params, const API(Domain) *domain,
             struct arena *arena, struct managed_move *move)
{
    bool is_second = kind == KIND_FAILOVER_V2 || kind == KIND_REBALANCE_V2;
    bool is_failover = kind == KIND_FAILOVER || kind == KIND_FAILOVER_V2;
    *move = (struct managed_move){
        .domain = arena_text(arena, domain->name), .target = "", .previous = ""};
    if (!is_eligible(domain))
        return false;
    if (is_failover && params->domain_count > 0 &&
        !is_named(domain->name, params->domains, params->domain_count))
        return false;
    move->timeout = is_second ? read_timeout(domain) : params->timeout;
    return is_failover ? pick_failover(params, domain, is_second, arena, move)
                       : pick_rebalance(domain, is_second, arena, move);
}
