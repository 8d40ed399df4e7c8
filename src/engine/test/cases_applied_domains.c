/* cases_applied_domains.c - a shard follows the domains: the order of changes and steps, what is
 * held. */
#include "domain/test/samples.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/wakeups.h"
#include "engine/test/shard_cases.h"
#include "route/test_answers.h"
#include "wire/message.h"

/* --- a domain that moves ---- */

void
case_open_group(struct shard_fixture *fixture)
{
    struct domains_options options = {
        .store = fixture->store, .group = sample_group(EAST), .dynamic = fixture->dynamic};
    domains_close(fixture->domains);
    EXPECT_OK(domains_open(&options, fixture->arena, &fixture->domains));
    if (domains_find_name(fixture->domains, "moving") == NULL) {
        API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
        request->name = "moving";
        EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
    }
    fixture->options.domains = fixture->domains;
    fixture->options.group = options.group;
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "moving")->id);
}

struct case_host
case_open_host(struct shard_fixture *fixture)
{
    struct domains_options options = {.store = fixture->store,
                                      .group = sample_group(EAST),
                                      .dynamic = fixture->dynamic,
                                      .refresh_interval = 3600 * NS_PER_S};
    struct case_host host = {0};
    EXPECT_OK(domains_open(&options, fixture->arena, &host.domains));
    struct shard_options there = fixture->options;
    there.domains = host.domains;
    host.shard = shard_new(&there);
    EXPECT_OK(shard_take(host.shard, fixture->arena));
    return host;
}

void
case_close_host(struct case_host *host)
{
    shard_close(host->shard);
    domains_close(host->domains);
}

void
case_expect_not_active(struct shard_fixture *fixture)
{
    struct error *err = shard_fixture_signal(fixture, "wf", fixture->arena);
    if (err != NULL && err->kind == ERR_SHARD_OWNERSHIP_LOST)
        err = shard_fixture_signal(fixture, "wf", fixture->arena);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
}

void
case_move_to(struct domains *domains, int cluster, struct arena *arena)
{
    API(FailoverDomainRequest) *request = sample_failover(sample_names[cluster], NULL, arena);
    request->domain_name = "moving";
    EXPECT_MADE(domains_failover(domains, request, arena, NULL));
}

/* Changes a domain without moving it. */
static void
touch(struct shard_fixture *fixture)
{
    API(UpdateDomainRequest) *request = sample_update("description", fixture->arena);
    request->name = "moving";
    request->description = "touched";
    EXPECT_MADE(domains_update(fixture->domains, request, fixture->arena, NULL));
}

const STORED(ShardRecord) *
case_stored_record(struct shard_fixture *fixture)
{
    STORED(ShardRecord) *record = STORED_NEW(fixture->arena, shard_record);
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(fixture->options.number), .kind = ROW_SHARD, .rows_max = 2};
    struct rows rows;
    EXPECT_OK(store_scan(fixture->store, &scan, fixture->arena, &rows));
    if (rows.count > 0) /* else it is not durable yet */
        EXPECT_OK(message_decode_as(fixture->arena, ERR_CORRUPT, STORED_TYPE(shard_record),
                                    rows.row[0].value, &record));
    return record;
}

/* --- the version ---- */

void
case_a_change_of_a_domain_is_in_the_log_before_a_step_that_saw_it(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_slow(fixture, 20 * NS_PER_MS);
    for (int i = 0; i < 4; i++) {
        case_move_to(fixture->domains, i % 2 == 0 ? WEST : EAST, fixture->arena);
        uint64_t version = domains_notification_version(fixture->domains);
        struct error *err = shard_fixture_signal(fixture, "wf", fixture->arena);
        if (i % 2 == 0)
            EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
        else
            EXPECT_OK(err);
        /* The answer, a refusal too, stands on the change: it is durable in the shard by now. */
        EXPECT_EQ(case_stored_record(fixture)->domain_version, version);
        EXPECT_EQ(shard_domain_version(fixture->shard), version);
    }
}

