/* reservations.h - polls at hand: a task that finds one is started by the step that makes it. Of a
 * tenure, and of one step; outbox/reservations.c does it. */
#ifndef CADENZA_ENGINE_SHARD_RESERVATIONS_H
#define CADENZA_ENGINE_SHARD_RESERVATIONS_H

#include "engine/shard/shard.h"

struct tenure;
struct workflow;

#define POLL_ODDS_MAX 64
struct poll_odds {
    uint8_t misses; /* times 2 + 1 for each that was in vain */
    uint8_t skips;  /* that are left */
};
struct tenure_reservations {
    struct list poll_deliveries;          /* struct poll_delivery, in order of their tickets */
    struct poll_odds odds[POLL_ODDS_MAX]; /* by a hash of the list */
};
struct poll_delivery;
/* Of one step. */
struct reservations {
    struct reserved {
        struct foreseen task;
        struct reservation *reservation;     /* NULL: no poll is at hand */
        struct poll_delivery *poll_delivery; /* NULL: the step did not start the task */
    } all[FORESEEN_MAX];
    size_t count;
    bool had_decision; /* the run had one before the step */
};

void reservations_init(struct tenure *tenure);
/* Reserves polls for what the step will probably leave. Under the lock of the id; yields. */
void reservations_ask(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                      const struct workflow *workflow, struct reservations *reservations);
/* Starts what there is a poll for, as part of the step. */
void reservations_start(struct tenure *tenure, const struct step *step,
                        struct reservations *reservations);
/* The step was submitted, or came to nothing: then nothing was started. Polls that are not needed
 * go back. */
void reservations_resolve(struct tenure *tenure, struct reservations *reservations,
                          ticket_t ticket);
/* Polls take home what is durable. */
void reservations_release(struct tenure *tenure, ticket_t durable);
/* Nobody knows what became of the others. */
void reservations_lose(struct tenure *tenure);

#endif
