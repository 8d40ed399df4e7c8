/* pages.h - pages of history as bytes that go out: stored History.events records, side by side.
 *
 * Nothing is decoded. Where a page begins in the middle of a stored batch, whole records are left
 * out. */
#ifndef CADENZA_API_CALL_PAGES_H
#define CADENZA_API_CALL_PAGES_H

#include "base/vector.h"
#include "engine/engine.h"

/* Stock gRPC clients take answers of up to 4 MiB; a page may pass this by a batch, which may be one
 * event with the largest payload that is allowed. */
#define PAGE_BYTES_MAX (1u * 1024 * 1024)

/* The header (tag and length) of a length-delimited field, in the arena. */
struct slice pages_field_header(struct arena *arena, uint32_t number, size_t length);

/* Bytes in pieces, in order; the bytes themselves lie where they are. */
struct pieces {
    struct arena *arena;
    vector_of(struct slice) list;
    size_t length; /* of all, without the two that are kept free in front */
};

/* Begins with two free places, for the headers that pieces_wrap and pieces_nest put in front. */
struct pieces pieces_begin(struct arena *arena);
/* The bytes must stay as long as the pieces. */
void pieces_add(struct pieces *pieces, struct slice bytes);
/* The events of a page from `from` up to, not including, `to`. Error: ERR_CORRUPT, the records of a
 * batch are not as many as it says. */
must_use struct error *pieces_add_page(struct pieces *pieces, const struct history_page *page,
                                       int64_t from, int64_t to);
/* Only the last event of a page. */
must_use struct error *pieces_add_last(struct pieces *pieces, const struct history_page *page);
/* A record of an event that is not stored. */
void pieces_add_event(struct pieces *pieces, const API(HistoryEvent) *event);
/* All of it becomes the content of field `number`, a History. Once. */
void pieces_wrap(struct pieces *pieces, uint32_t number);
/* A message, made of `head` and these pieces, becomes the content of field `number`. After
 * pieces_wrap, once. */
void pieces_nest(struct pieces *pieces, uint32_t number, struct slice head);
/* All bytes in one, in the arena. */
struct slice pieces_join(const struct pieces *pieces);

#endif
