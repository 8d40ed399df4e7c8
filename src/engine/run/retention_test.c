/* How long closed runs are kept. */
#include "base/test.h"
#include "engine/run/inside.h"

#define DAY (86400 * SECOND)

/* One domain with these data, and runs of ids wf-0, wf-1, ... that closed at the same moment. */
struct shelf {
    struct arena *arena;
    struct dynamic *dynamic;
    STORED(DomainRecord) *record;
    struct domain domain;
    struct run_context context;
};

static void
shelf_open(struct shelf *shelf, int64_t days)
{
    *shelf = (struct shelf){.arena = arena_new(0), .dynamic = dynamic_new(NULL)};
    shelf->record =
        STORED_NEW(shelf->arena, domain_record,
                   .domain = API_NEW(shelf->arena, domain,
                                     .workflow_execution_retention_period =
                                         presence_make_duration(shelf->arena, days * 86400)));
    shelf->domain = (struct domain){.id = "id", .name = "orders", .record = shelf->record};
    shelf->context = (struct run_context){.domain = &shelf->domain, .dynamic = shelf->dynamic};
}

static void
shelf_close(struct shelf *shelf)
{
    dynamic_free(shelf->dynamic);
    arena_free(shelf->arena);
}

static void
shelf_put_data(struct shelf *shelf, const char *rate, const char *days)
{
    const char *const pairs[2][2] = {{"sample_retention_days", days},
                                     {"sample_retention_rate", rate}};
    API(Domain) *domain = shelf->record->domain;
    domain->n_data = 2;
    domain->data = arena_zalloc(shelf->arena, 2, sizeof domain->data[0]);
    for (int i = 0; i < 2; i++) {
        domain->data[i] = message_new(shelf->arena, API_TYPE(domain__data_entry));
        domain->data[i]->key = (char *)pairs[i][0];
        domain->data[i]->value = (char *)pairs[i][1];
    }
}

/* How long run number `number` of this id is kept. */
static int64_t
kept(struct shelf *shelf, const char *workflow_id, int number)
{
    STORED(RunRecord) core;
    cadenza__storage__v1__run_record__init(&core);
    core.workflow_id = (char *)workflow_id;
    core.run_id = (char *)arena_format(shelf->arena, "run-%d", number);
    core.close_time = 1000 * DAY;
    return retention_end(&shelf->context, &core) - core.close_time;
}

TEST(retention, a_run_is_kept_for_the_days_of_its_domain_and_some_minutes, "A-256")
{
    struct shelf shelf;
    shelf_open(&shelf, 3);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 500; i++) {
        int64_t time = kept(&shelf, "wf", i);
        least = time < least ? time : least;
        most = time > most ? time : most;
        EXPECT_EQ(time, kept(&shelf, "wf", i)); /* the same for everybody */
    }
    EXPECT(least >= 3 * DAY && least < 3 * DAY + 60 * SECOND);
    EXPECT(most < 3 * DAY + 3600 * SECOND && most > 3 * DAY + 3500 * SECOND);
    shelf_close(&shelf);
}

TEST(retention, a_sample_of_workflow_ids_is_kept_longer, "A-257")
{
    struct shelf shelf;
    shelf_open(&shelf, 3);
    shelf_put_data(&shelf, "0.2", "30");
    int count = 0;
    for (int i = 0; i < 1000; i++) {
        const char *id = arena_format(shelf.arena, "wf-%d", i);
        bool is_long = kept(&shelf, id, 0) >= 30 * DAY;
        EXPECT_EQ(kept(&shelf, id, 1) >= 30 * DAY, is_long); /* by the id, not the run */
        count += is_long;
    }
    EXPECT(count > 150 && count < 250);
    const char *const others[][2] = {{"1", "2"}, {"x", "30"}, {"1", "x"}, {"0", "30"}};
    for (size_t i = 0; i < array_length(others); i++) {
        shelf_put_data(&shelf, others[i][0], others[i][1]);
        EXPECT(kept(&shelf, "wf", 0) < 4 * DAY);
    }
    shelf_put_data(&shelf, "1", "30");
    EXPECT(kept(&shelf, "wf", 0) >= 30 * DAY);
    shelf_close(&shelf);
}

/* A domain may ask for no days where the cluster allows it; one that says nothing has a day. */
TEST(retention, no_days_are_days_too, "A-256")
{
    struct shelf shelf;
    shelf_open(&shelf, 0);
    for (int i = 0; i < 100; i++)
        EXPECT(kept(&shelf, "wf", i) < 3600 * SECOND);
    shelf.record->domain->workflow_execution_retention_period = NULL;
    EXPECT(kept(&shelf, "wf", 0) >= DAY);
    shelf.context.domain = NULL;
    EXPECT(kept(&shelf, "wf", 0) >= DAY);
    shelf_close(&shelf);
}
