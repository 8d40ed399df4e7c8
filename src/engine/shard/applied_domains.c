/* applied_domains.c - what the shard knows of the domains: the loop's newest state, once the
 * shard's log has it.
 *
 * Steps ask this loop's domain cache, which changes under them whenever a change arrives. So
 * that the log knows which steps came before a change and which after, a change is handled by a
 * batch of its own: the shard record with the new notification version. The batch is submitted
 * as soon as the change is heard of, or, while another one is on its way, when that is durable or
 * when the next step is decided, whichever comes first. So many changes cost few batches, and no
 * step is ever decided on a version whose batch is not before it in the log.
 *
 * What a change means here is done with the batch, change by change: rows and wake-up timers that
 * waited for their domain go on. All of that is in memory and comes about by itself when a shard is
 * taken, so handling a change once more would do no harm; but its version, and how many failovers
 * were handled, are stored in the same commit, so each counts once.
 *
 * The next owner waits until its own host has reached the version that was handled, then
 * counts what came since from the log of the domains (domains_read_missed). The log is kept for it:
 * the shard says from time to time how far it got.
 *
 * Invariants:
 *   1. handled <= known, and the loop's domain cache is not ahead of known, while the shard is
 * owned.
 *   2. When a step is decided, handled == known. */
#include "engine/shard/applied_domains.h"
#include "base/check.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define NOTE_TIMEOUT  (2 * NS_PER_S)
#define NOTE_DISTANCE 50 /* versions between two times that the log is told how far we are */

void
applied_domains_check(const struct applied_domains *applied_domains)
{
    check(applied_domains->handled <= applied_domains->known); /* 1 */
    check(applied_domains->failovers <= applied_domains->failovers_known);
    check(applied_domains->noted <= applied_domains->handled);
    /* What has changed is dropped when it is handled. */
    check(applied_domains->changed.count == 0 || applied_domains->known > 0);
    check(!applied_domains->is_handover_due || applied_domains->is_handing_over);
}

static void
applied_domains_clear(struct applied_domains *applied_domains)
{
    vector_each(domain, &applied_domains->changed)
        domain_drop(*domain);
    vector_clear(&applied_domains->changed);
}

void
applied_domains_free(struct tenure *tenure)
{
    applied_domains_clear(&tenure->applied_domains);
    vector_free(&tenure->applied_domains.changed);
}

/* --- handling ---- */

/* There is room. */
static void
applied_domains_adopt(struct tenure *tenure, struct arena *arena)
{
    struct applied_domains *applied_domains = &tenure->applied_domains;
    check(applied_domains->known > applied_domains->handled);
    applied_domains_check(applied_domains);
    if (applied_domains->failovers_known > applied_domains->failovers)
        probe("shard_handled_failover");
    if (applied_domains->changed.count > 1)
        probe("shard_handled_changes_together");
    uint64_t before = applied_domains->handled;
    vector_each(domain, &applied_domains->changed)
        markers_on_change(tenure, *domain, before);
    applied_domains->handled = applied_domains->known;
    applied_domains->failovers = applied_domains->failovers_known;
#ifndef CADENZA_FAULT_domain_version_unstored
    tenure->is_record_due = true;
    applied_domains->ticket = tenure_submit(tenure, tenure_batch(tenure, arena));
#endif
    vector_each(domain, &applied_domains->changed) {
        held_wake(tenure, *domain);
        handover_begin(tenure, *domain, before);
    }
    applied_domains_clear(applied_domains);
    if (!applied_domains->has_entities_changed)
        return;
    probe("shard_handled_entities");
    applied_domains->has_entities_changed = false;
#ifndef CADENZA_FAULT_entity_move_sleeps
    held_wake_entities(tenure);
    handover_begin_entities(tenure);
#endif
}

struct error *
applied_domains_catch_up(struct tenure *tenure, struct arena *arena)
{
    struct applied_domains *applied_domains = &tenure->applied_domains;
    check(domains_notification_version(tenure->shard->options.domains) <=
          applied_domains->known);                          /* 1 */
    if (applied_domains->known == applied_domains->handled) /* as nearly always */
        return NULL;
#ifdef CADENZA_FAULT_step_before_applied_domains
    return NULL;
#endif
    if (!writer_has_room(tenure->writer))
        return errors_service_busy(arena, "", "Too many changes of shard %u are waiting.",
                                   tenure->shard->options.number);
    probe("applied_domains_caught_up_by_step");
    applied_domains_adopt(tenure, arena);
    check(applied_domains->handled == applied_domains->known); /* 2 */
    return NULL;
}

