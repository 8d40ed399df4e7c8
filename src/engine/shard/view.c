/* view.c - what the shard knows of the domains: the loop's newest state, once the shard's log has
 * it.
 *
 * Steps ask this loop's book of domains, which changes under them whenever a change arrives. So
 * that the log knows which steps came before a change and which after, a change is handled by a
 * batch of its own: the shard record with the new notification version. The batch is submitted
 * as soon as the change is heard of, or, while another one is on its way, when that is durable or
 * when the next step is decided, whichever comes first. So many changes cost few batches, and no
 * step is ever decided on a version whose batch is not before it in the log.
 *
 * What a change means here is done with the batch, change by change: rows and alarms that waited
 * for their domain go on. All of that is in memory and comes about by itself when a shard is taken,
 * so handling a change once more would do no harm; but its version, and how many failovers were
 * handled, are stored in the same commit, so each counts once.
 *
 * Whoever takes the shard waits until its own host has reached the version that was handled, then
 * counts what came since from the log of the domains (domains_read_missed). The log is kept for it:
 * the shard says from time to time how far it got.
 *
 * Invariants:
 *   1. handled <= known, and the loop's book is not ahead of known, while the shard is owned.
 *   2. When a step is decided, handled == known. */
#include "base/check.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "route/route.h"
#include "wire/errors.h"

#define NOTE_TIMEOUT  (2 * NS_PER_S)
#define NOTE_DISTANCE 50 /* versions between two times that the log is told how far we are */

static void
view_changed_clear(struct view *view)
{
    vector_each(domain, &view->changed)
        domain_drop(*domain);
    vector_clear(&view->changed);
}

void
view_free(struct tenure *tenure)
{
    view_changed_clear(&tenure->view);
    vector_free(&tenure->view.changed);
}

/* --- handling ---- */

/* There is room. */
static void
view_adopt(struct tenure *tenure, struct arena *arena)
{
    struct view *view = &tenure->view;
    check(view->known > view->handled && view->failovers_known >= view->failovers);
    if (view->failovers_known > view->failovers)
        mark("shard_handled_failover");
    if (view->changed.count > 1)
        mark("shard_handled_changes_together");
    uint64_t before = view->handled;
    vector_each(domain, &view->changed)
        markers_hear(tenure, *domain, before);
    view->handled = view->known;
    view->failovers = view->failovers_known;
#ifndef CADENZA_PLANT_domain_version_unstored
    tenure->is_record_due = true;
    view->ticket = tenure_submit(tenure, tenure_batch(tenure, arena));
#endif
    vector_each(domain, &view->changed) {
        held_wake(tenure, *domain);
        handover_begin(tenure, *domain, before);
    }
    view_changed_clear(view);
    if (!view->has_entities_changed)
        return;
    mark("shard_handled_entities");
    view->has_entities_changed = false;
#ifndef CADENZA_PLANT_entity_move_sleeps
    held_wake_entities(tenure);
    handover_begin_entities(tenure);
#endif
}

struct error *
view_catch_up(struct tenure *tenure, struct arena *arena)
{
    struct view *view = &tenure->view;
    check(domains_notification_version(tenure->shard->options.domains) <= view->known); /* 1 */
    if (view->known == view->handled) /* as nearly always */
        return NULL;
#ifdef CADENZA_PLANT_step_before_view
    return NULL;
#endif
    if (!writer_has_room(tenure->writer))
        return errors_service_busy(arena, "", "Too many changes of shard %u are waiting.",
                                   tenure->shard->options.number);
    mark("shard_view_caught_up_by_step");
    view_adopt(tenure, arena);
    return NULL;
}

/* Unless one is on its way. */
static void
view_try_adopt(struct tenure *tenure)
{
    struct view *view = &tenure->view;
    bool is_free = writer_durable(tenure->writer) >= view->ticket;
    if (view->known == view->handled || !is_free || !writer_has_room(tenure->writer))
        return;
    struct arena *arena = arena_new(1024);
    view_adopt(tenure, arena);
    arena_free(arena);
}

