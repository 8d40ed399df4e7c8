/* metrics.h - counters, gauges and histograms in Prometheus' text form.
 *
 * A registry belongs to a server. A family is a name with a help sentence and label names; a series
 * is a family with label values. Look a series up once and keep it: adding to it is one relaxed
 * atomic add, with no lock. Looking up takes a short lock and is for setting up and for rare
 * labels. Series are never removed; a family has at most METRICS_SERIES_MAX series, then all
 * further label values share one series whose values are "other", so that a client cannot grow
 * memory by inventing labels. */
#ifndef CADENZA_BASE_METRICS_H
#define CADENZA_BASE_METRICS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

#define METRICS_LABELS_MAX 4
#define METRICS_SERIES_MAX 10000

struct metrics;
struct counter;
struct gauge;
struct histogram;
struct peak;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* `labels` is a NULL-terminated list name, value, name, value ... of at most METRICS_LABELS_MAX
 * pairs; NULL: none. The same name and labels give the same series. Same name with another kind or
 * label names: a check. */
struct counter *metrics_counter(struct metrics *metrics, const char *name, const char *help,
                                const char *const *labels);
struct gauge *metrics_gauge(struct metrics *metrics, const char *name, const char *help,
                            const char *const *labels);
/* Buckets for seconds, 100 µs … 100 s, a 1-2.5-5 ladder. */
struct histogram *metrics_histogram(struct metrics *metrics, const char *name, const char *help,
                                    const char *const *labels);

/* Buckets for numbers of things, 1 … 100,000, a 1-2-5 ladder. */
struct histogram *metrics_histogram_counts(struct metrics *metrics, const char *name,
                                           const char *help, const char *const *labels);
/* The highest recent value, shown as a gauge. */
struct peak *metrics_peak(struct metrics *metrics, const char *name, const char *help,
                          const char *const *labels);

void counter_add(struct counter *counter, uint64_t amount);
uint64_t counter_value(const struct counter *counter);
void gauge_set(struct gauge *gauge, int64_t value);
void gauge_add(struct gauge *gauge, int64_t amount);
int64_t gauge_value(const struct gauge *gauge);
/* Nanoseconds, or a count, as the histogram was made. */
void histogram_observe(struct histogram *histogram, int64_t value);
/* A value that was met in a window of time; the callers number the windows and agree on the
 * numbers. What is shown is the highest value of the newest window and of the one before. Value 0
 * only says that time has passed. */
void peak_raise(struct peak *peak, uint32_t window, uint32_t value);
uint64_t histogram_count(const struct histogram *histogram);

/* All series as Prometheus text, families in order of name, series in order of labels. */
struct slice metrics_render(struct metrics *metrics, struct arena *arena);

#endif
