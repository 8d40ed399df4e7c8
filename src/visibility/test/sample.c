/* sample.c - see sample.h. */
#include "visibility/test/sample.h"

#include "base/check.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define MILLISECOND INT64_C(1000000)

/* --- a run ---------------------------------------------------------------------------------- */

static const char *
text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static GOOGLE(Timestamp) *
time_of(struct arena *arena, int64_t milliseconds)
{
    return presence_make_timestamp(arena, milliseconds * MILLISECOND + 123456);
}

static API(SearchAttributes) *
fields_of(struct arena *arena, const struct sample_run *run)
{
    API(SearchAttributes) *fields = API_NEW(arena, search_attributes);
    fields->indexed_fields =
        arena_zalloc(arena, SAMPLE_FIELDS_MAX, sizeof fields->indexed_fields[0]);
    for (size_t i = 0; i < SAMPLE_FIELDS_MAX && run->fields[i].key != NULL; i++) {
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(arena, API_TYPE(search_attributes__indexed_fields_entry));
        entry->key = arena_text(arena, run->fields[i].key);
        struct slice json = slice_text(run->fields[i].json);
        entry->value = presence_make_payload(
            arena, (struct maybe_bytes){.is_set = true, .bytes = arena_slice(arena, json)});
        fields->indexed_fields[fields->n_indexed_fields++] = entry;
    }
    return fields;
}

static API(ActiveClusterSelectionPolicy) *
policy_of(struct arena *arena, const struct sample_run *run)
{
    if (run->cluster_attribute == NULL)
        return NULL;
    return API_NEW(arena, active_cluster_selection_policy,
                   .cluster_attribute =
                       API_NEW(arena, cluster_attribute, .scope = arena_text(arena, "region"),
                               .name = arena_text(arena, run->cluster_attribute)));
}

static void
set_times(API(WorkflowExecutionInfo) *info, struct arena *arena, const struct sample_run *run)
{
    info->start_time = time_of(arena, run->start_ms);
    info->execution_time = time_of(arena, run->start_ms + run->delay_ms);
    info->scheduled_execution_time = time_of(arena, run->start_ms + run->delay_ms);
    info->update_time = time_of(arena, run->start_ms + (run->is_closed ? 1000 : 0));
    info->execution_status = run->delay_ms > 0 ? 1 : 2;
    if (!run->is_closed)
        return;
    info->close_time = time_of(arena, run->start_ms + 1000);
    info->close_status = (API(WorkflowExecutionCloseStatus))(run->close_status + 1);
    info->execution_status = (API(WorkflowExecutionStatus))(run->close_status + 3);
    info->history_length = 5 + run->close_status;
}

struct visibility_change
sample_change(struct arena *arena, const struct sample_run *run)
{
    API(WorkflowExecutionInfo) *info =
        API_NEW(arena, workflow_execution_info,
                .workflow_execution =
                    API_NEW(arena, workflow_execution,
                            .workflow_id = arena_text(arena, text_or(run->workflow_id, "workflow")),
                            .run_id = arena_text(arena, run->run_id)),
                .type = API_NEW(arena, workflow_type,
                                .name = arena_text(arena, text_or(run->type, "type"))),
                .task_list = arena_text(arena, text_or(run->task_list, "list")),
                .is_cron = run->cron_schedule != NULL,
                .cron_schedule = arena_text(arena, text_or(run->cron_schedule, "")),
                .search_attributes = fields_of(arena, run),
                .active_cluster_selection_policy = policy_of(arena, run));
    set_times(info, arena, run);
    return (struct visibility_change){
        .shard = run->shard,
        .row = run->row,
        .domain_id = arena_text(arena, text_or(run->domain_id, "domain")),
        .workflow_id = info->workflow_execution->workflow_id,
        .run_id = info->workflow_execution->run_id,
        .info = message_encode(arena, &info->base),
        .num_clusters = run->num_clusters != 0 ? run->num_clusters : 1,
    };
}

/* --- random runs ---------------------------------------------------------------------------- */

/* JSON on one side, a value as queries write it on the other. */
struct sample_value {
    const char *key;
    const char *json;
    const char *literal;
};

