/* archiving.c - see archiving.h. */
#include "api/test/archiving.h"

#define HOUR (3600 * NS_PER_S)

struct error *
archiving_update(struct fixture *fixture, int status, const char *uri)
{
    API(UpdateDomainRequest) *request = API_NEW(fixture->arena, update_domain_request);
    char *paths[] = {"history_archival_status", "visibility_archival_status",
                     "history_archival_uri", "visibility_archival_uri"};
    request->name = "orders";
    request->update_mask =
        GOOGLE_NEW(fixture->arena, field_mask, .paths = paths, .n_paths = uri[0] == '\0' ? 2 : 4);
    request->history_archival_status = request->visibility_archival_status =
        (API(ArchivalStatus))status;
    request->history_archival_uri = request->visibility_archival_uri = (char *)uri;
    return fixture_call(fixture, request, NULL);
}

API(Domain) *
archiving_describe(struct fixture *fixture, const char *name)
{
    API(DescribeDomainResponse) *response =
        API_OK(fixture, describe_domain,
               .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME),
               .name = (char *)name);
    return response->domain;
}

const char *
archiving_run(struct fixture *fixture, const char *workflow_id)
{
    return child_tree_begin(fixture, workflow_id, decide_end(fixture));
}

void
archiving_pass(struct fixture *fixture)
{
    child_tree_sleep(fixture, 26 * HOUR);
}
