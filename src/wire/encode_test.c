/* encode_test.c - messages into bytes: those that libprotobuf-c writes, bit for bit.
 *
 * Random messages of every request and response of the wire, and of a type made here that has what
 * those have not: all types of numbers, single, in lists and packed. */
#include <float.h>
#include <math.h>

#include "base/random.h"
#include "base/test.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"
#include "wire/services.h"
#include "wire/types.h"

#define DEPTH_MAX 6 /* the decisions of a history nest deeper than any use */
#define COUNT_MAX 4

/* ---- a type with everything ---- */

#define NUMBER_TYPES(X)                                                                            \
    X(INT32, int32_t)                                                                              \
    X(SINT32, int32_t)                                                                             \
    X(SFIXED32, int32_t)                                                                           \
    X(INT64, int64_t)                                                                              \
    X(SINT64, int64_t)                                                                             \
    X(SFIXED64, int64_t)                                                                           \
    X(UINT32, uint32_t)                                                                            \
    X(FIXED32, uint32_t)                                                                           \
    X(UINT64, uint64_t)                                                                            \
    X(FIXED64, uint64_t)                                                                           \
    X(FLOAT, float)                                                                                \
    X(DOUBLE, double)                                                                              \
    X(BOOL, protobuf_c_boolean)

struct numbers {
    ProtobufCMessage base;
#define X(NAME, type)                                                                              \
    type single_##NAME;                                                                            \
    size_t n_list_##NAME, n_packed_##NAME;                                                         \
    type *list_##NAME, *packed_##NAME;
    NUMBER_TYPES(X)
#undef X
};

enum { /* field numbers of one byte, two and five */
#define X(NAME, type) SINGLE_##NAME = 1 + PROTOBUF_C_TYPE_##NAME,
       NUMBER_TYPES(X)
#undef X
#define X(NAME, type) LIST_##NAME = 100 + PROTOBUF_C_TYPE_##NAME,
           NUMBER_TYPES(X)
#undef X
#define X(NAME, type) PACKED_##NAME = (1 << 28) + PROTOBUF_C_TYPE_##NAME,
               NUMBER_TYPES(X)
#undef X
};

/* By number, as the compiler has them. */
static const ProtobufCFieldDescriptor numbers_fields[] = {
#define X(NAME, number)                                                                            \
    {.name = #NAME,                                                                                \
     .id = SINGLE_##NAME,                                                                          \
     .label = PROTOBUF_C_LABEL_NONE,                                                               \
     .type = PROTOBUF_C_TYPE_##NAME,                                                               \
     .offset = offsetof(struct numbers, single_##NAME)},
    NUMBER_TYPES(X)
#undef X
#define X(NAME, number)                                                                            \
    {.name = #NAME,                                                                                \
     .id = LIST_##NAME,                                                                            \
     .label = PROTOBUF_C_LABEL_REPEATED,                                                           \
     .type = PROTOBUF_C_TYPE_##NAME,                                                               \
     .quantifier_offset = offsetof(struct numbers, n_list_##NAME),                                 \
     .offset = offsetof(struct numbers, list_##NAME)},
        NUMBER_TYPES(X)
#undef X
#define X(NAME, number)                                                                            \
    {.name = #NAME,                                                                                \
     .id = PACKED_##NAME,                                                                          \
     .label = PROTOBUF_C_LABEL_REPEATED,                                                           \
     .type = PROTOBUF_C_TYPE_##NAME,                                                               \
     .quantifier_offset = offsetof(struct numbers, n_packed_##NAME),                               \
     .offset = offsetof(struct numbers, packed_##NAME),                                            \
     .flags = PROTOBUF_C_FIELD_FLAG_PACKED},
            NUMBER_TYPES(X)
#undef X
};

static void numbers_init(ProtobufCMessage *message);

static const ProtobufCMessageDescriptor numbers_type = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "Numbers",
    .short_name = "Numbers",
    .sizeof_message = sizeof(struct numbers),
    .n_fields = array_length(numbers_fields),
    .fields = numbers_fields,
    .message_init = numbers_init,
};

static void
numbers_init(ProtobufCMessage *message)
{
    *(struct numbers *)message = (struct numbers){.base = {.descriptor = &numbers_type}};
}

/* ---- random messages ---- */

struct maker {
    struct arena *arena;
    struct random random;
    unsigned fill;        /* percent of the fields that are set */
    size_t text_size_max; /* of strings and bytes */
    unsigned depth;
};

static ProtobufCMessage *make_message(struct maker *maker, const ProtobufCMessageDescriptor *type);

static bool
chance(struct maker *maker, unsigned percent)
{
    return random_below(&maker->random, 100) < percent;
}

static uint64_t
make_bits(struct maker *maker)
{
    uint64_t bits = random_next(&maker->random) >> random_below(&maker->random, 64);
    return chance(maker, 20) ? -bits : bits;
}

static double
make_double(struct maker *maker)
{
    static const double edges[] = {0.0, -0.0, 1, -1.5, DBL_MAX, DBL_TRUE_MIN, INFINITY, NAN};
    return edges[random_below(&maker->random, array_length(edges))];
}

static char *
make_text(struct maker *maker)
{
    size_t length = random_below(&maker->random, maker->text_size_max);
    char *text = arena_alloc(maker->arena, length + 1);
    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

static void
fill_value(struct maker *maker, const ProtobufCFieldDescriptor *field, void *place)
{
    uint64_t bits = make_bits(maker);
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)place = make_text(maker);
        return;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)place = presence_make_bytes(slice_text(make_text(maker)));
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        if (maker->depth < DEPTH_MAX)
            *(ProtobufCMessage **)place = make_message(maker, field->descriptor);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)place = make_double(maker);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)place = (float)make_double(maker);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)place = (protobuf_c_boolean)(bits & 1);
        return;
    default:
        memcpy(place, &bits, message_element_size(field->type));
    }
}

static void
fill_field(struct maker *maker, const ProtobufCFieldDescriptor *field, char *message)
{
    char *place = message + field->offset;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
            *(uint32_t *)(message + field->quantifier_offset) = field->id;
        fill_value(maker, field, place);
        if (field->type == PROTOBUF_C_TYPE_STRING && chance(maker, 10))
            *(char **)place = NULL;
        return;
    }
    size_t size = message_element_size(field->type);
    size_t count = random_below(&maker->random, COUNT_MAX + 1);
    char *items = arena_zalloc(maker->arena, COUNT_MAX, size);
    for (size_t i = 0; i < count; i++) {
        fill_value(maker, field, items + i * size);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && ((void **)items)[i] == NULL)
            ((void **)items)[i] = message_new(maker->arena, field->descriptor);
    }
    *(size_t *)(message + field->quantifier_offset) = count;
    *(char **)place = items;
}