static const struct sample_value values[] = {
    {"CustomKeywordField", "\"red\"", "'red'"},
    {"CustomKeywordField", "\"Red blue\"", "\"Red blue\""},
    {"CustomKeywordField", "\"it's 100%_\\\\\"", "'it''s 100%_\\\\'"},
    {"CustomKeywordField", "[\"red\", \"green\", \"\"]", "'green'"},
    {"CustomKeywordField", "\"\"", "''"},
    {"CustomKeywordField", "\"\\u00fcber\"",
     "'\xc3\xbc"
     "ber'"},
    {"CustomStringField", "\"the quick brown fox\"", "'Quick, brown'"},
    {"CustomStringField", "\"brown quick\"", "'brown'"},
    {"CustomStringField", "\"\"", "''"},
    {"CustomStringField", "[\"one two\", \"three\"]", "'two'"},
    {"CustomIntField", "0", "0"},
    {"CustomIntField", "-7", "-7"},
    {"CustomIntField", "9223372036854775807", "9223372036854775807"},
    {"CustomIntField", "-9223372036854775808", "'-9223372036854775808'"},
    {"CustomIntField", "[3, 9]", "3"},
    {"CustomIntField", "9007199254740993", "9007199254740993"},
    {"CustomIntField", "\"no number\"", "9"},
    {"CustomDoubleField", "0", "-0.0"},
    {"CustomDoubleField", "1.5", "1.5"},
    {"CustomDoubleField", "-2e300", "-2e300"},
    {"CustomDoubleField", "[0.25, 7]", "7"},
    {"CustomBoolField", "true", "true"},
    {"CustomBoolField", "false", "'False'"},
    {"CustomBoolField", "[true, false]", "true"},
    {"CustomDatetimeField", "\"1970-01-01T00:00:00.0012Z\"", "'1970-01-01T00:00:00.0012Z'"},
    {"CustomDatetimeField", "\"2026-11-15T12:00:00+05:30\"", "'2026-11-15T06:30:00Z'"},
    {"CustomDatetimeField", "\"0001-01-01T00:00:00Z\"", "0"},
    {"BinaryChecksums", "[\"binary-v1\", \"binary-v2\"]", "'binary-v1'"},
    {"CadenceChangeVersion", "[]", "missing"},
    {"Unknown", "\"red\"", NULL},
};

static const struct sample_value *
pick_value(struct random *random)
{
    return &values[random_below(random, array_length(values))];
}

static bool
has_field(const struct sample_run *run, const char *key)
{
    for (size_t i = 0; i < SAMPLE_FIELDS_MAX && run->fields[i].key != NULL; i++) {
        if (strcmp(run->fields[i].key, key) == 0)
            return true;
    }
    return false;
}

struct sample_run
sample_random_run(struct random *random, struct arena *arena, unsigned number)
{
    static const char *const names[] = {"order", "order-2", "Order", "o'rder \"%\""};
    struct sample_run run = {
        .domain_id = random_below(random, 8) == 0 ? "other" : "domain",
        .workflow_id = arena_format(arena, "workflow-%u", number / 3),
        .run_id = arena_format(arena, "run-%04u", number),
        .type = names[random_below(random, array_length(names))],
        .start_ms = (int64_t)random_below(random, 10),
        .delay_ms = random_below(random, 4) == 0 ? 5 : 0,
        .is_closed = random_below(random, 2) == 0,
        .close_status = (int)random_below(random, 6),
        .cron_schedule = random_below(random, 4) == 0 ? "* * * * *" : NULL,
        .task_list = names[random_below(random, array_length(names))],
        .cluster_attribute = random_below(random, 4) == 0 ? "europe" : NULL,
        .num_clusters = 1 + (int32_t)random_below(random, 2),
    };
    size_t count = 0;
    for (size_t i = random_below(random, SAMPLE_FIELDS_MAX); i > 0; i--) {
        const struct sample_value *value = pick_value(random);
        if (!has_field(&run, value->key))
            run.fields[count++] = (struct sample_field){value->key, value->json};
    }
    return run;
}

/* --- random queries ------------------------------------------------------------------------- */

/* What a random comparison is about. */
struct subject {
    const char *name;
    const char *literal;
    bool is_text;
};

static struct subject
pick_column(struct random *random, struct arena *arena, unsigned runs)
{
    unsigned number = (unsigned)random_below(random, runs);
    int64_t moment = (int64_t)random_below(random, 12) * MILLISECOND;
    moment += (int64_t)random_below(random, 3) * 123456;
    const char *time = arena_format(arena, "%lld", (long long)moment);
    const char *late = arena_format(arena, "'1970-01-01T00:00:01.%03uZ'", number % 12);
    const struct subject subjects[] = {
        {"WorkflowID", arena_format(arena, "'workflow-%u'", number / 3), true},
        {"RunID", arena_format(arena, "\"run-%04u\"", number), true},
        {"WorkflowType", number % 2 == 0 ? "'order'" : "'o\\'rder \"%\"'", true},
        {"TaskList", number % 2 == 0 ? "'Order'" : "'order-2'", true},
        {"CronSchedule", "'* * * * *'", true},
        {"ClusterAttributeScope", "'region'", true},
        {"ClusterAttributeName", "'europe'", true},
        {"DomainID", number % 2 == 0 ? "'domain'" : "'other'", true},
        {"StartTime", time, false},
        {"ExecutionTime", time, false},
        {"ScheduledExecutionTime", time, false},
        {"CloseTime", late, false},
        {"UpdateTime", late, false},
        {"CloseStatus", number % 2 == 0 ? "'Failed'" : "3", false},
        {"ExecutionStatus", number % 2 == 0 ? "started" : "0", false},
        {"HistoryLength", "7", false},
        {"IsCron", number % 2 == 0 ? "\"true\"" : "false", false},
        {"NumClusters", "\"1\"", false},
    };
    struct subject subject = subjects[random_below(random, array_length(subjects))];
    if (strcmp(subject.literal, "started") == 0)
        subject.literal = "'started'";
    return subject;
}

