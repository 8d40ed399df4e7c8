/* task_done.h - the value that says that a row of the outbox is not needed any more: its task was
 * stored by its list, or is void. See engine_task_done. */
#ifndef CADENZA_ENGINE_TASK_DONE_H
#define CADENZA_ENGINE_TASK_DONE_H

#include "route/tell.h"

struct task_done_value {
    struct route_value value;
    uint32_t shard;
    uint64_t range_id, row;
};

struct task_done_value *task_done_new(uint32_t shard, uint64_t range_id, uint64_t row);
extern const struct route_notice task_done_notice;

#endif
