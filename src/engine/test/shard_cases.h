/* shard_cases.h - what is true of a shard on either platform: run by shard_test.c on real time and
 * by shard_sim_test.c in simulation, for every seed. */
#ifndef CADENZA_ENGINE_TEST_SHARD_CASES_H
#define CADENZA_ENGINE_TEST_SHARD_CASES_H

#include "engine/test/shard_fixture.h"

#define SHARD_CASES(X)                                                                             \
    X(an_answer_comes_after_its_commit)                                                            \
    X(a_refusal_waits_for_what_it_saw)                                                             \
    X(of_two_starts_at_once_one_wins)                                                              \
    X(signals_of_one_id_share_groups)                                                              \
    X(a_step_that_found_no_room_did_nothing)                                                       \
    X(a_caller_that_gives_up_undoes_nothing)                                                       \
    X(what_was_forgotten_is_read_again)                                                            \
    X(an_id_that_was_never_used_is_not_kept)                                                       \
    X(a_refused_step_leaves_nothing)                                                               \
    X(closing_waits_for_steps_in_flight)                                                           \
    X(an_overtaken_owner_is_fenced_and_reads_afresh)                                               \
    X(a_refusal_of_an_overtaken_owner_is_no_answer)                                                \
    X(an_overtaken_owner_does_not_refuse_a_reset)                                                  \
    X(a_lone_owner_takes_its_shard_again)                                                          \
    X(a_shard_that_was_taken_at_last_may_be_taken_again_at_once)                                   \
    X(a_range_is_renewed_before_it_is_used_up)                                                     \
    X(everything_is_there_after_a_restart)                                                         \
    X(a_domain_that_is_active_elsewhere_is_refused)                                                \
    X(a_task_is_offered_at_once_and_started_when_its_step_is_durable)                              \
    X(a_refused_task_is_offered_again)                                                             \
    X(a_lost_shard_offers_its_tasks_again)                                                         \
    X(rows_beyond_memory_are_read_later)                                                           \
    X(rows_that_come_while_others_are_read_are_not_lost)                                           \
    X(a_row_that_is_done_goes_by_itself)                                                           \
    X(a_row_written_with_the_shard_record_is_found_again)                                          \
    X(a_task_goes_to_the_list_of_its_domain_and_is_sticky_only_with_another_list)                  \
    X(the_task_of_a_closed_run_goes_with_it)                                                       \
    X(work_elsewhere_is_tried_again_until_it_is_done)                                              \
    X(work_elsewhere_is_begun_when_its_row_is_durable)                                             \
    X(work_elsewhere_goes_on_in_portions)                                                          \
    X(work_elsewhere_is_begun_again_by_the_next_owner)                                             \
    X(work_elsewhere_is_bounded_and_is_stopped)                                                    \
    X(accepted_requests_of_one_id_do_not_overtake_each_other)                                      \
    X(accepted_requests_are_done_in_order_by_the_next_owner)                                       \
    X(accepted_requests_leave_room_for_tasks)                                                      \
    X(accepted_requests_of_one_id_leave_room_for_others)                                           \
    X(a_watch_fires_when_events_are_durable)                                                       \
    X(a_watch_fires_when_the_run_closes)                                                           \
    X(a_watch_fires_when_the_shard_is_lost)                                                        \
    X(a_watch_that_was_taken_back_is_silent)                                                       \
    X(a_query_rides_on_a_decision_that_starts_after_it)                                            \
    X(a_query_is_set_free_when_the_end_of_the_decision_is_durable)                                 \
    X(a_query_is_set_free_when_the_run_closes_or_the_shard_is_lost)                                \
    X(a_sure_look_notices_that_its_owner_was_overtaken)                                            \
    X(a_change_of_a_domain_is_in_the_log_before_a_step_that_saw_it)                                \
    X(failovers_are_handled_once_also_over_a_restart)                                              \
    X(a_shard_is_not_taken_before_its_domains_are_known)                                           \
    X(changes_that_come_while_one_is_stored_are_stored_together)                                   \
    X(a_step_without_room_does_not_see_a_change)                                                   \
    X(a_task_of_a_domain_that_moved_away_waits_until_it_is_back)                                   \
    X(a_stored_task_of_a_domain_that_moved_away_comes_back_to_its_shard)                           \
    X(rows_that_wait_for_their_domain_leave_room_for_others)                                       \
    X(a_timer_of_a_domain_that_moved_away_waits_until_it_is_back)                                  \
    X(timers_that_wait_for_their_domain_leave_room_for_others)                                     \
    X(work_of_a_domain_that_moved_away_waits_until_it_is_back)                                     \
    X(work_waits_for_the_attribute_of_its_run)                                                     \
    X(the_log_of_the_domains_is_kept_for_the_shard)                                                \
    X(lists_are_told_what_a_durable_step_shows)                                                    \
    X(what_lists_have_no_room_for_is_read_later)                                                   \
    X(what_got_lost_on_its_way_to_lists_is_read_again)                                             \
    X(the_next_owner_hands_over_what_lists_do_not_have)                                            \
    X(rows_for_lists_go_when_they_are_safe)                                                        \
    X(visibility_that_lacks_rows_which_are_gone_is_rebuilt)                                        \
    X(visibility_that_was_rebuilt_in_part_is_begun_again)                                          \
    X(visibility_of_a_time_that_has_not_been_is_rebuilt)                                           \
    X(a_history_that_was_just_written_is_recalled_as_it_is_stored)                                 \
    X(what_is_not_durable_is_not_recalled)                                                         \
    X(histories_in_memory_are_bounded)                                                             \
    X(the_history_of_a_run_that_closed_is_not_kept_in_memory)                                      \
    X(a_drain_is_told_behind_the_last_event)                                                       \
    X(a_marker_that_is_due_is_put_by_the_next_owner)                                               \
    X(a_drain_that_nobody_heard_is_told_by_who_takes_the_shard)                                    \
    X(a_marker_of_what_moved_again_is_not_put)                                                     \
    X(no_event_follows_a_marker_on_a_host_with_older_domains)

#define X(title) void case_##title(struct shard_fixture *fixture);
SHARD_CASES(X)
#undef X

/* Makes every commit slow. */
void case_slow(struct shard_fixture *fixture, int64_t nanoseconds);
/* The cluster is east of the sample group; "moving" is a domain that is active there. */
void case_open_group(struct shard_fixture *fixture);
/* It moves, by force. */
void case_move_to(struct domains *domains, int cluster, struct arena *arena);
/* Another host of that cluster, which hears of domains by itself, takes the shard. */
struct case_host {
    struct domains *domains;
    struct shard *shard;
};
struct case_host case_open_host(struct shard_fixture *fixture);
void case_close_host(struct case_host *host);
/* The fixture's own host refuses a signal of "wf", though it may have to take the shard again
 * first. */
void case_expect_not_active(struct shard_fixture *fixture);
/* What the store has of the shard. */
const STORED(ShardRecord) *case_stored_record(struct shard_fixture *fixture);
/* Another owner takes the shard, and lets go. */
void case_overtake(struct shard_fixture *fixture);

#endif
