/* handover.c - a domain has moved, or an attribute of it: the open runs that this moved are handed
 * over, one after the other, at once.
 *
 * Where the domain is active now, what others had begun with a run is taken over (take_over.c), so
 * that a worker here gets its decision without waiting for a timeout. Where it is no longer active,
 * what was taken while a decision was started is written down with the version that is given up, so
 * that the next cluster hears of it. The open runs are found by the current-run records.
 *
 * Going on here does not depend on the walk: a run that it does not reach, since the shard is lost,
 * is taken over by its next step or by the events that come for it. A failover marker does: it must
 * be behind every event of the old version, so it is put only when the walk has been through all
 * runs (markers.c), and a walk that failed is repeated for it. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/active.h"
#include "domain/drain.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/context.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define PAGE_ROWS   256
#define ROOM_DELAY  NS_PER_MS        /* until there is room for another commit */
#define RETRY_DELAY (50 * NS_PER_MS) /* of a walk that a marker waits for */

struct handover {
    struct tenure *tenure;
    const char *domain_id;
    uint64_t order;      /* of the newest marker when it began */
    struct arena *arena; /* of one page */
};

/* ---- one run; no yields ---- */

/* The version with which the run is given up: that of its last event. If this cluster lost memory
 * since, the one that it took afterwards, and from which the run drains now; -1: there is none. */
static int64_t
version_given_up(const struct run_context *context, const struct run *run,
                 const struct cluster_group *group)
{
    int64_t version = run_last_version(run);
    if (!domain_has_lost(context->domain, version, group))
        return version;
    struct cluster_attribute attribute =
        cluster_attribute_of(run->core->active_cluster_selection_policy);
    const STORED(Drain) *drain = domain_find_drain(context->domain, &attribute);
    version = drain == NULL ? -1 : drain->previous_failover_version;
    bool is_ours = version >= 0 && cluster_group_of_version(group, version) == group->current;
    return is_ours && !domain_has_lost(context->domain, version, group) ? version : -1;
}

/* The decision that keeps something waiting is closed, as long as it is ours. */
static void
give_up(struct handover *handover, struct workflow *workflow, struct loaded_run *loaded,
        const struct run_context *context)
{
    struct tenure *tenure = handover->tenure;
    const struct cluster_group *group = tenure->shard->options.group;
    struct run *run = loaded->run;
    if (!run_has_buffered(run) ||
        cluster_group_of_version(group, run_last_version(run)) != group->current)
        return;
    int64_t version = version_given_up(context, run, group);
    if (version < 0)
        return;
    probe("buffered_handed_over");
    tenure_write_buffered(tenure, workflow, loaded, version, context, handover->arena);
}

static struct error *
take_over(struct handover *handover, struct workflow *workflow, struct loaded_run *loaded)
{
    struct tenure *tenure = handover->tenure;
    struct run_key key = {workflow->domain_id, workflow->workflow_id, loaded->run->core->run_id};
    struct shard_step wanted = {.key = key, .needs_run = true};
    struct step_context *context = arena_make(handover->arena, struct step_context);
    check(workflow->lock.owner == fiber_self() && run_is_open(loaded->run));
    struct error *err = applied_domains_catch_up(tenure, handover->arena);
    if (err == NULL && !writer_has_room(tenure->writer)) /* that may have taken the last of it */
        err = error_new(handover->arena, ERR_UNAVAILABLE, "too many changes are waiting");
    if (err != NULL)
        return err;
    err = tenure_make_context(tenure, &wanted, loaded->run, handover->arena, context);
    if (err != NULL && !is_inactive_error(err))
        return NULL;
    if (err != NULL)
        give_up(handover, workflow, loaded, &context->of_run);
    else if (tenure_must_take_over(tenure, loaded->run, &context->of_run))
        tenure_take_over(tenure, workflow, loaded, &context->of_run, false, handover->arena);
    return NULL;
}

/* ---- all of them ---- */

