/* metrics.c - families by name, series by label values, and the text that Prometheus reads.
 *
 * Both live in ordered trees, so that rendering is a walk. The key of a series is its label values,
 * each with its NUL. The lock guards the trees, never the numbers: these are relaxed atomics, since
 * each is right by itself and nobody reads an order between two of them. A histogram keeps no
 * count; it is the sum of the buckets, so that a page that is rendered under load still adds up. */
#include "base/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/tree.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)

/* Upper bounds of the buckets, and how Prometheus is to see them; a last one without bound follows.
 */
struct bound {
    int64_t value;
    const char *text;
};
static const struct bound seconds[] = {
    {MILLISECOND / 10, "0.0001"},
    {MILLISECOND / 4, "0.00025"},
    {MILLISECOND / 2, "0.0005"},
    {MILLISECOND, "0.001"},
    {MILLISECOND * 5 / 2, "0.0025"},
    {MILLISECOND * 5, "0.005"},
    {MILLISECOND * 10, "0.01"},
    {MILLISECOND * 25, "0.025"},
    {MILLISECOND * 50, "0.05"},
    {SECOND / 10, "0.1"},
    {SECOND / 4, "0.25"},
    {SECOND / 2, "0.5"},
    {SECOND, "1"},
    {SECOND * 5 / 2, "2.5"},
    {SECOND * 5, "5"},
    {SECOND * 10, "10"},
    {SECOND * 25, "25"},
    {SECOND * 50, "50"},
    {SECOND * 100, "100"},
};
static const struct bound counts[] = {
    {1, "1"},         {2, "2"},         {5, "5"},         {10, "10"},
    {20, "20"},       {50, "50"},       {100, "100"},     {200, "200"},
    {500, "500"},     {1000, "1000"},   {2000, "2000"},   {5000, "5000"},
    {10000, "10000"}, {20000, "20000"}, {50000, "50000"}, {100000, "100000"},
};
#define BUCKET_COUNT (array_length(seconds) + 1) /* there are fewer for counts */

/* The values of the series that all share once a family is full. */
static const char *const other[METRICS_LABELS_MAX] = {"other", "other", "other", "other"};

struct counter {
    _Atomic uint64_t value;
};

struct gauge {
    _Atomic int64_t value;
};

struct histogram {
    const struct bound *bounds;
    size_t bound_count;
    _Atomic uint64_t buckets[BUCKET_COUNT]; /* each for itself, not summed up */
    _Atomic int64_t sum;                    /* nanoseconds or a count */
};

/* Two windows, each (number << 32 | highest value): an odd one and an even one. */
struct peak {
    _Atomic uint64_t windows[2];
    _Atomic uint32_t newest;
};

enum kind { KIND_COUNTER, KIND_GAUGE, KIND_PEAK, KIND_HISTOGRAM, KIND_COUNTS, KIND_COUNT };

struct series {
    const char *values[METRICS_LABELS_MAX];
    union {
        struct counter counter;
        struct gauge gauge;
        struct peak peak;
        struct histogram histogram; /* the block ends earlier for the others */
    } number;
};

struct family {
    enum kind kind;
    const char *name;
    const char *help;
    int label_count;
    const char *label_names[METRICS_LABELS_MAX];
    struct tree *series;
};

struct metrics {
    pthread_mutex_t lock;
    struct arena *arena;   /* families, series and their texts */
    struct tree *families; /* by name */
};

/* ---- the registry ---- */

struct metrics *
metrics_new(void)
{
    struct metrics *metrics = memory_zalloc(1, sizeof *metrics);
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->arena = arena_new(0);
    metrics->families = tree_new();
    return metrics;
}

void
metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    struct tree_row *row = tree_first(metrics->families);
    for (; row != NULL; row = tree_next(row))
        tree_free(((struct family *)row->value)->series);
    tree_free(metrics->families);
    arena_free(metrics->arena);
    pthread_mutex_destroy(&metrics->lock);
    memory_free(metrics);
}

