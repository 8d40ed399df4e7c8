/* presence_test.c - set, unset and empty. */
#include "wire/presence.h"

#include "base/test.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/maps.h"
#include "wire/message.h"

/* There and back for times around the second, before 1970, and at both ends of what 64 bits hold.
 */
TEST(presence, a_time_survives_the_way_there_and_back)
{
    static const int64_t times[] = {
        0,           1,           -1,        999999999, 1000000000,         -999999999,
        -1000000000, -1000000001, INT64_MAX, INT64_MIN, 1785000000123456789};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(times); i++) {
        GOOGLE(Timestamp) *timestamp = presence_make_timestamp(arena, times[i]);
        EXPECT(timestamp->nanos >= 0 && timestamp->nanos <= 999999999);
        struct maybe_int64 again;
        EXPECT_OK(presence_read_timestamp(arena, "start_time", timestamp, &again));
        EXPECT(again.is_set);
        EXPECT_EQ(again.value, times[i]);
    }
}

ARENA_TEST(presence, an_absent_time_is_unset_and_not_zero)
{
    struct maybe_int64 time = {.is_set = true, .value = 5};
    EXPECT_OK(presence_read_timestamp(arena, "start_time", NULL, &time));
    EXPECT(!time.is_set);
    EXPECT(presence_make_maybe_timestamp(arena, time) == NULL);
    EXPECT(presence_make_maybe_timestamp(arena, (struct maybe_int64){.is_set = true}) != NULL);
}

TEST(presence, a_time_that_is_none_is_refused_with_its_field)
{
    static const struct {
        int64_t seconds;
        int32_t nanos;
    } cases[] = {{0, -1},        {0, 1000000000},         {INT64_MAX, 0},
                 {INT64_MIN, 0}, {9223372036, 854775808}, {-9223372037, 145224191}};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(cases); i++) {
        GOOGLE(Timestamp) *timestamp =
            GOOGLE_NEW(arena, timestamp, .seconds = cases[i].seconds, .nanos = cases[i].nanos);
        struct maybe_int64 time;
        struct error *err = presence_read_timestamp(arena, "close_time", timestamp, &time);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strncmp(err->message, "close_time: ", 12) == 0);
        EXPECT(!time.is_set);
    }
}

static GOOGLE(Duration) *
duration_of(struct arena *arena, int64_t seconds, int32_t nanos)
{
    GOOGLE(Duration) *duration = GOOGLE_NEW(arena, duration, .seconds = seconds, .nanos = nanos);
    return duration;
}

ARENA_TEST(presence, a_duration_is_cut_to_whole_seconds)
{
    struct maybe_int64 seconds;
    EXPECT_OK(presence_read_duration(arena, "timeout", duration_of(arena, 3, 999999999), &seconds));
    EXPECT(seconds.is_set);
    EXPECT_EQ(seconds.value, 3);
    EXPECT_OK(presence_read_duration(arena, "timeout", duration_of(arena, 0, 500000000), &seconds));
    EXPECT(seconds.is_set); /* given, although nothing is left of it */
    EXPECT_EQ(seconds.value, 0);
    EXPECT_OK(presence_read_duration(arena, "timeout", duration_of(arena, -3, -1), &seconds));
    EXPECT_EQ(seconds.value, -3);
    EXPECT_OK(presence_read_duration(arena, "timeout", NULL, &seconds));
    EXPECT(!seconds.is_set);
    EXPECT_EQ(presence_make_duration(arena, 7)->seconds, 7);
}

TEST(presence, a_time_that_is_shown_is_cut_to_what_fits)
{
    GOOGLE(Timestamp) timestamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    EXPECT_EQ(presence_time(NULL), 0);
    timestamp.seconds = -2;
    timestamp.nanos = 5;
    EXPECT_EQ(presence_time(&timestamp), -1999999995);
    timestamp.seconds = INT64_MAX;
    EXPECT_EQ(presence_time(&timestamp), INT64_MAX);
    timestamp.seconds = INT64_MIN;
    EXPECT_EQ(presence_time(&timestamp), INT64_MIN);
}

TEST(presence, a_duration_that_is_none_is_refused)
{
    static const struct {
        int64_t seconds;
        int32_t nanos;
    } cases[] = {{1, -1},          {-1, 1},           {0, 1000000000},
                 {0, -1000000000}, {315576000001, 0}, {-315576000001, 0}};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(cases); i++) {
        GOOGLE(Duration) *duration = duration_of(arena, cases[i].seconds, cases[i].nanos);
        struct maybe_int64 out;
        EXPECT_KIND(presence_read_duration(arena, "timeout", duration, &out), ERR_BAD_REQUEST);
        EXPECT_KIND(presence_read_duration_nanoseconds(arena, "timeout", duration, &out),
                    ERR_BAD_REQUEST);
    }
}

