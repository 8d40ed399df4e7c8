/* refusal_test.c - bytes that are refused: malformed, with bad text, too deep, too large.
 *
 * Bytes are written by hand, so that they can be wrong. */
#include "base/test.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define BYTES(text) ((struct slice)SLICE_LITERAL(text))

/* Decodes and expects this message in the refusal. */
static void
expect_refusal(const ProtobufCMessageDescriptor *type, struct slice bytes, const char *message)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    ProtobufCMessage *out = NULL;
    struct error *err = message_decode_at(arena, ERR_BAD_REQUEST, type, bytes, &out);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, message);
    EXPECT(out == NULL);
}

/* What a client calls a name must not become another name on the way: protobuf-c would cut it. */
TEST(refusal, a_string_with_a_nul_byte_is_refused_with_its_path)
{
    expect_refusal(API_TYPE(describe_domain_request), BYTES("\x0a\x03x\0y"),
                   "DescribeDomainRequest.id: holds a NUL byte");
    expect_refusal(API_TYPE(start_workflow_execution_request), BYTES("\x1a\x05\x0a\x03x\0y"),
                   "StartWorkflowExecutionRequest.workflow_type.name: holds a NUL byte");
}

TEST(refusal, a_string_that_is_not_utf8_is_refused_at_any_depth)
{
    expect_refusal(API_TYPE(describe_domain_request), BYTES("\x0a\x01\xff"),
                   "DescribeDomainRequest.id: not valid UTF-8");
    expect_refusal(API_TYPE(register_domain_request),
                   BYTES("\x42\x06\x0a\x01\x61\x12\x01\x62\x42\x03\x0a\x01\xc0"),
                   "RegisterDomainRequest.data[1].key: not valid UTF-8");
    expect_refusal(API_TYPE(register_domain_request), BYTES("\x42\x05\x12\x03\xed\xa0\x80"),
                   "RegisterDomainRequest.data[0].value: not valid UTF-8");
    expect_refusal(GOOGLE_TYPE(string_value), BYTES("\x0a\x02\xc3\x28"),
                   "StringValue.value: not valid UTF-8");
}

