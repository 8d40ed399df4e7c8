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
#include "fiber/mark.h"
#include "net/http_get.h"

#define MARGIN (10 * NS_PER_S) /* for the way */

/* As it may stand in a query. */
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
read_body(struct slice body, struct watch_place *place, struct arena *arena,
          struct watch_news *news)
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
        version[0] == '\0' || strlen(version) >= sizeof place->version)
        return error_new(arena, ERR_BAD_REQUEST,
                         "the answer is not an object with a version (a text of up to %zu bytes) "
                         "and either entities or changes",
                         sizeof place->version - 1);
    news->is_all = entities.length > 0;
    struct error *err =
        mapping_read_object(news->is_all ? entities : changes, arena, &news->mapping);
    if (err != NULL)
        return err;
    if (!news->is_all && place->version[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "the answer has changes, though all entities were asked for");
    mark("entity_http_read");
    memcpy(place->version, version, strlen(version) + 1);
    news->has_any = true;
    return NULL;
}

struct error *
watch_http(const struct entity_type *type, struct watch_place *place, struct arena *arena,
           struct watch_news *news)
{
    const char *url = arena_format(arena, "%s%ctype=%s&version=%s&wait=%lld", type->url,
                                   strchr(type->url, '?') == NULL ? '?' : '&',
                                   escape(type->name, arena), escape(place->version, arena),
                                   (long long)((type->wait + NS_PER_S - 1) / NS_PER_S));
    struct http_get get = {.url = url,
                           .size_max = MAPPING_SIZE_MAX,
                           .deadline = clock_monotonic() + type->wait + MARGIN};
    unsigned status = 0;
    struct slice body;
    int64_t begin = clock_monotonic();
    struct error *err = http_get(&get, arena, &status, &body);
    if (err == NULL && status == 200)
        err = read_body(body, place, arena, news);
    else if (err == NULL && status != 304)
        err = error_new(arena, ERR_UNAVAILABLE, "it answered with status %u", status);
    if (err != NULL)
        return error_wrap(err, "%s", type->url);
    place->is_begun = true;
    /* A source that does not wait is not asked all the time. */
    int64_t next = begin + type->interval, now = clock_monotonic();
    return !news->has_any && next > now ? fiber_sleep(next - now, arena) : NULL;
}
