/* raw.c - see raw.h. */
#include "api/history/raw.h"

#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

struct error *
raw_add_records(struct raw_history *raw, struct slice records, struct arena *arena)
{
    if (records.length == 0)
        return NULL;
    ProtobufCMessage *decoded = NULL;
    struct error *err = message_decode_at(arena, ERR_CORRUPT, API_TYPE(history), records, &decoded);
    if (err != NULL)
        return err;
    const API(History) *history = (const API(History) *)decoded;
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    blob->data = presence_make_bytes(thrift_encode_kept(arena, history->events, history->n_events));
    vector_push_in(&raw->blobs, arena, blob);
    return NULL;
}

struct error *
raw_add_page(struct raw_history *raw, const struct history_page *page, int64_t from, int64_t to,
             struct arena *arena)
{
    for (size_t i = 0; i < page->count; i++) {
        struct history_page batch = {.node = &page->node[i], .count = 1};
        struct pieces records = pieces_begin(arena);
        struct error *err = pieces_add_page(&records, &batch, from, to);
        if (err == NULL)
            err = raw_add_records(raw, pieces_join(&records), arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}
