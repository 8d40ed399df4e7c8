/* group_history.c - reading the stores. See group_history.h. */
#include "sim/group/group_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "domain/domain.h"
#include "sim/world/domain_log.h"
#include "wire/message.h"

struct records_reader {
    const struct group_load *load;
    struct group_records *records;
    const char *ids[GROUP_DOMAINS_MAX]; /* NULL: none seen */
};

/* Room for one more in an array of an arena. */
static void *
grow(struct arena *arena, void *all, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return all;
    *room = *room == 0 ? 64 : 2 * *room;
    void *more = arena_zalloc(arena, *room, size);
    if (count > 0)
        memcpy(more, all, count * size);
    return more;
}

static void
add_event(struct group_events *events, const struct group_event *event, struct arena *arena)
{
    events->all = grow(arena, events->all, events->count, &events->room, sizeof *event);
    events->all[events->count++] = *event;
}

/* --- the log ------------------------------------------------------------------------------------
 */

/* The number of a domain; -1: none of the load's global ones. A namesake has the name of one. */
static int
number_of(const struct group_load *load, const API(Domain) *domain)
{
    unsigned number = 0;
    bool is_one = domain->is_global_domain && sscanf(domain->name, "global-%u", &number) == 1 &&
                  number < load->domain_count &&
                  strcmp(load->domains[number].name, domain->name) == 0;
    return is_one ? (int)number : -1;
}

static void
add_write(struct records_reader *records_reader, unsigned number,
          const STORED(DomainChange) *change, struct arena *arena)
{
    struct group_records *records = records_reader->records;
    records->writes = grow(arena, records->writes, records->write_count, &records->write_room,
                           sizeof *records->writes);
    struct group_write *write = &records->writes[records->write_count++];
    *write = (struct group_write){.domain = number, .is_made_here = !change->is_replicated};
    for (unsigned i = 0; i < MOVES_END; i++)
        write->after[i] = group_shown_version(change->record->domain, i);
    write->moved = domain_record_moved_version(change->record);
    if (records->newest[number] > 0) {
        write->has_before = true;
        memcpy(write->before, records->writes[records->newest[number] - 1].after,
               sizeof write->before);
    } else {
        records->is_whole[number] =
            change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    }
    records->newest[number] = records->write_count;
}

static struct error *
visit_change(void *context, const struct row *row, struct arena *arena)
{
    struct records_reader *records_reader = context;
    STORED(DomainChange) *change = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_change), row->value, &change);
    if (err != NULL)
        return err;
    if (change->record == NULL && change->n_entities > 0)
        return NULL;
    if (change->record == NULL || change->record->domain == NULL)
        return error_new(arena, ERR_CORRUPT, "a change without a domain");
    int number = number_of(records_reader->load, change->record->domain);
    if (number < 0)
        return NULL;
    add_write(records_reader, (unsigned)number, change, arena);
    return NULL;
}

/* The log may have been trimmed: the ids are taken from the records. */
static struct error *
visit_record(void *context, const struct row *row, struct arena *arena)
{
    struct records_reader *records_reader = context;
    STORED(DomainRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_record), row->value, &record);
    if (err != NULL)
        return err;
    int number = number_of(records_reader->load, record->domain);
    if (number >= 0)
        records_reader->ids[number] = record->domain->id;
    return NULL;
}

/* --- the history --------------------------------------------------------------------------------
 */

/* -1: the info does not say where, or its version belongs to another cluster. */
static int64_t
version_of(const API(ActiveClusterInfo) *info)
{
    bool is_good = info != NULL && sim_group_of_version(info->failover_version) >= 0 &&
                   sim_group_of_version(info->failover_version) ==
                       group_cluster_number(info->active_cluster_name);
    return is_good ? info->failover_version : -1;
}

bool
group_move_read(const API(ClusterFailover) *failover, struct group_move *move)
{
    int what = group_moved(failover->cluster_attribute);
    if (what < 0)
        return false;
    *move = (struct group_move){.what = (unsigned)what,
                                .from = version_of(failover->from_cluster),
                                .to = version_of(failover->to_cluster)};
    return move->from >= 0 && move->to >= 0;
}

static struct group_event
event_blank(unsigned domain, int origin, int64_t failover_version)
{
    struct group_event event = {
        .domain = domain, .origin = origin, .failover_version = failover_version};
    for (unsigned i = 0; i < MOVES_END; i++)
        event.from[i] = event.to[i] = -1;
    return event;
}