/* Unless one is on its way. */
static void
applied_domains_try_adopt(struct tenure *tenure)
{
    struct applied_domains *applied_domains = &tenure->applied_domains;
    bool is_free = writer_durable(tenure->writer) >= applied_domains->ticket;
    if (applied_domains->known == applied_domains->handled || !is_free ||
        !writer_has_room(tenure->writer))
        return;
    struct arena *arena = arena_new(1024);
    applied_domains_adopt(tenure, arena);
    arena_free(arena);
}

static void
applied_domains_on_change(struct domain_listener *listener,
                          const struct domain_notification *change)
{
    struct shard *shard = container_of(listener, struct shard, listener);
    struct tenure *tenure = shard->tenure;
    if (tenure == NULL) /* the next owner catches up */
        return;
    struct applied_domains *applied_domains = &tenure->applied_domains;
    shard_check(shard);
    if (change->version <= applied_domains->known)
        return;
    applied_domains->known = change->version;
    applied_domains->failovers_known += change->is_failover;
    if (change->domain != NULL)
        vector_push(&applied_domains->changed, domain_take((struct domain *)change->domain));
    applied_domains->has_entities_changed =
        applied_domains->has_entities_changed || change->entity_count > 0;
    applied_domains_try_adopt(tenure);
}

void
applied_domains_listen(struct shard *shard)
{
    shard->listener.on_change = applied_domains_on_change;
    domains_listen(shard->options.domains, &shard->listener);
}

uint64_t
shard_domain_version(const struct shard *shard)
{
    return shard->tenure == NULL ? 0 : shard->tenure->applied_domains.handled;
}

/* --- taking over ---- */

/* What the last owner never heard of. */
static void
applied_domains_add_missed(void *context, const struct domain *domain)
{
    struct tenure *tenure = context;
    markers_on_change(tenure, domain, tenure->applied_domains.missed_from);
}

struct error *
applied_domains_begin(struct tenure *tenure, uint64_t version, uint64_t failovers,
                      struct arena *arena)
{
    struct domains *domains = tenure->shard->options.domains;
    struct applied_domains *applied_domains = &tenure->applied_domains;
    *applied_domains = (struct applied_domains){
        .handled = version, .failovers = failovers, .missed_from = version};
    struct error *err = NULL;
#ifndef CADENZA_FAULT_shard_taken_too_early
    err = domains_reach(domains, version, arena);
#endif
    uint64_t missed = 0;
#ifdef CADENZA_FAULT_failover_handled_again
    version -= version > 0;
#endif
    if (err == NULL)
        err = domains_read_missed(
            domains, version, &(struct missed_domain_visitor){applied_domains_add_missed, tenure},
            arena, &applied_domains->handled, &missed);
    tenure->shard->is_behind =
        err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_BUSY);
    if (err != NULL)
        return error_wrap(err, "catching up with the domains");
    applied_domains->failovers += missed;
    applied_domains->known = applied_domains->handled;
    applied_domains->failovers_known = applied_domains->failovers;
    check(applied_domains->ticket == 0); /* nothing of this tenure is in the log yet */
    return NULL;
}

/* --- how far the log is needed ---- */

static void
applied_domains_note_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct arena *arena = arena_new(0);
    fiber_set_deadline(clock_monotonic() + NOTE_TIMEOUT);
    uint64_t handled = tenure->applied_domains.handled;
    const char *name = arena_format(arena, "shard:%u", tenure->shard->options.number);
    struct error *err =
        domains_note_follower(tenure->shard->options.domains, name, handled, NOTE_DISTANCE, arena);
    if (err != NULL)
        log_debug(tenure->shard->options.log, "could not report progress to the log of the domains",
                  log_error(err));
    check(tenure->applied_domains.is_noting && handled <= tenure->applied_domains.handled);
    tenure->applied_domains.noted = handled; /* if it failed, the next one says it */
    tenure->applied_domains.is_noting = false;
    arena_free(arena);
    tenure_leave(tenure);
}

void
applied_domains_release(struct tenure *tenure, ticket_t durable)
{
    struct applied_domains *applied_domains = &tenure->applied_domains;
    if (tenure->is_over)
        return;
    applied_domains_try_adopt(tenure);
    bool is_far = applied_domains->noted == 0 ||
                  applied_domains->handled >= applied_domains->noted + NOTE_DISTANCE;
    if (durable < applied_domains->ticket || applied_domains->handled == 0 ||
        applied_domains->is_noting || !is_far)
        return;
    applied_domains->is_noting = true;
    tenure_start_fiber(tenure, "shard follows", applied_domains_note_fiber, tenure);
}
