/* reader.c - what a step reads of its workflow id before it is decided, beside its own run: other
 * runs and their histories. Under the lock of the id, so nothing of the id changes meanwhile. */
#include "base/check.h"
#include "engine/shard/context.h"
#include "engine/shard/inside.h"
#include "engine/shard/step.h"
#include "engine/shard/workflows.h"
#include "wire/errors.h"

const STORED(CurrentRecord) *
shard_reader_current(const struct shard_reader *reader)
{
    check(reader->workflow->lock.owner == fiber_self() && reader->workflow->has_current);
    return reader->workflow->current;
}

struct error *
shard_reader_run(struct shard_reader *reader, const char *run_id, const struct run **run)
{
    struct loaded_run *loaded = NULL;
    *run = NULL;
    struct error *err =
        workflow_load_run(reader->tenure, reader->workflow, run_id, reader->arena, &loaded);
    if (loaded != NULL && !loaded->run->core->is_deleting) /* that one is as good as gone */
        *run = loaded->run;
    return err;
}

struct error *
shard_reader_history(struct shard_reader *reader, const struct history_range_wanted *wanted,
                     struct arena *arena, struct history_page *page)
{
    const struct shard *shard = reader->tenure->shard;
    check(reader->workflow->lock.owner == fiber_self());
    struct error *err = store_read_lineage_on(shard->options.store, shard->partition,
                                              &wanted->lineage, wanted->from_event_id,
                                              wanted->to_event_id, wanted->bytes_max, arena, page);
    if (err == NULL && reader->tenure->is_over)
        err = tenure_error(reader->tenure, arena);
    return err;
}

struct error *
shard_reader_write(struct shard_reader *reader, const struct history_branch *branch,
                   const struct history_node *nodes, size_t count)
{
    struct tenure *tenure = reader->tenure;
    check(reader->workflow->lock.owner == fiber_self());
    if (tenure->is_over)
        return tenure_error(tenure, reader->arena);
    if (!writer_has_room(tenure->writer))
        return errors_service_busy(reader->arena, "", "Too many changes of shard %u are waiting.",
                                   tenure->shard->options.number);
    tenure_renew_range(tenure);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct batch *batch = tenure_batch(tenure, arena);
    tenure_add_nodes(tenure, branch, nodes, count, batch);
    return tenure_wait(tenure, tenure_submit(tenure, batch), reader->arena);
}

void
tenure_add_nodes(struct tenure *tenure, const struct history_branch *branch,
                 const struct history_node *nodes, size_t count, struct batch *batch)
{
    if (count == 0)
        return;
    uint64_t sequence = tenure->ids.next++;
    check(sequence < tenure->ids.end);
    for (size_t i = 0; i < count; i++) {
        struct history_node node = nodes[i];
        check(node.first_event_id < node.next_event_id);
        node.range_id = tenure->range_id;
        node.sequence = sequence;
        batch_add_node(batch, branch, &node);
    }
}

struct error *
shard_reader_context(struct shard_reader *reader, struct run_context *context)
{
    return tenure_read_context(reader->tenure, reader->workflow->domain_id, reader->arena, context);
}
