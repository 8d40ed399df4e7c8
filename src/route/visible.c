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

struct visible_parcel *
visible_pack(const struct visible_change *change)
{
    size_t domain = text_size(change->domain_id), workflow = text_size(change->workflow_id);
    size_t run = text_size(change->run_id), info = change->info.length;
    size_t size = sizeof(struct visible_parcel) + domain + workflow + run + info;
    struct visible_parcel *parcel = memory_alloc(size);
    *parcel = (struct visible_parcel){.change = *change, .size = size};
    char *place = (char *)(parcel + 1);
    place_text(&place, &parcel->change.domain_id, domain);
    place_text(&place, &parcel->change.workflow_id, workflow);
    place_text(&place, &parcel->change.run_id, run);
    if (info > 0)
        parcel->change.info = slice_of(memcpy(place, change->info.data, info), info);
    return parcel;
}
