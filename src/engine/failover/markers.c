/* markers.c - a domain drains to another cluster: what this shard must report of that.
 *
 * When the change is handled (applied_domains.c), the same batch stores in the shard record that a
 * marker is due: from there on no step of what moved is decided here. Then the open runs are walked
 * over, and what was taken while a decision was started is written down with the version that is
 * given up (handover.c). Behind the last of that the marker is put into the rows for other
 * clusters, and the same batch takes it out of the record. So whatever crashes in between, the
 * marker is either still due or in the rows; who takes the shard goes on with those that are due,
 * and finds out from the log of the domains which of them the last owner never heard of.
 *
 * Rows for a cluster that is away for too long are dropped, and markers with them. It reads the
 * runs instead, and goes on behind those rows: the markers that it waits for are put once more,
 * behind all that it reads.
 *
 * A marker says nothing any more when what moved has moved again: it is dropped. One may be put
 * twice, also if an attribute of the same domain moves before the drain is over: for those who
 * count them that is the same one. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/drain.h"
#include "engine/outgoing/replicate.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define PAGE_DOMAINS 256

/* One that the rows for other clusters do not have yet. */
struct marker {
    struct list node;
    const char *domain_id, *scope, *name; /* lie behind it; the last two "": the domain itself */
    int64_t failover_version;
    int64_t creation_time;
    uint64_t order; /* in which they were heard of */
};

void
markers_check(const struct markers *markers)
{
    uint64_t order = 0;
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &markers->due) {
        const struct marker *marker = list_entry(node, struct marker, node);
        check(marker->order > order && marker->order <= markers->newest);
        order = marker->order;
    }
}

void
markers_init(struct tenure *tenure)
{
    list_init(&tenure->markers.due);
}

static void
drop_marker(struct marker *marker)
{
    list_remove(&marker->node);
    memory_free(marker);
}

void
markers_free(struct tenure *tenure)
{
    list_each_safe(node, &tenure->markers.due)
        drop_marker(list_entry(node, struct marker, node));
}

static bool
is_same(const struct marker *marker, const STORED(FailoverMarker) *other)
{
    return strcmp(marker->domain_id, other->domain_id) == 0 &&
           strcmp(marker->scope, other->scope) == 0 && strcmp(marker->name, other->name) == 0 &&
           marker->failover_version == other->failover_version;
}

static const char *
put_text(char **room, const char *text)
{
    size_t size = strlen(text) + 1;
    char *put = memcpy(*room, text, size);
    *room += size;
    return put;
}

static void
add_due_marker(struct tenure *tenure, const STORED(FailoverMarker) *due)
{
    struct markers *markers = &tenure->markers;
    list_each(node, &markers->due) {
        if (is_same(list_entry(node, struct marker, node), due))
            return;
    }
    size_t size = strlen(due->domain_id) + strlen(due->scope) + strlen(due->name) + 3;
    struct marker *marker = memory_zalloc(1, sizeof *marker + size);
    char *room = (char *)(marker + 1);
    marker->domain_id = put_text(&room, due->domain_id);
    marker->scope = put_text(&room, due->scope);
    marker->name = put_text(&room, due->name);
    marker->failover_version = due->failover_version;
    marker->creation_time = due->creation_time;
    marker->order = ++markers->newest;
    list_push_back(&markers->due, &marker->node);
}

void
markers_begin(struct tenure *tenure, const STORED(ShardRecord) *record)
{
    check(list_is_empty(&tenure->markers.due) && tenure->markers.newest == 0);
    for (size_t i = 0; i < record->n_markers; i++)
        add_due_marker(tenure, record->markers[i]);
    if (record->n_markers > 0)
        probe("marker_found_due");
}

static STORED(FailoverMarker) *
make_stored(const struct marker *marker, struct arena *arena)
{
    STORED(FailoverMarker) *stored = message_new(arena, STORED_TYPE(failover_marker));
    stored->domain_id = (char *)marker->domain_id;
    stored->scope = (char *)marker->scope;
    stored->name = (char *)marker->name;
    stored->failover_version = marker->failover_version;
    stored->creation_time = marker->creation_time;
    return stored;
}

void
markers_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena)
{
    size_t count = 0;
    list_each(node, &tenure->markers.due)
        count++;
    record->markers = arena_zalloc(arena, count, sizeof record->markers[0]);
    list_each(node, &tenure->markers.due)
        record->markers[record->n_markers++] =
            make_stored(list_entry(node, struct marker, node), arena);
    check(record->n_markers == count);
}

