/* driver.c - what the config says of the embedded store. */
#include "store/rocks/driver.h"

#include "store/rocks/rocks.h"

#define EMBEDDED "persistence.datastores.embedded."

static struct error *
open_configured(const struct store_settings *settings, struct arena *arena, struct store **store)
{
    const struct config *config = settings->config;
    struct rocks_options options = {
        .path = config_text(config, EMBEDDED "path"),
        .cluster_name = config_text(config, "clusterGroupMetadata.currentClusterName"),
        .shard_count = (uint32_t)config_integer(config, "persistence.numHistoryShards"),
        .memtable_bytes_max = (uint64_t)config_integer(config, EMBEDDED "memtableBytes"),
        .cache_bytes_max = (uint64_t)config_integer(config, EMBEDDED "cacheBytes"),
        .queue_bytes_max = (uint64_t)config_integer(config, EMBEDDED "queueBytes"),
        .scrub_interval = config_duration(config, EMBEDDED "scrubInterval"),
        .log = settings->log,
        .metrics = settings->metrics,
    };
    return rocks_open(&options, arena, store);
}

const struct store_driver rocks_driver = {
    .name = ROCKS_NAME,
    .open = open_configured,
    .info = rocks_info,
    .verify = rocks_check,
    .restore = rocks_restore,
};
