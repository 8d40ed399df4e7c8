/* decide.h - where events of another cluster belong.
 *
 * A batch comes with the version history of its branch at the source, which may be longer by then.
 * It is compared with the histories that are here: the newest event that one of them has in common
 * with it (its base) decides.
 *
 *   the base is the batch's last event or later     a duplicate
 *   the batch begins right behind the base          it is added there: to the history that ends
 *                                                   with the base, or to a new one that forks
 *   it begins later                                 a gap: what is between has to be fetched first
 *
 * The version decides which history is current: the highest one. Nothing depends on who came first.
 *
 * Pure. A batch that no cluster can have sent is told apart from one that is known. */
#ifndef CADENZA_ENGINE_NDC_DECIDE_H
#define CADENZA_ENGINE_NDC_DECIDE_H

#include "base/error.h"
#include "engine/branches/branches.h"
#include "uber/cadence/api/v1/history.pb-c.h"

/* What a batch says of itself. */
struct replicated_batch {
    struct versions versions; /* of its branch at the source, to its last event at least */
    int64_t first_event_id;
    int64_t next_event_id; /* behind the last one */
    int64_t event_version; /* of all its events */
    bool is_reset;         /* the first events that a reset wrote to its new run */
};
/* Fills it from the events. Errors: ERR_BAD_REQUEST, when there are none, their ids have gaps,
 * their versions differ, or the version history does not have them. */
must_use struct error *replicated_batch_read(API(HistoryEvent) *const *events, size_t count,
                                             struct versions versions, struct arena *arena,
                                             struct replicated_batch *batch);

enum batch_place {
    BATCH_BEGINS,          /* the run is new, and so begins */
    BATCH_BEGINS_AT_RESET, /* the run is new: it begins with the base run of its reset */
    BATCH_IS_KNOWN,        /* a duplicate */
    BATCH_EXTENDS,         /* goes behind the last event of a history */
    BATCH_FORKS,           /* goes behind an earlier event of a history */
    BATCH_LACKS_EVENTS,    /* events between `base` and `end`, both not included, are missing */
    BATCH_IS_WRONG,        /* it can be of no history of this run: `fault` says why */
};
struct batch_verdict {
    enum batch_place place;
    size_t branch;            /* EXTENDS, FORKS, LACKS_EVENTS: the history that has the base */
    struct version_item base; /* the newest event that is here; event id 0: none */
    struct version_item end;  /* LACKS_EVENTS */
    bool is_current;          /* its history is the current one, once it is added */
    bool is_switch;           /* ... and was not before: the state is to be rebuilt */
    const char *fault;
};
/* `local` has count 0 when the run is not here. */
struct batch_verdict batch_decide(const struct run_branches *local,
                                  const struct replicated_batch *batch);
/* The histories with the batch, as the verdict says, which is BEGINS, EXTENDS or FORKS. `fresh` is
 * the branch that the events go to if the run begins or forks; its tree counts for the first only.
 * (A run that begins at a reset has the history of its base run before it: branches_begin.) */
struct run_branches batch_accept(const struct run_branches *local,
                                 const struct replicated_batch *batch,
                                 const struct batch_verdict *verdict,
                                 const struct history_branch *fresh, struct arena *arena);

/* The state of an activity that has no events yet came from another cluster, with the version
 * history of its run there. */
enum activity_place {
    ACTIVITY_FITS,         /* compare it with what is pending */
    ACTIVITY_IS_OVERRULED, /* the run's history here is another, and wins */
    ACTIVITY_LACKS_EVENTS, /* events behind `base` are missing */
    ACTIVITY_IS_WRONG,
};
enum activity_place activity_decide(const struct run_branches *local, struct versions versions,
                                    int64_t schedule_id, struct version_item *base);

#endif
