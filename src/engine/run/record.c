/* record.c - the row of a run itself.
 *
 * It is written with every step, so it has no more than it must: the names are in the key, and are
 * not repeated, nor is the run's own id where it is the first or the original one of its chain, as
 * it mostly is; and a small activity is aboard (aboard.c), which then needs no row. Reading the row
 * gives the whole record. Rows of format 1 have all names in them. */
#include "engine/run/inside.h"
#include "store/key.h"

#define ROW_FORMAT 2

static char *
leave_out(char *text, const char *known)
{
    return strcmp(text, known) == 0 ? (char *)protobuf_c_empty_string : text;
}

void
run_put_row(struct batch *batch, const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    STORED(RunRecord) stored;
    memcpy(&stored, core, sizeof stored);
    stored.format = ROW_FORMAT;
    stored.first_execution_run_id = leave_out(core->first_execution_run_id, core->run_id);
    stored.original_execution_run_id = leave_out(core->original_execution_run_id, core->run_id);
    stored.domain_id = stored.workflow_id = stored.run_id = (char *)protobuf_c_empty_string;
    stored.activity = aboard_find(run);
    if (stored.activity != NULL)
        stored.activity = input_leave(stored.activity, batch->arena);
    batch_put(batch, ROW_RUN, run_row_key(&key, batch->arena),
              message_encode(batch->arena, &stored.base));
}

/* What the row left out. False: it is not the key of a run. */
static bool
fill_in(STORED(RunRecord) *core, struct slice key, struct arena *arena)
{
    struct slice names[3];
    for (size_t i = 0; i < array_length(names); i++)
        if (!key_take_text(&key, arena, &names[i]))
            return false;
    core->domain_id = arena_text_of(arena, names[0]);
    core->workflow_id = arena_text_of(arena, names[1]);
    core->run_id = arena_text_of(arena, names[2]);
    if (core->first_execution_run_id[0] == '\0')
        core->first_execution_run_id = core->run_id;
    if (core->original_execution_run_id[0] == '\0')
        core->original_execution_run_id = core->run_id;
    core->format = RUN_RECORD_FORMAT;
    return key.length == 0;
}

struct error *
run_read_row(struct slice key, struct slice value, struct arena *arena, STORED(RunRecord) **core)
{
    struct error *err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(run_record), value, core);
    if (err != NULL)
        return err;
    if ((*core)->format == ROW_FORMAT && !fill_in(*core, key, arena))
        return error_new(arena, ERR_CORRUPT, "the key of a run cannot be read");
    if ((*core)->format != RUN_RECORD_FORMAT)
        return error_new(arena, ERR_CORRUPT, "a run record of format %u", (*core)->format);
    return NULL;
}
