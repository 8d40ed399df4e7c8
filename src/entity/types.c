/* types.c - see types.h. */
#include "entity/types.h"

#include <string.h>

#include "base/check.h"
#include "domain/entity.h"

#define SECTION "entities.types"

static const char *
key_of(const char *name, const char *leaf, struct arena *arena)
{
    return arena_format(arena, SECTION ".%s.%s", name, leaf);
}

static const char *
add_fault(const char *faults, const char *fault, struct arena *arena)
{
    return faults == NULL ? fault : arena_format(arena, "%s\n%s", faults, fault);
}

static const char *
text_of(const struct config *config, const char *name, const char *leaf, struct arena *arena)
{
    return arena_text(arena, config_text(config, key_of(name, leaf, arena)));
}

static struct entity_type
read_type(const struct config *config, const char *name, struct arena *arena)
{
    struct entity_type type = {
        .name = arena_text(arena, name),
        .source = text_of(config, name, "source", arena),
        .creates = strcmp(config_text(config, key_of(name, "unknownKeys", arena)), "create") == 0,
        .watcher = text_of(config, name, "watcher", arena),
        .file = text_of(config, name, "file", arena),
        .url = text_of(config, name, "url", arena),
        .authority_file = text_of(config, name, "tls.caFile", arena),
        .server_name = text_of(config, name, "tls.serverName", arena),
        .certificate_file = text_of(config, name, "tls.certFile", arena),
        .key_file = text_of(config, name, "tls.keyFile", arena),
        .interval = config_duration(config, key_of(name, "interval", arena)),
        .wait = config_duration(config, key_of(name, "wait", arena)),
    };
    if (type.source[0] == '\0')
        type.source = type.name;
    return type;
}

/* Of watcher http. */
static const char *
fault_of_url(const struct entity_type *type, struct arena *arena)
{
    bool is_secure = entity_type_is_secure(type);
    bool has_certificate = type->certificate_file[0] != '\0';
    bool has_tls = has_certificate || type->authority_file[0] != '\0' ||
                   type->server_name[0] != '\0' || type->key_file[0] != '\0';
    if (!is_secure && strncmp(type->url, "http://", 7) != 0)
        return arena_format(arena,
                            "%s is '%s'; the watcher needs http://host:port/path or https://",
                            key_of(type->name, "url", arena), type->url);
    if (!is_secure && has_tls)
        return arena_format(arena, SECTION ".%s.tls is set, and url is not https://", type->name);
    if (has_certificate != (type->key_file[0] != '\0'))
        return arena_format(arena, SECTION ".%s.tls: certFile and keyFile go together", type->name);
    return NULL;
}

/* What is wrong with one; NULL: nothing. */
static const char *
fault_of(const struct entity_types *known, const struct entity_type *type, struct arena *arena)
{
    const struct entity_type *other_type = entity_types_find_source(known, type->source);
    if (strcmp(type->name, SCOPE_REGION) == 0 || strcmp(type->name, ENTITY_TYPE_DOMAIN) == 0)
        return arena_format(arena, SECTION ".%s: rows of this type follow from domains",
                            type->name);
    if (other_type != NULL)
        return arena_format(arena, "%s is '%s', and so is %s", key_of(type->name, "source", arena),
                            type->source, key_of(other_type->name, "source", arena));
    if (strcmp(type->watcher, "file") == 0 && type->file[0] == '\0')
        return arena_format(arena, "%s is not set; the watcher needs it",
                            key_of(type->name, "file", arena));
    const char *fault = strcmp(type->watcher, "http") == 0 ? fault_of_url(type, arena) : NULL;
    if (fault != NULL)
        return fault;
    if (type->interval <= 0 || type->wait <= 0)
        return arena_format(arena, SECTION ".%s: interval and wait must be greater than 0",
                            type->name);
    return NULL;
}

bool
entity_type_is_secure(const struct entity_type *type)
{
    return strncmp(type->url, "https://", 8) == 0;
}

struct error *
entity_types_load(const struct config *config, struct arena *arena, struct entity_types *types)
{
    const char *const *names = config_names(config, SECTION, arena);
    size_t count = 0;
    while (names[count] != NULL)
        count++;
    struct entity_type *all = arena_zalloc(arena, count, sizeof *all);
    const char *faults = NULL;
    *types = (struct entity_types){.all = all};
    for (size_t i = 0; i < count; i++) {
        struct entity_type type = read_type(config, names[i], arena);
        const char *fault = fault_of(types, &type, arena);
        if (fault != NULL)
            faults = add_fault(faults, fault, arena);
        else
            all[types->count++] = type;
    }
    return faults == NULL ? NULL : error_new(arena, ERR_BAD_REQUEST, "%s", faults);
}

const struct entity_type *
entity_types_find(const struct entity_types *types, const char *name)
{
    for (size_t i = 0; types != NULL && i < types->count; i++) {
        if (strcmp(types->all[i].name, name) == 0)
            return &types->all[i];
    }
    return NULL;
}

const struct entity_type *
entity_types_find_source(const struct entity_types *types, const char *source)
{
    for (size_t i = 0; types != NULL && i < types->count; i++) {
        if (strcmp(types->all[i].source, source) == 0)
            return &types->all[i];
    }
    return NULL;
}
