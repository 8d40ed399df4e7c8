/* access.c - see access.h. */
#include "access/access.h"

#include "access/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/loop.h"

#define OAUTH       "authorization.oauthAuthorizer."
#define HEADER      "cadence-authorization"
#define TOKENS_MAX  1024 /* that a loop remembers */
#define FILE_SCHEME "file://"

/* --- opening ---- */

/* A set of keys is a file; no server is asked for it. */
static struct error *
find_key_set(const struct config *config, struct arena *arena, const char **path)
{
    const char *address = config_text(config, OAUTH "provider.jwksURL");
    *path = address;
    if (strncmp(address, FILE_SCHEME, strlen(FILE_SCHEME)) == 0)
        *path = address + strlen(FILE_SCHEME);
    else if (strstr(address, "://") != NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         OAUTH "provider.jwksURL: '%s' is not read; give a file (file:///…) that "
                               "somebody keeps up to date",
                         address);
    return NULL;
}

static struct error *
load_keys(struct access *access, struct arena *arena)
{
    const struct config *config = access->options.config;
    const char *own = config_text(config, OAUTH "jwtCredentials.publicKey"), *set;
    struct error *err = find_key_set(config, arena, &set);
    if (err == NULL && own[0] == '\0' && set[0] == '\0')
        err = error_new(arena, ERR_BAD_REQUEST,
                        "authorization is on and there is no key: give " OAUTH
                        "jwtCredentials.publicKey or " OAUTH "provider.jwksURL");
    access->key_file = own;
    access->set_file = set;
    struct key_set *key_set = NULL;
    if (err == NULL)
        err = access_key_set_load(access, arena, &key_set);
    if (err != NULL)
        return error_wrap(error_copy(arena, err), "authorization");
    for (unsigned i = 0; i < access->loop_count; i++)
        access->loops[i].key_set = key_set;
    access->key_set = key_set;
    return NULL;
}

struct error *
access_open(const struct access_options *options, struct arena *arena, struct access **opened)
{
    const struct config *config = options->config;
    *opened = NULL;
    if (!config_flag(config, OAUTH "enable"))
        return NULL;
    struct access *access = memory_zalloc(1, sizeof *access);
    access->options = *options;
    access->arena = arena_new(0);
    access->loop_count = loop_count();
    access->loops = memory_zalloc(access->loop_count, sizeof *access->loops);
    access->shows_names = config_flag(config, OAUTH "showDomainNames");
    access->rules = (struct token_rules){
        .groups_path = config_text(config, OAUTH "provider.groupsAttributePath"),
        .admin_path = config_text(config, OAUTH "provider.adminAttributePath"),
        .life_max = config_integer(config, OAUTH "maxJwtTTL") * NS_PER_S,
        .skew = config_duration(config, OAUTH "clockSkew"),
    };
    struct error *err = load_keys(access, arena);
    if (err != NULL) {
        access_free(access);
        return err;
    }
    access_start_watching(access);
    *opened = access;
    return NULL;
}

static void
forget_tokens(struct loop_tokens *known)
{
    map_free(known->by_text);
    if (known->arena != NULL)
        arena_free(known->arena);
    known->by_text = NULL;
    known->arena = NULL;
}

/* What is remembered was good by the keys that this loop uses, and is bounded. */
static void
loop_tokens_check(const struct loop_tokens *known)
{
    check(known->key_set != NULL);
    check((known->by_text == NULL) == (known->arena == NULL));
    check(known->by_text == NULL || map_count(known->by_text) <= TOKENS_MAX);
}

/* Tokens that were good by the keys before may not be so any more. */
void
access_use_key_set(struct access *access, struct key_set *key_set)
{
    unsigned index = loop_index(loop_self());
    check(index < access->loop_count && key_set != NULL);
    struct loop_tokens *known = &access->loops[index];
    forget_tokens(known);
    known->key_set = key_set;
}

void
access_free(struct access *access)
{
    access_stop_watching(access);
    for (unsigned i = 0; i < access->loop_count; i++)
        forget_tokens(&access->loops[i]);
    access_key_set_free(access->key_set);
    arena_free(access->arena);
    memory_free(access->loops);
    memory_free(access);
}

