/* retention.c - how long the rows of a closed run stay.
 *
 * The domain's days, for a sample of workflow ids perhaps more of them, and then some minutes that
 * differ from run to run, so that what closed together is not deleted together. The sample and the
 * minutes come from hashes: the same run has the same end on every host. */
#include "base/farm.h"
#include "base/text.h"
#include "engine/run/inside.h"

#define DAY              (86400 * SECOND)
#define MINUTE           (60 * SECOND)
#define SAMPLE_RATE_KEY  "sample_retention_rate"
#define SAMPLE_DAYS_KEY  "sample_retention_days"
#define RETENTION_UNSAID DAY /* of a domain that has none; 0 days is a retention, too */
#define SAMPLE_DAYS_MOST 100000

/* FNV-1a. */
static uint32_t
sample_hash(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

static const char *
find_data(const API(Domain) *domain, const char *key)
{
    const API(Domain__DataEntry) *entry = wire_map_find(domain->data, domain->n_data, key);
    return entry == NULL ? NULL : entry->value;
}

/* Days for ids of the sample; 0: this one is not in it. */
static int64_t
sample_days(const API(Domain) *domain, const char *workflow_id)
{
    const char *rate_text = find_data(domain, SAMPLE_RATE_KEY);
    const char *days_text = find_data(domain, SAMPLE_DAYS_KEY);
    int64_t days = 0;
    if (rate_text == NULL || days_text == NULL)
        return 0;
    char *end;
    double rate = strtod(rate_text, &end);
    if (end == rate_text || *end != '\0' || !(sample_hash(workflow_id) % 1000 < rate * 1000))
        return 0;
    return text_parse_int64(slice_text(days_text), 0, SAMPLE_DAYS_MOST, &days) ? days : 0;
}

int64_t
retention_end(const struct run_context *context, const STORED(RunRecord) *core)
{
    int64_t retention = RETENTION_UNSAID;
    if (context->domain != NULL) {
        const API(Domain) *domain = context->domain->record->domain;
        if (domain->workflow_execution_retention_period != NULL)
            retention = duration_seconds(domain->workflow_execution_retention_period) * SECOND;
        int64_t sample = sample_days(domain, core->workflow_id) * DAY;
        retention = sample > retention ? sample : retention;
    }
    if (retention < 0)
        retention = 0;
    int64_t spread = run_context_integer(context, DYNAMIC_DELETION_JITTER) * 60; /* seconds */
    if (spread > 60)
        retention += farm_fingerprint32(slice_text(core->run_id)) % spread * SECOND;
    check(core->close_time > 0);
    return core->close_time + retention;
}
