/* load.c - see load.h. */
#include "matching/load.h"

#include "base/check.h"
#include "fiber/clock.h"

#define WINDOW (10 * NS_PER_S)

static void
roll(struct load *load, int64_t now)
{
    if (load->began == 0)
        load->began = now;
    int64_t lasted = now - load->began;
    check(lasted >= 0); /* monotonic */
    if (lasted < WINDOW)
        return;
    load->before = (double)load->count * (double)NS_PER_S / (double)lasted;
    load->began = now;
    load->count = 0;
}

void
load_note(struct load *load, int64_t now)
{
    roll(load, now);
    load->count++;
}

double
load_per_second(struct load *load, int64_t now)
{
    roll(load, now);
    return load->before;
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