static bool
name_is_valid(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static int
label_count(const char *const *labels)
{
    int count = 0;
    for (; labels != NULL && labels[2 * count] != NULL; count++)
        check_that(count < METRICS_LABELS_MAX, "too many labels");
    return count;
}

static struct family *
family_new(struct metrics *metrics, enum kind kind, const char *name, const char *help,
           const char *const *labels)
{
    check_that(name_is_valid(name), "%s is not a valid metric name", name);
    struct family *family = arena_make(metrics->arena, struct family);
    family->kind = kind;
    family->name = arena_text(metrics->arena, name);
    family->help = arena_text(metrics->arena, help);
    family->label_count = label_count(labels);
    for (int i = 0; i < family->label_count; i++) {
        check_that(name_is_valid(labels[2 * i]), "%s is not a valid label name", labels[2 * i]);
        family->label_names[i] = arena_text(metrics->arena, labels[2 * i]);
    }
    family->series = tree_new();
    tree_put(metrics->families, slice_text(family->name), family);
    return family;
}

static void
family_check(const struct family *family, enum kind kind, const char *const *labels)
{
    check_that(family->kind == kind, "%s is of another kind", family->name);
    check_that(family->label_count == label_count(labels), "%s has other labels", family->name);
    for (int i = 0; i < family->label_count; i++)
        check_that(strcmp(family->label_names[i], labels[2 * i]) == 0, "%s has other labels",
                   family->name);
}

static size_t
series_size(enum kind kind)
{
    static const size_t sizes[KIND_COUNT] = {[KIND_COUNTER] = sizeof(struct counter),
                                             [KIND_GAUGE] = sizeof(struct gauge),
                                             [KIND_PEAK] = sizeof(struct peak),
                                             [KIND_HISTOGRAM] = sizeof(struct histogram),
                                             [KIND_COUNTS] = sizeof(struct histogram)};
    return offsetof(struct series, number) + sizes[kind];
}

static void
series_init(struct series *series, enum kind kind)
{
    struct histogram *histogram = &series->number.histogram;
    if (kind == KIND_HISTOGRAM) {
        histogram->bounds = seconds;
        histogram->bound_count = array_length(seconds);
    } else if (kind == KIND_COUNTS) {
        histogram->bounds = counts;
        histogram->bound_count = array_length(counts);
    }
}

/* The series of a family with these values, made if it is new and there is room; else NULL. For
 * `other` there is always room. */
static struct series *
family_series(struct metrics *metrics, struct family *family, const char *const *values)
{
    struct buffer key = {0};
    for (int i = 0; i < family->label_count; i++)
        buffer_append(&key, slice_of(values[i], strlen(values[i]) + 1));
    struct series *series = tree_get(family->series, buffer_slice(&key));
    if (series == NULL && (values == other || tree_count(family->series) < METRICS_SERIES_MAX)) {
        series = arena_zalloc(metrics->arena, 1, series_size(family->kind));
        series_init(series, family->kind);
        for (int i = 0; i < family->label_count; i++)
            series->values[i] = arena_text(metrics->arena, values[i]);
        tree_put(family->series, buffer_slice(&key), series);
    }
    buffer_free(&key);
    return series;
}

static struct series *
lookup_locked(struct metrics *metrics, enum kind kind, const char *name, const char *help,
              const char *const *labels)
{
    const char *values[METRICS_LABELS_MAX];
    struct family *family = tree_get(metrics->families, slice_text(name));
    if (family == NULL)
        family = family_new(metrics, kind, name, help, labels);
    family_check(family, kind, labels);
    for (int i = 0; i < family->label_count; i++)
        values[i] = labels[2 * i + 1] == NULL ? "" : labels[2 * i + 1];
    struct series *series = family_series(metrics, family, values);
    return series != NULL ? series : family_series(metrics, family, other);
}

static struct series *
lookup(struct metrics *metrics, enum kind kind, const char *name, const char *help,
       const char *const *labels)
{
    pthread_mutex_lock(&metrics->lock);
    struct series *series = lookup_locked(metrics, kind, name, help, labels);
    pthread_mutex_unlock(&metrics->lock);
    return series;
}

struct counter *
metrics_counter(struct metrics *metrics, const char *name, const char *help,
                const char *const *labels)
{
    return &lookup(metrics, KIND_COUNTER, name, help, labels)->number.counter;
}

struct gauge *
metrics_gauge(struct metrics *metrics, const char *name, const char *help,
              const char *const *labels)
{
    return &lookup(metrics, KIND_GAUGE, name, help, labels)->number.gauge;
}

struct histogram *
metrics_histogram(struct metrics *metrics, const char *name, const char *help,
                  const char *const *labels)
{
    return &lookup(metrics, KIND_HISTOGRAM, name, help, labels)->number.histogram;
}

struct histogram *
metrics_histogram_counts(struct metrics *metrics, const char *name, const char *help,
                         const char *const *labels)
{
    return &lookup(metrics, KIND_COUNTS, name, help, labels)->number.histogram;
}

struct peak *
metrics_peak(struct metrics *metrics, const char *name, const char *help, const char *const *labels)
{
    return &lookup(metrics, KIND_PEAK, name, help, labels)->number.peak;
}

/* ---- the numbers ---- */

void
counter_add(struct counter *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&counter->value, amount, memory_order_relaxed);
}