static struct subject
pick_subject(struct random *random, struct arena *arena, unsigned runs)
{
    if (random_below(random, 2) == 0)
        return pick_column(random, arena, runs);
    const struct sample_value *value;
    do {
        value = pick_value(random);
    } while (value->literal == NULL || strcmp(value->literal, "missing") == 0);
    bool is_text = strcmp(value->key, "CustomKeywordField") == 0 ||
                   strcmp(value->key, "CustomStringField") == 0;
    const char *name = value->key;
    if (random_below(random, 4) == 0)
        name = arena_format(arena, "`Attr.%s`", name);
    return (struct subject){name, value->literal, is_text};
}

static const char *
random_comparison(struct random *random, struct arena *arena, unsigned runs)
{
    static const char *const signs[] = {"=", "!=", "<>", "<", "<=", ">", ">="};
    static const char *const patterns[] = {"'%e%'",   "'_ed'", "'R%'", "'%\\\\%%'",
                                           "'order'", "''",    "'%'",  "'workflow-_'"};
    struct subject subject = pick_subject(random, arena, runs);
    const char *negation = random_below(random, 2) == 0 ? "NOT " : "";
    switch (random_below(random, 10)) {
    case 0:
        return arena_format(arena, "%s %s missing", subject.name, negation[0] ? "!=" : "=");
    case 1:
        return arena_format(arena, "%s IS %sNULL", subject.name, negation);
    case 2:
        return arena_format(arena, "%s %sIN (%s)", subject.name, negation, subject.literal);
    case 3:
        return arena_format(arena, "%s %sIN (%s,%s)", subject.name, negation, subject.literal,
                            subject.literal);
    case 4:
        return arena_format(arena, "%s %sBETWEEN %s AND %s", subject.name, negation,
                            subject.literal, subject.literal);
    case 5:
        if (subject.is_text)
            return arena_format(arena, "%s %sLIKE %s", subject.name, negation,
                                patterns[random_below(random, array_length(patterns))]);
        return arena_format(arena, "%s >= %s", subject.name, subject.literal);
    default:
        return arena_format(arena, "%s%s%s", subject.name,
                            signs[random_below(random, array_length(signs))], subject.literal);
    }
}

static const char *
random_where(struct random *random, struct arena *arena, unsigned runs, int depth)
{
    uint64_t choice = depth == 0 ? 0 : random_below(random, 6);
    if (choice < 3)
        return random_comparison(random, arena, runs);
    const char *left = random_where(random, arena, runs, depth - 1);
    if (choice == 3)
        return arena_format(arena, "NOT (%s)", left);
    const char *right = random_where(random, arena, runs, depth - 1);
    return arena_format(arena, choice == 4 ? "(%s and %s)" : "(%s OR %s)", left, right);
}

const char *
sample_random_query(struct random *random, struct arena *arena, unsigned runs)
{
    static const char *const orders[] = {
        "",
        "",
        "ORDER BY StartTime",
        "order by StartTime desc",
        "ORDER BY CloseTime DESC",
        "ORDER BY CloseTime ASC",
        "ORDER BY ExecutionTime",
        "ORDER BY WorkflowType DESC",
        "ORDER BY IsCron",
        "ORDER BY CloseStatus",
        "ORDER BY CustomKeywordField",
        "ORDER BY `Attr.CustomKeywordField` DESC",
        "ORDER BY CustomIntField",
        "ORDER BY CustomIntField DESC",
        "ORDER BY CustomDoubleField",
        "ORDER BY CustomDoubleField DESC",
        "ORDER BY CustomBoolField DESC",
        "ORDER BY CustomDatetimeField",
    };
    const char *where = random_below(random, 10) == 0 ? "" : random_where(random, arena, runs, 3);
    return arena_format(arena, "%s %s", where, orders[random_below(random, array_length(orders))]);
}
