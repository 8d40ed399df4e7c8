/* history_message.c - see history_message.h. */
#include "engine/branches/history_message.h"

#include "base/check.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

INTERNAL(Lineage) *
    history_lineage_to_message(const struct history_lineage *lineage, struct arena *arena)
{
    INTERNAL(Lineage) *message = message_new(arena, INTERNAL_TYPE(lineage));
    static const STORED(BranchSpan) empty = CADENZA__STORAGE__V1__BRANCH_SPAN__INIT;
    STORED(BranchSpan) *spans = arena_alloc(arena, lineage->count * sizeof *spans);
    check(lineage->count > 0);
    message->tree = presence_make_uuid(arena, lineage->tree);
    message->spans = arena_alloc(arena, lineage->count * sizeof message->spans[0]);
    message->n_spans = lineage->count;
    for (size_t i = 0; i < lineage->count; i++) {
        const struct history_span *span = &lineage->spans[i];
        spans[i] = empty;
        spans[i].branch_id =
            presence_make_bytes(slice_of(span->branch.bytes, sizeof span->branch.bytes));
        spans[i].next_event_id = span->next_event_id;
        message->spans[i] = &spans[i];
    }
    return message;
}

struct history_lineage
history_lineage_from_message(const INTERNAL(Lineage) * message, struct arena *arena)
{
    struct history_span *spans = arena_alloc(arena, message->n_spans * sizeof *spans);
    for (size_t i = 0; i < message->n_spans; i++)
        spans[i] = (struct history_span){presence_read_uuid(message->spans[i]->branch_id),
                                         message->spans[i]->next_event_id};
    return (struct history_lineage){presence_read_uuid(message->tree), spans, message->n_spans};
}

INTERNAL(HistoryPage) *
    history_page_to_message(const struct history_page *page, struct arena *arena)
{
    INTERNAL(HistoryPage) *message = message_new(arena, INTERNAL_TYPE(history_page));
    static const INTERNAL(HistoryNode) empty = INTERNAL_VALUE(HISTORY_NODE__INIT);
    INTERNAL(HistoryNode) *nodes = arena_alloc(arena, page->count * sizeof *nodes);
    message->next_event_id = page->next_event_id;
    message->nodes = arena_alloc(arena, page->count * sizeof message->nodes[0]);
    message->n_nodes = page->count;
    for (size_t i = 0; i < page->count; i++) {
        const struct history_node *node = &page->node[i];
        nodes[i] = empty;
        nodes[i].first_event_id = node->first_event_id;
        nodes[i].next_event_id = node->next_event_id;
        nodes[i].range_id = node->range_id;
        nodes[i].sequence = node->sequence;
        nodes[i].events = presence_make_bytes(node->events);
        message->nodes[i] = &nodes[i];
    }
    return message;
}

struct history_page
history_page_from_message(const INTERNAL(HistoryPage) * message, struct arena *arena)
{
    struct history_node *nodes = arena_alloc(arena, message->n_nodes * sizeof *nodes);
    for (size_t i = 0; i < message->n_nodes; i++) {
        const INTERNAL(HistoryNode) *node = message->nodes[i];
        nodes[i] = (struct history_node){
            .first_event_id = node->first_event_id,
            .next_event_id = node->next_event_id,
            .range_id = node->range_id,
            .sequence = node->sequence,
            .events = presence_read_bytes(node->events),
        };
    }
    return (struct history_page){nodes, message->n_nodes, message->next_event_id};
}
