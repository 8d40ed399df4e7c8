/* raw.h - history as blobs in Cadence's stored form, for clients that decode it themselves. */
#ifndef CADENZA_API_HISTORY_RAW_H
#define CADENZA_API_HISTORY_RAW_H

#include "api/call/pages.h"

/* One blob per batch, in order. */
struct raw_history {
    vector_of(API(DataBlob) *) blobs;
};

/* The batches of a page, of each the events from `from` up to, not including, `to`. Error:
 * ERR_CORRUPT. */
must_use struct error *raw_add_page(struct raw_history *raw, const struct history_page *page,
                                    int64_t from, int64_t to, struct arena *arena);
/* History.events records as one batch; without records no blob is added. Error: ERR_CORRUPT. */
must_use struct error *raw_add_records(struct raw_history *raw, struct slice records,
                                       struct arena *arena);

#endif
