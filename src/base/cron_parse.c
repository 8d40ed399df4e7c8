/* cron_parse.c - cron schedules from text. Errors are worded as those of robfig's parser, which
 * clients know. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/cron.h"
#include "base/text.h"

#define SECOND      ((int64_t)1000000000)
#define FIELD_COUNT 5

/* What a field may hold. */
struct bounds {
    uint64_t low, high;
    const char *const *names; /* of low, low + 1, ...; NULL: none */
    size_t name_count;
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
static const struct bounds bounds[FIELD_COUNT] = {
    {0, 59, NULL, 0},
    {0, 23, NULL, 0},
    {1, 31, NULL, 0},
    {1, 12, month_names, array_length(month_names)},
    {0, 6, weekday_names, array_length(weekday_names)},
};

/* A part of a field, "1-5/2", while it is read. */
struct cron_part {
    struct arena *arena;
    const struct bounds *bounds;
    struct slice text; /* all of it, for complaints */
    uint64_t low, high, step;
    bool is_star;
};

#define part_refuse(part, format, ...)                                                             \
    arena_format((part)->arena, format, ##__VA_ARGS__, (int)(part)->text.length,                   \
                 (const char *)(part)->text.data)

/* ---- numbers ---- */

static bool
is_digits(struct slice text)
{
    bool has_sign = text.length > 0 && (text.data[0] == '+' || text.data[0] == '-');
    for (size_t i = has_sign; i < text.length; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.length > has_sign;
}

/* In quotes, so that what cannot be printed can be seen. */
static const char *
quote(struct slice text, struct arena *arena)
{
    char *quoted = arena_alloc(arena, text.length * 4 + 3);
    size_t length = 0;
    quoted[length++] = '"';
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = text.data[i];
        bool is_plain = byte >= 0x80 || (byte >= 0x20 && byte != 0x7f);
        static const char hex[] = "0123456789abcdef";
        if (byte == '"' || byte == '\\')
            quoted[length++] = '\\';
        if (is_plain) {
            quoted[length++] = (char)byte;
            continue;
        }
        const char code[] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        memcpy(quoted + length, code, sizeof code);
        length += sizeof code;
    }
    quoted[length++] = '"';
    quoted[length] = '\0';
    return quoted;
}

static const char *
read_number(const struct cron_part *part, struct slice text, uint64_t *number)
{
    int64_t value;
    struct slice digits = text;
    if (digits.length > 1 && digits.data[0] == '+' && digits.data[1] != '-')
        digits = slice_skip(digits, 1);
    if (text_parse_int64(digits, 0, INT64_MAX, &value)) {
        *number = (uint64_t)value;
        return NULL;
    }
    return arena_format(part->arena, "failed to parse int from %.*s: strconv.Atoi: parsing %s: %s",
                        (int)text.length, (const char *)text.data, quote(text, part->arena),
                        is_digits(text) ? "value out of range" : "invalid syntax");
}

static const char *
read_value(const struct cron_part *part, struct slice text, uint64_t *number)
{
    for (size_t i = 0; i < part->bounds->name_count; i++) {
        const char *name = part->bounds->names[i];
        if (strlen(name) == text.length &&
            strncasecmp(name, (const char *)text.data, text.length) == 0) {
            *number = part->bounds->low + i;
            return NULL;
        }
    }
    return read_number(part, text, number);
}

/* ---- fields ---- */

/* Cuts the text at each `mark`; counts the pieces, keeps as many as there is room for. */
static size_t
split(struct slice text, char mark, struct slice *pieces, size_t room)
{
    size_t count = 0, begin = 0;
    for (size_t i = 0; i <= text.length; i++) {
        if (i < text.length && text.data[i] != (unsigned char)mark)
            continue;
        if (count < room)
            pieces[count] = slice_of(text.data + begin, i - begin);
        count++;
        begin = i + 1;
    }
    return count;
}

/* "*", "3", "3-5". *is_single: without a hyphen. */
static const char *
read_range(struct cron_part *part, struct slice text, bool *is_single)
{
    struct slice ends[2];
    size_t count = split(text, '-', ends, 2);
    *is_single = count == 1;
    part->is_star = ends[0].length == 1 && (ends[0].data[0] == '*' || ends[0].data[0] == '?');
    if (part->is_star) {
        part->low = part->bounds->low;
        part->high = part->bounds->high;
        return NULL;
    }
    const char *fault = read_value(part, ends[0], &part->low);
    part->high = part->low;
    if (fault == NULL && count == 2)
        fault = read_value(part, ends[1], &part->high);
    if (fault == NULL && count > 2)
        fault = part_refuse(part, "too many hyphens: %.*s");
    return fault;
}

static const char *
check_part(const struct cron_part *part)
{
    const struct bounds *limit = part->bounds;
    if (part->low < limit->low)
        return part_refuse(part, "beginning of range (%llu) below minimum (%llu): %.*s",
                           (unsigned long long)part->low, (unsigned long long)limit->low);
    if (part->high > limit->high)
        return part_refuse(part, "end of range (%llu) above maximum (%llu): %.*s",
                           (unsigned long long)part->high, (unsigned long long)limit->high);
    if (part->low > part->high)
        return part_refuse(part, "beginning of range (%llu) beyond end of range (%llu): %.*s",
                           (unsigned long long)part->low, (unsigned long long)part->high);
    if (part->step == 0)
        return part_refuse(part, "step of range should be a positive number: %.*s");
    return NULL;
}

/* "3-20/4": adds its bits. */
static const char *
read_part(struct cron_part *part, uint64_t *bits, bool *is_any)
{
    struct slice pieces[2];
    bool is_single;
    size_t count = split(part->text, '/', pieces, 2);
    part->step = 1;
    const char *fault = read_range(part, pieces[0], &is_single);
    if (fault == NULL && count == 2)
        fault = read_number(part, pieces[1], &part->step);
    if (fault == NULL && count > 2)
        fault = part_refuse(part, "too many slashes: %.*s");
    if (fault != NULL)
        return fault;
    if (count == 2 && is_single)
        part->high = part->bounds->high; /* "3/4" is 3, 7, 11, ... */
    fault = check_part(part);
    if (fault != NULL)
        return fault;
    *is_any = *is_any || (part->is_star && part->step == 1);
    for (uint64_t value = part->low; value <= part->high; value += part->step)
        *bits |= (uint64_t)1 << value;
    return NULL;
}

/* A list of parts; empty ones do not count. */
static const char *
read_field(struct slice text, const struct bounds *limit, struct arena *arena, uint64_t *bits,
           bool *is_any)
{
    *bits = 0;
    *is_any = false;
    for (size_t begin = 0; begin < text.length;) {
        const unsigned char *comma = memchr(text.data + begin, ',', text.length - begin);
        size_t end = comma == NULL ? text.length : (size_t)(comma - text.data);
        struct cron_part part = {
            .arena = arena, .bounds = limit, .text = slice_of(text.data + begin, end - begin)};
        const char *fault = end == begin ? NULL : read_part(&part, bits, is_any);
        if (fault != NULL)
            return fault;
        begin = end + 1;
    }
    return NULL;
}

/* ---- the whole ---- */

static struct slice
trim(struct slice text)
{
    while (text.length > 0 && isspace(text.data[0]))
        text = slice_skip(text, 1);
    while (text.length > 0 && isspace(text.data[text.length - 1]))
        text.length--;
    return text;
}

/* Takes the next word off the text; empty: none. */
static struct slice
take_word(struct slice *text)
{
    *text = trim(*text);
    size_t length = 0;
    while (length < text->length && !isspace(text->data[length]))
        length++;
    struct slice word = slice_of(text->data, length);
    *text = slice_skip(*text, length);
    return word;
}

static const char *
wrong_count(struct slice text, size_t count, struct arena *arena)
{
    char *all = arena_alloc(arena, text.length + 1);
    size_t length = 0;
    for (struct slice word; (word = take_word(&text)).length > 0; length += word.length) {
        if (length > 0)
            all[length++] = ' ';
        memcpy(all + length, word.data, word.length);
    }
    return arena_format(arena, "expected exactly %d fields, found %zu: [%.*s]", FIELD_COUNT, count,
                        (int)length, all);
}

static const char *
read_fields(struct slice text, struct arena *arena, struct cron *cron)
{
    struct slice fields[FIELD_COUNT], rest = text;
    size_t count = 0;
    for (struct slice word; (word = take_word(&rest)).length > 0; count++)
        if (count < FIELD_COUNT)
            fields[count] = word;
    if (count != FIELD_COUNT)
        return wrong_count(text, count, arena);
    uint64_t *const bits[FIELD_COUNT] = {&cron->minutes, &cron->hours, &cron->days, &cron->months,
                                         &cron->weekdays};
    bool is_any[FIELD_COUNT];
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *fault = read_field(fields[i], &bounds[i], arena, bits[i], &is_any[i]);
        if (fault != NULL)
            return fault;
    }
    cron->is_any_day = is_any[2];
    cron->is_any_weekday = is_any[4];
    return NULL;
}

