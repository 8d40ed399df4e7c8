/* shard_log.c - see shard_log.h. */
#include "sim/workflow/shard_log.h"

#include <string.h>

#include "cadenza/storage/v1/domain.pb-c.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "engine/run/apply.h"
#include "store/key.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define NODE_HEAD_SIZE 9 /* of a history node's value: store/history.c */
#define NUMBER(number) ((unsigned long long)(number))

static void
see_change(struct shard_log *log, struct slice key, struct slice value, struct arena *arena)
{
    uint64_t version = 0;
    STORED(DomainChange) *change = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_change), value, &change);
    if (err != NULL || !key_take_u64(&key, &version) || version >= SHARD_LOG_VERSIONS) {
        verdict_violate(log->verdict, "a row of the log of the domains cannot be read");
        return;
    }
    bool is_first = log->newest == 0 && version <= 2; /* a position may have been written first */
    if (!is_first && version != log->newest + 1)
        verdict_violate(log->verdict, "version %llu of the domains follows %llu", NUMBER(version),
                        NUMBER(log->newest));
    const STORED(DomainRecord) *record = change->record;
    struct shard_log_state state = log->states[log->newest];
    bool is_new = change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    state.failovers += record == NULL ||
                       (!is_new && (uint64_t)record->failover_notification_version == version - 1);
    if (record != NULL && strcmp(record->domain->name, log->domain_name) == 0) {
        state.failover_version = record->domain->failover_version;
        state.is_here = strcmp(record->domain->active_cluster_name, log->cluster_name) == 0;
    }
    log->states[version] = state;
    log->newest = version;
}

static void
see_record(struct shard_log *log, unsigned shard, struct slice value, struct arena *arena)
{
    STORED(ShardRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(shard_record), value, &record);
    if (err != NULL) {
        verdict_violate(log->verdict, "the record of shard %u cannot be read", shard);
        return;
    }
    uint64_t handled = record->domain_version;
    if (handled < log->shards[shard].handled)
        verdict_violate(log->verdict, "shard %u has handled version %llu after %llu", shard,
                        NUMBER(handled), NUMBER(log->shards[shard].handled));
    else if (handled > log->newest && log->newest > 0)
        verdict_violate(log->verdict, "shard %u has handled version %llu, the newest is %llu",
                        shard, NUMBER(handled), NUMBER(log->newest));
    else if (handled <= log->newest && record->failovers != log->states[handled].failovers)
        verdict_violate(log->verdict, "shard %u has handled %llu failovers up to %llu, not %llu",
                        shard, NUMBER(record->failovers), NUMBER(handled),
                        NUMBER(log->states[handled].failovers));
    log->shards[shard].handled = handled;
}

/* What a cluster took under a version before: the decision that it waited for was closed by a
 * failover, and it is written down with that version (the failed attempt itself may have no event).
 */
static bool
is_handed_over(const API(History) *history)
{
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        bool is_close =
            event->attributes_case == EVENT_KIND(DECISION_TASK_FAILED) &&
            event->decision_task_failed_event_attributes->cause ==
                API_VALUE(
                    DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_FAILOVER_CLOSE_DECISION);
        if (!is_close && !event_may_be_buffered(event->attributes_case))
            return false;
    }
    return true;
}

static void
see_node(struct shard_log *log, unsigned shard, struct slice value, struct arena *arena)
{
    API(History) *history = NULL;
    struct slice events = slice_of(value.data + NODE_HEAD_SIZE, value.length - NODE_HEAD_SIZE);
    struct error *err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(history), events, &history);
    uint64_t handled = log->shards[shard].handled;
    if (err != NULL || handled > log->newest) {
        verdict_violate(log->verdict, "shard %u: a node of history cannot be judged", shard);
        return;
    }
    const struct shard_log_state *state = &log->states[handled];
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        log->shards[shard].events++;
        if (event->version < state->failover_version && is_handed_over(history))
            continue;
        if (!state->is_here || event->version != state->failover_version)
            verdict_violate(log->verdict,
                            "shard %u: an event of version %lld, after version %llu of the "
                            "domains was handled: %s, %lld",
                            shard, (long long)event->version, NUMBER(handled),
                            state->is_here ? "active here" : "active elsewhere",
                            (long long)state->failover_version);
    }
}

static void
see_put(void *context, struct partition partition, enum row_kind kind, struct slice key,
        struct slice value)
{
    struct shard_log *log = context;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (kind == ROW_DOMAIN_LOG)
        see_change(log, key, value, arena);
    if (kind == ROW_SHARD)
        see_record(log, partition.number, value, arena);
    if (kind == ROW_HISTORY)
        see_node(log, partition.number, value, arena);
}

void
shard_log_watch(struct shard_log *log, struct memory_base *base)
{
    memory_base_watch(base, (struct memory_watch){.landed = see_put, .context = log});
}

bool
shard_log_is_level(const struct shard_log *log)
{
    for (unsigned i = 0; i < SIM_SHARDS; i++) {
        if (log->shards[i].handled != log->newest)
            return false;
    }
    return true;
}
