/* drain_test.c - graceful failovers, decided: how they begin, what other clusters make of them, how
 * they end. "orders" is known in east, west and north; the target is asked, the others are told. */
#include "domain/drain.h"

#include <string.h>

#include "domain/test/failover_fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TIMEOUT_S 60

#define DRAIN_OF(failover_fixture)  domain_find_drain((failover_fixture).domain, NULL)
#define RECORD_OF(failover_fixture) ((failover_fixture).domain->record)
#define GROUP_OF(failover_fixture)  ((failover_fixture).rules.group)
#define STATUS_OF(failover_fixture)                                                                \
    domain_active((failover_fixture).domain, NULL, GROUP_OF(failover_fixture)).status
#define CONCURRENT    "Cannot start concurrent graceful failover."
#define TO_BE_PASSIVE "Cannot start the graceful failover from a to-be-passive cluster."
#define NOTHING_MOVES                                                                              \
    "Cannot start graceful failover without updating active cluster or in local domain."
#define ACTIVE_ALREADY                                                                             \
    "Cannot start the graceful failover from an active cluster to an active cluster."

/* The fixture is this cluster from now on. */
static void
stand_in(struct failover_fixture *failover_fixture, int cluster)
{
    failover_fixture->rules = sample_rules(cluster);
}

static struct error *
grace(struct failover_fixture *failover_fixture, const char *cluster_name, const char *attributes)
{
    API(FailoverDomainRequest) *request =
        sample_failover(cluster_name, attributes, failover_fixture->arena);
    request->failover_timeout = presence_make_duration(failover_fixture->arena, TIMEOUT_S);
    struct error *err = failover_request(failover_fixture, request);
    if (err == NULL)
        adopt(failover_fixture);
    return err;
}

static void
receive(struct failover_fixture *failover_fixture, const ADMIN(DomainTaskAttributes) *message,
        const char *source)
{
    struct domain_moment moment = next_moment(failover_fixture);
    EXPECT_OK(domain_decide_replicated(failover_fixture->domain, failover_fixture->domain, message,
                                       source, &failover_fixture->rules, &moment,
                                       failover_fixture->arena, &failover_fixture->decision));
    if (failover_fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(failover_fixture);
}

static bool
end_drain(struct failover_fixture *failover_fixture, const char *scope, const char *name,
          int64_t failover_version)
{
    struct drain_end end = {.domain_id = failover_fixture->domain->id,
                            .scope = scope,
                            .name = name,
                            .failover_version = failover_version};
    struct domain_moment moment = next_moment(failover_fixture);
    EXPECT_OK(domain_decide_drained(failover_fixture->domain, &end, &failover_fixture->rules,
                                    &moment, failover_fixture->arena, &failover_fixture->decision));
    if (failover_fixture->decision.what == DOMAIN_UNCHANGED)
        return false;
    adopt(failover_fixture);
    return true;
}

static size_t
markers(const struct failover_fixture *failover_fixture, struct drain_marker **due)
{
    return domain_markers_due(failover_fixture->domain, GROUP_OF(*failover_fixture),
                              failover_fixture->arena, due);
}

/* --- beginning ---- */

TEST(drain, begins_with_a_higher_version_an_end_and_the_version_before, "D-044", "F-001", "F-011",
     "F-012")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    stand_in(&orders, WEST);
    EXPECT_OK(grace(&orders, "west", NULL));
    EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, "west");
    EXPECT_EQ(VERSION_OF(orders), 1);
    EXPECT_EQ(RECORD_OF(orders)->previous_failover_version, 0);
    int64_t start = RECORD_OF(orders)->last_updated_time;
    EXPECT_EQ(RECORD_OF(orders)->failover_end_time, start + TIMEOUT_S * 1000000000LL);
    EXPECT_EQ(NOTICED_OF(orders), (int64_t)orders.moment);
    EXPECT_TEXT(DRAIN_OF(orders)->source_cluster, "east");
    EXPECT_EQ(DRAIN_OF(orders)->start_time, start);
    EXPECT_EQ(STATUS_OF(orders), ACTIVE_PENDING);
    EXPECT_EQ(orders.decision.failover->type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL));
    EXPECT_TEXT(orders.decision.failover->id, DRAIN_OF(orders)->failover_id);
    EXPECT_EQ(orders.decision.failover->created_time, DRAIN_OF(orders)->start_time);
}