void
case_failovers_are_handled_once_also_over_a_restart(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    EXPECT_EQ(case_stored_record(fixture)->failovers, 0); /* being registered is none */
    case_move_to(fixture->domains, WEST, fixture->arena);
    touch(fixture);
    case_move_to(fixture->domains, EAST, fixture->arena);
    shard_fixture_wait(case_stored_record(fixture)->failovers == 2);
    for (int i = 0; i < 3; i++) { /* moves while nobody has the shard */
        shard_close(fixture->shard);
        case_move_to(fixture->domains, i % 2 == 0 ? NORTH : EAST, fixture->arena);
        touch(fixture);
        shard_fixture_take(fixture);
        shard_fixture_wait(case_stored_record(fixture)->failovers == (uint64_t)i + 3);
        EXPECT_EQ(case_stored_record(fixture)->domain_version,
                  domains_notification_version(fixture->domains));
    }
    shard_fixture_restart(fixture);
    shard_fixture_sleep(10 * NS_PER_MS);
    EXPECT_EQ(case_stored_record(fixture)->failovers, 5);
}

/* Another host writes; this one has not looked yet. */
void
case_a_shard_is_not_taken_before_its_domains_are_known(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct case_host other = case_open_host(fixture);
    case_move_to(other.domains, WEST, fixture->arena);
    uint64_t version = domains_notification_version(other.domains);
    shard_fixture_wait(case_stored_record(fixture)->domain_version == version);
    EXPECT(domains_notification_version(fixture->domains) < version);
    /* It was overtaken; when it takes the shard again it must not write with the old version. */
    case_expect_not_active(fixture);
    EXPECT_EQ(domains_notification_version(fixture->domains), version);
    case_close_host(&other);
}

void
case_changes_that_come_while_one_is_stored_are_stored_together(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    shard_fixture_sleep(50 * NS_PER_MS);
    struct applied_domains *applied_domains = &fixture->shard->tenure->applied_domains;
    ticket_t before = writer_newest(fixture->shard->tenure->writer);
    struct domain *domain = domains_find_name(fixture->domains, "moving");
    for (uint64_t i = 1; i <= 20; i++) /* as if they all came while the first is on its way */
        fixture->shard->listener.on_change(
            &fixture->shard->listener,
            &(struct domain_notification){applied_domains->handled + 100 + i, domain, true});
    EXPECT_EQ(writer_newest(fixture->shard->tenure->writer), before + 1);
    shard_fixture_wait(applied_domains->handled == applied_domains->known &&
                       writer_durable(fixture->shard->tenure->writer) >= before + 2);
    EXPECT_EQ(writer_newest(fixture->shard->tenure->writer), before + 2);
    EXPECT_EQ(case_stored_record(fixture)->failovers, 20);
    shard_close(fixture->shard); /* its view is ahead of the store, no other shard may follow it */
    fixture->shard = NULL;
}

void
case_a_step_without_room_does_not_see_a_change(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    fixture->options.batches_max = 1;
    shard_fixture_take(fixture);
    struct tenure *tenure = fixture->shard->tenure;
    shard_fixture_wait(writer_has_room(tenure->writer));
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(writer_has_room(tenure->writer));
    tenure_submit(tenure, tenure_batch(tenure, fixture->arena)); /* the queue is full */
    uint64_t handled = tenure->applied_domains.handled;
    struct domain *domain = domains_find_name(fixture->domains, "moving");
    fixture->shard->listener.on_change(&fixture->shard->listener,
                                       &(struct domain_notification){handled + 1, domain, false});
    EXPECT_EQ(tenure->applied_domains.handled, handled);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SERVICE_BUSY);
    shard_fixture_wait(tenure->applied_domains.handled == handled + 1); /* when there is room */
    shard_fixture_wait(writer_durable(tenure->writer) == writer_newest(tenure->writer));
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    shard_close(fixture->shard);
    fixture->shard = NULL;
}

/* --- what is held ---- */