static struct error *
take_over_listed(struct handover *handover, const char *workflow_id, const char *run_id)
{
    struct tenure *tenure = handover->tenure;
    struct run_key key = {handover->domain_id, workflow_id, run_id};
    struct workflow *workflow;
    struct loaded_run *loaded = NULL;
    struct error *err = NULL;
    while (err == NULL && !writer_has_room(tenure->writer))
        err = fiber_sleep(ROOM_DELAY, handover->arena);
    if (err == NULL)
        err = workflow_lock(tenure, &key, handover->arena, &workflow);
    if (err != NULL)
        return err;
    err = workflow_load_current(tenure, workflow, handover->arena);
    if (err == NULL)
        err = workflow_load_run(tenure, workflow, run_id, handover->arena, &loaded);
    bool is_there = err == NULL && !tenure->is_over && loaded != NULL && run_is_open(loaded->run) &&
                    !run_is_zombie(loaded->run);
    if (is_there && !writer_has_room(tenure->writer)) {
        err = error_new(handover->arena, ERR_UNAVAILABLE, "too many changes are waiting");
    } else if (is_there) {
        NO_YIELD
        {
            err = take_over(handover, workflow, loaded);
        }
    }
    workflow_unlock(tenure, workflow);
    return err;
}

/* Does the run go on where it was written last? Then nothing has to be done with it, and it is not
 * even read. (The version of an active-active domain rises with each of its attributes, so that of
 * a run without one says nothing.) */
static bool
has_stayed(const struct handover *handover, const STORED(CurrentRecord) *record)
{
    const struct shard_options *options = &handover->tenure->shard->options;
    const struct domain *domain = domains_find_id(options->domains, handover->domain_id);
    struct cluster_attribute attribute = {0};
    if (domain == NULL)
        return false;
    if (record->cluster_attribute != NULL)
        attribute = (struct cluster_attribute){record->cluster_attribute->scope,
                                               record->cluster_attribute->name};
    struct active_cluster active =
        domains_active_run(options->domains, domain, &attribute, record->last_write_version);
    const struct cluster *writer =
        cluster_group_of_version(options->group, record->last_write_version);
    bool is_there = writer != NULL && strcmp(writer->name, active.cluster_name) == 0;
    bool is_versioned = attribute.scope != NULL || !domain_is_active_active(domain);
    if (domain_has_lost(domain, record->last_write_version, options->group))
        return false;
    if (is_there)
        return !is_versioned || active.failover_version == record->last_write_version;
    return active.status != ACTIVE_HERE && writer != options->group->current;
}

static struct error *
take_over_row(struct handover *handover, const struct row *row)
{
    struct slice key = row->key, text;
    STORED(CurrentRecord) *record = NULL;
    bool is_named =
        key_take_text(&key, handover->arena, &text) && key_take_text(&key, handover->arena, &text);
    struct error *err = message_decode_as(handover->arena, ERR_CORRUPT, STORED_TYPE(current_record),
                                          row->value, &record);
    if (err != NULL || !is_named)
        return err;
    bool is_open = record->state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED ||
                   record->state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING;
    if (is_open && has_stayed(handover, record)) {
        probe("run_not_moved");
        return NULL;
    }
    const char *workflow_id = arena_format(handover->arena, "%.*s", (int)text.length, text.data);
    return is_open ? take_over_listed(handover, workflow_id, record->run_id) : NULL;
}

static struct error *
take_over_all(struct handover *handover)
{
    struct shard *shard = handover->tenure->shard;
    struct arena *keys = arena_new(1024);
    struct key_writer prefix;
    key_begin(&prefix, keys);
    key_text(&prefix, slice_text(handover->domain_id));
    struct slice from = key_end(&prefix), end = key_after_prefix(from, keys);
    struct error *err =
        tenure_wait(handover->tenure, writer_newest(handover->tenure->writer), handover->arena);
    bool has_more = true;
    while (err == NULL && has_more && !handover->tenure->is_over) {
        struct rows rows;
        struct scan scan = {.partition = shard->partition,
                            .kind = ROW_CURRENT,
                            .from = from,
                            .to = end,
                            .rows_max = PAGE_ROWS};
        arena_reset(handover->arena);
        err = store_scan(shard->options.store, &scan, handover->arena, &rows);
        check(err != NULL || rows.count > 0 || !rows.has_more); /* each page comes further */
        for (size_t i = 0; err == NULL && i < rows.count && !handover->tenure->is_over; i++)
            err = take_over_row(handover, &rows.row[i]);
        has_more = err == NULL && rows.has_more;
        if (has_more)
            from = key_after(rows.row[rows.count - 1].key, keys);
    }
    err = err == NULL ? NULL : error_copy(handover->arena, err);
    arena_free(keys);
    return err;
}

