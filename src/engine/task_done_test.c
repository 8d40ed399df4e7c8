/* task_done_test.c - that a row is done survives the way between owners. */
#include "engine/task_done.h"

#include "base/test.h"

ARENA_TEST(engine, that_a_row_is_done_survives_the_way)
{
    struct task_done_value *sent = task_done_new(7, 8, UINT64_MAX);
    struct slice bytes = task_done_notice.encode(&sent->value, arena);
    task_done_notice.free(&sent->value);
    struct route_value *value = task_done_notice.decode(bytes);
    EXPECT(value != NULL);
    const struct task_done_value *read = container_of(value, struct task_done_value, value);
    EXPECT_EQ(read->shard, 7);
    EXPECT_EQ(read->range_id, 8);
    EXPECT_EQ(read->row, UINT64_MAX);
    task_done_notice.free(value);
    EXPECT(task_done_notice.decode(slice_text("\xff")) == NULL);
}
