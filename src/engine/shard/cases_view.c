/* cases_view.c - a shard follows the domains: the order of changes and steps, what is held. */
#include "domain/samples.h"
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

/* --- a domain that moves ---- */

void
case_open_group(struct rig *rig)
{
    struct domains_options options = {
        .store = rig->store, .group = sample_group(EAST), .dynamic = rig->dynamic};
    domains_close(rig->domains);
    EXPECT_OK(domains_open(&options, rig->arena, &rig->domains));
    if (domains_find_name(rig->domains, "moving") == NULL) {
        API(RegisterDomainRequest) *request = sample_register(EAST, NULL, rig->arena);
        request->name = (char *)"moving";
        EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
    }
    rig->options.domains = rig->domains;
    rig->options.group = options.group;
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "moving")->id);
}

struct case_host
case_open_host(struct rig *rig)
{
    struct domains_options options = {.store = rig->store,
                                      .group = sample_group(EAST),
                                      .dynamic = rig->dynamic,
                                      .refresh_interval = 3600 * NS_PER_S};
    struct case_host host = {0};
    EXPECT_OK(domains_open(&options, rig->arena, &host.domains));
    struct shard_options there = rig->options;
    there.domains = host.domains;
    host.shard = shard_new(&there);
    EXPECT_OK(shard_take(host.shard, rig->arena));
    return host;
}

void
case_close_host(struct case_host *host)
{
    shard_close(host->shard);
    domains_close(host->domains);
}

void
case_expect_not_active(struct rig *rig)
{
    struct error *err = rig_signal(rig, "wf", rig->arena);
    if (err != NULL && err->kind == ERR_SHARD_OWNERSHIP_LOST)
        err = rig_signal(rig, "wf", rig->arena);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
}

void
case_move_to(struct domains *domains, int cluster, struct arena *arena)
{
    API(FailoverDomainRequest) *request = sample_failover(sample_names[cluster], NULL, arena);
    request->domain_name = (char *)"moving";
    EXPECT_OK(domains_failover(domains, request, arena, NULL));
}

/* Changes a domain without moving it. */
static void
touch(struct rig *rig)
{
    API(UpdateDomainRequest) *request = sample_update("description", rig->arena);
    request->name = (char *)"moving";
    request->description = (char *)"touched";
    EXPECT_OK(domains_update(rig->domains, request, rig->arena, NULL));
}

const STORED(ShardRecord) *
case_stored_record(struct rig *rig)
{
    STORED(ShardRecord) *record = message_new(rig->arena, STORED_TYPE(shard_record));
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(rig->options.number), .kind = ROW_SHARD, .rows_max = 2};
    struct rows rows;
    EXPECT_OK(store_scan(rig->store, &scan, rig->arena, &rows));
    if (rows.count > 0) /* else it is not durable yet */
        EXPECT_OK(message_decode_as(rig->arena, ERR_CORRUPT, STORED_TYPE(shard_record),
                                    rows.row[0].value, &record));
    return record;
}

/* --- the version ---- */

void
case_a_change_of_a_domain_is_in_the_log_before_a_step_that_saw_it(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    case_slow(rig, 20 * NS_PER_MS);
    for (int i = 0; i < 4; i++) {
        case_move_to(rig->domains, i % 2 == 0 ? WEST : EAST, rig->arena);
        uint64_t version = domains_notification_version(rig->domains);
        struct error *err = rig_signal(rig, "wf", rig->arena);
        if (i % 2 == 0)
            EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
        else
            EXPECT_OK(err);
        /* The answer, a refusal too, stands on the change: it is durable in the shard by now. */
        EXPECT_EQ(case_stored_record(rig)->domain_version, version);
        EXPECT_EQ(shard_domain_version(rig->shard), version);
    }
}

void
case_failovers_are_handled_once_also_over_a_restart(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    EXPECT_EQ(case_stored_record(rig)->failovers, 0); /* being registered is none */
    case_move_to(rig->domains, WEST, rig->arena);
    touch(rig);
    case_move_to(rig->domains, EAST, rig->arena);
    rig_wait(case_stored_record(rig)->failovers == 2);
    for (int i = 0; i < 3; i++) { /* moves while nobody has the shard */
        shard_close(rig->shard);
        case_move_to(rig->domains, i % 2 == 0 ? NORTH : EAST, rig->arena);
        touch(rig);
        rig_take(rig);
        rig_wait(case_stored_record(rig)->failovers == (uint64_t)i + 3);
        EXPECT_EQ(case_stored_record(rig)->domain_version,
                  domains_notification_version(rig->domains));
    }
    rig_restart(rig);
    rig_sleep(10 * NS_PER_MS);
    EXPECT_EQ(case_stored_record(rig)->failovers, 5);
}