/* All runs are handed over: now the markers may be written, behind their last events. */
static struct error *
put_markers(struct handover *handover)
{
    struct tenure *tenure = handover->tenure;
    struct error *err = NULL;
    while (err == NULL && !tenure->is_over && !writer_has_room(tenure->writer))
        err = fiber_sleep(ROOM_DELAY, handover->arena);
    check(handover->order <= tenure->markers.newest);
    if (err == NULL && !tenure->is_over)
        markers_put(tenure, handover->domain_id, handover->order, handover->arena);
    return err;
}

/* Until it has been through all, if a marker waits for that. */
static void
handover_work(struct handover *handover)
{
    struct tenure *tenure = handover->tenure;
#ifdef CADENZA_FAULT_marker_before_last_event
    markers_put(tenure, handover->domain_id, handover->order, handover->arena);
#endif
    while (!tenure->is_over) {
        struct error *err = take_over_all(handover);
        if (err == NULL)
            err = put_markers(handover);
        if (err == NULL || tenure->is_over)
            return;
        log_debug(tenure->shard->options.log, "runs of a domain that moved are taken over later",
                  log_error(err));
        if (!markers_has(tenure, handover->domain_id))
            return;
        metrics_marker_failed(tenure->shard);
        err = fiber_sleep(RETRY_DELAY, handover->arena);
        if (err != NULL)
            return; /* the host goes; the record says that it is due */
    }
}

static void
handover_fiber(void *argument)
{
    struct handover *handover = argument;
    struct tenure *tenure = handover->tenure;
    handover_work(handover);
    arena_free(handover->arena);
    memory_free(handover);
    tenure_leave(tenure);
}

void
handover_start(struct tenure *tenure, const char *domain_id)
{
    size_t size = strlen(domain_id) + 1;
    struct handover *handover = memory_zalloc(1, sizeof *handover + size);
    handover->tenure = tenure;
    handover->domain_id = memcpy(handover + 1, domain_id, size);
    handover->order = tenure->markers.newest;
    handover->arena = arena_new(0);
    tenure_start_fiber(tenure, "shard handover", handover_fiber, handover);
}

void
handover_begin(struct tenure *tenure, const struct domain *domain, uint64_t version)
{
    bool is_moved = /* the version that the failover found */
        (uint64_t)domain->record->failover_notification_version >= version;
    if (is_moved || (markers_has(tenure, domain->id) && !domain->is_recovering))
        handover_start(tenure, domain->id);
}

/* ---- entities have moved ---- */

/* The next domain that has entities, in order of name; false: there is none. */
static bool
next_domain(const struct shard_options *options, const char **after, const char **id,
            struct arena *arena)
{
    struct domain *domain = NULL;
    while (domains_list(options->domains, *after, &domain, 1) == 1) {
        *after = arena_text(arena, domain->name);
        if (domain_is_active_active(domain)) {
            *id = arena_text(arena, domain->id);
            return true;
        }
    }
    return false;
}

static void
take_over_domains(struct handover *handover)
{
    struct tenure *tenure = handover->tenure;
    scoped(arena_drop) struct arena *names = arena_new(0);
    const char *after = "";
    struct error *err = NULL;
    while (err == NULL && !tenure->is_over &&
           next_domain(&tenure->shard->options, &after, &handover->domain_id, names))
        err = take_over_all(handover);
    if (err != NULL && !tenure->is_over)
        log_debug(tenure->shard->options.log, "runs of entities that moved are taken over later",
                  log_error(err));
}

static void
entities_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct handover handover = {.tenure = tenure, .arena = arena_new(0)};
    while (tenure->applied_domains.is_handover_due && !tenure->is_over) {
        tenure->applied_domains.is_handover_due = false;
        take_over_domains(&handover);
    }
    check(tenure->applied_domains.is_handing_over);
    tenure->applied_domains.is_handing_over = false;
    arena_free(handover.arena);
    tenure_leave(tenure);
}

void
handover_begin_entities(struct tenure *tenure)
{
    tenure->applied_domains.is_handover_due = true;
    if (tenure->applied_domains.is_handing_over)
        return;
    tenure->applied_domains.is_handing_over = true;
    tenure_start_fiber(tenure, "shard handover of entities", entities_fiber, tenure);
}