static struct transfer *
only_row(struct shard_fixture *fixture)
{
    size_t cursor = 0;
    void *value = NULL;
    EXPECT_EQ(map64_count(fixture->shard->tenure->outbox.known), 1);
    map64_next(fixture->shard->tenure->outbox.known, &cursor, NULL, &value);
    return value;
}

void
case_a_task_of_a_domain_that_moved_away_waits_until_it_is_back(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    case_move_to(fixture->domains, WEST, fixture->arena);
    EXPECT_KIND(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena),
        ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(only_row(fixture)->state, TRANSFER_HELD);
    shard_fixture_restart(fixture); /* its next owner holds it too */
    shard_fixture_sleep(50 * NS_PER_MS);
    EXPECT_EQ(fixture->tasks.count, 0);
    EXPECT_EQ(only_row(fixture)->state, TRANSFER_HELD);
    touch(fixture); /* a change that does not bring it back */
    shard_fixture_sleep(50 * NS_PER_MS);
    EXPECT_EQ(fixture->tasks.count, 0);
    int64_t began = clock_monotonic();
    case_move_to(fixture->domains, EAST, fixture->arena);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT(clock_monotonic() - began < NS_PER_S); /* at once, not when somebody tries again */
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
}

void
case_a_stored_task_of_a_domain_that_moved_away_comes_back_to_its_shard(
    struct shard_fixture *fixture)
{
    case_open_group(fixture);
    fixture->isolation_group = "zone";
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    struct task stored = *fixture->tasks.items[0];
    shard_task_done(fixture->shard, stored.range_id, stored.row); /* its list has stored it */
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    stored.row = stored.range_id = 0;
    case_move_to(fixture->domains, WEST, fixture->arena);
    EXPECT_KIND(shard_fixture_start_decision(fixture, &stored, "poll", fixture->arena),
                ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1); /* now the list may forget it */
    shard_fixture_restart(fixture);
    EXPECT_EQ(fixture->tasks.count, 0);
    case_move_to(fixture->domains, EAST, fixture->arena);
    shard_fixture_wait(fixture->tasks.count == 1);
    const struct task *again = fixture->tasks.items[0];
    EXPECT(again->row != 0 && again->schedule_id == stored.schedule_id);
    EXPECT_TEXT(again->list, stored.list);
    EXPECT_TEXT(again->isolation_group, "zone");
    EXPECT_OK(shard_fixture_start_decision(fixture, again, "poll", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER),
              0); /* though the run never knew that row */
}

static void
register_staying(struct shard_fixture *fixture)
{
    if (domains_find_name(fixture->domains, "staying") != NULL)
        return;
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
    request->name = "staying";
    EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
}

/* Starts runs of a domain that stays here; what they need is offered at once. */
static void
expect_others_served(struct shard_fixture *fixture, const char *prefix)
{
    const char *moving = fixture->domain_id;
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "staying")->id);
    for (int i = 0; i < 12; i++) {
        size_t before = fixture->tasks.count;
        const char *id = arena_format(fixture->arena, "%s-%d", prefix, i);
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 100, fixture->arena, NULL));
        shard_fixture_wait(fixture->tasks.count == before + 1);
        EXPECT_TEXT(fixture->tasks.items[before]->workflow_id, id);
        EXPECT_OK(shard_fixture_start_decision(fixture, fixture->tasks.items[before], "poll",
                                               fixture->arena));
    }
    fixture->domain_id = moving;
}

