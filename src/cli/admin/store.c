/* store.c - commands for the data folder of a stopped server: info, check, restore. */
#include <jansson.h>

#include "base/check.h"
#include "cli/base/inside.h"
#include "store/open/open.h"

#define DATA_DEFAULT "./data"

static const char *
data_folder(const struct cli_call *call)
{
    return call->data != NULL ? call->data : DATA_DEFAULT;
}

/* The driver of stores that lie in a folder. */
static const struct store_driver *
driver_of(struct arena *arena)
{
    const struct store_driver *driver = NULL;
    struct error *err = store_driver_find(&store_drivers, STORE_EMBEDDED, arena, &driver);
    check(err == NULL && driver->info != NULL && driver->verify != NULL && driver->restore != NULL);
    return driver;
}

static const char *
yes_or_no(bool value)
{
    return value ? "yes" : "no";
}

static void
print_info_table(const struct store_info *info)
{
    cli_print("cluster        %s\nshards         %u\nformat         %u\nwrites         %llu\n",
              info->cluster_name, info->shard_count, info->format,
              (unsigned long long)info->sequence);
    cli_print("closed cleanly %s\nmemory         %s\n", yes_or_no(info->was_closed),
              store_memory_word(info->memory));
    if (info->note != NULL)
        cli_print("note           %s\n", info->note);
    cli_print("log            %llu files, %llu bytes\ntables         %llu files, %llu bytes\n",
              (unsigned long long)info->log_files, (unsigned long long)info->log_bytes,
              (unsigned long long)info->table_files, (unsigned long long)info->table_bytes);
    cli_print("large values   %llu files, %llu bytes, %llu of them of deleted rows\n",
              (unsigned long long)info->large_files, (unsigned long long)info->large_bytes,
              (unsigned long long)info->large_dead_bytes);
    cli_print("\n%-16s %14s %16s\n", "rows of kind", "count", "bytes");
    for (size_t i = 0; i < info->kind_count; i++)
        cli_print("%-16s %14llu %16llu\n", info->kinds[i].name,
                  (unsigned long long)info->kinds[i].rows,
                  (unsigned long long)info->kinds[i].bytes);
    cli_print("\n%-16s %5s %8s %16s\n", "family", "level", "files", "bytes");
    for (size_t i = 0; i < info->level_count; i++)
        cli_print("%-16s %5d %8llu %16llu\n", info->levels[i].family, info->levels[i].level,
                  (unsigned long long)info->levels[i].files,
                  (unsigned long long)info->levels[i].bytes);
}

static json_t *
info_json(const struct store_info *info)
{
    json_t *kinds = json_object(), *levels = json_array();
    for (size_t i = 0; i < info->kind_count; i++)
        json_object_set_new(kinds, info->kinds[i].name,
                            json_pack("{s:I, s:I}", "rows", (json_int_t)info->kinds[i].rows,
                                      "bytes", (json_int_t)info->kinds[i].bytes));
    for (size_t i = 0; i < info->level_count; i++)
        json_array_append_new(
            levels, json_pack("{s:s, s:i, s:I, s:I}", "family", info->levels[i].family, "level",
                              info->levels[i].level, "files", (json_int_t)info->levels[i].files,
                              "bytes", (json_int_t)info->levels[i].bytes));
    return json_pack(
        "{s:s, s:i, s:i, s:I, s:b, s:s, s:b, s:I, s:I, s:I, s:I, s:s?, s:o, s:o}", "cluster",
        info->cluster_name, "shards", (int)info->shard_count, "format", (int)info->format, "writes",
        (json_int_t)info->sequence, "closedCleanly", info->was_closed, "memory",
        store_memory_word(info->memory), "fromBackup", info->memory == STORE_RESTORED, "logBytes",
        (json_int_t)info->log_bytes, "tableBytes", (json_int_t)info->table_bytes, "largeValueBytes",
        (json_int_t)info->large_bytes, "largeValueDeletedBytes", (json_int_t)info->large_dead_bytes,
        "note", info->note, "kinds", kinds, "levels", levels);
}

struct error *
cli_store_info(struct cli_call *call)
{
    struct store_info info;
    struct error *err = driver_of(call->arena)->info(data_folder(call), call->arena, &info);
    if (err != NULL)
        return err;
    if (call->as_json)
        cli_print_json(info_json(&info));
    else
        print_info_table(&info);
    return NULL;
}

struct error *
cli_store_check(struct cli_call *call)
{
    struct store_check result;
    struct error *err = driver_of(call->arena)->verify(data_folder(call), call->arena, &result);
    if (err != NULL)
        return err;
    if (call->as_json) {
        json_t *problems = json_array();
        for (uint64_t i = 0; i < result.problems && i < STORE_PROBLEMS_MAX; i++)
            json_array_append_new(problems, json_string(result.sentence[i]));
        cli_print_json(json_pack("{s:I, s:I, s:I, s:o}", "rows", (json_int_t)result.rows,
                                 "partitions", (json_int_t)result.partitions, "problems",
                                 (json_int_t)result.problems, "sentences", problems));
    } else {
        for (uint64_t i = 0; i < result.problems && i < STORE_PROBLEMS_MAX; i++)
            cli_print("%s\n", result.sentence[i]);
        cli_print("%llu rows in %llu partitions, %llu problems\n", (unsigned long long)result.rows,
                  (unsigned long long)result.partitions, (unsigned long long)result.problems);
    }
    call->exit_code = result.problems == 0 ? 0 : 1;
    return NULL;
}

struct error *
cli_restore(struct cli_call *call)
{
    const char *data = data_folder(call);
    struct error *err = driver_of(call->arena)->restore(call->words[0], data, call->arena);
    if (err == NULL)
        cli_print("%s is a data folder made from %s; start a server on it with --data %s\n", data,
                  call->words[0], data);
    return err;
}
