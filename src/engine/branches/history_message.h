/* history_message.h - where a history is, and a page of it, as part of a message between owners,
 * and back.
 *
 * What a message points to lives in the arena, but the events of a page and the branches of a
 * lineage: these stay where they are. */
#ifndef CADENZA_ENGINE_BRANCHES_HISTORY_MESSAGE_H
#define CADENZA_ENGINE_BRANCHES_HISTORY_MESSAGE_H

#include "cadenza/internal/v1/history.pb-c.h"
#include "store/history_lineage.h"
#include "wire/names.h"

INTERNAL(Lineage) *
    history_lineage_to_message(const struct history_lineage *lineage, struct arena *arena);
struct history_lineage history_lineage_from_message(const INTERNAL(Lineage) * message,
                                                    struct arena *arena);
INTERNAL(HistoryPage) *
    history_page_to_message(const struct history_page *page, struct arena *arena);
struct history_page history_page_from_message(const INTERNAL(HistoryPage) * message,
                                              struct arena *arena);

#endif
