/* watch_file.c - a source that is a file: the whole mapping, looked at from time to time.
 *
 * A new version of it should be renamed over the old one. A file that is written in place may be
 * seen half done: then it mostly cannot be read, which changes nothing. Its time and size are noted
 * before it is read, so that a change meanwhile is seen at the next look. */
#include "entity/inside.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/probe.h"

struct error *
watch_file(struct watch_source *source, struct arena *arena, struct watch_update *update)
{
    const struct entity_type *type = source->type;
    struct watch_position *position = &source->position;
    int64_t modified = 0;
    uint64_t size = 0;
    struct slice text;
    struct error *err = position->is_begun ? fiber_sleep(type->interval, arena) : NULL;
    if (err == NULL)
        err = file_stat(type->file, &modified, &size, arena);
    if (err != NULL)
        return err;
    if (position->is_begun && position->modified == modified && position->size == size)
        return NULL;
    err = file_load(type->file, MAPPING_SIZE_MAX, arena, &text);
    if (err == NULL)
        err = mapping_read(text, arena, &update->mapping);
    if (err != NULL)
        return error_wrap(err, "%s", type->file);
    for (size_t i = 0; i < update->mapping.count; i++) {
        if (update->mapping.entries[i].region == NULL)
            return error_new(arena, ERR_BAD_REQUEST, "%s: '%s' has no region", type->file,
                             update->mapping.entries[i].key);
    }
    probe("entity_file_read");
    position->is_begun = true;
    position->modified = modified;
    position->size = size;
    update->has_any = update->is_all = true;
    return NULL;
}
