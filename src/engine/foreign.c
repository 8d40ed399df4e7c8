#include "engine/foreign.h"
struct error *
engine_apply_foreign(struct engine *engine, const struct foreign_events *events,
                     struct arena *arena, struct foreign_outcome *outcome)
{
    return error_new(arena, ERR_UNAVAILABLE, "stand-in");
}
