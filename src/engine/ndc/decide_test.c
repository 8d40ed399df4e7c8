/* decide_test.c - where events of another cluster belong. */
#include "base/test.h"
#include "engine/ndc/decide.h"
#include "engine/run/mutation.h"
#include "engine/test/history_sample.h"
#include "wire/message.h"

static struct run_branches
run_of(struct versions versions, struct arena *arena)
{
    struct history_branch root = sample_branch('a');
    return branches_begin(&root, versions, arena);
}

/* Events `first` to `last`, of the last version that the list has at `last`. */
static struct replicated_batch
batch_of(struct versions versions, int64_t first, int64_t last)
{
    return (struct replicated_batch){.versions = versions,
                                     .first_event_id = first,
                                     .next_event_id = last + 1,
                                     .event_version = versions_of_event(versions, last)};
}

static void
expect_place(const struct run_branches *local, struct replicated_batch batch,
             enum batch_place place, size_t branch, struct version_item base)
{
    struct batch_verdict verdict = batch_decide(local, &batch);
    EXPECT_EQ(verdict.place, place);
    EXPECT_EQ(verdict.branch, branch);
    EXPECT(version_item_equal(verdict.base, base));
    EXPECT_EQ(verdict.fault != NULL, place == BATCH_IS_WRONG);
}

static struct run_branches
accept(const struct run_branches *local, struct replicated_batch batch, uint8_t name,
       struct arena *arena)
{
    struct batch_verdict verdict = batch_decide(local, &batch);
    struct history_branch fresh = sample_branch(name);
    return batch_accept(local, &batch, &verdict, &fresh, arena);
}

/* A (1), B (2) and C (3): B and C have (2,1)(3,2) when the domain fails over to C. */
ARENA_TEST(ndc_decide, three_clusters_diverge_and_see_the_same_tree)
{
    struct versions both = VERSIONS({2, 1}, {3, 2});
    struct versions of_b = VERSIONS({2, 1}, {4, 2}), of_c = VERSIONS({2, 1}, {3, 2}, {4, 3});
    struct run_branches start = run_of(both, arena);
    struct run_branches in_b = branches_append(&start, 0, ITEM(4, 2), arena);
    struct run_branches in_c = branches_append(&start, 0, ITEM(4, 3), arena);
    EXPECT_TEXT(sample_branches(&in_b, arena), "(2,1)(4,2)");
    EXPECT_TEXT(sample_branches(&in_c, arena), "(2,1)(3,2)(4,3)");

    /* C's event reaches B: another branch, which is B's current one from now on. */
    struct replicated_batch from_c = batch_of(of_c, 4, 4);
    expect_place(&in_b, from_c, BATCH_FORKS, 0, ITEM(3, 2));
    EXPECT(batch_decide(&in_b, &from_c).is_switch);
    in_b = accept(&in_b, from_c, 'c', arena);
    EXPECT_TEXT(sample_branches(&in_b, arena), "(2,1)(3,2)(4,3) | (2,1)(4,2)");

    /* B's event reaches C: another branch, C's state stays. */
    struct replicated_batch from_b = batch_of(of_b, 4, 4);
    expect_place(&in_c, from_b, BATCH_FORKS, 0, ITEM(3, 2));
    EXPECT(!batch_decide(&in_c, &from_b).is_current);
    in_c = accept(&in_c, from_b, 'b', arena);
    EXPECT_TEXT(sample_branches(&in_c, arena), sample_branches(&in_b, arena));

    /* Both again: nothing new. */
    expect_place(&in_b, from_c, BATCH_IS_KNOWN, 0, ITEM(4, 3));
    expect_place(&in_c, from_b, BATCH_IS_KNOWN, 1, ITEM(4, 2));
}

ARENA_TEST(ndc_decide, a_batch_goes_behind_the_last_event)
{
    struct run_branches local = run_of(VERSIONS({3, 1}), arena);
    expect_place(&local, batch_of(VERSIONS({5, 1}), 4, 5), BATCH_EXTENDS, 0, ITEM(3, 1));
    expect_place(&local, batch_of(VERSIONS({3, 1}, {4, 2}), 4, 4), BATCH_EXTENDS, 0, ITEM(3, 1));
    /* The source is ahead of what it sends. */
    struct versions ahead = VERSIONS({4, 1}, {5, 2}, {9, 11});
    expect_place(&local, batch_of(ahead, 4, 4), BATCH_EXTENDS, 0, ITEM(3, 1));
    local = accept(&local, batch_of(ahead, 4, 4), 0, arena);
    local = accept(&local, batch_of(ahead, 5, 5), 0, arena);
    EXPECT_TEXT(sample_branches(&local, arena), "(4,1)(5,2)");
}

