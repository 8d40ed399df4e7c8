/* watch_http.c - a source that is asked with long polls over HTTP; the protocol is in
 * docs/entities.md.
 *
 *     GET <url>?type=<type>&version=<the last one, or nothing>&wait=<seconds>
 *     200 {"version": "17", "entities": {"ann": "us-west", ...}}             all that there are
 *     200 {"version": "18", "changes": {"ann": "us-east", "bob": null}}      since that version
 *     304                                                                    nothing within the
 * wait
 */
#include "base/json.h"
#include "entity/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/pool.h"
#include "fiber/probe.h"
#include "fiber/tls.h"
#include "net/http_get.h"

#define MARGIN (10 * NS_PER_S) /* for the way */

/* Escaped for the query of a URL. */
static const char *
escape(const char *text, struct arena *arena)
{
    char *escaped = arena_alloc(arena, strlen(text) * 3 + 1);
    size_t length = 0;
    for (const char *at = text; *at != '\0'; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || strchr("-._~", *at) != NULL;
        if (!is_plain) {
            escaped[length++] = '%';
            escaped[length++] = "0123456789ABCDEF"[(unsigned char)*at / 16];
        }
        escaped[length++] = is_plain ? *at : "0123456789ABCDEF"[(unsigned char)*at % 16];
    }
    escaped[length] = '\0';
    return escaped;
}

static struct error *
read_body(struct slice body, struct watch_position *position, struct arena *arena,
          struct watch_update *update)
{
    struct json_reader reader = object_begin(body, arena);
    const char *name = NULL, *version = "";
    struct slice entities = {0}, changes = {0};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "version") == 0)
            object_text(&reader, &version);
        else if (strcmp(name, "entities") == 0)
            object_raw(&reader, &entities);
        else if (strcmp(name, "changes") == 0)
            object_raw(&reader, &changes);
        else
            object_skip(&reader);
    }
    if (!object_end(&reader) || (entities.length == 0) == (changes.length == 0) ||
        version[0] == '\0' || strlen(version) >= sizeof position->version)
        return error_new(arena, ERR_BAD_REQUEST,
                         "the answer is not an object with a version (a text of up to %zu bytes) "
                         "and either entities or changes",
                         sizeof position->version - 1);
    update->is_all = entities.length > 0;
    struct error *err =
        mapping_read_object(update->is_all ? entities : changes, arena, &update->mapping);
    if (err != NULL)
        return err;
    if (!update->is_all && position->version[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "the answer has changes, though all entities were asked for");
    probe("entity_http_read");
    memcpy(position->version, version, strlen(version) + 1);
    update->has_any = true;
    return NULL;
}

/* --- certificates ---- */

struct tls_opening {
    struct tls_options options;
    struct arena *arena;
    struct tls *tls;
    struct error *err;
};

/* On a thread of the pool: the system's authorities are a large file. */
static void
open_tls(void *argument)
{
    struct tls_opening *tls_opening = argument;
    tls_opening->err = tls_new(&tls_opening->options, tls_opening->arena, &tls_opening->tls);
}

static const char *
file_or_none(const char *file)
{
    return file[0] == '\0' ? NULL : file;
}

/* Bad certificate files, at the start or later, are a failure of the source. New ones that are bad
 * fail one look; the earlier ones stay in use. */
static struct error *
need_tls(struct watch_source *source, struct arena *arena)
{
    const struct entity_type *type = source->type;
    bool is_renewed = false;
    if (!entity_type_is_secure(type))
        return NULL;
    if (source->tls != NULL)
        return tls_renew(source->tls, arena, &is_renewed);
    const char *const authorities[] = {file_or_none(type->authority_file), NULL};
    struct tls_opening tls_opening = {
        .options = {.certificate_file = file_or_none(type->certificate_file),
                    .key_file = file_or_none(type->key_file),
                    .authority_files = authorities[0] == NULL ? NULL : authorities,
                    .verify_host = true,
                    .speaks_http1 = true},
        .arena = arena,
    };
    struct error *err = pool_run(open_tls, &tls_opening, arena);
    source->tls = tls_opening.tls;
    return err != NULL ? err : tls_opening.err;
}

/* --- asking ---- */

/* Texts in the arena; no body for 304. */
static struct error *
ask(struct watch_source *source, struct arena *arena, unsigned *status, struct slice *body)
{
    const struct entity_type *type = source->type;
    const char *url =
        arena_format(arena, "%s%ctype=%s&version=%s&wait=%lld", type->url,
                     strchr(type->url, '?') == NULL ? '?' : '&', escape(type->name, arena),
                     escape(source->position.version, arena),
                     (long long)((type->wait + NS_PER_S - 1) / NS_PER_S));
    struct error *err = need_tls(source, arena);
    if (err != NULL)
        return err;
    struct http_get get = {.url = url,
                           .tls = source->tls,
                           .server_name = file_or_none(type->server_name),
                           .size_max = MAPPING_SIZE_MAX,
                           .deadline = clock_monotonic() + type->wait + MARGIN};
    return http_get(&get, arena, status, body);
}

struct error *
watch_http(struct watch_source *source, struct arena *arena, struct watch_update *update)
{
    const struct entity_type *type = source->type;
    unsigned status = 0;
    struct slice body;
    int64_t begin = clock_monotonic();
    struct error *err = ask(source, arena, &status, &body);
    if (err == NULL && status == 200)
        err = read_body(body, &source->position, arena, update);
    else if (err == NULL && status != 304)
        err = error_new(arena, ERR_UNAVAILABLE, "it answered with status %u", status);
    if (err != NULL)
        return error_wrap(err, "%s", type->url);
    source->position.is_begun = true;
    /* A source that answers without waiting is not asked all the time. */
    int64_t next = begin + type->interval, now = clock_monotonic();
    return !update->has_any && next > now ? fiber_sleep(next - now, arena) : NULL;
}
