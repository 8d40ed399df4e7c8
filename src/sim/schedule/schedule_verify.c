/* schedule_verify.c - is everything that must have been started there, once, and nothing else? */
#include "sim/schedule/schedule_inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE 500

/* --- what there is ---- */

static const char *
attribute_of(const API(WorkflowExecutionInfo) *info, const char *key, struct arena *arena)
{
    const API(SearchAttributes) *all = info->search_attributes;
    const API(SearchAttributes__IndexedFieldsEntry) *entry =
        wire_map_find(all->indexed_fields, all->n_indexed_fields, key);
    if (entry == NULL)
        return "";
    return arena_text_of(arena, presence_read_payload(entry->value).bytes);
}

/* A time as the server writes it: "2026-03-29T00:30:00Z", in quotes. */
static int64_t
read_time(const char *text)
{
    int year, month, day, hour, minute, second;
    if (sscanf(text, "\"%d-%d-%dT%d:%d:%dZ\"", &year, &month, &day, &hour, &minute, &second) != 6)
        return -1;
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t days = (int64_t)(year - 1970) * 365 + (year - 1969) / 4 + before[month - 1] + day - 1 +
                   (year % 4 == 0 && month > 2);
    return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

struct found {
    vector_of(struct model_fire) fires;
};

static void
read_page(struct found *found, const API(ListWorkflowExecutionsResponse) *page, struct arena *arena)
{
    for (size_t i = 0; i < page->n_executions; i++) {
        const API(WorkflowExecutionInfo) *info = page->executions[i];
        const char *quoted = attribute_of(info, "CadenceScheduleBackfillID", arena);
        size_t length = strlen(quoted);
        struct model_fire fire = {
            .nominal = read_time(attribute_of(info, "CadenceScheduleTime", arena)),
            .backfill = length < 2 ? "" : arena_text_of(arena, slice_of(quoted + 1, length - 2))};
        vector_push_in(&found->fires, arena, fire);
    }
}

static void
read_all(struct schedule_client *client, unsigned case_number, struct found *found)
{
    API(ListWorkflowExecutionsRequest) *request =
        API_NEW(client->arena, list_workflow_executions_request, .domain = SCHEDULE_DOMAIN,
                .page_size = PAGE,
                .query = arena_format(client->arena, "CadenceScheduleID = '%s'",
                                      schedule_case_id(case_number, client->arena)));
    do {
        API(ListWorkflowExecutionsResponse) *page = NULL;
        schedule_send(client, request, &page);
        if (page == NULL)
            return; /* a violation */
        read_page(found, page, client->arena);
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
}

/* --- what there must be ---- */

static int
compare(const void *one, const void *other)
{
    const struct model_fire *a = one, *b = other;
    int order = strcmp(a->backfill, b->backfill);
    return order != 0 ? order : (a->nominal > b->nominal) - (a->nominal < b->nominal);
}

static void
compare_fires(struct schedule_client *client, unsigned case_number, struct found *found)
{
    struct model *model = &client->load->models[case_number];
    struct verdict *verdict = &client->load->verdict;
    qsort(found->fires.items, found->fires.count, sizeof found->fires.items[0], compare);
    qsort(model->fires.items, model->fires.count, sizeof model->fires.items[0], compare);
    for (size_t i = 0; i < found->fires.count && i < model->fires.count; i++) {
        const struct model_fire *is = &vector_at(&found->fires, i);
        const struct model_fire *wanted = &vector_at(&model->fires, i);
        if (compare(is, wanted) != 0)
            verdict_violate(verdict, "schedule %u: started is %lld '%s', wanted is %lld '%s'",
                            case_number, (long long)is->nominal, is->backfill,
                            (long long)wanted->nominal, wanted->backfill);
    }
    if (found->fires.count != model->fires.count)
        verdict_violate(verdict, "schedule %u: %zu were started, %zu are wanted", case_number,
                        found->fires.count, model->fires.count);
    client->load->runs += (unsigned)found->fires.count;
}

static void
compare_described(struct schedule_client *client, unsigned case_number)
{
    const struct model *model = &client->load->models[case_number];
    API(DescribeScheduleResponse) *description = NULL;
    schedule_send(client,
                  API_NEW(client->arena, describe_schedule_request, .domain = SCHEDULE_DOMAIN,
                          .schedule_id = schedule_case_id(case_number, client->arena)),
                  &description);
    if (description == NULL)
        return; /* a violation */
    const API(ScheduleInfo) *info = description->info;
    if (info->total_runs != (int64_t)model->fires.count || info->skipped_runs != model->skipped ||
        info->missed_runs != model->missed || info->buffered_fire_count != 0 ||
        info->n_ongoing_backfills != 0)
        verdict_violate(&client->load->verdict,
                        "schedule %u tells of %lld runs, %lld skipped, %lld missed; wanted are "
                        "%zu, %lld, %lld",
                        case_number, (long long)info->total_runs, (long long)info->skipped_runs,
                        (long long)info->missed_runs, model->fires.count, (long long)model->skipped,
                        (long long)model->missed);
}

void
schedule_verify(struct schedule_client *client)
{
    for (unsigned i = 0; i < SCHEDULE_CASES; i++) {
        struct found found = {0};
        model_pass(&client->load->models[i], clock_wall() / NS_PER_S);
        read_all(client, i, &found);
        compare_fires(client, i, &found);
        compare_described(client, i);
        arena_reset(client->arena);
    }
}

static bool
is_over(void *context)
{
    const struct schedule_load *load = context;
    return load->is_over;
}

const char *
schedule_load_verify(struct schedule_load *load)
{
    if (!world_run_until(load->sim->world, is_over, load, 100LL * 86400 * NS_PER_S))
        verdict_violate(&load->verdict, "the client does not come to its end");
    return load->verdict.violation;
}
