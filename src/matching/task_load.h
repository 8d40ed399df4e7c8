/* task_load.h - how many new tasks per second come to a list, over the last while. Pure. */
#ifndef CADENZA_MATCHING_TASK_LOAD_H
#define CADENZA_MATCHING_TASK_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* Counted in windows; the rate is that of the newest full one. All zero: nothing came yet. */
struct task_load {
    int64_t began; /* of this window, monotonic; 0: none */
    uint64_t count;
    double before; /* per second, in the window before */
};

void task_load_note(struct task_load *task_load, int64_t now);
double task_load_per_second(struct task_load *task_load, int64_t now);

/* Has something been true for long enough? */
struct lasting {
    int64_t since; /* 0: it is not true */
};
/* True once it has been true for `duration`; then it starts over. */
bool lasting_check(struct lasting *lasting, bool is_so, int64_t duration, int64_t now);

#endif
