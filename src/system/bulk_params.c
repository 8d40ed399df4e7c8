/* bulk_params.c - input and progress of a batch job, as JSON in Cadence's names. See bulk.h. */
#include "base/check.h"
#include "base/json.h"
#include "fiber/clock.h"
#include "system/bulk.h"

#define RATE_USUAL        50
#define CONCURRENCY_USUAL 5
#define PAGE_USUAL        1000
#define ATTEMPTS_USUAL    50
#define HEARTBEAT_USUAL   10
#define RETRIES_USUAL     4
#define PROGRESS_MEMBERS  10

/* --- parameters ---- */

static void
read_children(struct slice bytes, const char *wanted, struct arena *arena, bool *has_children)
{
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    while (bytes.length > 0 && object_next(&reader, &name)) {
        if (strcmp(name, wanted) == 0)
            object_flag(&reader, has_children);
        else
            object_skip(&reader);
    }
}

/* Two texts of an inner object. */
static void
read_pair(struct slice bytes, const char *const names[2], struct arena *arena,
          const char **values[2])
{
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    while (bytes.length > 0 && object_next(&reader, &name)) {
        if (strcmp(name, names[0]) == 0)
            object_text(&reader, values[0]);
        else if (strcmp(name, names[1]) == 0)
            object_text(&reader, values[1]);
        else
            object_skip(&reader);
    }
}

/* Inner objects as they stand. */
struct inner {
    struct slice terminate, cancel, signal, replicate;
};

static void
read_inner(struct bulk_params *params, const struct inner *inner, struct arena *arena)
{
    bool terminates = true, cancels = false;
    read_children(inner->terminate, "TerminateChildren", arena, &terminates);
    read_children(inner->cancel, "CancelChildren", arena, &cancels);
    params->has_children =
        params->verb == BULK_TERMINATE ? terminates : params->verb == BULK_CANCEL && cancels;
    read_pair(inner->signal, (const char *const[]){"SignalName", "Input"}, arena,
              (const char **[]){&params->signal_name, &params->signal_input});
    read_pair(inner->replicate, (const char *const[]){"SourceCluster", "TargetCluster"}, arena,
              (const char **[]){&params->source_cluster, &params->target_cluster});
}

/* True: the member is one of the numbers. */
static bool
read_number(struct json_reader *reader, const char *name, struct bulk_params *params)
{
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {
        {"RPS", &params->rate},
        {"Concurrency", &params->concurrency},
        {"PageSize", &params->page_size},
        {"AttemptsOnRetryableError", &params->attempts},
        {"ActivityHeartBeatTimeout", &params->heartbeat_timeout},
        {"MaxActivityRetries", &params->retries_max},
    };
    for (size_t i = 0; i < array_length(numbers); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            object_integer(reader, numbers[i].value);
            return true;
        }
    }
    return false;
}

static void
read_member(struct json_reader *reader, const char *name, struct bulk_params *params,
            struct inner *inner)
{
    if (strcmp(name, "DomainName") == 0)
        object_text(reader, &params->domain);
    else if (strcmp(name, "Query") == 0)
        object_text(reader, &params->query);
    else if (strcmp(name, "Reason") == 0)
        object_text(reader, &params->reason);
    else if (strcmp(name, "BatchType") == 0)
        object_text(reader, &params->verb_name);
    else if (strcmp(name, "TerminateParams") == 0)
        object_raw(reader, &inner->terminate);
    else if (strcmp(name, "CancelParams") == 0)
        object_raw(reader, &inner->cancel);
    else if (strcmp(name, "SignalParams") == 0)
        object_raw(reader, &inner->signal);
    else if (strcmp(name, "ReplicateParams") == 0)
        object_raw(reader, &inner->replicate);
    else if (strcmp(name, "NonRetryableErrors") == 0)
        object_texts(reader, &params->final_errors, &params->final_error_count);
    else if (!read_number(reader, name, params))
        object_skip(reader);
}

static int64_t
usual(int64_t value, int64_t otherwise)
{
    return value <= 0 ? otherwise : value;
}