/* Another host writes; this one has not looked yet. */
void
case_a_shard_is_not_taken_before_its_domains_are_known(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct case_host other = case_open_host(rig);
    case_move_to(other.domains, WEST, rig->arena);
    uint64_t version = domains_notification_version(other.domains);
    rig_wait(case_stored_record(rig)->domain_version == version);
    EXPECT(domains_notification_version(rig->domains) < version);
    /* It was overtaken; when it takes the shard again it must not write with the old version. */
    case_expect_not_active(rig);
    EXPECT_EQ(domains_notification_version(rig->domains), version);
    case_close_host(&other);
}

void
case_changes_that_come_while_one_is_stored_are_stored_together(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    rig_sleep(50 * NS_PER_MS);
    struct view *view = &rig->shard->tenure->view;
    ticket_t before = writer_newest(rig->shard->tenure->writer);
    struct domain *domain = domains_find_name(rig->domains, "moving");
    for (uint64_t i = 1; i <= 20; i++) /* as if they all came while the first is on its way */
        rig->shard->listener.hear(&rig->shard->listener,
                                  &(struct domain_news){view->handled + 100 + i, domain, true});
    EXPECT_EQ(writer_newest(rig->shard->tenure->writer), before + 1);
    rig_wait(view->handled == view->known &&
             writer_durable(rig->shard->tenure->writer) >= before + 2);
    EXPECT_EQ(writer_newest(rig->shard->tenure->writer), before + 2);
    EXPECT_EQ(case_stored_record(rig)->failovers, 20);
    shard_close(rig->shard); /* its view is ahead of the store, no other shard may follow it */
    rig->shard = NULL;
}

void
case_a_step_without_room_does_not_see_a_change(struct rig *rig)
{
    case_open_group(rig);
    rig->options.batches_max = 1;
    rig_take(rig);
    struct tenure *tenure = rig->shard->tenure;
    rig_wait(writer_has_room(tenure->writer));
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(writer_has_room(tenure->writer));
    tenure_submit(tenure, tenure_batch(tenure, rig->arena)); /* the queue is full */
    uint64_t handled = tenure->view.handled;
    struct domain *domain = domains_find_name(rig->domains, "moving");
    rig->shard->listener.hear(&rig->shard->listener,
                              &(struct domain_news){handled + 1, domain, false});
    EXPECT_EQ(tenure->view.handled, handled);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SERVICE_BUSY);
    rig_wait(tenure->view.handled == handled + 1); /* when there is room */
    rig_wait(writer_durable(tenure->writer) == writer_newest(tenure->writer));
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    shard_close(rig->shard);
    rig->shard = NULL;
}

/* --- what is held ---- */

static struct transfer *
only_row(struct rig *rig)
{
    size_t cursor = 0;
    void *value = NULL;
    EXPECT_EQ(map64_count(rig->shard->tenure->outbox.known), 1);
    map64_next(rig->shard->tenure->outbox.known, &cursor, NULL, &value);
    return value;
}

void
case_a_task_of_a_domain_that_moved_away_waits_until_it_is_back(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    case_move_to(rig->domains, WEST, rig->arena);
    EXPECT_KIND(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena),
                ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(only_row(rig)->state, TRANSFER_HELD);
    rig_restart(rig); /* whoever has it next holds it too */
    rig_sleep(50 * NS_PER_MS);
    EXPECT_EQ(rig->tasks.count, 0);
    EXPECT_EQ(only_row(rig)->state, TRANSFER_HELD);
    touch(rig); /* a change that does not bring it back */
    rig_sleep(50 * NS_PER_MS);
    EXPECT_EQ(rig->tasks.count, 0);
    int64_t began = clock_monotonic();
    case_move_to(rig->domains, EAST, rig->arena);
    rig_wait(rig->tasks.count == 1);
    EXPECT(clock_monotonic() - began < NS_PER_S); /* at once, not when somebody tries again */
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
}

