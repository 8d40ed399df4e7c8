/* visible.c - see visible.h. */
#include "route/visible.h"

#include "base/memory.h"

static size_t
text_size(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

static void
place_text(char **place, const char **text, size_t size)
{
    if (size > 0)
        *text = memcpy(*place, *text, size);
    *place += size;
}

struct visibility_update *
visibility_update_new(const struct visible_change *change)
{
    size_t domain = text_size(change->domain_id), workflow = text_size(change->workflow_id);
    size_t run = text_size(change->run_id), info = change->info.length;
    size_t size = sizeof(struct visibility_update) + domain + workflow + run + info;
    struct visibility_update *update = memory_alloc(size);
    *update = (struct visibility_update){.change = *change, .size = size};
    char *place = (char *)(update + 1);
    place_text(&place, &update->change.domain_id, domain);
    place_text(&place, &update->change.workflow_id, workflow);
    place_text(&place, &update->change.run_id, run);
    if (info > 0)
        update->change.info = slice_of(memcpy(place, change->info.data, info), info);
    return update;
}