ARENA_TEST(ndc_decide, what_is_there_is_a_duplicate)
{
    struct run_branches local = run_of(VERSIONS({3, 1}, {7, 2}), arena);
    expect_place(&local, batch_of(VERSIONS({2, 1}), 1, 2), BATCH_IS_KNOWN, 0, ITEM(2, 1));
    expect_place(&local, batch_of(VERSIONS({3, 1}, {5, 2}), 4, 5), BATCH_IS_KNOWN, 0, ITEM(5, 2));
    expect_place(&local, batch_of(VERSIONS({3, 1}, {9, 2}), 6, 7), BATCH_IS_KNOWN, 0, ITEM(7, 2));
    /* Its branch forks from ours later on; the batch itself is before that. */
    expect_place(&local, batch_of(VERSIONS({3, 1}, {6, 2}, {9, 3}), 4, 5), BATCH_IS_KNOWN, 0,
                 ITEM(6, 2));
}

ARENA_TEST(ndc_decide, a_gap_names_what_is_to_be_fetched)
{
    struct run_branches none = {0}, local = run_of(VERSIONS({3, 1}, {5, 2}), arena);
    struct replicated_batch batch = batch_of(VERSIONS({3, 1}, {6, 2}, {9, 3}), 8, 9);
    expect_place(&local, batch, BATCH_LACKS_EVENTS, 0, ITEM(5, 2));
    EXPECT(version_item_equal(batch_decide(&local, &batch).end, ITEM(8, 3)));
    expect_place(&none, batch, BATCH_LACKS_EVENTS, 0, ITEM(0, 0)); /* from the beginning */
    EXPECT(version_item_equal(batch_decide(&none, &batch).end, ITEM(8, 3)));
    /* On a branch that is not here yet: from where it forks. */
    batch = batch_of(VERSIONS({3, 1}, {4, 2}, {9, 3}), 7, 9);
    expect_place(&local, batch, BATCH_LACKS_EVENTS, 0, ITEM(4, 2));
    EXPECT(version_item_equal(batch_decide(&local, &batch).end, ITEM(7, 3)));
}

ARENA_TEST(ndc_decide, a_run_begins_with_its_first_event_or_with_a_reset)
{
    struct run_branches none = {0};
    expect_place(&none, batch_of(VERSIONS({2, 1}), 1, 2), BATCH_BEGINS, 0, ITEM(0, 0));
    struct run_branches begun = accept(&none, batch_of(VERSIONS({2, 1}, {9, 2}), 1, 2), 'a', arena);
    EXPECT_TEXT(sample_branches(&begun, arena), "(2,1)");
    struct replicated_batch reset = batch_of(VERSIONS({10, 21}, {13, 22}), 11, 13);
    reset.is_reset = true;
    expect_place(&none, reset, BATCH_BEGINS_AT_RESET, 0, ITEM(0, 0));
    struct run_branches local = run_of(VERSIONS({10, 21}), arena); /* it is here: as any other */
    expect_place(&local, reset, BATCH_EXTENDS, 0, ITEM(10, 21));
}

/* A branch that is not the current one grows, until its version is higher. */
ARENA_TEST(ndc_decide, the_branch_that_a_batch_is_of_gets_it)
{
    struct run_branches local = run_of(VERSIONS({2, 1}, {4, 2}), arena);
    local = accept(&local, batch_of(VERSIONS({2, 1}, {3, 2}, {4, 3}), 4, 4), 'c', arena);
    struct replicated_batch old = batch_of(VERSIONS({2, 1}, {6, 2}), 5, 6);
    expect_place(&local, old, BATCH_EXTENDS, 1, ITEM(4, 2));
    EXPECT(!batch_decide(&local, &old).is_current && !batch_decide(&local, &old).is_switch);
    local = accept(&local, old, 0, arena);
    EXPECT_TEXT(sample_branches(&local, arena), "(2,1)(3,2)(4,3) | (2,1)(6,2)");
    struct replicated_batch higher = batch_of(VERSIONS({2, 1}, {6, 2}, {7, 12}), 7, 7);
    expect_place(&local, higher, BATCH_EXTENDS, 1, ITEM(6, 2));
    EXPECT(batch_decide(&local, &higher).is_switch && batch_decide(&local, &higher).is_current);
    local = accept(&local, higher, 0, arena);
    EXPECT_TEXT(sample_branches(&local, arena), "(2,1)(6,2)(7,12) | (2,1)(3,2)(4,3)");
    struct replicated_batch third = batch_of(VERSIONS({2, 1}, {3, 2}, {5, 11}), 4, 5);
    expect_place(&local, third, BATCH_FORKS, 0, ITEM(3, 2));
    local = accept(&local, third, 'd', arena);
    EXPECT_TEXT(sample_branches(&local, arena),
                "(2,1)(6,2)(7,12) | (2,1)(3,2)(4,3) | (2,1)(3,2)(5,11)");
}