void
case_a_stored_task_of_a_domain_that_moved_away_comes_back_to_its_shard(struct rig *rig)
{
    case_open_group(rig);
    rig->isolation_group = "zone";
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    struct task stored = *rig->tasks.items[0];
    shard_task_done(rig->shard, stored.range_id, stored.row); /* its list has stored it */
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
    stored.row = stored.range_id = 0;
    case_move_to(rig->domains, WEST, rig->arena);
    EXPECT_KIND(rig_start_decision(rig, &stored, "poll", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1); /* now the list may forget it */
    rig_restart(rig);
    EXPECT_EQ(rig->tasks.count, 0);
    case_move_to(rig->domains, EAST, rig->arena);
    rig_wait(rig->tasks.count == 1);
    const struct task *again = rig->tasks.items[0];
    EXPECT(again->row != 0 && again->schedule_id == stored.schedule_id);
    EXPECT_TEXT(again->list, stored.list);
    EXPECT_TEXT(again->isolation_group, "zone");
    EXPECT_OK(rig_start_decision(rig, again, "poll", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0); /* though the run never knew that row */
}

static void
register_staying(struct rig *rig)
{
    if (domains_find_name(rig->domains, "staying") != NULL)
        return;
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, rig->arena);
    request->name = (char *)"staying";
    EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
}

/* Starts runs of a domain that stays here; what they need is offered at once. */
static void
expect_others_served(struct rig *rig, const char *prefix)
{
    const char *moving = rig->domain_id;
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "staying")->id);
    for (int i = 0; i < 12; i++) {
        size_t before = rig->tasks.count;
        const char *id = arena_format(rig->arena, "%s-%d", prefix, i);
        EXPECT_OK(rig_start(rig, id, "one", 100, rig->arena, NULL));
        rig_wait(rig->tasks.count == before + 1);
        EXPECT_TEXT(rig->tasks.items[before]->workflow_id, id);
        EXPECT_OK(rig_start_decision(rig, rig->tasks.items[before], "poll", rig->arena));
    }
    rig->domain_id = moving;
}

/* More rows than memory has room for wait for their domain: nobody else does. */
void
case_rows_that_wait_for_their_domain_leave_room_for_others(struct rig *rig)
{
    enum { RUNS = 30 };
    case_open_group(rig);
    register_staying(rig);
    rig->options.transfers_max = 8;
    rig_take(rig);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 8);
    case_move_to(rig->domains, WEST, rig->arena);
    for (size_t i = 0; i < 8; i++)
        EXPECT_KIND(rig_start_decision(rig, rig->tasks.items[i], "poll", rig->arena),
                    ERR_DOMAIN_NOT_ACTIVE);
    expect_others_served(rig, "first");
    EXPECT(map64_count(rig->shard->tenure->outbox.known) <= 8);
    rig_restart(rig); /* whoever has it next */
    expect_others_served(rig, "second");
    size_t before = rig->tasks.count;
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), RUNS);
    case_move_to(rig->domains, EAST, rig->arena);
    for (size_t i = before; i < before + RUNS; i++) { /* they need room one after the other */
        rig_wait(rig->tasks.count > i);
        EXPECT_OK(rig_start_decision(rig, rig->tasks.items[i], "poll", rig->arena));
    }
    EXPECT_EQ(rig->tasks.count, before + RUNS); /* each once */
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    EXPECT_EQ(rig->shard->tenure->outbox.parking.low, 0);
    EXPECT_EQ(rig->shard->tenure->outbox.parking.resting, 0);
    rig_restart(rig);
    rig_sleep(50 * NS_PER_MS);
    EXPECT_EQ(rig->tasks.count, 0);
}

void
case_an_alarm_of_a_domain_that_moved_away_waits_until_it_is_back(struct rig *rig)
{
    case_open_group(rig);
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 1, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    case_move_to(rig->domains, WEST, rig->arena);
    rig_wait(rig->shard->tenure->alarms.held_count == 1); /* when it rings */
    int64_t began = clock_monotonic();
    case_move_to(rig->domains, EAST, rig->arena);
    struct rig_run run = {.is_open = true};
    while (run.is_open && clock_monotonic() - began < 60 * NS_PER_S) {
        rig_sleep(NS_PER_MS);
        EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    }
    EXPECT(!run.is_open && clock_monotonic() - began < NS_PER_S);
    EXPECT_EQ(rig->shard->tenure->alarms.held_count, 0);
    rig_wait(rig_rows(rig, ROW_TIMER) == 1); /* that of its deletion */
}

static void
wait_timed_out(struct rig *rig, const char *workflow_id)
{
    struct rig_run run = {.is_open = true};
    int64_t began = clock_monotonic();
    while (run.is_open && clock_monotonic() - began < 60 * NS_PER_S) {
        rig_sleep(NS_PER_MS);
        EXPECT_OK(rig_look(rig, workflow_id, rig->arena, &run));
    }
    EXPECT(!run.is_open && clock_monotonic() - began < 3 * NS_PER_S);
}

