/* failover_fixture.c - see failover_fixture.h. */
#include "domain/test/failover_fixture.h"

#include "wire/message.h"

void
failover_fixture_drop(struct failover_fixture *failover_fixture)
{
    domain_drop(failover_fixture->domain);
    arena_free(failover_fixture->arena);
}

struct domain_moment
next_moment(struct failover_fixture *failover_fixture)
{
    return sample_moment(++failover_fixture->moment);
}

void
adopt(struct failover_fixture *failover_fixture)
{
    failover_fixture->decision.next->notification_version = (int64_t)failover_fixture->moment + 1;
    struct domain *next = domain_from_record(failover_fixture->decision.next);
    domain_drop(failover_fixture->domain);
    failover_fixture->domain = next;
}

struct failover_fixture
orders_active_in(int active, const char *attributes)
{
    struct failover_fixture failover_fixture = {
        .arena = arena_new(0), .rules = sample_rules(EAST), .moment = 100};
    struct domain_moment moment = next_moment(&failover_fixture);
    EXPECT_OK(domain_decide_register(
        NULL, sample_register(active, attributes, failover_fixture.arena), &failover_fixture.rules,
        &moment, failover_fixture.arena, &failover_fixture.decision));
    adopt(&failover_fixture);
    return failover_fixture;
}

struct error *
failover_request(struct failover_fixture *failover_fixture,
                 const API(FailoverDomainRequest) *request)
{
    struct domain_moment moment = next_moment(failover_fixture);
    return domain_decide_failover(failover_fixture->domain, request, &failover_fixture->rules,
                                  &moment, failover_fixture->arena, &failover_fixture->decision);
}

struct error *
failover(struct failover_fixture *failover_fixture, const char *cluster_name,
         const char *attributes)
{
    struct error *err = failover_request(
        failover_fixture, sample_failover(cluster_name, attributes, failover_fixture->arena));
    if (err == NULL && failover_fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(failover_fixture);
    return err;
}

struct error *
update(struct failover_fixture *failover_fixture, const API(UpdateDomainRequest) *request)
{
    struct domain_moment moment = next_moment(failover_fixture);
    struct error *err =
        domain_decide_update(failover_fixture->domain, request, &failover_fixture->rules, &moment,
                             failover_fixture->arena, &failover_fixture->decision);
    if (err == NULL && failover_fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(failover_fixture);
    return err;
}

struct failover_fixture
local_orders(void)
{
    struct failover_fixture failover_fixture = {
        .arena = arena_new(0), .rules = sample_rules(EAST), .moment = 100};
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:east", failover_fixture.arena);
    request->is_global_domain = false;
    request->n_clusters = 1;
    struct domain_moment moment = next_moment(&failover_fixture);
    EXPECT_OK(domain_decide_register(NULL, request, &failover_fixture.rules, &moment,
                                     failover_fixture.arena, &failover_fixture.decision));
    adopt(&failover_fixture);
    return failover_fixture;
}

ADMIN(DomainTaskAttributes) *
message_of(const struct failover_fixture *failover_fixture)
{
    STORED(DomainChange) *change =
        STORED_NEW(failover_fixture->arena, domain_change,
                   .operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE),
                   .record = (STORED(DomainRecord) *)failover_fixture->domain->record,
                   .failover = failover_fixture->decision.failover);
    const ADMIN(ReplicationTask) *task = domain_replication_task(change, failover_fixture->arena);
    struct slice bytes =
        message_encode(failover_fixture->arena, &task->domain_task_attributes->base);
    ADMIN(DomainTaskAttributes) *message = NULL;
    EXPECT_OK(message_decode(failover_fixture->arena, ADMIN_TYPE(domain_task_attributes), bytes,
                             &message));
    return message;
}