static void
view_hear(struct domain_listener *listener, const struct domain_news *news)
{
    struct shard *shard = container_of(listener, struct shard, listener);
    struct tenure *tenure = shard->tenure;
    if (tenure == NULL) /* whoever takes it catches up */
        return;
    struct view *view = &tenure->view;
    if (news->version <= view->known)
        return;
    view->known = news->version;
    view->failovers_known += news->is_failover;
    if (news->domain != NULL)
        vector_push(&view->changed, domain_take((struct domain *)news->domain));
    view->has_entities_changed = view->has_entities_changed || news->entity_count > 0;
    view_try_adopt(tenure);
}

void
view_listen(struct shard *shard)
{
    shard->listener.hear = view_hear;
    domains_listen(shard->options.domains, &shard->listener);
}

uint64_t
shard_domain_version(const struct shard *shard)
{
    return shard->tenure == NULL ? 0 : shard->tenure->view.handled;
}

/* --- taking over ---- */

/* What the last owner never heard of. */
static void
view_see_missed(void *context, const struct domain *domain)
{
    struct tenure *tenure = context;
    markers_hear(tenure, domain, tenure->view.missed_from);
}

struct error *
view_begin(struct tenure *tenure, uint64_t version, uint64_t failovers, struct arena *arena)
{
    struct domains *domains = tenure->shard->options.domains;
    struct view *view = &tenure->view;
    *view = (struct view){.handled = version, .failovers = failovers, .missed_from = version};
    struct error *err = NULL;
#ifndef CADENZA_PLANT_shard_taken_too_early
    err = domains_reach(domains, version, arena);
#endif
    uint64_t missed = 0;
#ifdef CADENZA_PLANT_failover_handled_again
    version -= version > 0;
#endif
    if (err == NULL)
        err = domains_read_missed(domains, version, &(struct missed_visit){view_see_missed, tenure},
                                  arena, &view->handled, &missed);
    if (err != NULL)
        return error_wrap(err, "catching up with the domains");
    view->failovers += missed;
    view->known = view->handled;
    view->failovers_known = view->failovers;
    return NULL;
}

/* --- how far the log is needed ---- */

struct view_note {
    struct domains *domains;
    const char *name;
    uint64_t handled;
    struct arena *arena;
    struct error *err;
};

/* On the loop of the domains. */
static void
note_there(void *argument)
{
    struct view_note *note = argument;
    int64_t before = domains_follower(note->domains, note->name);
    if (before >= 0 && note->handled < (uint64_t)before + NOTE_DISTANCE)
        return;
    note->err = domains_note_follower(note->domains, note->name, note->handled, note->arena);
}

static void
view_note_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct arena *arena = arena_new(0);
    fiber_set_deadline(clock_monotonic() + NOTE_TIMEOUT);
    struct view_note note = {
        .domains = tenure->shard->options.domains,
        .name = arena_format(arena, "shard:%u", tenure->shard->options.number),
        .handled = tenure->view.handled,
        .arena = arena,
    };
    struct error *err = route_to_domains(note_there, &note, arena);
    err = err != NULL ? err : note.err;
    if (err != NULL)
        log_debug(tenure->shard->options.log, "the log of the domains was not told",
                  log_error(err));
    tenure->view.noted = note.handled; /* if it failed, the next one says it */
    tenure->view.is_noting = false;
    arena_free(arena);
    tenure_leave(tenure);
}

void
view_release(struct tenure *tenure, ticket_t durable)
{
    struct view *view = &tenure->view;
    if (tenure->is_over)
        return;
    view_try_adopt(tenure);
    bool is_far = view->noted == 0 || view->handled >= view->noted + NOTE_DISTANCE;
    if (durable < view->ticket || view->handled == 0 || view->is_noting || !is_far)
        return;
    view->is_noting = true;
    tenure_start_fiber(tenure, "shard follows", view_note_fiber, tenure);
}