/* False: it makes no sense. */
static bool
read_event(const STORED(FailoverRecord) *record, unsigned domain, struct group_event *event)
{
    *event = event_blank(domain, group_cluster_number(record->origin), record->failover_version);
    event->is_superseded = record->is_superseded;
    for (size_t i = 0; i < record->n_cluster_failovers; i++) {
        struct group_move move;
        if (!group_move_read(record->cluster_failovers[i], &move) || event->to[move.what] >= 0)
            return false;
        event->from[move.what] = move.from;
        event->to[move.what] = move.to;
    }
    return event->origin >= 0;
}

static struct error *
visit_failover(void *context, const struct row *row, struct arena *arena)
{
    struct records_reader *records_reader = context;
    STORED(FailoverRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(failover_record), row->value, &record);
    if (err != NULL)
        return err;
    for (unsigned i = 0; i < records_reader->load->domain_count; i++) {
        if (records_reader->ids[i] == NULL ||
            strcmp(records_reader->ids[i], record->domain_id) != 0)
            continue;
        struct group_event event;
        if (!read_event(record, i, &event))
            return error_new(arena, ERR_CORRUPT, "a strange failover of %s",
                             records_reader->load->domains[i].name);
        add_event(&records_reader->records->history, &event, arena);
    }
    return NULL;
}

struct error *
group_records_read(const struct group_load *load, unsigned cluster, struct arena *arena,
                   struct group_records *records)
{
    check(cluster < load->sim->count && records->write_count == 0);
    struct records_reader records_reader = {.load = load, .records = records};
    struct store *store = memory_open(load->sim->hosts[cluster].base);
    struct error *err = domain_rows_visit(store, ROW_DOMAIN, arena, visit_record, &records_reader);
    if (err == NULL)
        err = domain_rows_visit(store, ROW_DOMAIN_LOG, arena, visit_change, &records_reader);
    if (err == NULL)
        err = domain_rows_visit(store, ROW_DOMAIN_FAILOVER, arena, visit_failover, &records_reader);
    store_close(store);
    group_events_sort(&records->history);
    return err;
}

/* --- failovers that were made -------------------------------------------------------------------
 */

static bool
has_moved(const struct group_write *write, unsigned what, bool is_active_active)
{
    int64_t before = write->before[what], after = write->after[what];
    if (what == MOVES_DOMAIN && is_active_active)
        return sim_group_of_version(before) != sim_group_of_version(after);
    return before != after;
}

void
group_records_made(const struct group_load *load, unsigned cluster,
                   const struct group_records *records, struct arena *arena,
                   struct group_events *made)
{
    for (size_t i = 0; i < records->write_count; i++) {
        const struct group_write *write = &records->writes[i];
        if (!write->is_made_here || !write->has_before ||
            memcmp(write->before, write->after, sizeof write->before) == 0)
            continue; /* nobody asked for a failover, or it made nothing new */
        struct group_event event =
            event_blank(write->domain, (int)cluster, write->after[MOVES_DOMAIN]);
        for (unsigned what = 0; what < MOVES_END; what++) {
            if (!has_moved(write, what, load->domains[write->domain].is_active_active))
                continue;
            event.from[what] = write->before[what];
            event.to[what] = write->after[what];
        }
        add_event(made, &event, arena);
    }
}

/* --- sets of them -------------------------------------------------------------------------------
 */

static int
compare_events(const void *left, const void *right)
{
    const struct group_event *one = left, *other = right;
    if (one->domain != other->domain)
        return one->domain < other->domain ? -1 : 1;
    if (one->failover_version != other->failover_version)
        return one->failover_version < other->failover_version ? -1 : 1;
    return (one->origin > other->origin) - (one->origin < other->origin);
}

void
group_events_sort(struct group_events *events)
{
    if (events->count > 0)
        qsort(events->all, events->count, sizeof *events->all, compare_events);
}

const struct group_event *
group_events_find(const struct group_events *events, const struct group_event *event)
{
    if (events->count == 0)
        return NULL;
    return bsearch(event, events->all, events->count, sizeof *event, compare_events);
}

bool
group_event_is_same_move(const struct group_event *one, const struct group_event *other)
{
    return memcmp(one->from, other->from, sizeof one->from) == 0 &&
           memcmp(one->to, other->to, sizeof one->to) == 0;
}