static ProtobufCMessage *
make_message(struct maker *maker, const ProtobufCMessageDescriptor *type)
{
    maker->depth++;
    ProtobufCMessage *message = message_new(maker->arena, type);
    for (unsigned i = 0; i < type->n_fields; i++)
        if (chance(maker, maker->fill))
            fill_field(maker, &type->fields[i], (char *)message);
    maker->depth--;
    return message;
}

static void
expect_same_bytes(struct arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *wanted = arena_alloc(arena, size);
    EXPECT_EQ(protobuf_c_message_pack(message, wanted), size);
    struct slice bytes = message_encode(arena, message);
    EXPECT(slice_equal(bytes, slice_of(wanted, size)));
}

static void
expect_same_of_type(uint64_t seed, const ProtobufCMessageDescriptor *type)
{
    static const unsigned fills[] = {0, 5, 40, 100};
    static const size_t sizes[] = {2, 40, 200, 3000};
    for (size_t i = 0; i < array_length(fills); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(i * 100);
        struct maker maker = {.arena = arena, .fill = fills[i]};
        random_seed(&maker.random, seed * 100 + i);
        maker.text_size_max = sizes[random_below(&maker.random, array_length(sizes))];
        if (maker.fill == 100)
            maker.depth = DEPTH_MAX - 3; /* or it would never end */
        expect_same_bytes(arena, make_message(&maker, type));
    }
}

TEST(encode, messages_of_the_wire_are_what_the_library_writes)
{
    for (int s = 0; s < test_seed_count(); s++) {
        for (size_t i = 0; i < wire_method_count(); i++) {
            expect_same_of_type(test_seed(s), wire_method_at(i).request);
            expect_same_of_type(test_seed(s), wire_method_at(i).response);
        }
        expect_same_of_type(test_seed(s), API_TYPE(history));
        expect_same_of_type(test_seed(s), STORED_TYPE(run_record));
    }
}

TEST(encode, numbers_of_all_types_are_what_the_library_writes)
{
    for (int s = 0; s < test_seed_count(); s++)
        for (uint64_t i = 0; i < 20; i++)
            expect_same_of_type(test_seed(s) * 20 + i, &numbers_type);
}

/* What is written moves to larger rooms on the way, what was taken before and after stays. */
ARENA_TEST(encode, a_large_message_disturbs_nothing_in_its_arena)
{
    char *before = arena_text(arena, "before");
    API(History) *history = message_new(arena, API_TYPE(history));
    API(HistoryEvent) event, *events[300];
    uber__cadence__api__v1__history_event__init(&event);
    event.event_id = INT64_MAX;
    for (size_t i = 0; i < array_length(events); i++)
        events[i] = &event;
    history->events = events;
    for (size_t count = 0; count <= array_length(events); count += 7) {
        history->n_events = count;
        struct slice bytes = message_encode(arena, &history->base);
        EXPECT_EQ(bytes.length, count * 12);
        char *after = arena_text(arena, "after");
        struct slice again = message_encode(arena, &history->base);
        EXPECT(slice_equal(bytes, again));
        EXPECT_TEXT(after, "after");
    }
    EXPECT_TEXT(before, "before");
}
