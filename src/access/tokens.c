/* tokens.c - what a token says, once its signature is known to be good.
 *
 * A token without a key id, or of the issuer "internal-jwt", is signed with the one public key, and
 * has members Name, Groups, Admin and TTL beside the registered ones, in upper or lower case.
 * Others are signed with a key of the set, and may say groups and admin in members of their own,
 * whose path the config has. */
#include <jansson.h>
#include <jwt.h>
#include <strings.h>

#include "access/inside.h"
#include "base/check.h"
#include "base/text.h"
#include "fiber/clock.h"

#define ISSUER_INTERNAL "internal-jwt"
#define TOKEN_BYTES_MAX ((size_t)16 * 1024)
#define SECONDS_MAX     (INT64_MAX / NS_PER_S)

/* A member by its name, in upper or lower case: issuers differ. */
static const json_t *
member(const json_t *object, const char *name, size_t length)
{
    const char *key;
    json_t *value;
    void *place;
    if (!json_is_object(object))
        return NULL;
    for (place = json_object_iter((json_t *)object); place != NULL;
         place = json_object_iter_next((json_t *)object, place)) {
        key = json_object_iter_key(place);
        value = json_object_iter_value(place);
        if (strlen(key) == length && strncasecmp(key, name, length) == 0)
            return value;
    }
    return NULL;
}

/* "realm.groups": members of members. */
static const json_t *
find(const json_t *object, const char *path)
{
    while (object != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        object = member(object, path, length);
        path += length;
        path += *path == '.';
    }
    return object;
}

static int64_t
seconds_of(const json_t *object, const char *name)
{
    const json_t *value = find(object, name);
    double seconds = json_is_number(value) ? json_number_value(value) : 0;
    if (seconds <= 0)
        return 0;
    return seconds > (double)SECONDS_MAX ? SECONDS_MAX : (int64_t)seconds;
}

static const char *
text_of(const json_t *object, const char *path, struct arena *arena)
{
    const char *text = json_string_value(find(object, path));
    return text == NULL ? "" : arena_text(arena, text);
}

/* Groups between blanks, or in a list. */
static const char *
groups_of(const json_t *object, const char *path, struct arena *arena)
{
    const json_t *list = find(object, path);
    if (!json_is_array(list))
        return text_of(object, path, arena);
    const char *groups = "";
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *group = json_string_value(json_array_get(list, i));
        if (group != NULL)
            groups = arena_format(arena, "%s %s", groups, group);
    }
    return groups;
}

/* --- time ---- */

static const char *
check_time(const json_t *grants, const struct token_rules *rules, int64_t now,
           struct token_claims *token_claims)
{
    int64_t issued = seconds_of(grants, "iat"), life = seconds_of(grants, "ttl");
    int64_t begins = seconds_of(grants, "nbf"), ends = seconds_of(grants, "exp");
    int64_t skew = rules->skew / NS_PER_S, moment = now / NS_PER_S;
    if (life > 0)
        ends = issued > SECONDS_MAX - life ? SECONDS_MAX : issued + life;
    if (ends == 0)
        return "it does not say when it expires";
    if (issued > moment + skew || begins > moment + skew)
        return "it is of the future";
    if (ends < moment - skew)
        return "it is expired";
    if (ends - moment > rules->life_max / NS_PER_S + skew)
        return "it lives longer than authorization.oauthAuthorizer.maxJwtTTL";
    token_claims->expires = (ends < SECONDS_MAX - skew ? ends + skew : SECONDS_MAX) * NS_PER_S;
    return NULL;
}

/* --- all of it ---- */

/* The key that the token says it is signed with; nothing else of it is believed yet. */
static const struct slice *
find_key(const char *token, const struct access_keys *keys, bool *is_internal)
{
    jwt_t *unchecked = NULL;
    *is_internal = false;
    if (jwt_decode(&unchecked, token, NULL, 0) != 0)
        return NULL;
    const char *name = jwt_get_header(unchecked, "kid");
    const char *issuer = jwt_get_grant(unchecked, "iss");
    *is_internal = name == NULL || (issuer != NULL && strcmp(issuer, ISSUER_INTERNAL) == 0);
    const struct slice *key = NULL;
    if (*is_internal && keys->own.length > 0)
        key = &keys->own;
    else if (name != NULL && keys->by_name != NULL)
        key = map_get(keys->by_name, slice_text(name));
    jwt_free(unchecked);
    return key;
}

/* What is between the two dots; the signature was checked. */
static json_t *
load_grants(const char *token, struct arena *arena)
{
    const char *from = strchr(token, '.') + 1;
    struct slice encoded = slice_of(from, strcspn(from, ".")), bytes;
    if (!text_base64_decode(arena, encoded, TEXT_BASE64_URL, &bytes))
        return NULL;
    return json_loadb((const char *)bytes.data, bytes.length, JSON_REJECT_DUPLICATES, NULL);
}

static const char *
read_grants(const json_t *grants, const struct token_rules *rules, bool is_internal, int64_t now,
            struct arena *arena, struct token_claims *token_claims)
{
    bool has_groups_path = !is_internal && rules->groups_path[0] != '\0';
    bool has_admin_path = !is_internal && rules->admin_path[0] != '\0';
    token_claims->name = text_of(grants, "name", arena);
    if (token_claims->name[0] == '\0')
        token_claims->name = text_of(grants, "sub", arena);
    token_claims->groups =
        groups_of(grants, has_groups_path ? rules->groups_path : "groups", arena);
    token_claims->is_admin =
        json_is_true(find(grants, has_admin_path ? rules->admin_path : "admin")) != 0;
    return check_time(grants, rules, now, token_claims);
}

const char *
token_claims_read(struct slice token, const struct token_rules *rules, int64_t now,
                  struct arena *arena, struct token_claims *token_claims)
{
    bool is_internal;
    *token_claims = (struct token_claims){0};
    if (token.length == 0)
        return "there is none";
    if (token.length > TOKEN_BYTES_MAX || memchr(token.data, '\0', token.length) != NULL)
        return "it is not a token";
    const char *text = arena_text_of(arena, token);
    const struct slice *key = find_key(text, rules->keys, &is_internal);
    if (key == NULL)
        return "it is signed with a key that is not known";
    jwt_t *checked = NULL;
    if (jwt_decode(&checked, text, key->data, (int)key->length) != 0)
        return "its signature is not good";
    const char *fault = "its signature is not of RS256";
    if (jwt_get_alg(checked) == JWT_ALG_RS256) {
        json_t *grants = load_grants(text, arena);
        fault = read_grants(grants, rules, is_internal, now, arena, token_claims);
        json_decref(grants);
    }
    jwt_free(checked);
    return fault;
}