static const struct {
    const char *name, *fields;
} descriptors[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

static const char *
read_descriptor(struct slice text, struct arena *arena, struct cron *cron)
{
    for (size_t i = 0; i < array_length(descriptors); i++)
        if (slice_equal(text, slice_text(descriptors[i].name)))
            return read_fields(slice_text(descriptors[i].fields), arena, cron);
    struct slice every = slice_text("@every ");
    if (!slice_starts_with(text, every))
        return arena_format(arena, "unrecognized descriptor: %.*s", (int)text.length,
                            (const char *)text.data);
    struct slice duration = slice_skip(text, every.length);
    int64_t nanoseconds;
    if (!text_parse_duration(duration, &nanoseconds))
        return arena_format(arena, "failed to parse duration %.*s: time: invalid duration %s",
                            (int)text.length, (const char *)text.data, quote(duration, arena));
    cron->every = nanoseconds < SECOND ? 1 : nanoseconds / SECOND;
    return NULL;
}

/* Takes "CRON_TZ=Europe/Paris " off the text. */
static const char *
take_zone(struct slice *text, struct arena *arena, struct cron *cron)
{
    const unsigned char *equals = memchr(text->data, '=', text->length);
    const unsigned char *blank = memchr(text->data, ' ', text->length);
    check(equals != NULL);
    struct slice name = slice_skip(*text, (size_t)(equals + 1 - text->data));
    if (blank == NULL || blank <= equals)
        return "no schedule behind the time zone";
    name.length = (size_t)(blank - equals - 1);
    *text = trim(slice_skip(*text, (size_t)(blank - text->data)));
    if (zone_find(name, &cron->zone))
        return NULL;
    return arena_format(arena, "provided bad location %.*s: unknown time zone %.*s",
                        (int)name.length, (const char *)name.data, (int)name.length,
                        (const char *)name.data);
}

const char *
cron_parse(const char *spec, struct arena *arena, struct cron *cron)
{
    struct slice text = slice_text(spec);
    *cron = (struct cron){0};
    if (text.length == 0)
        return "empty spec string";
    if (slice_starts_with(text, slice_text("TZ=")) ||
        slice_starts_with(text, slice_text("CRON_TZ="))) {
        const char *fault = take_zone(&text, arena, cron);
        if (fault != NULL)
            return fault;
    }
    if (slice_starts_with(text, slice_text("@")))
        return read_descriptor(text, arena, cron);
    return read_fields(text, arena, cron);
}