static void
fill_usual(struct bulk_params *params)
{
    params->rate = usual(params->rate, RATE_USUAL);
    params->concurrency = usual(params->concurrency, CONCURRENCY_USUAL);
    params->page_size = usual(params->page_size, PAGE_USUAL);
    params->attempts = usual(params->attempts, ATTEMPTS_USUAL);
    int64_t seconds = params->heartbeat_timeout / NS_PER_S; /* it comes in ns */
    if (params->heartbeat_timeout > 0 && seconds == 0)
        seconds = 1;
    params->heartbeat_timeout = usual(seconds, HEARTBEAT_USUAL);
    if (params->retries_max < 0)
        params->retries_max = RETRIES_USUAL;
}

static bool
find_verb(struct bulk_params *params)
{
    static const char *const names[] = {[BULK_TERMINATE] = "terminate",
                                        [BULK_CANCEL] = "cancel",
                                        [BULK_SIGNAL] = "signal",
                                        [BULK_REPLICATE] = "replicate",
                                        [BULK_REFRESH] = "refresh"};
    for (size_t i = 0; i < array_length(names); i++) {
        params->verb = (enum bulk_verb)i;
        if (strcmp(names[i], params->verb_name) == 0)
            return true;
    }
    return false;
}

static const char *
find_fault(const struct bulk_params *params)
{
    if (params->verb == BULK_SIGNAL && params->signal_name[0] == '\0')
        return "must provide signal name";
    if (params->verb == BULK_REPLICATE && params->source_cluster[0] == '\0')
        return "must provide source cluster";
    if (params->verb == BULK_REPLICATE && params->target_cluster[0] == '\0')
        return "must provide target cluster";
    return NULL;
}

void
bulk_params_check(const struct bulk_params *params)
{
    check(params->rate > 0 && params->concurrency > 0 && params->page_size > 0);
    check(params->attempts > 0 && params->heartbeat_timeout > 0 && params->retries_max >= 0);
    check(params->verb <= BULK_REFRESH && params->domain[0] != '\0' && params->query[0] != '\0');
    check(params->verb != BULK_SIGNAL || params->signal_name[0] != '\0');
    check(params->verb != BULK_REPLICATE || params->target_cluster[0] != '\0');
}