/* --- tokens ---- */

static const struct token_claims *
remember(struct loop_tokens *known, struct slice token, const struct token_claims *token_claims)
{
    if (known->by_text != NULL && map_count(known->by_text) >= TOKENS_MAX)
        forget_tokens(known);
    if (known->by_text == NULL) {
        known->by_text = map_new();
        known->arena = arena_new(0);
    }
    struct token_claims *kept = arena_make(known->arena, struct token_claims);
    *kept = *token_claims;
    kept->name = arena_text(known->arena, token_claims->name);
    kept->groups = arena_text(known->arena, token_claims->groups);
    map_put(known->by_text, token, kept);
    return kept;
}

/* Until the next call. NULL: the caller has no good token, for the reason given. */
static const struct token_claims *
find_claims(struct access *access, struct rpc_call *call, const char **fault)
{
    unsigned index = loop_index(loop_self());
    check(index < access->loop_count);
    struct loop_tokens *known = &access->loops[index];
    struct slice token = rpc_header(call, HEADER);
    int64_t now = clock_wall();
    const struct token_claims *token_claims =
        known->by_text == NULL ? NULL : map_get(known->by_text, token);
    *fault = "it is expired";
    if (token_claims != NULL)
        return token_claims->expires >= now ? token_claims : NULL;
    struct token_claims fresh;
    struct token_rules rules = access->rules;
    loop_tokens_check(known);
    rules.keys = &known->key_set->keys;
    *fault = token_claims_read(token, &rules, now, call->arena, &fresh);
    return *fault == NULL ? remember(known, token, &fresh) : NULL;
}

/* --- asking ---- */

/* NULL: it may be made. */
static const char *
find_obstacle(struct access *access, struct rpc_call *call, enum permission permission)
{
    const char *fault;
    const struct token_claims *token_claims = find_claims(access, call, &fault);
    if (token_claims == NULL)
        return fault;
    if (token_claims->is_admin || permission == PERMISSION_KNOWN || permission == PERMISSION_NAMES)
        return NULL;
    const struct domain *domain = permission_domain(access->options.domains, call);
    return permission_suits(permission, token_claims->groups, domain)
               ? NULL
               : "its groups do not suffice for this call";
}

struct error *
access_check(void *context, struct rpc_call *call)
{
    struct access *access = context;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    enum permission permission = rpc_method(call)->permission;
    if (permission == PERMISSION_NONE || (permission == PERMISSION_NAMES && access->shows_names))
        return NULL;
    const char *obstacle = find_obstacle(access, call, permission);
    if (obstacle == NULL)
        return NULL;
    bool is_trial = dynamic_flag(access->options.dynamic, DYNAMIC_AUTHORIZATION_LOG_ONLY, &filter);
    log_at(access->options.log, is_trial ? LOG_WARN : LOG_INFO, "A call is not authorized.",
           log_text("operation", rpc_method_name(call)), log_text("peer", call->arrival.peer),
           log_text("reason", obstacle), log_bool("let-in", is_trial));
    return is_trial ? NULL : error_new(call->arena, ERR_ACCESS_DENIED, "Request unauthorized.");
}

bool
access_may_read(struct access *access, struct rpc_call *call, const struct domain *domain)
{
    const char *fault;
    const struct token_claims *token_claims =
        access == NULL ? NULL : find_claims(access, call, &fault);
    if (access == NULL)
        return true;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    bool is_trial = dynamic_flag(access->options.dynamic, DYNAMIC_AUTHORIZATION_LOG_ONLY, &filter);
    return is_trial || (token_claims != NULL &&
                        (token_claims->is_admin ||
                         permission_suits(PERMISSION_READ, token_claims->groups, domain)));
}

bool
access_shows_names(const struct access *access)
{
    return access != NULL && access->shows_names;
}

const char *
access_caller_name(struct access *access, struct rpc_call *call)
{
    const char *fault;
    const struct token_claims *token_claims =
        access == NULL ? NULL : find_claims(access, call, &fault);
    return token_claims == NULL ? "" : arena_text(call->arena, token_claims->name);
}
