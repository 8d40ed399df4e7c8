/* markers_out.c - markers for a peer that asks for shards which this cluster does not have.
 *
 * A Cadence cluster that takes over a domain waits for a marker from as many shards as it has
 * itself, and asks us for each of them. Shards that we have send their own, behind their last event
 * of the domain. The others have no rows, so their markers need not be stored: as long as the
 * domain drains, its record says what each of them would send. Positions are notification versions.
 * The peer waits for the markers of all shards, so it does not matter when these arrive. */
#include <stdlib.h>

#include "base/check.h"
#include "domain/drain.h"
#include "replication/inside.h"
#include "replication/runs.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_DOMAINS 256

struct markers_list {
    vector_of(ADMIN(ReplicationTask) *) list;
};

static void
add_markers(const struct domain *domain, const struct cluster_group *group, struct arena *arena,
            struct markers_list *markers)
{
    struct drain_marker *due;
    size_t count = domain_markers_due(domain, group, arena, &due);
    for (size_t i = 0; i < count; i++) {
        ADMIN(FailoverMarkerAttributes) *marker =
            message_new(arena, ADMIN_TYPE(failover_marker_attributes));
        marker->domain_id = arena_text(arena, domain->id);
        marker->failover_version = due[i].failover_version;
        marker->creation_time = presence_make_timestamp(arena, domain->record->last_updated_time);
        marker->scope = arena_text(arena, due[i].scope);
        marker->name = arena_text(arena, due[i].name);
        marker->source_cluster = (char *)group->current->name;
        ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
        task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_FAILOVER_MARKER);
        task->source_task_id = domain->record->failover_notification_version + 1;
        task->creation_time = marker->creation_time;
        task->attributes_case =
            ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES);
        task->failover_marker_attributes = marker;
        vector_push_in(&markers->list, arena, task);
    }
}

static int
compare_tasks(const void *a, const void *b)
{
    int64_t one = (*(ADMIN(ReplicationTask) *const *)a)->source_task_id;
    int64_t other = (*(ADMIN(ReplicationTask) *const *)b)->source_task_id;
    return one < other ? -1 : one > other;
}

void
markers_read(const struct replication *replication, const struct cluster *cluster, int64_t after,
             struct arena *arena, struct replication_page *page)
{
    const struct replication_options *options = &replication->options;
    struct markers_list markers = {0};
    struct domain *found[PAGE_DOMAINS];
    size_t count = 0;
    *page = (struct replication_page){.last = domains_notification_version(options->domains)};
    if (after >= 0 && (uint64_t)after == page->last)
        return; /* the usual case */
    do {
        const char *last = count == 0 ? "" : found[count - 1]->name;
        count = domains_list(options->domains, last, found, PAGE_DOMAINS);
        check(count <= PAGE_DOMAINS && (count == 0 || strcmp(last, found[0]->name) < 0));
        for (size_t i = 0; i < count; i++) {
            bool is_new =
                found[i]->record->failover_notification_version >= after ||
                (uint64_t)after > page->last; /* our store was restored from an older copy */
            if (is_new && found[i]->record->n_drains > 0 &&
                domain_has_cluster(found[i]->record->domain, cluster->name))
                add_markers(found[i], options->group, arena, &markers);
        }
    } while (count == PAGE_DOMAINS);
    if (markers.list.count == 0)
        return;
    qsort(markers.list.items, markers.list.count, sizeof markers.list.items[0], compare_tasks);
    page->tasks = arena_zalloc(arena, markers.list.count, sizeof page->tasks[0]);
    for (; page->count < markers.list.count; page->count++)
        page->tasks[page->count] = message_encode(arena, &markers.list.items[page->count]->base);
}
