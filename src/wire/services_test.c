/* services_test.c - every method is found by its path, and nothing else is. */
#include "wire/services.h"

#include "base/test.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

static bool
is_path(const char *path)
{
    struct wire_method method;
    return wire_method_find(slice_text(path), &method);
}

TEST(services, a_method_is_found_by_its_path_with_its_types)
{
    struct wire_method method;
    EXPECT(wire_method_find(slice_text("/uber.cadence.api.v1.DomainAPI/DescribeDomain"), &method));
    EXPECT_TEXT(method.service->name, "uber.cadence.api.v1.DomainAPI");
    EXPECT_TEXT(method.name, "DescribeDomain");
    EXPECT(method.request == API_TYPE(describe_domain_request));
    EXPECT(method.response == API_TYPE(describe_domain_response));
}

/* 95 methods of Cadence's seven services, two of the health service, three of our own. */
TEST(services, every_method_is_found_under_its_own_index)
{
    EXPECT_EQ(wire_method_count(), 113);
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i), found;
        char path[WIRE_PATH_SIZE];
        wire_method_path(&method, path, sizeof path);
        EXPECT_EQ(method.index, i);
        EXPECT(wire_method_find(slice_text(path), &found));
        EXPECT_EQ(found.index, i);
        EXPECT_TEXT(found.name, method.name);
        EXPECT(found.request != NULL && found.response != NULL);
    }
}

TEST(services, a_method_is_found_by_its_request_but_for_the_second_one_of_health)
{
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i), found;
        EXPECT(wire_method_find_request(method.request, &found));
        EXPECT(found.index == i || strcmp(method.name, "Watch") == 0);
    }
    struct wire_method method;
    EXPECT(!wire_method_find_request(API_TYPE(describe_domain_response), &method));
}

TEST(services, what_is_not_a_path_of_a_method_is_not_found)
{
    EXPECT(is_path("/grpc.health.v1.Health/Check"));
    EXPECT(!is_path(""));
    EXPECT(!is_path("/"));
    EXPECT(!is_path("//"));
    EXPECT(!is_path("grpc.health.v1.Health/Check"));
    EXPECT(!is_path("/grpc.health.v1.Health"));
    EXPECT(!is_path("/grpc.health.v1.Health/"));
    EXPECT(!is_path("/grpc.health.v1.Health/Chec"));
    EXPECT(!is_path("/grpc.health.v1.Health/Checks"));
    EXPECT(!is_path("/grpc.health.v1.Health/Check/"));
    EXPECT(!is_path("/grpc.health.v1.Healt/Check"));
    EXPECT(!is_path("/grpc.health.v1.Health2/Check"));
}