TEST(drain, begins_nowhere_but_in_its_target_and_only_once, "F-002", "F-003", "F-004", "F-005")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    EXPECT_REFUSED(grace(&orders, "west", NULL), TO_BE_PASSIVE);
    EXPECT_REFUSED(grace(&orders, "east", NULL), ACTIVE_ALREADY);
    API(UpdateDomainRequest) *alone = sample_update("failover_timeout", orders.arena);
    alone->failover_timeout = presence_make_duration(orders.arena, 10);
    EXPECT_REFUSED(update(&orders, alone), NOTHING_MOVES);
    stand_in(&orders, WEST);
    EXPECT_OK(grace(&orders, "west", NULL));
    EXPECT_REFUSED(grace(&orders, "west", NULL), CONCURRENT);

    FAILOVER_FIXTURE(cities, EAST, "city.a:east,city.b:east");
    stand_in(&cities, WEST);
    EXPECT_REFUSED(grace(&cities, "west", NULL), NOTHING_MOVES);
    EXPECT_REFUSED(grace(&cities, NULL, "city.new:west"), NOTHING_MOVES);
    EXPECT_REFUSED(grace(&cities, NULL, "city.a:north"), TO_BE_PASSIVE);
    EXPECT_OK(grace(&cities, NULL, "city.a:west"));
    EXPECT_REFUSED(grace(&cities, NULL, "city.b:west"), CONCURRENT);
}

TEST(drain, waits_for_the_cool_down_but_what_ends_it_does_not, "F-007")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    stand_in(&orders, WEST);
    orders.rules.cool_down = 3600 * 1000000000LL;
    EXPECT_KIND(grace(&orders, "west", NULL), ERR_SERVICE_BUSY);
    orders.rules.cool_down = 0;
    EXPECT_OK(grace(&orders, "west", NULL));
    orders.rules.cool_down = 3600 * 1000000000LL;
    EXPECT_OK(failover(&orders, "west", NULL));
}

/* --- what others make of it ---- */

TEST(drain, says_that_markers_are_due_in_all_clusters_but_its_target, "F-017")
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    FAILOVER_FIXTURE(north, EAST, NULL);
    stand_in(&west, WEST);
    stand_in(&north, NORTH);
    EXPECT_OK(grace(&west, "west", NULL));
    receive(&east, message_of(&west), "west");
    receive(&north, message_of(&west), "west");
    EXPECT_EQ(VERSION_OF(east), 1);
    EXPECT_TEXT(DOMAIN_OF(east)->active_cluster_name, "west");
    EXPECT_EQ(RECORD_OF(east)->previous_failover_version, 0);
    EXPECT_EQ(RECORD_OF(east)->failover_end_time, 0);
    EXPECT_EQ(STATUS_OF(east), ACTIVE_ELSEWHERE);
    struct drain_marker *due = NULL;
    EXPECT_EQ(markers(&east, &due), 1);
    EXPECT_TEXT(due[0].scope, "");
    EXPECT_EQ(due[0].failover_version, 1);
    EXPECT_EQ(markers(&west, &due), 0);
    /* What north wrote before, west hears from north alone. */
    EXPECT_EQ(markers(&north, &due), 1);
}

