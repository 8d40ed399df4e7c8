/* reload.c - reading all domains: at start, and again whenever a commit failed or another host
 * wrote.
 *
 * Order: the guard first, then the rows. If somebody writes in between, the rows are newer than the
 * guard, and our next commit is fenced and brings us back here: stale state can be read, but never
 * written upon. */
#include "base/check.h"
#include "domain/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "store/key.h"

#define PAGE_ROWS 1000
#define RETRY_MIN (50 * NS_PER_MS)
#define RETRY_MAX (5 * NS_PER_S)

/* Loop 0, after each group: what is durable goes to the loops; a failure voids the rest. */
static void
writer_told(void *context, ticket_t durable, const struct error *failure)
{
    struct domains *domains = context;
    while (!list_is_empty(&domains->undurable)) {
        struct change *change = list_entry(domains->undurable.next, struct change, node);
        if (change->ticket > durable)
            break;
        list_remove(&change->node);
        change_publish(change);
    }
    if (failure != NULL)
        domains_start_reload(domains);
}

/* Enters one stored row; a record that this host has not told its loops yet is told now. */
static struct error *
enter_row(struct domains *domains, struct slice bytes, struct arena *arena)
{
    struct domain *domain = NULL;
    struct error *err = domain_decode(bytes, arena, &domain);
    if (err != NULL)
        return err;
    book_enter(&domains->newest, domain);
    const struct domain *told = book_find_id(&domains->books[0], domain->id);
    if (told == NULL || told->record->notification_version < domain->record->notification_version)
        change_publish(change_new(domains, domain));
    domain_drop(domain);
    return NULL;
}

/* The smallest key behind `key`: the same with a 00 at its end. */
static struct slice
key_behind(struct slice key, struct arena *arena)
{
    uint8_t *next = arena_zalloc(arena, key.length + 1, 1);
    memcpy(next, key.data, key.length);
    return slice_of(next, key.length + 1);
}

static struct error *
read_rows(struct domains *domains, struct arena *arena)
{
    struct scan scan = {
        .partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN, .rows_max = PAGE_ROWS};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct error *err = store_scan(domains->options.store, &scan, page, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = enter_row(domains, rows.row[i].value, page);
        if (err != NULL)
            return error_copy(arena, err);
        if (rows.count > 0)
            scan.from = key_behind(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

struct error *
domains_load(struct domains *domains, struct arena *arena)
{
    check(domains->writer == NULL && list_is_empty(&domains->undurable));
    book_free(&domains->newest);
    book_init(&domains->newest);
    uint64_t guard = 0;
    struct error *err = store_guard(domains->options.store, PARTITION_OF_DOMAINS, arena, &guard);
    if (err == NULL)
        err = read_rows(domains, arena);
    if (err != NULL)
        return error_wrap(err, "reading the domains");
    domains->writer =
        writer_open(domains->options.store, PARTITION_OF_DOMAINS, guard, DOMAINS_CHANGES_MAX);
    writer_on_durable(domains->writer, writer_told, domains);
    return NULL;
}

/* Voids what was decided after the failure and lets go of the writer. Yields. */
static void
forget(struct domains *domains)
{
    latch_wait(&domains->writer_users);
    if (domains->writer != NULL)
        writer_close(domains->writer);
    domains->writer = NULL;
    while (!list_is_empty(&domains->undurable)) {
        struct list *node = list_pop_front(&domains->undurable);
        change_drop(list_entry(node, struct change, node));
    }
}

static void
reload(void *argument)
{
    struct domains *domains = argument;
    mark("domains_reloaded");
    forget(domains);
    int64_t pause = RETRY_MIN;
    while (!domains->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = domains_load(domains, arena);
        if (err == NULL)
            break;
        log_fail(domains->options.log, "Reading the domains failed, trying again.", log_error(err));
        if (fiber_sleep(pause, arena) != NULL)
            break;
        pause = pause * 2 > RETRY_MAX ? RETRY_MAX : pause * 2;
    }
    domains->is_reloading = false;
    fiber_cond_broadcast(&domains->ready);
    latch_done(&domains->fibers);
}

void
domains_start_reload(struct domains *domains)
{
    if (domains->is_reloading || domains->is_closing)
        return;
    domains->is_reloading = true;
    latch_add(&domains->fibers, 1);
    fiber_start("domains-reload", reload, domains);
}

void
domains_refresh(void *argument)
{
    struct domains *domains = argument;
    while (!domains->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        uint64_t guard = 0;
        if (fiber_sleep(domains->options.refresh_interval, arena) != NULL)
            break;
        struct error *err =
            store_guard(domains->options.store, PARTITION_OF_DOMAINS, arena, &guard);
        if (err == NULL && domains->writer != NULL && guard > writer_guard(domains->writer))
            domains_start_reload(domains);
    }
    latch_done(&domains->fibers);
}
