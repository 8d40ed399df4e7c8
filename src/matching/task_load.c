/* task_load.c - see task_load.h. */
#include "matching/task_load.h"

#include "base/check.h"
#include "fiber/clock.h"

#define WINDOW (10 * NS_PER_S)

static void
roll(struct task_load *task_load, int64_t now)
{
    if (task_load->began == 0)
        task_load->began = now;
    int64_t lasted = now - task_load->began;
    check(lasted >= 0); /* monotonic */
    if (lasted < WINDOW)
        return;
    task_load->before = (double)task_load->count * (double)NS_PER_S / (double)lasted;
    task_load->began = now;
    task_load->count = 0;
}

void
task_load_note(struct task_load *task_load, int64_t now)
{
    roll(task_load, now);
    task_load->count++;
}

double
task_load_per_second(struct task_load *task_load, int64_t now)
{
    roll(task_load, now);
    return task_load->before;
}

bool
lasting_check(struct lasting *lasting, bool is_so, int64_t duration, int64_t now)
{
    if (!is_so) {
        lasting->since = 0;
        return false;
    }
    if (lasting->since == 0)
        lasting->since = now;
    if (now - lasting->since < duration)
        return false;
    lasting->since = 0;
    return true;
}
