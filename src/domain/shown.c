/* shown.c - what clients are shown among a domain's data though it is not stored there: recent
 * failovers. See entries.h. */
#include <time.h>

#include "base/buffer.h"
#include "domain/entries.h"
#include "wire/message.h"

#define NANOSECONDS 1000000000LL

static void
append_string(struct buffer *json, const char *text)
{
    buffer_append_u8(json, '"');
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            buffer_append_format(json, "\\%c", *at);
        else if ((unsigned char)*at < 0x20)
            buffer_append_format(json, "\\u%04x", (unsigned)*at);
        else
            buffer_append_u8(json, (uint8_t)*at);
    }
    buffer_append_u8(json, '"');
}

/* 2026-01-02T03:04:05.678Z, as many decimals as it takes. */
static void
append_time(struct buffer *json, int64_t nanoseconds)
{
    int64_t rest = nanoseconds % NANOSECONDS;
    if (rest < 0)
        rest += NANOSECONDS;
    time_t seconds = (time_t)((nanoseconds - rest) / NANOSECONDS);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char text[64];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    buffer_append_format(json, "\"%s", text);
    if (rest > 0) {
        int digits = 9;
        for (; rest % 10 == 0; rest /= 10)
            digits--;
        buffer_append_format(json, ".%0*lld", digits, (long long)rest);
    }
    buffer_append_text(json, "Z\"");
}

static void
append_field(struct buffer *json, const char *key, const char *value)
{
    if (value[0] == '\0')
        return;
    buffer_append_format(json, ",\"%s\":", key);
    append_string(json, value);
}

static void
append_failover(struct buffer *json, const STORED(RecentFailover) *failover)
{
    bool is_graceful = failover->type == API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL);
    buffer_append_text(json, "{\"eventTime\":");
    append_time(json, failover->time);
    append_field(json, "fromCluster", failover->from_cluster);
    append_field(json, "toCluster", failover->to_cluster);
    append_field(json, "failoverType", is_graceful ? "Grace" : "Force");
    append_field(json, "reason", failover->reason);
    buffer_append_u8(json, '}');
}

static char *
failovers_as_json(const STORED(DomainRecord) *record, struct arena *arena)
{
    struct buffer json = {0};
    buffer_append_u8(&json, '[');
    for (size_t i = 0; i < record->n_recent_failovers; i++) {
        if (i > 0)
            buffer_append_u8(&json, ',');
        append_failover(&json, record->recent_failovers[i]);
    }
    buffer_append_u8(&json, ']');
    char *text = arena_text_of(arena, buffer_slice(&json));
    buffer_free(&json);
    return text;
}

API(Domain__DataEntry) **
domain_shown_data(const STORED(DomainRecord) *record, struct arena *arena, size_t *count)
{
    API(Domain__DataEntry) history = API_VALUE(DOMAIN__DATA_ENTRY__INIT), *only = &history;
    bool has_history = record->n_recent_failovers > 0;
    if (has_history) {
        history.key = "FailoverHistory";
        history.value = failovers_as_json(record, arena);
    }
    return data_merge(record->domain->n_data, record->domain->data, has_history, &only, arena,
                      count);
}
