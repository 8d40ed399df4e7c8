/* failover_fixture.c - see failover_fixture.h. */
#include "domain/failover_fixture.h"

#include "wire/message.h"

void
fixture_drop(struct fixture *fixture)
{
    domain_drop(fixture->domain);
    arena_free(fixture->arena);
}

struct domain_moment
next_moment(struct fixture *fixture)
{
    return sample_moment(++fixture->moment);
}

void
adopt(struct fixture *fixture)
{
    fixture->decision.next->notification_version = (int64_t)fixture->moment + 1;
    struct domain *next = domain_from_record(fixture->decision.next);
    domain_drop(fixture->domain);
    fixture->domain = next;
}

struct fixture
orders_active_in(int active, const char *attributes)
{
    struct fixture fixture = {.arena = arena_new(0), .rules = sample_rules(EAST), .moment = 100};
    struct domain_moment moment = next_moment(&fixture);
    EXPECT_OK(domain_decide_register(NULL, sample_register(active, attributes, fixture.arena),
                                     &fixture.rules, &moment, fixture.arena, &fixture.decision));
    adopt(&fixture);
    return fixture;
}

struct error *
failover_request(struct fixture *fixture, const API(FailoverDomainRequest) *request)
{
    struct domain_moment moment = next_moment(fixture);
    return domain_decide_failover(fixture->domain, request, &fixture->rules, &moment,
                                  fixture->arena, &fixture->decision);
}

struct error *
failover(struct fixture *fixture, const char *cluster_name, const char *attributes)
{
    struct error *err =
        failover_request(fixture, sample_failover(cluster_name, attributes, fixture->arena));
    if (err == NULL && fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(fixture);
    return err;
}

struct error *
update(struct fixture *fixture, const API(UpdateDomainRequest) *request)
{
    struct domain_moment moment = next_moment(fixture);
    struct error *err = domain_decide_update(fixture->domain, request, &fixture->rules, &moment,
                                             fixture->arena, &fixture->decision);
    if (err == NULL && fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(fixture);
    return err;
}

struct fixture
local_orders(void)
{
    struct fixture fixture = {.arena = arena_new(0), .rules = sample_rules(EAST), .moment = 100};
    API(RegisterDomainRequest) *request = sample_register(EAST, "city.a:east", fixture.arena);
    request->is_global_domain = false;
    request->n_clusters = 1;
    struct domain_moment moment = next_moment(&fixture);
    EXPECT_OK(domain_decide_register(NULL, request, &fixture.rules, &moment, fixture.arena,
                                     &fixture.decision));
    adopt(&fixture);
    return fixture;
}

ADMIN(DomainTaskAttributes) *
message_of(const struct fixture *fixture)
{
    STORED(DomainChange) *change = message_new(fixture->arena, STORED_TYPE(domain_change));
    change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    change->record = (STORED(DomainRecord) *)fixture->domain->record;
    change->failover = fixture->decision.failover;
    const ADMIN(ReplicationTask) *task = domain_replication_task(change, fixture->arena);
    struct slice bytes = message_encode(fixture->arena, &task->domain_task_attributes->base);
    ADMIN(DomainTaskAttributes) *message = NULL;
    EXPECT_OK(message_decode(fixture->arena, ADMIN_TYPE(domain_task_attributes), bytes, &message));
    return message;
}