struct error *
bulk_read_params(struct slice input, struct arena *arena, struct bulk_params *params)
{
    struct json_reader reader = object_begin(input, arena);
    struct inner inner = {0};
    const char *name;
    *params = (struct bulk_params){.domain = "",
                                   .query = "",
                                   .reason = "",
                                   .verb_name = "",
                                   .signal_name = "",
                                   .signal_input = "",
                                   .source_cluster = "",
                                   .target_cluster = ""};
    while (object_next(&reader, &name))
        read_member(&reader, name, params, &inner);
    if (!object_end(&reader))
        return error_new(arena, ERR_BAD_REQUEST, "the input is not the parameters of a batch");
    if (params->verb_name[0] == '\0' || params->reason[0] == '\0' || params->domain[0] == '\0' ||
        params->query[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "must provide required parameters: BatchType/Reason/DomainName/Query");
    if (!find_verb(params))
        return error_new(arena, ERR_BAD_REQUEST, "not supported batch type: %s", params->verb_name);
    read_inner(params, &inner, arena);
    fill_usual(params);
    const char *fault = find_fault(params);
    if (fault != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", fault);
    bulk_params_check(params);
    return NULL;
}

/* --- progress ---- */

struct slice
bulk_write_progress(const struct bulk_progress *progress, int64_t page_size, bool is_result,
                    struct arena *arena)
{
    check(page_size > 0);
    size_t count = is_result ? 0 : 2 * progress->target_count, payload = progress->token.length * 2;
    const char **texts = arena_zalloc(arena, count + 1, sizeof texts[0]);
    for (size_t i = 0; i < count / 2; i++) {
        texts[2 * i] = progress->targets[i].workflow_id;
        texts[2 * i + 1] = progress->targets[i].run_id;
        payload += strlen(texts[2 * i]) + strlen(texts[2 * i + 1]);
    }
    int64_t done = progress->success + progress->error;
    struct json_writer writer = object_write_begin(arena, PROGRESS_MEMBERS + count, payload);
    object_write_bytes(&writer, "PageToken", is_result ? (struct slice){0} : progress->token,
                       arena);
    object_write_integer(&writer, "CurrentPage", (done + page_size - 1) / page_size);
    object_write_integer(&writer, "TotalEstimate", progress->total);
    object_write_integer(&writer, "SuccessCount", progress->success);
    object_write_integer(&writer, "ErrorCount", progress->error);
    object_write_integer(&writer, "RPS", progress->rate);
    object_write_integer(&writer, "Concurrency", progress->concurrency);
    if (count > 0) {
        object_write_integer(&writer, "ChunkSuccess", progress->chunk_success);
        object_write_integer(&writer, "ChunkError", progress->chunk_error);
        object_write_texts(&writer, "Chunk", texts, count);
    }
    return object_write_end(&writer);
}

static void
set_targets(struct bulk_progress *progress, const char **texts, size_t count, struct arena *arena)
{
    progress->target_count = count / 2;
    progress->targets = arena_zalloc(arena, count / 2 + 1, sizeof progress->targets[0]);
    for (size_t i = 0; i < count / 2; i++)
        progress->targets[i] = (struct bulk_target){texts[2 * i], texts[2 * i + 1]};
}

bool
bulk_read_progress(struct slice bytes, struct arena *arena, struct bulk_progress *progress)
{
    struct json_reader reader = object_begin(bytes, arena);
    const char *name, **texts = NULL;
    size_t count = 0;
    *progress = (struct bulk_progress){0};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "PageToken") == 0)
            object_bytes(&reader, &progress->token);
        else if (strcmp(name, "TotalEstimate") == 0)
            object_integer(&reader, &progress->total);
        else if (strcmp(name, "SuccessCount") == 0)
            object_integer(&reader, &progress->success);
        else if (strcmp(name, "ErrorCount") == 0)
            object_integer(&reader, &progress->error);
        else if (strcmp(name, "ChunkSuccess") == 0)
            object_integer(&reader, &progress->chunk_success);
        else if (strcmp(name, "ChunkError") == 0)
            object_integer(&reader, &progress->chunk_error);
        else if (strcmp(name, "Chunk") == 0)
            object_texts(&reader, &texts, &count);
        else
            object_skip(&reader);
    }
    set_targets(progress, texts, count, arena);
    return object_end(&reader) && count % 2 == 0;
}

/* --- the activity's input, and tuning ---- */

struct slice
bulk_write_order(const struct bulk_order *order, struct arena *arena)
{
    size_t payload = order->params.length + order->progress.length;
    struct json_writer writer = object_write_begin(arena, 4, payload);
    object_write_raw(&writer, "Params", order->params);
    object_write_integer(&writer, "RPS", order->rate);
    object_write_integer(&writer, "Concurrency", order->concurrency);
    object_write_raw(&writer, "Progress", order->progress);
    return object_write_end(&writer);
}

bool
bulk_read_order(struct slice bytes, struct arena *arena, struct bulk_order *order)
{
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    *order = (struct bulk_order){0};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "Params") == 0)
            object_raw(&reader, &order->params);
        else if (strcmp(name, "RPS") == 0)
            object_integer(&reader, &order->rate);
        else if (strcmp(name, "Concurrency") == 0)
            object_integer(&reader, &order->concurrency);
        else if (strcmp(name, "Progress") == 0)
            object_raw(&reader, &order->progress);
        else
            object_skip(&reader);
    }
    return object_end(&reader);
}

void
bulk_read_tuning(struct slice input, struct arena *arena, int64_t *rate, int64_t *concurrency)
{
    struct json_reader reader = object_begin(input, arena);
    const char *name;
    *rate = *concurrency = 0;
    while (object_next(&reader, &name)) {
        if (strcmp(name, "RPS") == 0)
            object_integer(&reader, rate);
        else if (strcmp(name, "Concurrency") == 0)
            object_integer(&reader, concurrency);
        else
            object_skip(&reader);
    }
}
