/* starts.h - what a worker hears of a task that is started, as part of a message between owners,
 * and back.
 *
 * Within a process the structs are what is used on both sides, and a message between them points to
 * what they point to; the arena gets only what holds it together. Both sides must stay as long as
 * what is made of them. */
#ifndef CADENZA_ENGINE_SHARD_STARTS_H
#define CADENZA_ENGINE_SHARD_STARTS_H

#include "cadenza/internal/v1/starts.pb-c.h"
#include "engine/shard/shard.h"

/* `message` is initialised. */
void decision_start_to_message(const struct decision_start *start, struct arena *arena,
                               INTERNAL(DecisionStart) * message);
/* Fills all of it. */
void decision_start_from_message(const INTERNAL(DecisionStart) * message, struct arena *arena,
                                 struct decision_start *start);
void activity_start_to_message(const struct activity_start *start,
                               INTERNAL(ActivityStart) * message);
struct activity_start activity_start_from_message(const INTERNAL(ActivityStart) * message);

/* What a task that was started together with its step brings to its poll, as bytes, and back: for
 * those who hand it on without a look (reservation.h). The bytes are one TaskStart; NULL: they are
 * not. Both copy into the arena. */
must_use struct slice task_start_encode(enum task_type type, const struct task_start *start,
                                        struct arena *arena);
must_use struct task_start *task_start_decode(struct slice bytes, struct arena *arena);

#endif
