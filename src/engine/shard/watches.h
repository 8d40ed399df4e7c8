/* watches.h - who wants to know of a run: those who wait for news of it, queries that wait for its
 * decision, and the log when its decisions fail. */
#ifndef CADENZA_ENGINE_SHARD_WATCHES_H
#define CADENZA_ENGINE_SHARD_WATCHES_H

#include "engine/shard/shard.h"

struct tenure;

/* --- watch.c ---- */

void watches_init(struct tenure *tenure);
void watches_free(struct tenure *tenure);
/* Does anybody wait for news of the run? */
bool watches_has(const struct tenure *tenure, const char *run_id);
/* Durable news of a run. */
void watches_fire(struct tenure *tenure, const char *run_id, int64_t next_event_id, bool is_closed);
/* The tenure is over. */
void watches_lose(struct tenure *tenure);

/* --- query.c ---- */

void queries_init(struct tenure *tenure);
void queries_free(struct tenure *tenure);
/* A step of the run is durable: if the run has no decision now, its queries are free. */
void queries_release(struct tenure *tenure, const struct run *run);
/* The tenure is over. */
void queries_lose(struct tenure *tenure);

/* --- failing.c ---- */

void failing_init(struct tenure *tenure);
void failing_free(struct tenure *tenure);
/* A step has changed the run. */
void failing_note(struct tenure *tenure, const struct run *run, const struct domain *domain);

#endif
