/* held.c - rows and wake-up timers whose run is not active here: they wait for their domain.
 *
 * They are held by the shard, which hears of every change of a domain (applied_domains.c), and
 * never by a task list: a row that is held is in the store and known, and is not offered. A task
 * that was on its list when its domain moved away comes back when somebody polls it: the start is
 * refused, and in the same step its row is held; if the list had stored the task and its row is
 * gone, it gets another row, which is durable before the refusal is told. So nothing has to be
 * tried again and again, and a failover to this cluster sets all of it going at once. */
#include "engine/outbox/held.h"
#include "base/check.h"
#include "domain/active.h"
#include "engine/outbox/cross_task_fibers.h"
#include "engine/outbox/deferred.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/wakeups.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

/* --- rows of the outbox ---- */

static struct active_cluster
transfer_home(const struct tenure *tenure, const struct transfer *transfer,
              const struct domain *domain)
{
    struct cluster_attribute attribute = {transfer->attribute_scope, transfer->attribute_name};
    return domains_active_run(tenure->shard->options.domains, domain, &attribute,
                              transfer->event_version);
}

bool
transfer_is_active(const struct tenure *tenure, const struct transfer *transfer)
{
    const struct shard_options *options = &tenure->shard->options;
    const struct domain *domain = domains_find_id(options->domains, transfer->task.run_domain_id);
    if (transfer->runs_anywhere)
        return true;
    if (domain != NULL && domain->is_recovering && transfer->request_queue.length == 0)
        return false;
    /* The parent may be active here, or have been told in a history that lost: every cluster makes
     * sure for itself. */
    if (transfer->notifies_parent && domain != NULL && domain_is_active_active(domain))
        return true;
    if (transfer->request_queue.length > 0) /* it waits in its queue, and its step finds out */
        return true;
    if (domain == NULL) /* its step finds that out */
        return true;
    struct active_cluster home = transfer_home(tenure, transfer, domain);
    /* Its run stays with the cluster that wrote its last event. The row need not be as new as that,
     * so its step, which has the run, finds out. */
    return home.status == ACTIVE_HERE || home.is_unresolved;
}

/* A row whose domain does not say where its run is active: no cluster works it off, or, if the run
 * belongs to an entity, the one that wrote its last event. */
void
transfer_count_homeless(struct tenure *tenure, struct transfer *transfer)
{
    const struct shard_options *options = &tenure->shard->options;
    const struct domain *domain = domains_find_id(options->domains, transfer->task.run_domain_id);
    if (domain == NULL || transfer->runs_anywhere || transfer->is_counted)
        return;
    struct active_cluster home = transfer_home(tenure, transfer, domain);
    if (home.status != ACTIVE_UNKNOWN_ATTRIBUTE && !home.is_unresolved)
        return;
    probe(home.is_unresolved ? "row_of_unresolved_entity" : "row_without_home");
    transfer->is_counted = home.is_unresolved;
    metrics_homeless(tenure->shard);
}

void
transfer_hold(struct tenure *tenure, struct transfer *transfer)
{
    check(list_is_empty(&transfer->node) && transfer->request_queue.length == 0);
    check(transfer->state == TRANSFER_WAITING || transfer->state == TRANSFER_OFFERED);
    check(!priority_is_queued(&transfer->retry));
    probe(transfer->is_cross_task ? "cross_task_held" : "task_held");
    transfer_count_homeless(tenure, transfer);
    if (!transfer_begin_long_wait(&tenure->outbox, transfer, DEFERRED_FOR_DOMAIN))
        return;
    transfer->state = TRANSFER_HELD;
    list_push_back(&tenure->outbox.held, &transfer->node);
}

/* Could the change concern the row? `domain` NULL: entities changed. */
static bool
is_concerned(const struct transfer *transfer, const struct domain *domain)
{
    return domain == NULL ? transfer->attribute_scope != NULL
                          : strcmp(transfer->task.run_domain_id, domain->id) == 0;
}

/* What waits since the domain was passive waits on, for the end of a drain now. */
static void
note_pending(struct tenure *tenure, const struct domain *domain, const struct transfer *transfer)
{
    bool is_of_domain = domain != NULL && is_concerned(transfer, domain);
    if (is_of_domain && transfer_home(tenure, transfer, domain).status == ACTIVE_PENDING) {
        probe("held_row_pending");
        metrics_pending(tenure->shard);
    }
}

static void
outbox_wake(struct tenure *tenure, const struct domain *domain)
{
    struct outbox *outbox = &tenure->outbox;
    cross_tasks_domain_changed(tenure);
    deferred_domain_changed(outbox);
    list_each_safe(node, &outbox->held) {
        struct transfer *transfer = list_entry(node, struct transfer, node);
        if (!is_concerned(transfer, domain) || !transfer_is_active(tenure, transfer)) {
            note_pending(tenure, domain, transfer);
            continue;
        }
#ifdef CADENZA_FAULT_held_row_sleeps
        continue;
#endif
        probe("held_row_woken");
        check(transfer->state == TRANSFER_HELD && transfer->is_waiting_long);
        list_remove(node);
        transfer_end_long_wait(outbox, transfer);
        transfer->state = TRANSFER_WAITING;
        list_push_back(&outbox->waiting, node);
    }
    fiber_cond_signal(&outbox->changed);
}

/* --- tasks that were on a list ---- */

