/* schedule_model.h - which workflows schedules must have started, by a model of its own.
 *
 * It shares nothing with schedule/ and base/cron: it looks at every minute, asks what a clock on
 * the wall shows, and whether the plan wants that. What the plan was told, and when, is written
 * down by the load; nothing is told within a few minutes of a time that counts, so it does not
 * matter when exactly. */
#ifndef CADENZA_SIM_SCHEDULE_SCHEDULE_MODEL_H
#define CADENZA_SIM_SCHEDULE_SCHEDULE_MODEL_H

#include "base/arena.h"
#include "base/vector.h"

enum model_zone { MODEL_UTC, MODEL_BERLIN, MODEL_NEW_YORK };

/* Fires at these minutes of these hours. */
struct model_cron_spec {
    const char *cron; /* the same for the server */
    enum model_zone zone;
    unsigned minutes[2];
    size_t minute_count;
    unsigned hour_every, hour; /* hours: every so many; 0: this one */
};

enum model_catch_up { MODEL_SKIP, MODEL_ONE, MODEL_ALL };

struct model_fire {
    int64_t nominal;      /* seconds since 1970 */
    const char *backfill; /* id; "": none */
};

struct model {
    const struct model_cron_spec *cron_spec;
    struct arena *arena;
    bool skips_second; /* of two that follow closely the second finds the first one running */
    int64_t from;      /* every time up to this one was looked at */
    bool is_paused;
    vector_of(struct model_fire) fires; /* wanted */
    int64_t missed, skipped;
};

/* Does the plan fire at this minute? */
bool model_fires_at(const struct model_cron_spec *cron_spec, int64_t minute);
/* Everything up to a moment happened as it was told before. */
void model_pass(struct model *model, int64_t until);
void model_pause(struct model *model, int64_t now);
void model_unpause(struct model *model, int64_t now, enum model_catch_up policy);
void model_change_cron_spec(struct model *model, int64_t now,
                            const struct model_cron_spec *cron_spec);
/* All times of [from, to] once more. */
void model_backfill(struct model *model, const char *id, int64_t from, int64_t to);

#endif