ARENA_TEST(presence, a_duration_can_be_read_to_the_nanosecond)
{
    struct maybe_int64 out;
    static const int64_t durations[] = {0, 1, -1, 1500000000, -1500000000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < array_length(durations); i++) {
        GOOGLE(Duration) *duration = presence_make_duration_nanoseconds(arena, durations[i]);
        EXPECT_OK(presence_read_duration_nanoseconds(arena, "interval", duration, &out));
        EXPECT_EQ(out.value, durations[i]);
    }
    EXPECT_KIND(presence_read_duration_nanoseconds(arena, "interval",
                                                   duration_of(arena, 9223372037, 0), &out),
                ERR_BAD_REQUEST);
}

ARENA_TEST(presence, a_wrapped_zero_is_not_unset)
{
    EXPECT(presence_make_int64(arena, (struct maybe_int64){0}) == NULL);
    GOOGLE(Int64Value) *zero = presence_make_int64(arena, (struct maybe_int64){.is_set = true});
    EXPECT(presence_read_int64(zero).is_set);
    EXPECT_EQ(presence_read_int64(zero).value, 0);
    EXPECT(!presence_read_int64(NULL).is_set);
    GOOGLE(DoubleValue) *half = message_new(arena, GOOGLE_TYPE(double_value));
    half->value = 0.5;
    EXPECT(presence_read_double(half).value == 0.5);
    EXPECT(!presence_read_double(NULL).is_set);
}

/* On the wire: an absent payload is nothing, an empty one is a tag and a length of 0. */
ARENA_TEST(presence, an_empty_payload_is_not_an_absent_one)
{
    EXPECT(presence_make_payload(arena, (struct maybe_bytes){0}) == NULL);
    API(Payload) *empty = presence_make_payload(arena, (struct maybe_bytes){.is_set = true});
    API(Memo__FieldsEntry) *entry = message_new(arena, API_TYPE(memo__fields_entry));
    EXPECT_EQ(message_encode(arena, &entry->base).length, 0);
    entry->value = empty;
    EXPECT(slice_equal(message_encode(arena, &entry->base), slice_of("\x12\x00", 2)));
    EXPECT(presence_read_payload(empty).is_set);
    EXPECT_EQ(presence_read_payload(empty).bytes.length, 0);
    EXPECT(!presence_read_payload(NULL).is_set);
}

/* Go's worker takes a page token that is present and empty for "more pages". */
ARENA_TEST(presence, empty_bytes_are_not_written)
{
    API(ListDomainsResponse) *response = API_NEW(
        arena, list_domains_response, .next_page_token = presence_make_bytes(slice_of("", 0)));
    EXPECT_EQ(message_encode(arena, &response->base).length, 0);
    response->next_page_token = presence_make_bytes(slice_of("t", 1));
    EXPECT_EQ(message_encode(arena, &response->base).length, 3);
    EXPECT(slice_equal(presence_read_bytes(response->next_page_token), slice_of("t", 1)));
}

TEST(presence, an_enum_that_is_unset_takes_its_default)
{
    const ProtobufCEnumDescriptor *type = API_TYPE(archival_status);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int out = -1;
    EXPECT_OK(presence_read_enum(arena, "status", type, 0, 1, &out));
    EXPECT_EQ(out, 1);
    EXPECT_OK(presence_read_enum(arena, "status", type, 2, 1, &out));
    EXPECT_EQ(out, 2);
    struct error *err = presence_read_enum(arena, "status", type, 99, 1, &out);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "status: ArchivalStatus has no number 99");
    EXPECT(!presence_is_enum(type, -1));
}

TEST(presence, no_mask_names_every_path_and_an_empty_one_none)
{
    EXPECT(presence_mask_has(NULL, "description"));
    GOOGLE(FieldMask) mask = GOOGLE__PROTOBUF__FIELD_MASK__INIT;
    EXPECT(!presence_mask_has(&mask, "description"));
    char *paths[] = {"owner_email", "description"};
    mask.n_paths = 2;
    mask.paths = paths;
    EXPECT(presence_mask_has(&mask, "description"));
    EXPECT(!presence_mask_has(&mask, "desc"));
    EXPECT(!presence_mask_has(&mask, "data"));
}

/* Method: all ways to give four entries one of five keys each. */
ARENA_TEST(presence, a_sorted_map_keeps_the_last_of_equal_keys)
{
    for (int order = 0; order < 5 * 5 * 5 * 5; order++) {
        API(Domain__DataEntry) *entries[4];
        char *last[5] = {NULL};
        size_t count = 4;
        for (int i = 0, rest = order; i < 4; i++, rest /= 5) {
            entries[i] = message_new(arena, API_TYPE(domain__data_entry));
            entries[i]->key = arena_format(arena, "k%d", rest % 5);
            entries[i]->value = arena_format(arena, "v%d", i);
            last[rest % 5] = entries[i]->value;
        }
        wire_map_sort(arena, entries, &count);
        for (size_t i = 1; i < count; i++)
            EXPECT(strcmp(entries[i - 1]->key, entries[i]->key) < 0);
        for (int key = 0; key < 5; key++) {
            API(Domain__DataEntry) *found =
                wire_map_find(entries, count, arena_format(arena, "k%d", key));
            EXPECT_EQ(found != NULL, last[key] != NULL);
            EXPECT(found == NULL || found->value == last[key]);
        }
    }
}
