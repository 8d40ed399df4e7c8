/* entity_bench.c - what 100,000 entities take: memory of the table on one loop, time to write them,
 * to read them at start, and to look one up. Prints a table for docs/performance.md.
 *
 *     entity_bench [COUNT] */
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "domain/attributes.h"
#include "domain/domains.h"
#include "domain/homes.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "store/memory/memory.h"
#include "wire/message.h"

#define LOOK_UPS  2000000
#define NAME_SIZE 32

static const struct cluster clusters[] = {
    {.name = "east", .is_enabled = true, .region = "us-east", .new_initial_failover_version = -1},
    {.name = "west",
     .is_enabled = true,
     .initial_failover_version = 1,
     .region = "us-west",
     .new_initial_failover_version = -1}};
static const struct region regions[] = {{"us-east", 5}, {"us-west", 6}};
static const struct cluster_group group = {.failover_version_increment = 10,
                                           .current = &clusters[0],
                                           .primary = &clusters[0],
                                           .clusters = clusters,
                                           .count = 2,
                                           .regions = regions,
                                           .region_count = 2};

struct bench {
    size_t count;
    char (*keys)[NAME_SIZE];
    struct dynamic *dynamic;
};

static void
must(const struct error *err)
{
    check_that(err == NULL, "%s", err->message);
}

/* The loop's clock stands still while a fiber runs. */
static int64_t
time_now(void)
{
    struct timespec now;
    /* tidy: allow clock_gettime - a bench measures real time, finer than a tick */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static double
seconds_since(int64_t begin)
{
    return (double)(time_now() - begin) / NS_PER_S;
}

static struct domains *
open_domains(const struct bench *bench, struct store *store, struct arena *arena)
{
    struct domains *domains = NULL;
    must(domains_open(
        &(struct domains_options){.store = store, .group = &group, .dynamic = bench->dynamic},
        arena, &domains));
    return domains;
}

static void
write_all(const struct bench *bench, struct domains *domains)
{
    struct arena *arena = arena_new(0);
    struct entity_change *changes = arena_zalloc(arena, bench->count, sizeof *changes);
    for (size_t i = 0; i < bench->count; i++)
        changes[i] = (struct entity_change){ENTITY_SET, "user-location", bench->keys[i],
                                            regions[i % 2].name, "watcher"};
    int64_t begin = time_now();
    must(domains_set_entities(domains, changes, bench->count, arena));
    printf("| written, 500 in a commit, s | %.2f |\n", seconds_since(begin));
    arena_free(arena);
}

static struct domain *
make_domain(struct arena *arena)
{
    STORED(DomainRecord) *record = message_new(arena, STORED_TYPE(domain_record));
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = message_new(arena, API_TYPE(domain));
    record->domain->id = "id";
    record->domain->name = "orders";
    record->domain->is_global_domain = true;
    struct attribute all[] = {{"region", "us-east", "east", 0}, {"region", "us-west", "west", 1}};
    record->domain->active_clusters = attributes_write(&(struct attributes){all, 2}, arena);
    return domain_from_record(record);
}

/* ns per look at one of the first `among` keys, at random. */
static double
look_among(const struct bench *bench, struct domains *domains, struct domain *domain, size_t among)
{
    struct random random;
    random_seed(&random, 1);
    uint64_t here = 0;
    int64_t begin = time_now();
    for (int i = 0; i < LOOK_UPS; i++) {
        struct cluster_attribute attribute = {"user-location",
                                              bench->keys[random_below(&random, among)]};
        here += domains_active_run(domains, domain, &attribute, -1).status == ACTIVE_HERE;
    }
    check(here > 0);
    return seconds_since(begin) / LOOK_UPS * 1e9;
}

static void
look_up(const struct bench *bench, struct domains *domains, struct arena *arena)
{
    struct domain *domain = make_domain(arena);
    printf("| where a workflow is active, looked up, ns | %.0f |\n",
           look_among(bench, domains, domain, bench->count));
    printf("| the same among 1,000 of them, ns | %.0f |\n",
           look_among(bench, domains, domain, bench->count < 1000 ? bench->count : 1000));
    domain_drop(domain);
}

/* What a list by ActiveCluster costs: the first after a change makes the list of rows, and each run
 * that is looked at is asked for. */
static void
look_for_lists(const struct bench *bench, struct domains *domains, struct arena *arena)
{
    struct domain *domain = make_domain(arena);
    struct random random;
    random_seed(&random, 1);
    size_t before = mallinfo2().uordblks, found = 0;
    int64_t begin = time_now();
    struct homes *first = homes_new(domains, domain);
    printf("| a list by cluster: the first after a change, ms | %.1f |\n",
           seconds_since(begin) * 1e3);
    printf("| kept for the next ones, MB | %.1f |\n",
           (double)(mallinfo2().uordblks - before) / 1e6);
    begin = time_now();
    struct homes *second = homes_new(domains, domain);
    printf("| the next, µs | %.1f |\n", seconds_since(begin) * 1e6);
    begin = time_now();
    for (int i = 0; i < LOOK_UPS; i++) {
        const char *key = bench->keys[random_below(&random, bench->count)];
        found += homes_find(second, slice_text("user-location"), slice_text(key))[0] == 'e';
    }
    printf("| each run that it looks at, ns | %.0f |\n", seconds_since(begin) / LOOK_UPS * 1e9);
    check(found > 0);
    homes_drop(first);
    homes_drop(second);
    domain_drop(domain);
}

static void
run(void *argument)
{
    struct bench *bench = argument;
    struct arena *arena = arena_new(0);
    struct memory_base *base = memory_base_new(0);
    struct store *store = memory_open(base);
    struct domains *domains = open_domains(bench, store, arena);
    printf("| %zu entities | |\n|---|---:|\n", bench->count);
    write_all(bench, domains);
    domains_close(domains);
    size_t before = mallinfo2().uordblks;
    int64_t begin = time_now();
    struct arena *opening = arena_new(0);
    domains = open_domains(bench, store, opening);
    arena_free(opening);
    printf("| read at start, s | %.2f |\n", seconds_since(begin));
    size_t bytes = mallinfo2().uordblks - before;
    printf("| memory of the table, two domain caches, MB | %.1f |\n", (double)bytes / 1e6);
    printf("| of which each entity, bytes | %zu |\n", bytes / bench->count);
    look_up(bench, domains, arena);
    look_for_lists(bench, domains, arena);
    domains_close(domains);
    store_close(store);
    memory_base_free(base);
    arena_free(arena);
}

int
main(int count, char **arguments)
{
    uint64_t wanted = 100000;
    if (count > 1 && !text_parse_uint64(slice_text(arguments[1]), 1, 100000, &wanted))
        return 2;
    struct bench bench = {.count = wanted, .dynamic = dynamic_new(NULL)};
    bench.keys = memory_zalloc(bench.count, NAME_SIZE);
    for (size_t i = 0; i < bench.count; i++)
        snprintf(bench.keys[i], NAME_SIZE, "userid-%zu", i);
    linux_run(&(struct linux_options){.loops = 1}, run, &bench);
    memory_free(bench.keys);
    dynamic_free(bench.dynamic);
    return 0;
}