TEST(drain, is_none_after_a_failover_by_force, "F-022")
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    stand_in(&west, WEST);
    EXPECT_OK(failover(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *message = message_of(&west);
    EXPECT_EQ(message->previous_failover_version, -1);
    EXPECT_EQ(message->n_drains, 0);
    receive(&east, message, "west");
    struct drain_marker *due = NULL;
    EXPECT_EQ(markers(&east, &due), 0);
}

TEST(drain, is_over_elsewhere_when_its_target_says_so_and_late_messages_do_not_bring_it_back)
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    stand_in(&west, WEST);
    EXPECT_OK(grace(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *begun = message_of(&west);
    receive(&east, begun, "west");
    EXPECT(end_drain(&west, "", "", 1));
    receive(&east, message_of(&west), "west");
    EXPECT(DRAIN_OF(east) == NULL);
    EXPECT_EQ(RECORD_OF(east)->previous_failover_version, -1);
    receive(&east, begun, "north");
    EXPECT_EQ(east.decision.what, DOMAIN_UNCHANGED);
    /* Nor does the target end it because somebody else has not heard of it. */
    EXPECT_OK(failover(&west, "east", NULL));
    EXPECT_OK(grace(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *ignorant = message_of(&west);
    ignorant->n_drains = 0;
    receive(&west, ignorant, "north");
    EXPECT_EQ(STATUS_OF(west), ACTIVE_PENDING);
}

TEST(drain, of_a_target_of_another_make_is_known_by_one_number_and_waits_for_its_source, "F-018")
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    FAILOVER_FIXTURE(north, EAST, NULL);
    stand_in(&west, WEST);
    stand_in(&north, NORTH);
    EXPECT_OK(grace(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *message = message_of(&west);
    message->n_drains = 0;
    message->tells_failovers = false;
    message->failover_record.len = 0;
    receive(&east, message, "west");
    struct drain_marker *due = NULL;
    EXPECT_EQ(markers(&east, &due), 1);
    EXPECT_EQ(due[0].failover_version, 1);
    EXPECT_TEXT(DRAIN_OF(east)->source_cluster, "east");
    EXPECT_EQ(east.decision.failover->type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL));
    receive(&north, message, "west");
    EXPECT_EQ(markers(&north, &due), 0);
    EXPECT_EQ(north.decision.failover->type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL));
    /* And by force, of such a one. */
    FAILOVER_FIXTURE(other, EAST, NULL);
    message->previous_failover_version = -1;
    message->id = (char *)other.domain->id;
    receive(&other, message, "west");
    EXPECT_EQ(other.decision.failover->type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE));
}

TEST(drain, that_is_none_is_refused)
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    stand_in(&west, WEST);
    EXPECT_OK(grace(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *message = message_of(&west);
    STORED(Drain) backwards = *DRAIN_OF(west);
    backwards.previous_failover_version = 7;
    message->drains[0] = presence_make_bytes(message_encode(east.arena, &backwards.base));
    struct domain_moment moment = next_moment(&east);
    EXPECT_KIND(domain_decide_replicated(east.domain, east.domain, message, "west", &east.rules,
                                         &moment, east.arena, &east.decision),
                ERR_BAD_REQUEST);
}

/* Both were asked when nobody had heard of the other. What east gives away first goes to west;
 * north must not believe to have all of it when it has what came from east. */
TEST(drain, that_began_at_the_same_time_as_another_gets_no_markers_that_mean_nothing)
{
    FAILOVER_FIXTURE(east, EAST, NULL);
    FAILOVER_FIXTURE(west, EAST, NULL);
    FAILOVER_FIXTURE(north, EAST, NULL);
    stand_in(&west, WEST);
    stand_in(&north, NORTH);
    EXPECT_OK(grace(&west, "west", NULL));
    EXPECT_OK(grace(&north, "north", NULL));
    receive(&east, message_of(&west), "west");
    receive(&east, message_of(&north), "north");
    EXPECT_EQ(VERSION_OF(east), 2);
    struct drain_marker *due = NULL;
    EXPECT_EQ(markers(&east, &due), 0);
    receive(&west, message_of(&north), "north");
    EXPECT_EQ(STATUS_OF(west), ACTIVE_ELSEWHERE);
    EXPECT_EQ(STATUS_OF(north), ACTIVE_PENDING);
}

/* --- attributes ---- */

TEST(drain, of_an_attribute_leaves_the_others_alone)
{
    FAILOVER_FIXTURE(east, EAST, "city.a:east,city.b:east");
    FAILOVER_FIXTURE(west, EAST, "city.a:east,city.b:east");
    stand_in(&west, WEST);
    struct cluster_attribute a = {"city", "a"}, b = {"city", "b"};
    EXPECT_OK(grace(&west, NULL, "city.a:west"));
    EXPECT_EQ(domain_active(west.domain, &a, GROUP_OF(west)).status, ACTIVE_PENDING);
    EXPECT_EQ(domain_active(west.domain, &b, GROUP_OF(west)).status, ACTIVE_ELSEWHERE);
    EXPECT_EQ(RECORD_OF(west)->failover_end_time, 0);
    EXPECT_EQ(RECORD_OF(west)->previous_failover_version, -1);
    receive(&east, message_of(&west), "west");
    struct drain_marker *due = NULL;
    EXPECT_EQ(markers(&east, &due), 1);
    EXPECT_TEXT(due[0].scope, "city");
    EXPECT_TEXT(due[0].name, "a");
    EXPECT_EQ(due[0].failover_version, 1);
    EXPECT_EQ(domain_active(east.domain, &b, GROUP_OF(east)).status, ACTIVE_HERE);
    /* Another one moves by force meanwhile. */
    EXPECT_OK(failover(&west, NULL, "city.b:north"));
    EXPECT_EQ(domain_active(west.domain, &a, GROUP_OF(west)).status, ACTIVE_PENDING);
    EXPECT(end_drain(&west, "city", "a", 1));
    EXPECT_EQ(domain_active(west.domain, &a, GROUP_OF(west)).status, ACTIVE_HERE);
    receive(&east, message_of(&west), "west");
    EXPECT_EQ(markers(&east, &due), 0);
}

/* --- all ways through the states ---- */

enum state { ACTIVE, PASSIVE, PENDING, STATES };
enum step { FORCE_HERE, GRACE_HERE, FORCE_AWAY, NEWER_AWAY, DRAINED, STALE_DRAINED, STEPS };
#define REFUSED STATES

/* What becomes of "orders" in west. A force is asked here, a newer version comes from another
 * cluster; drained: all shards ready, or the timeout, with the version that is pending, or with
 * an older one. */
static const uint8_t next_state[STATES][STEPS] = {
    /* FORCE_HERE GRACE_HERE FORCE_AWAY NEWER_AWAY DRAINED  STALE_DRAINED */
    [ACTIVE] = {ACTIVE, REFUSED, PASSIVE, PASSIVE, ACTIVE, ACTIVE},
    [PASSIVE] = {ACTIVE, PENDING, PASSIVE, PASSIVE, PASSIVE, PASSIVE},
    [PENDING] = {ACTIVE, REFUSED, PASSIVE, PASSIVE, ACTIVE, PENDING},
};

static enum state
state_of(const struct failover_fixture *west)
{
    switch (STATUS_OF(*west)) {
    case ACTIVE_HERE:
        return ACTIVE;
    case ACTIVE_PENDING:
        return PENDING;
    default:
        return PASSIVE;
    }
}

static bool
take(struct failover_fixture *west, enum step step)
{
    int64_t before = VERSION_OF(*west);
    struct error *err = NULL;
    switch (step) {
    case FORCE_HERE:
        err = failover(west, "west", NULL);
        break;
    case GRACE_HERE:
        err = grace(west, "west", NULL);
        break;
    case FORCE_AWAY:
        err = failover(west, "north", NULL);
        break;
    case NEWER_AWAY: {
        ADMIN(DomainTaskAttributes) *message = message_of(west);
        message->domain->active_cluster_name = "east";
        message->failover_version = (before / 10 + 1) * 10;
        message->moved_version->value = message->failover_version;
        message->n_drains = 0;
        message->failover_record.len = 0;
        receive(west, message, "east");
        break;
    }
    case DRAINED: {
        bool is_pending = state_of(west) == PENDING;
        EXPECT_EQ(end_drain(west, "", "", before), is_pending);
        break;
    }
    default:
        EXPECT(!end_drain(west, "", "", before - 10));
    }
    return err == NULL;
}

/* Into each state by the shortest way. */
static void
reach(struct failover_fixture *west, enum state state)
{
    stand_in(west, WEST);
    if (state == ACTIVE)
        EXPECT_OK(failover(west, "west", NULL));
    if (state == PENDING)
        EXPECT_OK(grace(west, "west", NULL));
    EXPECT_EQ(state_of(west), state);
}

TEST(drain, every_state_and_step_leads_where_the_table_says, "F-026", "F-028", "F-029", "F-037",
     "F-038", "F-039")
{
    for (int from = 0; from < STATES; from++) {
        for (int step = 0; step < STEPS; step++) {
            FAILOVER_FIXTURE(west, EAST, NULL);
            reach(&west, from);
            int64_t version = VERSION_OF(west);
            bool is_done = take(&west, step);
            int expected = next_state[from][step];
            if (is_done != (expected != REFUSED))
                TEST_FAIL("state %d, step %d: refused: %d", from, step, !is_done);
            if (is_done && (int)state_of(&west) != expected)
                TEST_FAIL("state %d, step %d: became %d", from, step, state_of(&west));
            /* Completing takes no new version, by whichever way. */
            if (from == PENDING && state_of(&west) == ACTIVE)
                EXPECT_EQ(VERSION_OF(west), version);
            EXPECT_EQ(DRAIN_OF(west) != NULL, state_of(&west) == PENDING);
            EXPECT_EQ(RECORD_OF(west)->failover_end_time != 0, state_of(&west) == PENDING);
        }
    }
}

TEST(drain, that_ends_is_news_to_all_who_wait_but_no_failover, "F-026", "F-029")
{
    FAILOVER_FIXTURE(west, EAST, NULL);
    reach(&west, PENDING);
    int64_t noticed = NOTICED_OF(west);
    EXPECT(end_drain(&west, "", "", 1));
    EXPECT(NOTICED_OF(west) > noticed);
    EXPECT_EQ(VERSION_OF(west), 1);
    EXPECT(west.decision.failover == NULL);
}

/* --- many at once ---- */

/* "city.00000:east,city.00001:east,…" */
static const char *
many(size_t count, const char *cluster, struct arena *arena)
{
    size_t each = strlen("city.00000:,") + strlen(cluster), length = 0;
    char *text = arena_zalloc(arena, count * each + 1, 1);
    for (size_t i = 0; i < count; i++) {
        const char *one = arena_format(arena, "city.%05zu:%s,", i, cluster);
        memcpy(text + length, one, each);
        length += each;
    }
    text[length - 1] = '\0';
    return text;
}

/* How many bytes it takes to let so many attributes drain in west, and to hear of that in east. */
static size_t
cost_of(size_t count)
{
    scoped(arena_drop) struct arena *texts = arena_new(0);
    FAILOVER_FIXTURE(orders, EAST, many(count, "east", texts));
    FAILOVER_FIXTURE(source, EAST, many(count, "east", texts));
    stand_in(&orders, WEST);
    API(FailoverDomainRequest) *request = sample_failover(NULL, many(count, "west", texts), texts);
    request->failover_timeout = presence_make_duration(texts, TIMEOUT_S);
    struct arena *kept = orders.arena;
    scoped(arena_drop) struct arena *counted = arena_new(0);
    orders.arena = counted;
    EXPECT_OK(failover_request(&orders, request));
    adopt(&orders);
    orders.arena = kept;
    EXPECT_EQ(RECORD_OF(orders)->n_drains, count);
    const ADMIN(DomainTaskAttributes) *message = message_of(&orders);
    kept = source.arena;
    source.arena = counted;
    receive(&source, message, "west");
    source.arena = kept;
    EXPECT_EQ(RECORD_OF(source)->n_drains, count);
    source.decision = (struct domain_decision){0};
    return arena_footprint(counted);
}

/* Ten times as many attributes cost ten times as much, not a hundred times. */
TEST(drain, of_thousands_of_attributes_is_decided_in_one_walk)
{
    size_t few = cost_of(500), thousands = cost_of(5000);
    EXPECT(thousands < 20 * few);
}
