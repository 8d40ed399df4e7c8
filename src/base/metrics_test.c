/* metrics_test.c - the page that Prometheus reads, and numbers that add up under threads. */
#include "base/metrics.h"

#include <pthread.h>
#include <stdio.h>

#include "base/test.h"

#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *
page_of(struct metrics *metrics, struct arena *arena)
{
    return arena_text_of(arena, metrics_render(metrics, arena));
}

ARENA_TEST(metrics, the_page_is_in_order_of_names_and_labels)
{
    struct metrics *metrics = metrics_new();
    gauge_set(metrics_gauge(metrics, "open", "Open\nthings \\ now.", NULL), -3);
    counter_add(metrics_counter(metrics, "calls", "Calls.", LABELS("op", "Poll", "code", "0")), 5);
    counter_add(metrics_counter(metrics, "calls", "Calls.", LABELS("op", "List", "code", "5")), 2);
    counter_add(metrics_counter(metrics, "calls", "Calls.", LABELS("op", "List", "code", "0")), 1);
    EXPECT_TEXT(page_of(metrics, arena), "# HELP calls Calls.\n"
                                         "# TYPE calls counter\n"
                                         "calls{op=\"List\",code=\"0\"} 1\n"
                                         "calls{op=\"List\",code=\"5\"} 2\n"
                                         "calls{op=\"Poll\",code=\"0\"} 5\n"
                                         "# HELP open Open\\nthings \\\\ now.\n"
                                         "# TYPE open gauge\n"
                                         "open -3\n");
    metrics_free(metrics);
}

TEST(metrics, the_same_labels_give_the_same_series)
{
    struct metrics *metrics = metrics_new();
    struct counter *one = metrics_counter(metrics, "n", "h", LABELS("a", "1"));
    char value[] = "1"; /* equal, elsewhere */
    EXPECT(one == metrics_counter(metrics, "n", "h", LABELS("a", value)));
    EXPECT(one != metrics_counter(metrics, "n", "h", LABELS("a", "2")));
    counter_add(one, 3);
    EXPECT_EQ(counter_value(one), 3);
    struct gauge *gauge = metrics_gauge(metrics, "g", "h", NULL);
    gauge_set(gauge, 10);
    gauge_add(gauge, -4);
    EXPECT_EQ(gauge_value(gauge), 6);
    metrics_free(metrics);
}

ARENA_TEST(metrics, label_values_from_outside_cannot_break_the_page)
{
    struct metrics *metrics = metrics_new();
    counter_add(metrics_counter(metrics, "n", "h", LABELS("a", "x\"} 1\n\\\xff\xc3\xa9")), 1);
    EXPECT(strstr(page_of(metrics, arena), "n{a=\"x\\\"} 1\\n\\\\\xef\xbf\xbd\xc3\xa9\"} 1\n") !=
           NULL);
    metrics_free(metrics);
}

ARENA_TEST(metrics, a_histogram_sums_up_its_buckets)
{
    struct metrics *metrics = metrics_new();
    struct histogram *histogram = metrics_histogram(metrics, "t", "h", LABELS("op", "x"));
    const int64_t times[] = {0, 100000, 100001, 1500000000, 100000000000, 500000000000};
    for (size_t i = 0; i < array_length(times); i++)
        histogram_observe(histogram, times[i]);
    EXPECT_EQ(histogram_count(histogram), 6);
    const char *page = page_of(metrics, arena);
    EXPECT(strstr(page, "# TYPE t histogram\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"0.0001\"} 2\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"0.00025\"} 3\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"1\"} 3\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"2.5\"} 4\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"100\"} 5\n") != NULL);
    EXPECT(strstr(page, "t_bucket{op=\"x\",le=\"+Inf\"} 6\n") != NULL);
    EXPECT(strstr(page, "t_sum{op=\"x\"} 601.500200001\n") != NULL);
    EXPECT(strstr(page, "t_count{op=\"x\"} 6\n") != NULL);
    metrics_free(metrics);
}

TEST(metrics, invented_labels_end_in_one_series)
{
    struct metrics *metrics = metrics_new();
    for (int i = 0; i < METRICS_SERIES_MAX + 500; i++) {
        char value[32];
        snprintf(value, sizeof value, "%d", i);
        counter_add(metrics_counter(metrics, "n", "h", LABELS("a", value, "b", "x")), 1);
    }
    struct counter *other = metrics_counter(metrics, "n", "h", LABELS("a", "other", "b", "other"));
    EXPECT_EQ(counter_value(other), 500);
    EXPECT(other == metrics_counter(metrics, "n", "h", LABELS("a", "other", "b", "new")));
    EXPECT_EQ(counter_value(metrics_counter(metrics, "n", "h", LABELS("a", "7", "b", "x"))), 1);
    metrics_free(metrics);
}

static void *
add_many(void *context)
{
    struct metrics *metrics = context;
    for (int i = 0; i < 20000; i++) {
        const char *value = i % 2 == 0 ? "even" : "odd";
        counter_add(metrics_counter(metrics, "n", "h", LABELS("a", value)), 1);
        histogram_observe(metrics_histogram(metrics, "t", "h", NULL), i);
    }
    return NULL;
}

ARENA_TEST(metrics, nothing_is_lost_between_threads)
{
    struct metrics *metrics = metrics_new();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, add_many, metrics) == 0);
    for (int i = 0; i < 50; i++)
        metrics_render(metrics, arena);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(counter_value(metrics_counter(metrics, "n", "h", LABELS("a", "odd"))), 40000);
    EXPECT_EQ(histogram_count(metrics_histogram(metrics, "t", "h", NULL)), 80000);
    metrics_free(metrics);
}
