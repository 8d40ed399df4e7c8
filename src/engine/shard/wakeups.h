/* wakeups.h - the one wake-up timer of each run: in memory while near, firing (wakeups.c). */
#ifndef CADENZA_ENGINE_SHARD_WAKEUPS_H
#define CADENZA_ENGINE_SHARD_WAKEUPS_H

#include "base/map.h"
#include "base/tree.h"
#include "engine/shard/shard.h"
#include "fiber/sync.h"

struct tenure;

enum wakeup_state {
    WAKEUP_WAITING, /* in wakeups.waiting */
    WAKEUP_DELAYED, /* in wakeups.delayed: it failed and is tried again */
    WAKEUP_HELD,    /* in wakeups.held: its run is not active here */
    WAKEUP_FIRING,  /* in wakeups.firing, a fiber has it */
};

struct wakeup {
    enum wakeup_state state;
    struct list node; /* in wakeups.firing, wakeups.delayed or wakeups.held */
    struct tenure *tenure;
    int64_t time; /* wall clock; of the row's key */
    uint64_t row;
    struct run_key key; /* texts lie behind it */
    bool is_gone;       /* replaced while it fired: its fiber frees it */
    unsigned attempts;
    int64_t retry_time; /* monotonic */
};

/* Of a row's key. */
struct wakeup_position {
    int64_t time;
    uint64_t row;
};
#define WAKEUP_POSITION_END ((struct wakeup_position){INT64_MAX, UINT64_MAX})

struct wakeups {
    struct tree *waiting; /* key of the row → struct wakeup */
    struct map64 *by_row;
    struct list delayed, held, firing;
    size_t delayed_count, held_count, firing_count;
    size_t count_max;
    struct wakeup_position
        horizon; /* rows before it are in memory, others may be in the store only */
    /* Some from here on are in the store only, since they are not active here and too many are
     * held; WAKEUP_POSITION_END: none is. */
    struct wakeup_position left;
    struct map *left_domains; /* ids of the domains of these */
    bool is_left_due;         /* one of these has changed: they are read once more */
    bool is_reading; /* a scan runs: new wake-up timers come into memory wherever they lie */
    int64_t level; /* timer read level: no row is before it; one that is written there lowers it */
    int64_t read_retry_time; /* monotonic: not before, after a scan that failed */
    struct fiber_cond changed;
};

void wakeups_init(struct tenure *tenure, size_t count_max);
void wakeups_free(struct tenure *tenure);
/* Wake-up timers from `level` on are in the store: reads as many as there is room for. Yields. */
must_use struct error *wakeups_begin(struct tenure *tenure, int64_t level, struct arena *arena);
/* Writes what a step means for the wake-up timer of its run: rows into the batch, and in memory. */
void wakeups_put(struct tenure *tenure, const struct run *run, const struct effects *effects,
                 struct batch *batch);
/* Its run goes: so does the row of its wake-up timer. */
void wakeups_drop(struct tenure *tenure, const struct run *run, struct batch *batch);
/* Where a wake-up timer goes whose time has passed: see struct run_context. */
int64_t wakeups_time_min(const struct tenure *tenure);
/* Moves the timer read level on, as far as memory shows. */
int64_t wakeups_raise_level(struct tenure *tenure);
/* Is there room to read on; reads one page. The second yields. */
bool wakeups_may_read(const struct wakeups *wakeups);
must_use struct error *wakeups_read(struct tenure *tenure, struct arena *arena);
/* One that fired and is not active here is left to the store; they are read again when their domain
 * has changed. */
void wakeup_leave(struct wakeup *wakeup);
void wakeups_return(struct tenure *tenure);
/* Takes a waiting wake-up timer out of the queue; tries one again later, and later each time. */
void wakeup_stop_waiting(struct wakeup *wakeup);
void wakeup_delay(struct wakeup *wakeup);

/* --- wakeups_fire.c ---- */

/* Fires; ends with the tenure. */
void wakeups_fiber(void *tenure);

/* --- outbox/held.c ---- */

/* Keeps a wake-up timer that fired. */
void wakeup_hold(struct wakeup *wakeup);

#endif
