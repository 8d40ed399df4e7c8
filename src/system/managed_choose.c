/* managed_choose.c - the activity that picks the domains of a managed failover. See managed.h. */
#include "api/workflow/diagnose.h"
#include "base/check.h"
#include "domain/domains.h"
#include "system/managed.h"
#include "system/types.h"

#define PAGE 64

/* All domains. No yield, so that the domains stay and all are of one moment. */
static void
pick_all(const struct system_task *task, enum managed_kind kind,
         const struct managed_params *params, struct managed_moves *moves)
{
    struct domain *page[PAGE];
    const char *after = "";
    size_t found, room = domains_count(task->parts->domains);
    moves->all = arena_zalloc(task->arena, room + 1, sizeof moves->all[0]);
    do {
        found = domains_list(task->parts->domains, after, page, PAGE);
        for (size_t i = 0; i < found; i++) {
            check(moves->count < room);
            moves->count += managed_pick(kind, params, page[i]->record->domain, task->arena,
                                         &moves->all[moves->count]);
            after = page[i]->name;
        }
    } while (found == PAGE);
}

static struct error *
pick(struct system_task *task, struct slice *result)
{
    enum managed_kind kind;
    struct managed_params params;
    struct managed_moves moves = {0};
    bool is_known = managed_kind_find(task->workflow_type, &kind);
    struct error *err =
        is_known ? managed_read_params(task->input, kind, task->arena, &params)
                 : error_new(task->arena, ERR_BAD_REQUEST, "workflows of type %s move no domains",
                             task->workflow_type);
    if (err != NULL) {
        task->reason = MANAGED_ERROR;
        return err;
    }
    pick_all(task, kind, &params, &moves);
    *result = managed_write_moves(&moves, task->arena);
    return NULL;
}

const struct system_activity managed_pick_activity = {
    .type = MANAGED_PICK, .list = MANAGED_LIST, .domain = SYSTEM_DOMAIN, .run = pick};
