/* errors_test.c - details of errors, there and back. */
#include "wire/errors.h"

#include "base/test.h"

TEST(errors, every_kind_with_a_detail_has_its_message)
{
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        const ProtobufCMessageDescriptor *type = errors_detail_type(kind);
        EXPECT_EQ(type != NULL, error_kind_detail(kind) != NULL);
        if (type != NULL)
            EXPECT_TEXT(type->name, error_kind_detail(kind));
    }
}

ARENA_TEST(errors, entity_not_exists_names_clusters_only_where_given, "A-006")
{
    struct error *err = errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", "d");
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Domain d does not exist.");
    EXPECT_EQ(err->detail.length, 0);

    const char *each[] = {"east", "west"};
    struct error_clusters clusters = {"east", "west", each, array_length(each)};
    err = errors_entity_not_exists(arena, &clusters, "no run");
    API(EntityNotExistsError) *detail;
    EXPECT_OK(errors_read(arena, err, &detail));
    EXPECT_TEXT(detail->current_cluster, "east");
    EXPECT_TEXT(detail->active_cluster, "west");
    EXPECT_EQ(detail->n_active_clusters, 2);
    EXPECT_TEXT(detail->active_clusters[1], "west");
}

/* The bytes themselves: field 1 domain, 2 current cluster, 3 active cluster. */
ARENA_TEST(errors, domain_not_active_says_where_to_go, "A-008")
{
    struct error *err =
        errors_domain_not_active(arena, "d", &(struct error_clusters){"a", "b", NULL, 0});
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT(slice_equal(err->detail, slice_text("\x0a\x01"
                                               "d\x12\x01"
                                               "a\x1a\x01"
                                               "b")));
}

ARENA_TEST(errors, already_started_carries_the_run, "A-007")
{
    struct error *err =
        errors_already_started(arena, "request", "run", "Workflow %s is running.", "w");
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
    EXPECT_TEXT(err->message, "Workflow w is running.");
    API(WorkflowExecutionAlreadyStartedError) *detail;
    EXPECT_OK(errors_read(arena, err, &detail));
    EXPECT_TEXT(detail->start_request_id, "request");
    EXPECT_TEXT(detail->run_id, "run");
}

ARENA_TEST(errors, service_busy_has_a_reason_or_none, "A-009")
{
    API(ServiceBusyError) *detail;
    struct error *err = errors_service_busy(arena, NULL, "busy");
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_OK(errors_read(arena, err, &detail));
    EXPECT_TEXT(detail->reason, "");
    err = errors_service_busy(arena, ERRORS_BUSY_WORKFLOW_ID, "busy");
    EXPECT_OK(errors_read(arena, err, &detail));
    EXPECT_TEXT(detail->reason, "external-workflow-id-rate-limit");
}

ARENA_TEST(errors, the_version_error_has_a_fixed_text)
{
    struct error *err = errors_client_version_not_supported(arena, "1.8.0", "uber-go", "<1.7.0");
    EXPECT_KIND(err, ERR_CLIENT_VERSION_NOT_SUPPORTED);
    EXPECT_TEXT(err->message, "Client version not supported");
    API(ClientVersionNotSupportedError) *version;
    EXPECT_OK(errors_read(arena, err, &version));
    EXPECT_TEXT(version->feature_version, "1.8.0");
    EXPECT_TEXT(version->client_impl, "uber-go");
    EXPECT_TEXT(version->supported_versions, "<1.7.0");
}

ARENA_TEST(errors, an_error_between_hosts_survives_the_way)
{
    SHARED(ShardOwnershipLostError) *shard;
    EXPECT_OK(errors_read(arena, errors_shard_ownership_lost(arena, "host:1"), &shard));
    EXPECT_TEXT(shard->owner, "host:1");
}

ARENA_TEST(errors, a_detail_from_outside_that_is_none_is_an_error)
{
    struct error *err = errors_service_busy(arena, NULL, "busy");
    err->detail = slice_of("\x0a\x01\xff", 3);
    API(ServiceBusyError) *detail;
    EXPECT_KIND(errors_read(arena, err, &detail), ERR_INTERNAL);
}