/* More rows than memory has room for wait for their domain: nobody else does. */
void
case_rows_that_wait_for_their_domain_leave_room_for_others(struct shard_fixture *fixture)
{
    enum { RUNS = 30 };
    case_open_group(fixture);
    register_staying(fixture);
    fixture->options.transfers_max = 8;
    shard_fixture_take(fixture);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 100,
                                      fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 8);
    case_move_to(fixture->domains, WEST, fixture->arena);
    for (size_t i = 0; i < 8; i++)
        EXPECT_KIND(
            shard_fixture_start_decision(fixture, fixture->tasks.items[i], "poll", fixture->arena),
            ERR_DOMAIN_NOT_ACTIVE);
    expect_others_served(fixture, "first");
    EXPECT(map64_count(fixture->shard->tenure->outbox.known) <= 8);
    shard_fixture_restart(fixture); /* its next owner */
    expect_others_served(fixture, "second");
    size_t before = fixture->tasks.count;
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), RUNS);
    case_move_to(fixture->domains, EAST, fixture->arena);
    for (size_t i = before; i < before + RUNS; i++) { /* they need room one after the other */
        shard_fixture_wait(fixture->tasks.count > i);
        EXPECT_OK(
            shard_fixture_start_decision(fixture, fixture->tasks.items[i], "poll", fixture->arena));
    }
    EXPECT_EQ(fixture->tasks.count, before + RUNS); /* each once */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    EXPECT_EQ(fixture->shard->tenure->outbox.deferred_rows.low, 0);
    EXPECT_EQ(fixture->shard->tenure->outbox.deferred_rows.waiting_long, 0);
    shard_fixture_restart(fixture);
    shard_fixture_sleep(50 * NS_PER_MS);
    EXPECT_EQ(fixture->tasks.count, 0);
}

void
case_a_timer_of_a_domain_that_moved_away_waits_until_it_is_back(struct shard_fixture *fixture)
{
    case_open_group(fixture);
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    case_move_to(fixture->domains, WEST, fixture->arena);
    shard_fixture_wait(fixture->shard->tenure->wakeups.held_count == 1); /* when it fires */
    int64_t began = clock_monotonic();
    case_move_to(fixture->domains, EAST, fixture->arena);
    struct shard_fixture_run run = {.is_open = true};
    while (run.is_open && clock_monotonic() - began < 60 * NS_PER_S) {
        shard_fixture_sleep(NS_PER_MS);
        EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    }
    EXPECT(!run.is_open && clock_monotonic() - began < NS_PER_S);
    EXPECT_EQ(fixture->shard->tenure->wakeups.held_count, 0);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TIMER) == 1); /* that of its deletion */
}

static void
wait_timed_out(struct shard_fixture *fixture, const char *workflow_id)
{
    struct shard_fixture_run run = {.is_open = true};
    int64_t began = clock_monotonic();
    while (run.is_open && clock_monotonic() - began < 60 * NS_PER_S) {
        shard_fixture_sleep(NS_PER_MS);
        EXPECT_OK(shard_fixture_look(fixture, workflow_id, fixture->arena, &run));
    }
    EXPECT(!run.is_open && clock_monotonic() - began < 3 * NS_PER_S);
}

/* More of them than memory has room for, so they are left in the store. */
void
case_timers_that_wait_for_their_domain_leave_room_for_others(struct shard_fixture *fixture)
{
    enum { RUNS = 30 };
    case_open_group(fixture);
    register_staying(fixture);
    const char *moving = fixture->domain_id;
    const char *staying =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "staying")->id);
    fixture->options.wakeups_max = 4;
    shard_fixture_take(fixture);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 2,
                                      fixture->arena, NULL));
    case_move_to(fixture->domains, WEST, fixture->arena);
    shard_fixture_sleep(5 * NS_PER_S);
    fixture->domain_id = staying;
    EXPECT_OK(shard_fixture_start(fixture, "other", "one", 1, fixture->arena, NULL));
    wait_timed_out(fixture, "other");
    const struct wakeups *wakeups = &fixture->shard->tenure->wakeups;
    EXPECT_EQ(wakeups->held_count, 4);
    EXPECT(map64_count(wakeups->by_row) <= 8); /* none is tried again and again */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), RUNS + 1);
    fixture->domain_id = moving;
    case_move_to(fixture->domains, EAST, fixture->arena);
    for (int i = 0; i < RUNS; i++)
        wait_timed_out(fixture, arena_format(fixture->arena, "wf-%d", i));
}

struct count_cross_tasks {
    unsigned runs;
};