ARENA_TEST(ndc_decide, a_batch_that_no_cluster_can_have_sent_is_wrong)
{
    struct run_branches local = run_of(VERSIONS({3, 1}, {5, 2}), arena);
    struct version_item none = {0};
    struct replicated_batch batch = batch_of(VERSIONS({8, 7}), 6, 8);
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none); /* nothing in common */
    batch = batch_of(VERSIONS({3, 1}, {8, 2}), 5, 8);
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none); /* half of it is here */
    batch = batch_of(VERSIONS({3, 1}, {8, 2}), 6, 8);
    batch.event_version = 3;
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none); /* another version than it says */
    batch = batch_of(VERSIONS({3, 1}, {8, 2}), 6, 8);
    batch.next_event_id = 10;
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none); /* more than it says */
    batch = batch_of(VERSIONS({3, 1}, {8, 2}), 6, 8);
    batch.next_event_id = 6;
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none); /* nothing */
    batch.versions = VERSIONS({3, 2}, {8, 1});
    expect_place(&local, batch, BATCH_IS_WRONG, 0, none);
    struct run_branches two =
        branches_fork(&local, 0, ITEM(3, 1), sample_branch('b').branch, ITEM(4, 3), arena);
    batch =
        batch_of(VERSIONS({2, 1}, {3, 3}), 3, 3); /* its version is in another history already */
    expect_place(&two, batch, BATCH_IS_WRONG, 0, none);
}

static API(HistoryEvent) *
event_of(int64_t id, int64_t version, struct arena *arena)
{
    return API_NEW(arena, history_event, .event_id = id, .version = version);
}

ARENA_TEST(ndc_decide, the_events_of_a_batch_follow_each_other_in_one_version)
{
    struct versions versions = VERSIONS({3, 1}, {5, 2});
    struct replicated_batch batch;
    API(HistoryEvent) *good[] = {event_of(4, 2, arena), event_of(5, 2, arena)};
    EXPECT_OK(replicated_batch_read(good, 2, versions, arena, &batch));
    EXPECT(batch.first_event_id == 4 && batch.next_event_id == 6 && batch.event_version == 2);
    EXPECT(!batch.is_reset);
    EXPECT_KIND(replicated_batch_read(good, 0, versions, arena, &batch), ERR_BAD_REQUEST);
    API(HistoryEvent) *mixed[] = {event_of(3, 1, arena), event_of(4, 2, arena)};
    EXPECT_KIND(replicated_batch_read(mixed, 2, versions, arena, &batch), ERR_BAD_REQUEST);
    API(HistoryEvent) *gap[] = {event_of(3, 1, arena), event_of(5, 1, arena)};
    EXPECT_KIND(replicated_batch_read(gap, 2, versions, arena, &batch), ERR_BAD_REQUEST);
    API(HistoryEvent) *other[] = {event_of(6, 2, arena)};
    EXPECT_KIND(replicated_batch_read(other, 1, versions, arena, &batch), ERR_BAD_REQUEST);
}

ARENA_TEST(ndc_decide, a_reset_is_known_by_its_first_event)
{
    struct versions versions = VERSIONS({10, 21}, {11, 22});
    API(HistoryEvent) *event = event_of(11, 22, arena);
    API(DecisionTaskFailedEventAttributes) *failed =
        API_NEW(arena, decision_task_failed_event_attributes);
    event->attributes_case = EVENT_KIND(DECISION_TASK_FAILED);
    event->decision_task_failed_event_attributes = failed;
    struct replicated_batch batch;
    EXPECT_OK(replicated_batch_read(&event, 1, versions, arena, &batch));
    EXPECT(!batch.is_reset);
    failed->cause =
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    failed->base_run_id = failed->new_run_id = "run";
    EXPECT_OK(replicated_batch_read(&event, 1, versions, arena, &batch));
    EXPECT(batch.is_reset);
}

static void
expect_activity(const struct run_branches *local, struct versions versions, int64_t schedule_id,
                enum activity_place place, struct version_item base)
{
    struct version_item found = {0};
    EXPECT_EQ(activity_decide(local, versions, schedule_id, &found), place);
    EXPECT(place == ACTIVITY_IS_WRONG || version_item_equal(found, base));
}

ARENA_TEST(ndc_decide, the_state_of_an_activity_fits_where_its_schedule_event_is)
{
    struct run_branches local = run_of(VERSIONS({3, 1}, {6, 2}), arena);
    expect_activity(&local, VERSIONS({3, 1}, {5, 2}), 5, ACTIVITY_FITS, ITEM(5, 2));
    expect_activity(&local, VERSIONS({3, 1}, {6, 2}, {9, 3}), 6, ACTIVITY_FITS, ITEM(6, 2));
    expect_activity(&local, VERSIONS({3, 1}, {6, 2}, {9, 3}), 7, ACTIVITY_LACKS_EVENTS, ITEM(6, 2));
    /* Diverged: the higher version is right. */
    struct run_branches in_c = run_of(VERSIONS({3, 1}, {6, 3}), arena);
    expect_activity(&in_c, VERSIONS({3, 1}, {6, 2}), 2, ACTIVITY_IS_OVERRULED, ITEM(3, 1));
    expect_activity(&local, VERSIONS({3, 1}, {6, 3}), 2, ACTIVITY_LACKS_EVENTS, ITEM(3, 1));
    expect_activity(&local, VERSIONS({6, 5}), 2, ACTIVITY_IS_WRONG, ITEM(0, 0));
}
