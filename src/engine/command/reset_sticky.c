/* reset_sticky.c - the worker no longer remembers the run: the next decision comes with the whole
 * history. A decision that waits on the sticky list stays there, and keeps its timeout. */
#include "base/check.h"
#include "engine/command/inside.h"

struct error *
command_reset_sticky(struct step *step)
{
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err == NULL && mutation_run(mutation)->core->sticky_task_list != NULL)
        mutation_clear_sticky(mutation);
    check(err != NULL || mutation_run(mutation)->core->sticky_task_list == NULL);
    return err;
}