TEST(refusal, malformed_bytes_are_refused)
{
    static const struct {
        struct slice bytes;
        const char *message;
    } cases[] = {
        {SLICE_LITERAL("\x0a"), "DescribeDomainRequest.id: cut off in a number"},
        {SLICE_LITERAL("\x0a\x05x"), "DescribeDomainRequest.id: longer than what is left"},
        {SLICE_LITERAL("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"),
         "DescribeDomainRequest.id: longer than what is left"},
        {SLICE_LITERAL("\x80"), "DescribeDomainRequest: cut off in a number"},
        {SLICE_LITERAL("\x02\x00"), "DescribeDomainRequest: field number 0"},
        {SLICE_LITERAL("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
         "DescribeDomainRequest: a number of more than 64 bits"},
        {SLICE_LITERAL("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
         "DescribeDomainRequest: a number of more than 64 bits"},
        {SLICE_LITERAL("\x80\x80\x80\x80\x10"),
         "DescribeDomainRequest: a field number above 536870911"},
        {SLICE_LITERAL("\x0e"), "DescribeDomainRequest: a wire type that does not exist"},
        {SLICE_LITERAL("\x0f"), "DescribeDomainRequest: a wire type that does not exist"},
        {SLICE_LITERAL("\x08\x01"),
         "DescribeDomainRequest.id: a wire type that this field does not have"},
        {SLICE_LITERAL("\x0b\x0c"),
         "DescribeDomainRequest.id: a wire type that this field does not have"},
        {SLICE_LITERAL("\x9c\x06"), "DescribeDomainRequest: the end of a group that did not begin"},
        {SLICE_LITERAL("\x9b\x06"), "DescribeDomainRequest: cut off in a number"},
        {SLICE_LITERAL("\x9b\x06\xa4\x06"), "DescribeDomainRequest: the end of another group"},
        {SLICE_LITERAL("\x9d\x06\x01\x02\x03"), "DescribeDomainRequest: cut off in a number"},
        {SLICE_LITERAL("\x99\x06\x01\x02\x03\x04\x05\x06\x07"),
         "DescribeDomainRequest: cut off in a number"},
    };
    for (size_t i = 0; i < array_length(cases); i++)
        expect_refusal(API_TYPE(describe_domain_request), cases[i].bytes, cases[i].message);
    expect_refusal(ADMIN_TYPE(describe_history_host_response), BYTES("\x12\x02\x01\x80"),
                   "DescribeHistoryHostResponse.shard_ids[1]: cut off in a number");
}

/* Every cut of a good message either ends between two fields or is refused; none is read past its
 * end (AddressSanitizer looks: each cut is a block of its own). */
ARENA_TEST(refusal, a_message_cut_anywhere_does_not_harm)
{
    struct slice whole =
        BYTES("\x0a\x01n\x12\x03xyz\x2a\x02\x08\x05\x42\x06\x0a\x01k\x12\x01v\x48\x01");
    for (size_t length = 0; length <= whole.length; length++) {
        struct slice cut = arena_slice(arena, slice_of(whole.data, length));
        API(RegisterDomainRequest) *request;
        struct error *err = message_decode(arena, API_TYPE(register_domain_request), cut, &request);
        bool is_between = length == 0 || length == 3 || length == 8 || length == 12 ||
                          length == 20 || length == 22;
        EXPECT_EQ(err == NULL, is_between);
    }
}

ARENA_TEST(refusal, groups_may_not_nest_deeper_than_the_limit)
{
    uint8_t bytes[4 * (MESSAGE_DEPTH_MAX + 1)];
    for (size_t depth = MESSAGE_DEPTH_MAX; depth <= MESSAGE_DEPTH_MAX + 1; depth++) {
        for (size_t i = 0; i < depth; i++) {
            memcpy(bytes + 2 * i, "\xa3\x06", 2);
            memcpy(bytes + 2 * depth + 2 * i, "\xa4\x06", 2);
        }
        API(DescribeDomainRequest) *request;
        struct error *err = message_decode(arena, API_TYPE(describe_domain_request),
                                           slice_of(bytes, 4 * depth), &request);
        EXPECT_EQ(err == NULL, depth == MESSAGE_DEPTH_MAX);
    }
}

/* No message of the wire holds itself, so this one is made by hand: message Node { Node child = 1;
 * } */
struct node {
    ProtobufCMessage base;
    struct node *child;
};
extern const ProtobufCMessageDescriptor node_type;

static void
node_init(ProtobufCMessage *message)
{
    *(struct node *)message = (struct node){.base = PROTOBUF_C_MESSAGE_INIT(&node_type)};
}

static const ProtobufCFieldDescriptor node_field = {
    .name = "child",
    .id = 1,
    .label = PROTOBUF_C_LABEL_NONE,
    .type = PROTOBUF_C_TYPE_MESSAGE,
    .offset = offsetof(struct node, child),
    .descriptor = &node_type,
};
const ProtobufCMessageDescriptor node_type = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "Node",
    .short_name = "Node",
    .sizeof_message = sizeof(struct node),
    .n_fields = 1,
    .fields = &node_field,
    .message_init = node_init,
};

ARENA_TEST(refusal, messages_may_not_nest_deeper_than_the_limit)
{
    for (size_t depth = MESSAGE_DEPTH_MAX; depth <= MESSAGE_DEPTH_MAX + 1; depth++) {
        uint8_t bytes[4 * (MESSAGE_DEPTH_MAX + 1)];
        size_t at = sizeof bytes;
        for (size_t i = 1; i < depth; i++) { /* from the inside out: length before, tag before */
            size_t length = sizeof bytes - at;
            if (length >= 0x80)
                bytes[--at] = (uint8_t)(length >> 7);
            bytes[--at] = (uint8_t)(length >= 0x80 ? length | 0x80 : length);
            bytes[--at] = 0x0a;
        }
        struct node *out;
        struct error *err =
            message_decode(arena, &node_type, slice_of(bytes + at, sizeof bytes - at), &out);
        EXPECT_EQ(err == NULL, depth == MESSAGE_DEPTH_MAX);
        EXPECT(err == NULL || strstr(err->message, "Node.child.child.child") == err->message);
    }
}

/* Two bytes of an empty message in a list would become a struct of hundreds: a small request must
 * not take all memory. */
ARENA_TEST(refusal, memory_is_bounded_by_the_size_of_the_message)
{
    size_t length = 4 * 1024 * 1024;
    uint8_t *bytes = arena_alloc(arena, length);
    for (size_t i = 0; i < length; i += 2) {
        bytes[i] = 0x0a;
        bytes[i + 1] = 0;
    }
    scoped(arena_drop) struct arena *target = arena_new(0);
    API(History) *history;
    struct error *err =
        message_decode(target, API_TYPE(history), slice_of(bytes, length), &history);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "too much memory") != NULL);
    EXPECT(arena_footprint(target) < 2 * (MESSAGE_MEMORY_FREE + length * MESSAGE_MEMORY_FACTOR));
}

ARENA_TEST(refusal, stored_bytes_that_are_wrong_are_corrupt)
{
    API(Domain) *domain;
    EXPECT_KIND(message_decode_as(arena, ERR_CORRUPT, API_TYPE(domain), BYTES("\x0a"), &domain),
                ERR_CORRUPT);
}
