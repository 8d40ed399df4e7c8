/* load.h - how many new tasks per second come to a list, over the last while. Pure. */
#ifndef CADENZA_MATCHING_LOAD_H
#define CADENZA_MATCHING_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* Counted in windows; what is told is the newest full one. All zero: nothing came yet. */
struct load {
    int64_t began; /* of this window, monotonic; 0: none */
    uint64_t count;
    double before; /* per second, in the window before */
};

void load_note(struct load *load, int64_t now);
double load_per_second(struct load *load, int64_t now);

/* Is something so for long enough? */
struct lasting {
    int64_t since; /* 0: it is not so */
};
/* True once it has been so for `duration`; then it begins anew. */
bool lasting_check(struct lasting *lasting, bool is_so, int64_t duration, int64_t now);

#endif
