/* audit_test.c - what operators did is kept, and listed. */
#include "api/test/fixture.h"
#include "audit/audit.h"

static STORE_API(ListAuditRecordsResponse) *
list(struct fixture *fixture, const char *domain, const char *operation, int count, uint64_t before)
{
    STORE_API(ListAuditRecordsRequest) *request =
        message_new(fixture->arena, &cadenza__admin__v1__list_audit_records_request__descriptor);
    request->domain = (char *)domain;
    request->operation = (char *)operation;
    request->page_size = count;
    request->before = before;
    return fixture_ok(fixture, request);
}

static struct error *
describe_as(struct fixture *fixture, const char *domain, const char *description)
{
    static char *paths[] = {"description"};
    API(UpdateDomainRequest) *request = API_NEW(
        fixture->arena, update_domain_request, .name = (char *)domain, .security_token = "hush",
        .description = (char *)description,
        .update_mask = message_new(fixture->arena, &google__protobuf__field_mask__descriptor));
    request->update_mask->n_paths = 1;
    request->update_mask->paths = paths;
    return fixture_call(fixture, request, NULL);
}

static void
with_audit(struct fixture *fixture, void (*body)(struct fixture *fixture))
{
    struct audit *audit = audit_new(&(struct audit_options){
        .store = fixture->store, .dynamic = fixture->dynamic, .log = &fixture->log});
    rpc_service_watch(fixture->service, audit_note, audit);
    api_set_audit(fixture->api, audit);
    body(fixture);
    rpc_service_watch(fixture->service, NULL, NULL);
    api_set_audit(fixture->api, NULL);
    audit_free(audit);
}

static void
see_records(struct fixture *fixture)
{
    EXPECT_OK(describe_as(fixture, "orders", "better"));
    EXPECT(strstr(fixture->logged, "An operator's call.") != NULL);
    EXPECT_KIND(describe_as(fixture, "nowhere", "x"), ERR_ENTITY_NOT_EXISTS);
    run_start(fixture, "wf"); /* no operator's */
    STORE_API(ListAuditRecordsResponse) *all = list(fixture, "", "", 0, 0);
    EXPECT_EQ(all->n_records, 2);
    EXPECT_EQ(all->next, 0);
    const STORE_API(AuditRecord) *failed = all->records[0], *done = all->records[1];
    EXPECT_EQ(failed->number, 2);
    EXPECT_TEXT(failed->domain, "nowhere");
    EXPECT_TEXT(failed->result, "entity_not_exists");
    EXPECT(strstr(failed->message, "nowhere") != NULL);
    EXPECT_TEXT(done->operation, "UpdateDomain");
    EXPECT_TEXT(done->result, "ok");
    EXPECT_TEXT(done->request, "name=orders update_mask={paths=[description]} description=better");
    EXPECT(done->time_nanoseconds > 0 && done->peer[0] != '\0');
    EXPECT_EQ(list(fixture, "orders", "", 0, 0)->n_records, 1);
    EXPECT_EQ(list(fixture, "", "FailoverDomain", 0, 0)->n_records, 0);
}

static void
records(struct fixture *fixture)
{
    with_audit(fixture, see_records);
}

TEST(audit, each_call_of_an_operator_leaves_a_record_with_its_result)
{
    fixture_run(records);
}

static void
see_pages(struct fixture *fixture)
{
    fixture_set(fixture, "system.auditRecordsMax:\n- value: 5\n");
    for (int i = 0; i < 8; i++)
        EXPECT_OK(describe_as(fixture, "orders", arena_format(fixture->arena, "%d", i)));
    STORE_API(ListAuditRecordsResponse) *page = list(fixture, "", "", 3, 0);
    EXPECT_EQ(page->n_records, 3);
    EXPECT_EQ(page->records[0]->number, 8);
    page = list(fixture, "", "", 3, page->next);
    EXPECT_EQ(page->n_records, 2); /* older ones are gone */
    EXPECT_EQ(page->records[1]->number, 4);
    EXPECT_EQ(page->next, 0);
}

SERVER_TEST(audit, the_newest_records_stay_and_come_in_pages)
{
    with_audit(fixture, see_pages);
}