static struct error *
count_cross_task(void *context, struct cross_task *cross_task, struct arena *arena)
{
    struct count_cross_tasks *count = context;
    count->runs++;
    EXPECT(cross_task->transfer != NULL);
    (void)arena;
    return NULL;
}

/* A row of work elsewhere, of a run that belongs to `attribute` of the scope "city"; NULL: none. */
static void
put_cross_task(struct shard_fixture *fixture, char *attribute)
{
    struct tenure *tenure = fixture->shard->tenure;
    STORED(TransferRow) *row =
        STORED_NEW(fixture->arena, transfer_row, .format = RUN_RECORD_FORMAT,
                   .type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_EXTERNAL,
                   .domain_id = (char *)fixture->domain_id);
    if (attribute != NULL) {
        row->cluster_attribute =
            API_NEW(fixture->arena, cluster_attribute, .scope = "city", .name = attribute);
    }
    struct transfer_effect added = {.row = tenure->ids.next++, .transfer = row};
    struct batch *batch = tenure_batch(tenure, fixture->arena);
    batch_put(batch, ROW_TRANSFER, transfer_key(added.row, fixture->arena),
              message_encode(fixture->arena, &row->base));
    ticket_t ticket = tenure_submit(tenure, batch);
    outbox_enter(tenure, &(struct effects){.added = &added, .added_count = 1}, ticket);
}

void
case_work_of_a_domain_that_moved_away_waits_until_it_is_back(struct shard_fixture *fixture)
{
    struct count_cross_tasks count = {0};
    case_open_group(fixture);
    fixture->options.cross_tasks =
        (struct cross_task_port){.run = count_cross_task, .context = &count};
    shard_fixture_take(fixture);
    shard_run_cross_tasks(fixture->shard);
    case_move_to(fixture->domains, WEST, fixture->arena);
    put_cross_task(fixture, NULL);
    shard_fixture_wait(only_row(fixture)->state == TRANSFER_HELD);
    EXPECT_EQ(count.runs, 0);
    case_move_to(fixture->domains, EAST, fixture->arena);
    shard_fixture_wait(count.runs == 1);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
}

/* Of an active-active domain some is active here and some is not, and it moves one by one. */
void
case_work_waits_for_the_attribute_of_its_run(struct shard_fixture *fixture)
{
    struct count_cross_tasks count = {0};
    case_open_group(fixture);
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:west,city.b:east", fixture->arena);
    request->name = "split";
    EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "split")->id);
    fixture->options.cross_tasks =
        (struct cross_task_port){.run = count_cross_task, .context = &count};
    shard_fixture_take(fixture);
    shard_run_cross_tasks(fixture->shard);
    put_cross_task(fixture, "a");
    put_cross_task(fixture, "b");
    put_cross_task(fixture, "unknown");
    shard_fixture_wait(count.runs == 1); /* of city.b */
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 2);
    shard_fixture_restart(fixture);
    shard_run_cross_tasks(fixture->shard);
    API(FailoverDomainRequest) *move = sample_failover(NULL, "city.a:east", fixture->arena);
    move->domain_name = "split";
    EXPECT_MADE(domains_failover(fixture->domains, move, fixture->arena, NULL));
    shard_fixture_wait(count.runs == 2);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
    EXPECT_EQ(only_row(fixture)->state, TRANSFER_HELD);
}

/* --- the log ---- */

void
case_the_log_of_the_domains_is_kept_for_the_shard(struct shard_fixture *fixture)
{
    const char *name = arena_format(fixture->arena, "shard:%u", fixture->options.number);
    shard_fixture_take(fixture);
    shard_fixture_wait(domains_follower_position(fixture->domains, name) >= 1);
    int64_t before = domains_follower_position(fixture->domains, name);
    for (int i = 0; i < 60; i++) {
        API(UpdateDomainRequest) *request = sample_update("description", fixture->arena);
        request->description = arena_format(fixture->arena, "%d", i);
        EXPECT_MADE(domains_update(fixture->domains, request, fixture->arena, NULL));
    }
    shard_fixture_wait(domains_follower_position(fixture->domains, name) >= before + 50);
}
