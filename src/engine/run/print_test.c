/* print_test.c - events as people read them. */
#include "engine/run/print.h"

#include "base/test.h"
#include "engine/run/test_samples.h"

TEST(print, an_event_is_one_line_with_what_tells_it_apart)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_begin(&sample);
    sample_started(&sample, 0);
    sample_decision_scheduled(&sample);
    sample_decision_started(&sample);
    sample_decision_timed_out(&sample, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    sample_signaled(&sample, "wake up", "r");
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(sample.mutation, &count);
    EXPECT_TEXT(history_print(events, count, sample.arena),
                "1 WorkflowExecutionStarted workflow_type=sell task_list=orders input=in "
                "execution_start_to_close=1000s task_start_to_close=10s\n"
                "2 DecisionTaskScheduled task_list=orders start_to_close=10s\n"
                "3 DecisionTaskStarted scheduled=2\n"
                "4 DecisionTaskTimedOut scheduled=2 timeout_type=START_TO_CLOSE\n"
                "5 WorkflowExecutionSignaled signal_name=wake up\n");
    EXPECT_TEXT(event_print(events[2], sample.arena), "3 DecisionTaskStarted scheduled=2");
    mutation_cancel(sample.mutation);
    sample_close(&sample);
}

/* What a client sends may be anything: it must not break the line. */
TEST(print, odd_bytes_and_long_payloads_do_not_break_the_line)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    API(HistoryEvent) *event =
        mutation_new_event(sample.mutation, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED));
    API(Payload) *input = message_new(sample.arena, API_TYPE(payload));
    char bytes[200];
    memset(bytes, 'x', sizeof bytes);
    bytes[0] = '\n';
    input->data = presence_make_bytes(slice_of(bytes, sizeof bytes));
    event->workflow_execution_signaled_event_attributes->input = input;
    const char *line = event_print(event, sample.arena);
    EXPECT(strchr(line, '\n') == NULL);
    EXPECT(strlen(line) < 120);
    EXPECT(strstr(line, "input=.xxx") != NULL);
    EXPECT(strstr(line, "...") != NULL);
    mutation_cancel(sample.mutation);
    sample_close(&sample);
}
