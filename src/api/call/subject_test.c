/* subject_test.c - what each call of the door is about, and who owns it: a sample request of every
 * method, looked at behind the door. */
#include "api/call/subject.h"

#include "api/call/tokens.h"
#include "api/test/fixture.h"
#include "route/owner.h"
#include "schedule/schedule.h"

#define WORKFLOW "order-7"
#define SCHEDULE "nightly"
#define LIST     "packing"
#define SHARD    3

/* --- sample requests: every field that names something is set, by its name ---- */

static const char *
text_of(struct fixture *fixture, const char *name)
{
    static const char *const texts[][2] = {
        {"domain", "orders"},      {"name", "orders"},        {"domain_name", "orders"},
        {"workflow_id", WORKFLOW}, {"schedule_id", SCHEDULE},
    };
    for (size_t i = 0; i < array_length(texts); i++)
        if (strcmp(texts[i][0], name) == 0)
            return texts[i][1];
    bool is_domain_id = strcmp(name, "domain_id") == 0;
    return is_domain_id ? domains_find_name(fixture->domains, "orders")->id : NULL;
}

static struct slice
sample_task_token(struct fixture *fixture)
{
    struct task_token token = {.domain_id = text_of(fixture, "domain_id"),
                               .workflow_id = WORKFLOW,
                               .workflow_type = "",
                               .run_id = "",
                               .activity_id = "",
                               .activity_type = ""};
    return task_token_write(&token, fixture->arena);
}

static void fill(struct fixture *fixture, ProtobufCMessage *request);

static void
fill_field(struct fixture *fixture, ProtobufCMessage *request,
           const ProtobufCFieldDescriptor *field)
{
    static const char *const inside[] = {"request", "start_request", "workflow_execution",
                                         "execution", "filters"};
    void *place = (char *)request + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 && strcmp(field->name, "name") == 0)
        *(uint32_t *)((char *)request + field->quantifier_offset) = field->id;
    if (field->type == PROTOBUF_C_TYPE_STRING && text_of(fixture, field->name) != NULL)
        *(const char **)place = text_of(fixture, field->name);
    if (field->type == PROTOBUF_C_TYPE_INT32 && strcmp(field->name, "shard_id") == 0)
        *(int32_t *)place = SHARD;
    if (field->type == PROTOBUF_C_TYPE_BYTES && strcmp(field->name, "task_token") == 0)
        *(ProtobufCBinaryData *)place = presence_make_bytes(sample_task_token(fixture));
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && strcmp(field->name, "task_list") == 0)
        *(void **)place = API_NEW(fixture->arena, task_list, .name = LIST);
    for (size_t i = 0; i < array_length(inside) && field->type == PROTOBUF_C_TYPE_MESSAGE; i++)
        if (strcmp(field->name, inside[i]) == 0) {
            *(ProtobufCMessage **)place = message_new(fixture->arena, field->descriptor);
            fill(fixture, *(ProtobufCMessage **)place);
        }
}

static void
fill(struct fixture *fixture, ProtobufCMessage *request)
{
    for (unsigned i = 0; i < request->descriptor->n_fields; i++)
        fill_field(fixture, request, &request->descriptor->fields[i]);
}

/* --- behind the door ---- */

struct seen {
    struct fixture *fixture;
    enum call_owner kind;
    bool is_found, has_owner;
    struct call_subject subject;
    struct owner owner;
    size_t count;
};

static struct error *
look(void *context, struct rpc_call *call)
{
    struct seen *seen = context;
    seen->kind = rpc_method(call)->owner;
    seen->is_found = subject_find(call, &seen->subject);
    seen->has_owner = subject_owner(call, &seen->subject, &seen->owner);
    seen->subject.said.schedule_id =
        arena_text(seen->fixture->arena, seen->subject.said.schedule_id);
    seen->count++;
    return error_new(call->arena, ERR_BAD_REQUEST, "seen");
}

static struct owner
expected_owner(const struct seen *seen)
{
    struct fixture *fixture = seen->fixture;
    bool is_schedule = seen->subject.said.schedule_id[0] != '\0';
    struct slice id = slice_text(is_schedule ? SCHEDULE_PREFIX SCHEDULE : WORKFLOW);
    switch (seen->kind) {
    case OWNER_WORKFLOW:
        return owner_of_shard(route_shard_of(id, FIXTURE_SHARDS));
    case OWNER_TASK_LIST:
        return owner_of_list(
            route_list_hash(slice_text(text_of(fixture, "domain_id")), slice_text(LIST), 0, 0));
    case OWNER_SHARD:
        return owner_of_shard(SHARD);
    default:
        return owner_of_domains();
    }
}

static void
check_method(struct seen *seen, const struct wire_method *method)
{
    struct fixture *fixture = seen->fixture;
    ProtobufCMessage *request = message_new(fixture->arena, method->request);
    fill(fixture, request);
    size_t before = seen->count;
    struct error *err = fixture_call_method(fixture, method, request, NULL);
    if (seen->count == before) /* of the other door, or not served */
        return;
    EXPECT_EQ(err->kind, ERR_BAD_REQUEST);
    bool has_owner = seen->kind != OWNER_NONE;
    bool is_about_domain = has_owner && seen->kind != OWNER_SHARD;
    if (seen->has_owner != has_owner)
        TEST_FAIL("%s: its owner is not found", method->name);
    if (is_about_domain && !seen->is_found)
        TEST_FAIL("%s: its domain is not found", method->name);
    if (!has_owner)
        return;
    struct owner expected = expected_owner(seen);
    if (seen->owner.kind != expected.kind || seen->owner.number != expected.number)
        TEST_FAIL("%s: it has another owner", method->name);
}

SERVER_TEST(subject, each_method_finds_what_it_is_about_and_who_owns_that)
{
    struct seen seen = {.fixture = fixture};
    rpc_service_guard(fixture->service, look, &seen);
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        check_method(&seen, &method);
    }
    EXPECT(seen.count > 90);
}

/* What is missing is nobody's: the call is answered where it came, with what is wrong. */
SERVER_TEST(subject, a_request_that_does_not_say_it_has_no_owner)
{
    struct seen seen = {.fixture = fixture};
    rpc_service_guard(fixture->service, look, &seen);
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        size_t before = seen.count;
        struct error *err = fixture_call_method(fixture, &method,
                                                message_new(fixture->arena, method.request), NULL);
        EXPECT(err != NULL || seen.count == before);
        if (seen.count == before)
            continue;
        EXPECT(!seen.is_found);
        EXPECT(seen.has_owner == (seen.kind == OWNER_DOMAIN || seen.kind == OWNER_SHARD));
    }
}