/* Markers of a domain for one cluster, or for whichever waits for them (NULL). */
static void
add_due(struct tenure *tenure, const struct domain *domain, const struct cluster *target)
{
    const struct shard_options *options = &tenure->shard->options;
    if (domain->record->n_drains == 0 ||
        !dynamic_flag(options->dynamic, DYNAMIC_GRACEFUL_FAILOVER, NULL))
        return;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct drain_marker *markers;
    size_t count = domain_markers_due(domain, options->group, arena, &markers);
    for (size_t i = 0; i < count; i++) {
        if (target != NULL &&
            cluster_group_of_version(options->group, markers[i].failover_version) != target)
            continue;
        STORED(FailoverMarker) *due = message_new(arena, STORED_TYPE(failover_marker));
        due->domain_id = (char *)domain->id;
        due->scope = (char *)markers[i].scope;
        due->name = (char *)markers[i].name;
        due->failover_version = markers[i].failover_version;
        due->creation_time = clock_wall();
        add_due_marker(tenure, due);
        probe("marker_due");
    }
}

void
markers_on_change(struct tenure *tenure, const struct domain *domain, uint64_t before)
{
    /* The version that the failover found. */
    if ((uint64_t)domain->record->failover_notification_version >= before)
        add_due(tenure, domain, NULL);
}

struct error *
markers_repeat(struct tenure *tenure, const struct cluster *target, struct arena *arena)
{
    struct domain *found[PAGE_DOMAINS];
    size_t count = 0;
    check(target != NULL); /* not for all who may wait: only its rows were dropped */
    struct error *err = applied_domains_catch_up(tenure, arena);
    if (err == NULL && !writer_has_room(tenure->writer))
        err = error_new(arena, ERR_UNAVAILABLE, "too many changes are waiting");
    if (err != NULL)
        return err;
    do {
        const char *last = count == 0 ? "" : found[count - 1]->name;
        count = domains_list(tenure->shard->options.domains, last, found, PAGE_DOMAINS);
        for (size_t i = 0; i < count; i++)
            add_due(tenure, found[i], target);
    } while (count == PAGE_DOMAINS);
    if (list_is_empty(&tenure->markers.due))
        return NULL;
    probe("markers_repeated");
    tenure->is_record_due = true;
    tenure_submit(tenure, tenure_batch(tenure, arena));
    markers_resume(tenure);
    return NULL;
}

bool
markers_has(const struct tenure *tenure, const char *domain_id)
{
    list_each(node, &tenure->markers.due) {
        if (strcmp(list_entry(node, struct marker, node)->domain_id, domain_id) == 0)
            return true;
    }
    return false;
}

/* Is what the marker is about still where it says? */
static bool
is_true(const struct marker *marker, const struct domain *domain)
{
    bool has_attribute = marker->scope[0] != '\0';
    struct cluster_attribute attribute = {has_attribute ? marker->scope : NULL,
                                          has_attribute ? marker->name : NULL};
    return domain_moved_version(domain, &attribute) == marker->failover_version;
}

void
markers_put(struct tenure *tenure, const char *domain_id, uint64_t order, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    const struct domain *domain = domains_find_id(shard->options.domains, domain_id);
    check(!tenure->is_over);
    check(order <= tenure->markers.newest);
    if (!markers_has(tenure, domain_id))
        return;
    /* One that lost memory cannot say that everything before the marker is there: it waits. */
    if (domain != NULL && domain->is_recovering)
        return;
    tenure_renew_range(tenure);
    struct batch *batch = tenure_batch(tenure, arena);
    list_each_safe(node, &tenure->markers.due) {
        struct marker *marker = list_entry(node, struct marker, node);
        if (strcmp(marker->domain_id, domain_id) != 0 || marker->order > order)
            continue;
        bool is_void = domain == NULL || !is_true(marker, domain);
        probe(is_void ? "marker_void" : "marker_put");
        if (!is_void)
            replicate_put_marker(tenure, domain, make_stored(marker, arena), batch);
        drop_marker(marker); /* with the commit that puts it */
    }
    tenure->is_record_due = true;
    tenure_submit(tenure, batch);
}

void
markers_resume(struct tenure *tenure)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    vector_of(const char *) walked = {0};
    list_each(node, &tenure->markers.due) {
        const char *domain_id = list_entry(node, struct marker, node)->domain_id;
        bool is_known = false;
        for (size_t i = 0; i < walked.count; i++)
            is_known = is_known || strcmp(walked.items[i], domain_id) == 0;
        if (is_known)
            continue;
        vector_push_in(&walked, arena, domain_id);
        handover_start(tenure, domain_id);
    }
}