/* More of them than memory has room for, so they are left in the store. */
void
case_alarms_that_wait_for_their_domain_leave_room_for_others(struct rig *rig)
{
    enum { RUNS = 30 };
    case_open_group(rig);
    register_staying(rig);
    const char *moving = rig->domain_id;
    const char *staying = arena_text(rig->arena, domains_find_name(rig->domains, "staying")->id);
    rig->options.alarms_max = 4;
    rig_take(rig);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 2, rig->arena, NULL));
    case_move_to(rig->domains, WEST, rig->arena);
    rig_sleep(5 * NS_PER_S);
    rig->domain_id = staying;
    EXPECT_OK(rig_start(rig, "other", "one", 1, rig->arena, NULL));
    wait_timed_out(rig, "other");
    const struct alarms *alarms = &rig->shard->tenure->alarms;
    EXPECT_EQ(alarms->held_count, 4);
    EXPECT(map64_count(alarms->by_row) <= 8); /* none is tried again and again */
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), RUNS + 1);
    rig->domain_id = moving;
    case_move_to(rig->domains, EAST, rig->arena);
    for (int i = 0; i < RUNS; i++)
        wait_timed_out(rig, arena_format(rig->arena, "wf-%d", i));
}

struct count_errands {
    unsigned runs;
};

static struct error *
count_errand(void *context, struct errand *errand, struct arena *arena)
{
    struct count_errands *count = context;
    count->runs++;
    EXPECT(errand->transfer != NULL);
    (void)arena;
    return NULL;
}

/* A row of work elsewhere, of a run that belongs to `attribute` of the scope "city"; NULL: none. */
static void
put_errand(struct rig *rig, char *attribute)
{
    struct tenure *tenure = rig->shard->tenure;
    STORED(TransferRow) *row = message_new(rig->arena, STORED_TYPE(transfer_row));
    row->format = RUN_RECORD_FORMAT;
    row->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_EXTERNAL;
    row->domain_id = (char *)rig->domain_id;
    if (attribute != NULL) {
        row->cluster_attribute = message_new(rig->arena, API_TYPE(cluster_attribute));
        row->cluster_attribute->scope = "city";
        row->cluster_attribute->name = attribute;
    }
    struct transfer_effect added = {.row = tenure->ids.next++, .transfer = row};
    struct batch *batch = tenure_batch(tenure, rig->arena);
    batch_put(batch, ROW_TRANSFER, transfer_key(added.row, rig->arena),
              message_encode(rig->arena, &row->base));
    ticket_t ticket = tenure_submit(tenure, batch);
    outbox_enter(tenure, &(struct effects){.added = &added, .added_count = 1}, ticket);
}

void
case_work_of_a_domain_that_moved_away_waits_until_it_is_back(struct rig *rig)
{
    struct count_errands count = {0};
    case_open_group(rig);
    rig->options.errands = (struct errand_port){.run = count_errand, .context = &count};
    rig_take(rig);
    shard_run_errands(rig->shard);
    case_move_to(rig->domains, WEST, rig->arena);
    put_errand(rig, NULL);
    rig_wait(only_row(rig)->state == TRANSFER_HELD);
    EXPECT_EQ(count.runs, 0);
    case_move_to(rig->domains, EAST, rig->arena);
    rig_wait(count.runs == 1);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
}

/* Of an active-active domain some is active here and some is not, and it moves one by one. */
void
case_work_waits_for_the_attribute_of_its_run(struct rig *rig)
{
    struct count_errands count = {0};
    case_open_group(rig);
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:west,city.b:east", rig->arena);
    request->name = (char *)"split";
    EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "split")->id);
    rig->options.errands = (struct errand_port){.run = count_errand, .context = &count};
    rig_take(rig);
    shard_run_errands(rig->shard);
    put_errand(rig, "a");
    put_errand(rig, "b");
    put_errand(rig, "unknown");
    rig_wait(count.runs == 1); /* of city.b */
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 2);
    rig_restart(rig);
    shard_run_errands(rig->shard);
    API(FailoverDomainRequest) *move = sample_failover(NULL, "city.a:east", rig->arena);
    move->domain_name = (char *)"split";
    EXPECT_OK(domains_failover(rig->domains, move, rig->arena, NULL));
    rig_wait(count.runs == 2);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
    EXPECT_EQ(only_row(rig)->state, TRANSFER_HELD);
}

/* --- the log ---- */

void
case_the_log_of_the_domains_is_kept_for_the_shard(struct rig *rig)
{
    const char *name = arena_format(rig->arena, "shard:%u", rig->options.number);
    rig_take(rig);
    rig_wait(domains_follower(rig->domains, name) >= 1);
    int64_t before = domains_follower(rig->domains, name);
    for (int i = 0; i < 60; i++) {
        API(UpdateDomainRequest) *request = sample_update("description", rig->arena);
        request->description = arena_format(rig->arena, "%d", i);
        EXPECT_OK(domains_update(rig->domains, request, rig->arena, NULL));
    }
    rig_wait(domains_follower(rig->domains, name) >= before + 50);
}
