/* divide.c - setting how a list is divided: by an operator, or by the scaler that follows the load.
 * See partition_group.h.
 *
 * Both set a division of their own, which counts more than the settings: it is stored with the
 * list, and published when it is durable. The scaler looks at the load of the root: tasks go to all
 * write partitions in turn, so each has as much. Partitions are added at once and removed in two
 * steps: first they get no new tasks, then, once they are empty, no polls. */
#include <math.h>

#include "base/check.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "route/ask.h"
#include "wire/maps.h"
#include "wire/message.h"

typedef API(TaskListPartitionConfig__ReadPartitionsEntry) read_entry_t;
typedef API(TaskListPartitionConfig__WritePartitionsEntry) write_entry_t;

static API(TaskListPartition) *
partition_of(const API(TaskListPartitionConfig) *config, int32_t partition, struct arena *arena)
{
    for (size_t i = 0; config != NULL && i < config->n_read_partitions; i++) {
        if (config->read_partitions[i]->key == partition)
            return config->read_partitions[i]->value;
    }
    return message_new(arena, API_TYPE(task_list_partition));
}

/* Clients count by the fields that are deprecated, and look into the maps only if both agree. */
static void
set_counts(API(TaskListPartitionConfig) *config)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    config->num_read_partitions = (int32_t)config->n_read_partitions;
    config->num_write_partitions = (int32_t)config->n_write_partitions;
#pragma GCC diagnostic pop
}

API(TaskListPartitionConfig) *
division_message(const struct task_list *list, const struct division *division, struct arena *arena)
{
    const API(TaskListPartitionConfig) *known = list->root == NULL ? NULL : list->root->config;
    API(TaskListPartitionConfig) *config = message_new(arena, API_TYPE(task_list_partition_config));
    config->version = division->version;
    config->read_partitions = arena_zalloc(arena, division->reads, sizeof(void *));
    config->write_partitions = arena_zalloc(arena, division->writes, sizeof(void *));
    for (size_t i = 0; i < division->reads; i++) {
        read_entry_t *entry =
            message_new(arena, API_TYPE(task_list_partition_config__read_partitions_entry));
        entry->key = division->read[i];
        entry->value = partition_of(known, entry->key, arena);
        config->read_partitions[config->n_read_partitions++] = entry;
    }
    for (size_t i = 0; i < division->writes; i++) {
        write_entry_t *entry =
            message_new(arena, API_TYPE(task_list_partition_config__write_partitions_entry));
        entry->key = division->write[i];
        entry->value = partition_of(known, entry->key, arena);
        config->write_partitions[config->n_write_partitions++] = entry;
    }
    set_counts(config);
    return config;
}

/* --- by an operator --------------------------------------------------------------------------- */

static size_t
count_groups(const API(TaskListPartitionConfig) *config)
{
    size_t reads = 0, writes = 0;
    for (size_t i = 0; i < config->n_read_partitions; i++) {
        const API(TaskListPartition) *value = config->read_partitions[i]->value;
        reads += value == NULL ? 0 : value->n_isolation_groups;
    }
    for (size_t i = 0; i < config->n_write_partitions; i++) {
        const API(TaskListPartition) *value = config->write_partitions[i]->value;
        writes += value == NULL ? 0 : value->n_isolation_groups;
    }
    return reads > writes ? reads : writes;
}

static struct error *
check_ids(const API(TaskListPartitionConfig) *config, struct arena *arena)
{
    if (config->n_read_partitions > PARTITIONS_MAX)
        return error_new(arena, ERR_BAD_REQUEST, "more than %d partitions", PARTITIONS_MAX);
    if (count_groups(config) > SEATS_MAX)
        return error_new(arena, ERR_BAD_REQUEST, "more than %d isolation groups", SEATS_MAX);
    for (size_t i = 0; i < config->n_read_partitions; i++) {
        int32_t id = config->read_partitions[i]->key;
        if (id < 0 || id >= PARTITIONS_MAX)
            return error_new(arena, ERR_BAD_REQUEST, "partition %d is out of range", (int)id);
    }
    return NULL;
}

static bool
has_read(const API(TaskListPartitionConfig) *config, int32_t partition)
{
    for (size_t i = 0; i < config->n_read_partitions; i++) {
        if (config->read_partitions[i]->key == partition)
            return true;
    }
    return false;
}

static struct error *
check_config(const API(TaskListPartitionConfig) *config, struct arena *arena)
{
    size_t reads = config->n_read_partitions, writes = config->n_write_partitions;
    if (reads < 1)
        return error_new(arena, ERR_BAD_REQUEST, "read partitions < 1");
    if (writes < 1)
        return error_new(arena, ERR_BAD_REQUEST, "write partitions < 1");
    if (reads < writes)
        return error_new(arena, ERR_BAD_REQUEST, "read partitions (%zu) < write partitions (%zu)",
                         reads, writes);
    if (config->read_partitions[0]->key != 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "the root partition must always be in read partitions");
    if (config->write_partitions[0]->key != 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "the root partition must always be in write partitions");
    for (size_t i = 0; i < writes; i++) {
        int32_t id = config->write_partitions[i]->key;
        if (!has_read(config, id))
            return error_new(arena, ERR_BAD_REQUEST, "partition %d included in write but not read",
                             (int)id);
    }
    return check_ids(config, arena);
}

static bool
is_same(const API(TaskListPartitionConfig) *one, const API(TaskListPartitionConfig) *other,
        struct arena *arena)
{
    API(TaskListPartitionConfig) copy = *one;
    copy.version = other->version;
    return slice_equal(message_encode(arena, &copy.base), message_encode(arena, &other->base));
}

