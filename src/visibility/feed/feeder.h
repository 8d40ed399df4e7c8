/* feeder.h - brings what the shards hand over to visibility.
 *
 * Each place gathers the changes of its shards for a moment and sends them to the owner of the
 * domains; a fiber there feeds them in one transaction, and tells the shards how far the lists are.
 * Once a second it makes the lists safe from a crash of the machine, and tells that too. Memory is
 * bounded: a shard that finds no room leaves its changes in the store. A feed that fails is tried
 * again for ever: the lists stay behind, nothing else stops. */
#ifndef CADENZA_VISIBILITY_FEED_FEEDER_H
#define CADENZA_VISIBILITY_FEED_FEEDER_H

#include "route/visible.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"

struct feeder_options {
    /* Tells a shard how far the lists are: they have rows up to `fed`, those up to `safe` whatever
     * crashes. Where the shard lives, no yield. */
    void (*on_fed)(void *context, uint32_t shard, uint64_t fed, uint64_t safe);
    void *context;
    struct visibility *visibility;
    const struct registry *registry;
    uint32_t shard_count;
    const struct log *log;
    struct metrics *metrics;
};

struct feeder;

/* Takes changes from now on, feeds none yet. Where the domains live, as the others. */
struct feeder *feeder_new(const struct feeder_options *options);
/* The port for the shards. */
struct visible_port feeder_port(struct feeder *feeder);
/* Begins to feed: the shards can be told. */
void feeder_start(struct feeder *feeder);
/* Feeds what was handed over and ends; takes nothing from now on. Before the shards close. Yields;
 * cannot be cancelled. Harmless when it was not started. */
void feeder_stop(struct feeder *feeder);
/* When the shards are closed. */
void feeder_free(struct feeder *feeder);

#endif
