/* step.c - what one commit changes for one workflow id: its runs, and which of them is current. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A new id as text, in the run. */
static char *
step_new_id(const struct run_context *context, struct run *run, struct uuid *uuid)
{
    *uuid = run_context_uuid(context);
    char *text = arena_alloc(run->arena, UUID_TEXT_LENGTH + 1);
    uuid_format(uuid, text);
    return text;
}

static void
check_names(const struct step *step, const struct run *run)
{
    check(strcmp(run->core->domain_id, step->domain_id) == 0);
    check(strcmp(run->core->workflow_id, step->workflow_id) == 0);
}

void
step_check(const struct step *step)
{
    const struct run *run = step->mutation == NULL ? NULL : mutation_run(step->mutation);
    const struct run *begun = step->begun == NULL ? NULL : mutation_run(step->begun);
    check(run == NULL || begun == NULL || run == begun || !run_is_open(run) || !run_is_open(begun));
    check(begun == NULL || begun->core->state != 0);
    if (CHECK_DEEPLY && run != NULL)
        check_names(step, run);
    if (CHECK_DEEPLY && begun != NULL)
        check_names(step, begun);
}

struct mutation *
step_begin_run(struct step *step)
{
    check(step->begun == NULL);
    check(step->domain_id[0] != '\0' && step->workflow_id[0] != '\0');
    struct run *run = run_new();
    STORED(RunRecord) *core = run->core;
    struct uuid tree, branch = run_context_uuid(step->context);
    core->format = RUN_RECORD_FORMAT;
    core->domain_id = run_keep_text(run, step->domain_id);
    core->workflow_id = run_keep_text(run, step->workflow_id);
    core->run_id = step_new_id(step->context, run, &tree);
    core->tree_id = presence_make_bytes(run_keep_bytes(run, slice_of(tree.bytes, 16)));
    core->branch_id = presence_make_bytes(run_keep_bytes(run, slice_of(branch.bytes, 16)));
    core->next_event_id = 1;
    step->begun = mutation_begin(run, step->context, step->arena);
    return step->begun;
}

void
step_forget_begun(struct step *step)
{
    if (step->begun == NULL)
        return;
    check(step->begun != step->mutation);
    struct run *run = mutation_run(step->begun);
    mutation_cancel(step->begun);
    run_free(run);
    step->begun = NULL;
}

struct error *
step_open_run(struct step *step, struct mutation **mutation)
{
    step_check(step);
    if (step->mutation == NULL)
        return errors_entity_not_exists(
            step->arena, NULL, "Workflow execution not found.  WorkflowId: %s", step->workflow_id);
    if (!run_is_open(mutation_run(step->mutation)))
        return error_new(step->arena, ERR_ALREADY_COMPLETED,
                         "workflow execution already completed");
    *mutation = step->mutation;
    return NULL;
}

struct error *
step_check_domain(const struct step *step)
{
    if (step->context->domain->record->domain->status ==
        API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED))
        return NULL;
    return error_new(step->arena, ERR_BAD_REQUEST, "Domain is deprecated.");
}

API(TaskList) *
command_copy_list(const API(TaskList) *list, struct arena *arena)
{
    API(TaskList) *copy = message_new(arena, API_TYPE(task_list));
    copy->name = arena_text(arena, list->name);
    copy->kind = list->kind;
    copy->base_name = arena_text(arena, list->base_name);
    return copy;
}

API(TaskList) *
command_name_list(const API(TaskList) *list, struct arena *arena)
{
    API(TaskList) *copy = message_new(arena, API_TYPE(task_list));
    copy->name = arena_text(arena, list->name);
    return copy;
}

API(Payload) *
command_text_payload(const char *text, struct arena *arena)
{
    API(Payload) *payload = message_new(arena, API_TYPE(payload));
    payload->data = presence_make_bytes(slice_text(text));
    return payload;
}

int64_t
command_seconds(const GOOGLE(Duration) *duration)
{
    if (duration == NULL)
        return 0;
    if (duration->seconds > INT32_MAX)
        return INT32_MAX;
    return duration->seconds < INT32_MIN ? INT32_MIN : duration->seconds;
}
