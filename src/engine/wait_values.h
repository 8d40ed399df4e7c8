/* wait_values.h - the values of waits.h, each one block. Only waits.c and its test include it. */
#ifndef CADENZA_ENGINE_WAIT_VALUES_H
#define CADENZA_ENGINE_WAIT_VALUES_H

#include "engine/waits.h"
#include "route/tell.h"

/* To the shard; there it stays as the record of what waits. */
struct wait_value {
    struct route_value value;
    unsigned place; /* of the one who waits */
    uint64_t number;
    uint32_t shard;
    struct run_wait_for what; /* in the same block */
    /* Of the shard's place. */
    struct engine *engine;
    struct timer life;
    struct run_watch watch;
    struct run_query query;
};

struct wait_stop_value {
    struct route_value value;
    uint64_t number;
    uint32_t shard;
};

struct wait_end_value {
    struct route_value value;
    uint64_t number;
    enum query_end end;
    struct slice result; /* in the same block */
};

struct wait_value *wait_value_new(const struct run_wait_for *what);
struct wait_end_value *wait_end_value_new(uint64_t number, enum query_end end, struct slice result);

/* The encode and decode of the rows. */
struct slice wait_value_encode(const struct route_value *value, struct arena *arena);
struct route_value *wait_value_decode(struct slice bytes);
struct slice wait_stop_encode(const struct route_value *value, struct arena *arena);
struct route_value *wait_stop_decode(struct slice bytes);
struct slice wait_end_encode(const struct route_value *value, struct arena *arena);
struct route_value *wait_end_decode(struct slice bytes);

#endif