/* Adopts the division in memory; false: nothing changes. */
static bool
set_config(struct task_list *list, API(TaskListPartitionConfig) *config, struct arena *arena)
{
    const API(TaskListPartitionConfig) *before = list->root == NULL ? NULL : list->root->config;
    check(list->partition == 0 && list->backlog.is_loaded);
    if (before != NULL && is_same(config, before, arena))
        return false;
    config->version = before == NULL ? 1 : before->version + 1;
    root_set_config(list, config);
    return true;
}

static struct error *
wait_recorded(struct task_list *list, int64_t version, struct arena *arena)
{
    check(list->root != NULL && version > 0);
    list->users++;
    struct error *err = NULL;
    while (err == NULL && list->root->version_recorded < version) {
        if (root_record_state(list).version < version || list->loop_lists->is_drained) {
            err = error_new(arena, ERR_UNAVAILABLE, "The partition config was not stored.");
            break;
        }
        enum wake wake = fiber_cond_wait(&list->backlog.loaded, NEVER);
        if (wake != WAKE_READY)
            err = wake_error(wake, arena, "storing a partition config");
    }
    check(list->users > 0);
    list->users--;
    return err;
}

static struct error *
serve_division(void *context, struct owner owner, const void *argument, struct arena *arena,
               void *result)
{
    const INTERNAL(DivideListRequest) *request = argument;
    struct list_id list_id = list_id_from_message(request->list);
    struct task_list *list = list_get(loop_lists_here(context), &list_id, LIST_NORMAL);
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    if (dynamic_flag(dynamic, DYNAMIC_ADAPTIVE_SCALER, &filter))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Manual update is not allowed because adaptive scaler is enabled.");
    list->used = clock_monotonic();
    list_wait_loaded(list);
    if (!list->backlog.is_loaded || list->kind != LIST_NORMAL)
        return error_new(arena, ERR_UNAVAILABLE, "The task list is not ready.");
    API(TaskListPartitionConfig) config = *request->config;
    if (set_config(list, &config, arena))
        return wait_recorded(list, config.version, arena);
    return NULL;
}

/* Lost, or its answer: it may have been done; the operator looks, and tries again. Not twice: the
 * second one finds the division there, and would say that it is durable before it is. */
static const struct route_question divide_question = {
    .name = "list.divide",
    .request = INTERNAL_TYPE(divide_list_request),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_division,
};

struct error *
matching_divide(struct matching *matching, const struct list_spot *spot,
                const API(TaskListPartitionConfig) *config, struct arena *arena)
{
    struct error *err = check_config(config, arena);
    if (err != NULL)
        return err;
    API(TaskListPartitionConfig) wanted = *config;
    set_counts(&wanted);
    struct list_id list_id = {spot->domain_id, spot->type, spot->name.list, 0};
    INTERNAL(ListId) list;
    INTERNAL(DivideListRequest) request = INTERNAL_VALUE(DIVIDE_LIST_REQUEST__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    list_id_to_message(&list_id, &list);
    request.list = &list;
    request.config = &wanted;
    return route_ask(list_owner(&list_id), &matching->service, &divide_question, &request, arena,
                     &answer);
}

/* --- by the load ------------------------------------------------------------------------------ */

/* How many write partitions there should be. */
static size_t
wanted_writes(struct task_list *list, size_t writes)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    struct scaler *scaler = &list->member.scaler;
    int64_t now = clock_monotonic();
    double rate = task_load_per_second(&list->task_load, now) * (double)writes;
    double each = (double)dynamic_integer(dynamic, DYNAMIC_SCALER_UP_RATE, &filter);
    double factor = dynamic_number(dynamic, DYNAMIC_SCALER_DOWN_FACTOR, &filter);
    int64_t least = dynamic_integer(dynamic, DYNAMIC_SCALER_LEAST, &filter);
    least = least < 1 ? 1 : least > PARTITIONS_MAX ? PARTITIONS_MAX : least;
    bool is_over = lasting_check(&scaler->over, rate > (double)writes * each,
                                 dynamic_duration(dynamic, DYNAMIC_SCALER_UP_TIME, &filter), now);
    bool is_under =
        lasting_check(&scaler->under, rate < (double)(writes - 1) * each * factor,
                      dynamic_duration(dynamic, DYNAMIC_SCALER_DOWN_TIME, &filter), now);
    check(writes > 0 && least <= PARTITIONS_MAX);
    double wanted = (double)writes;
    if ((is_over || is_under) && each > 0)
        wanted = ceil(rate / each);
    wanted = wanted < (double)least ? (double)least : wanted;
    return wanted > PARTITIONS_MAX ? PARTITIONS_MAX : (size_t)wanted;
}

/* Partitions that new tasks go to are read; those that were read are, until they are empty. */
static void
scale_reads(const struct root *root, struct division *division)
{
    size_t reads = division->reads;
    if (reads < division->writes)
        reads = division->writes;
    while (reads > division->writes && root != NULL && root->partition_states[reads - 1].is_drained)
        reads--;
    division->reads = reads;
    for (int32_t i = 0; i < (int32_t)reads; i++)
        division->read[i] = i;
}

void
scaler_run(struct task_list *list)
{
    struct division before, division;
    root_division(list, &before);
    division_check(&before);
    division = before;
    division.writes = wanted_writes(list, before.writes);
    for (int32_t i = 0; i < (int32_t)division.writes; i++)
        division.write[i] = i;
    scale_reads(list->root, &division);
    if (division.writes == before.writes && division.reads == before.reads)
        return;
    division_check(&division);
    probe(division.writes > before.writes ? "partitions_added" : "partitions_taken_away");
    scoped(arena_drop) struct arena *arena = arena_new(0);
    set_config(list, division_message(list, &division, arena), arena);
}
