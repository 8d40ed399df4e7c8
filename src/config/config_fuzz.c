/* config_fuzz.c - any bytes as a file of settings: no crash, no leak, and an error that says where.
 */
#include <string.h>

#include "base/check.h"
#include "config/config.h"
#include "config/dynamic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some variables are set, to something that is data itself. */
static const char *
get_variable(void *context, const char *name)
{
    return name[0] == 'P' ? "7833" : name[0] == 'L' ? "${LOOP:x}" : NULL;
}

/* Reads what was read, so that a value of the wrong type would be seen. */
static void
use_config(const struct config *config, struct arena *arena)
{
    int64_t shards = config_integer(config, "persistence.numHistoryShards");
    check(shards >= 1 && shards <= 16384);
    check(config_duration(config, "dynamicconfig.filebased.pollInterval") >= 0);
    check(config_list(config, "services.frontend.rpc.tls.caFiles", arena) != NULL);
    const char *const *names = config_names(config, "clusterGroupMetadata.clusterGroup", arena);
    for (; *names != NULL; names++) {
        const char *path =
            arena_format(arena, "clusterGroupMetadata.clusterGroup.%s.rpcAddress", *names);
        check(config_text(config, path) != NULL);
    }
    config_log_ignored(config, NULL);
}

static void
check_error(const struct error *err)
{
    check(err->kind == ERR_BAD_REQUEST);
    check(strncmp(err->message, "f.yaml:", 7) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice yaml = slice_of(data, size);
    struct config_environment environment = {.get = get_variable};
    struct config *config = NULL;
    struct error *err = config_parse(yaml, "f.yaml", &environment, arena, &config);
    if (err != NULL)
        check_error(err);
    else
        use_config(config, arena);
    config_free(config);

    struct dynamic *dynamic = dynamic_new(NULL);
    err = dynamic_load(dynamic, yaml, "f.yaml", arena);
    if (err != NULL)
        check_error(err);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = "orders";
    (void)dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, &filter);
    check(dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, &filter) != NULL);
    check(dynamic_list(dynamic, DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, NULL, arena) != NULL);
    dynamic_free(dynamic);
    return 0;
}
