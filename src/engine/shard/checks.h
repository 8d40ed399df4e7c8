/* checks.h - what must be true of a shard and its parts between two calls: one function for each
 * struct of a shard and a tenure (inside.h and its parts).
 *
 * Each takes constant time, but where CHECK_DEEPLY says so: then lists and tables are walked over
 * too, as long as they are small enough for that at each step. tenure_check runs all of those of a
 * tenure, whenever a batch is submitted and when the tenure ends; so they must hold in the middle
 * of a step too. */
#ifndef CADENZA_ENGINE_SHARD_CHECKS_H
#define CADENZA_ENGINE_SHARD_CHECKS_H

#define CHECK_ROWS_MAX 512 /* larger tables are not walked over */

struct shard;
void shard_check(const struct shard *shard); /* also: is this its loop? */
struct tenure;
void tenure_check(const struct tenure *tenure);
struct workflows;
void workflows_check(const struct workflows *workflows);
/* Of one that this fiber has locked. */
struct workflow;
void workflow_check(const struct workflow *workflow);
struct outbox;
void outbox_check(const struct outbox *outbox);
void deferred_rows_check(const struct outbox *outbox);
struct cross_tasks;
void cross_tasks_check(const struct cross_tasks *cross_tasks);
struct throttle;
void throttle_check(const struct throttle *throttle);
struct wakeups;
void wakeups_check(const struct wakeups *wakeups);
struct applied_domains;
void applied_domains_check(const struct applied_domains *applied_domains);
struct visibility_feed;
void visibility_feed_check(const struct visibility_feed *visibility_feed);
struct recent;
void recent_check(const struct recent *recent);
struct replicating;
void replicating_check(const struct replicating *replicating);
void watches_check(const struct tenure *tenure);
void failing_check(const struct tenure *tenure);
struct markers;
void markers_check(const struct markers *markers);
/* Of the tenure; of one step. */
struct tenure_reservations;
void tenure_reservations_check(const struct tenure_reservations *tenure_reservations);
struct reservations;
void reservations_check(const struct reservations *reservations);
struct step_batch;
void step_batch_check(const struct step_batch *step_batch);

#endif