/* The row that the step put, once more. */
static STORED(TransferRow) *
transfer_from(const struct task *task, const struct run *run, struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    STORED(TransferRow) *row = message_new(arena, STORED_TYPE(transfer_row));
    bool is_activity = task->type == TASK_ACTIVITY;
    row->format = RUN_RECORD_FORMAT;
    row->type = is_activity ? CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY
                            : CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION;
    row->domain_id = core->domain_id;
    row->workflow_id = core->workflow_id;
    row->run_id = core->run_id;
    row->event_version =
        core->n_versions == 0 ? 0 : core->versions[core->n_versions - 1]->event_version;
    row->schedule_id = task->schedule_id;
    row->attempt = task->attempt;
    row->task_list = message_new(arena, API_TYPE(task_list));
    row->task_list->name = (char *)task->list;
    row->task_list->kind = task->kind == LIST_EPHEMERAL
                               ? API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL)
                               : API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    if (strcmp(task->domain_id, core->domain_id) != 0)
        row->list_domain_id = (char *)task->domain_id;
    row->created_time = task->created_time;
    row->expiry_time = task->expiry_time;
    if (core->active_cluster_selection_policy != NULL)
        row->cluster_attribute = core->active_cluster_selection_policy->cluster_attribute;
    transfer_fill_partitions(row, core, arena);
    return row;
}

/* A list that had stored the task has nothing behind it: it gets a row. */
static ticket_t
keep_stored(struct tenure *tenure, const struct task *task, const struct run *run,
            struct arena *arena)
{
    probe("stored_task_kept_by_shard");
    check(tenure->ids.next < tenure->ids.end);
    struct transfer_effect added = {.row = tenure->ids.next++,
                                    .transfer = transfer_from(task, run, arena)};
    struct batch *batch = tenure_batch(tenure, arena);
    batch_put(batch, ROW_TRANSFER, transfer_key(added.row, arena),
              message_encode(arena, &added.transfer->base));
    ticket_t ticket = tenure_submit(tenure, batch);
    outbox_enter(tenure, &(struct effects){.added = &added, .added_count = 1}, ticket);
    return ticket;
}

ticket_t
tenure_keep_task(struct tenure *tenure, const struct task *task, const struct run *run,
                 struct arena *arena)
{
    check(strcmp(task->run_id, run->core->run_id) == 0);
    if (task->row == 0)
        return keep_stored(tenure, task, run, arena);
    struct transfer *transfer = map64_get(tenure->outbox.known, task->row);
    if (transfer != NULL && transfer->state == TRANSFER_OFFERED)
        transfer_hold(tenure, transfer);
    return writer_newest(tenure->writer);
}

/* --- wake-up timers ---- */

void
wakeup_hold(struct wakeup *wakeup)
{
    struct wakeups *wakeups = &wakeup->tenure->wakeups;
    check(wakeup->state == WAKEUP_FIRING && !wakeup->is_gone && list_is_empty(&wakeup->node));
    if (wakeups->held_count >= wakeups->count_max) {
        wakeup_leave(wakeup);
        return;
    }
    probe("wakeup_held");
    wakeup->state = WAKEUP_HELD;
    wakeup->attempts = 0;
    list_push_back(&wakeups->held, &wakeup->node);
    wakeups->held_count++;
}

/* As of rows; what the run of a wake-up timer belongs to is in the run, so those of all domains
 * that have entities are. */
static bool
is_wakeup_concerned(const struct tenure *tenure, const char *domain_id, const struct domain *domain)
{
    if (domain != NULL)
        return strcmp(domain_id, domain->id) == 0;
    const struct domain *of_wakeup = domains_find_id(tenure->shard->options.domains, domain_id);
    return of_wakeup != NULL && domain_is_active_active(of_wakeup);
}

/* Also those that are tried again anyway. One that is still not active is held again. */
static void
wakeups_wake(struct tenure *tenure, const struct domain *domain)
{
    struct wakeups *wakeups = &tenure->wakeups;
    bool has_any = false;
    list_each_safe(node, &wakeups->held) {
        struct wakeup *wakeup = list_entry(node, struct wakeup, node);
        if (!is_wakeup_concerned(tenure, wakeup->key.domain_id, domain))
            continue;
        check(wakeup->state == WAKEUP_HELD && wakeups->held_count > 0);
        list_remove(node);
        wakeups->held_count--;
        wakeup->state = WAKEUP_DELAYED;
        list_push_back(&wakeups->delayed, node);
        wakeups->delayed_count++;
    }
    list_each(node, &wakeups->delayed) {
        struct wakeup *wakeup = list_entry(node, struct wakeup, node);
        bool is_of_domain = is_wakeup_concerned(tenure, wakeup->key.domain_id, domain);
        if (is_of_domain)
            wakeup->retry_time = 0;
        has_any = has_any || is_of_domain;
    }
    if (has_any)
        fiber_cond_signal(&wakeups->changed);
    bool has_left = domain == NULL ? map_count(wakeups->left_domains) > 0
                                   : map_get(wakeups->left_domains, slice_text(domain->id)) != NULL;
    if (has_left)
        wakeups->is_left_due = true;
    wakeups_return(tenure);
}

void
held_wake(struct tenure *tenure, const struct domain *domain)
{
    outbox_wake(tenure, domain);
    wakeups_wake(tenure, domain);
}

void
held_wake_entities(struct tenure *tenure)
{
    outbox_wake(tenure, NULL);
    wakeups_wake(tenure, NULL);
}