uint64_t
counter_value(const struct counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

void
gauge_set(struct gauge *gauge, int64_t value)
{
    atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

void
gauge_add(struct gauge *gauge, int64_t amount)
{
    atomic_fetch_add_explicit(&gauge->value, amount, memory_order_relaxed);
}

int64_t
gauge_value(const struct gauge *gauge)
{
    return atomic_load_explicit(&gauge->value, memory_order_relaxed);
}

void
histogram_observe(struct histogram *histogram, int64_t value)
{
    size_t bucket = 0;
    while (bucket < histogram->bound_count && value > histogram->bounds[bucket].value)
        bucket++;
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum, value, memory_order_relaxed);
}

uint64_t
histogram_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
    return count;
}

void
peak_raise(struct peak *peak, uint32_t window, uint32_t value)
{
    _Atomic uint64_t *place = &peak->windows[window % 2];
    uint64_t wanted = (uint64_t)window << 32 | value;
    uint64_t there = atomic_load_explicit(place, memory_order_relaxed);
    while (wanted > there)
        if (atomic_compare_exchange_weak_explicit(place, &there, wanted, memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
    uint32_t newest = atomic_load_explicit(&peak->newest, memory_order_relaxed);
    while (window > newest)
        if (atomic_compare_exchange_weak_explicit(&peak->newest, &newest, window,
                                                  memory_order_relaxed, memory_order_relaxed))
            break;
}

static uint32_t
peak_value(const struct peak *peak)
{
    uint32_t newest = atomic_load_explicit(&peak->newest, memory_order_relaxed), highest = 0;
    for (size_t i = 0; i < array_length(peak->windows); i++) {
        uint64_t there = atomic_load_explicit(&peak->windows[i], memory_order_relaxed);
        bool is_late = (there >> 32) + 1 >= newest;
        if (is_late && (uint32_t)there > highest)
            highest = (uint32_t)there;
    }
    return highest;
}

/* ---- the page ---- */

/* A text with backslash and newline escaped, and with `quote` the quotation mark too. What is not
 * UTF-8 becomes the replacement character: the reader would refuse the whole page. */
static void
put_escaped(struct buffer *page, const char *text, bool quote)
{
    struct slice rest = slice_text(text);
    while (rest.length > 0) {
        size_t length = text_utf8_sequence(rest);
        uint8_t byte = rest.data[0];
        if (length == 0)
            buffer_append_text(page, "\xef\xbf\xbd");
        else if (byte == '\n')
            buffer_append_text(page, "\\n");
        else if (byte == '\\' || (quote && byte == '"'))
            buffer_append_format(page, "\\%c", byte);
        else
            buffer_append(page, slice_of(rest.data, length));
        rest = slice_skip(rest, length == 0 ? 1 : length);
    }
}

/* name_suffix{label="value",le="bound"} and a blank; `bound` may be NULL. */
static void
put_series_name(struct buffer *page, const struct family *family, const struct series *series,
                const char *suffix, const char *bound)
{
    buffer_append_format(page, "%s%s", family->name, suffix);
    const char *before = "{";
    for (int i = 0; i < family->label_count; i++, before = ",") {
        buffer_append_format(page, "%s%s=\"", before, family->label_names[i]);
        put_escaped(page, series->values[i], true);
        buffer_append_text(page, "\"");
    }
    if (bound != NULL)
        buffer_append_format(page, "%sle=\"%s\"", before, bound);
    buffer_append_text(page, family->label_count > 0 || bound != NULL ? "} " : " ");
}

static void
put_histogram(struct buffer *page, const struct family *family, const struct series *series)
{
    const struct histogram *histogram = &series->number.histogram;
    uint64_t count = 0;
    for (size_t i = 0; i <= histogram->bound_count; i++) {
        const char *bound = i < histogram->bound_count ? histogram->bounds[i].text : "+Inf";
        count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        put_series_name(page, family, series, "_bucket", bound);
        buffer_append_format(page, "%" PRIu64 "\n", count);
    }
    int64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    put_series_name(page, family, series, "_sum", NULL);
    if (family->kind == KIND_COUNTS)
        buffer_append_format(page, "%" PRId64 "\n", sum);
    else
        buffer_append_format(page, "%.9f\n", (double)sum / (double)SECOND);
    put_series_name(page, family, series, "_count", NULL);
    buffer_append_format(page, "%" PRIu64 "\n", count);
}

static void
put_series(struct buffer *page, const struct family *family, const struct series *series)
{
    if (family->kind == KIND_HISTOGRAM || family->kind == KIND_COUNTS) {
        put_histogram(page, family, series);
        return;
    }
    put_series_name(page, family, series, "", NULL);
    if (family->kind == KIND_COUNTER)
        buffer_append_format(page, "%" PRIu64 "\n", counter_value(&series->number.counter));
    else if (family->kind == KIND_PEAK)
        buffer_append_format(page, "%" PRIu32 "\n", peak_value(&series->number.peak));
    else
        buffer_append_format(page, "%" PRId64 "\n", gauge_value(&series->number.gauge));
}

static void
put_family(struct buffer *page, const struct family *family)
{
    static const char *const kinds[KIND_COUNT] = {[KIND_COUNTER] = "counter",
                                                  [KIND_GAUGE] = "gauge",
                                                  [KIND_PEAK] = "gauge",
                                                  [KIND_HISTOGRAM] = "histogram",
                                                  [KIND_COUNTS] = "histogram"};
    buffer_append_format(page, "# HELP %s ", family->name);
    put_escaped(page, family->help, false);
    buffer_append_format(page, "\n# TYPE %s %s\n", family->name, kinds[family->kind]);
    for (struct tree_row *row = tree_first(family->series); row != NULL; row = tree_next(row))
        put_series(page, family, row->value);
}

struct slice
metrics_render(struct metrics *metrics, struct arena *arena)
{
    struct buffer page = {0};
    pthread_mutex_lock(&metrics->lock);
    for (struct tree_row *row = tree_first(metrics->families); row != NULL; row = tree_next(row))
        put_family(&page, row->value);
    pthread_mutex_unlock(&metrics->lock);
    struct slice text = arena_slice(arena, buffer_slice(&page));
    buffer_free(&page);
    return text;
}
