/* api.c - the table of the public door. See api.h. */
#include "api/api.h"

#include "api/inside.h"
#include "base/memory.h"

#define API_PATH(service, name) "/uber.cadence.api.v1." service "/" name

static const struct rpc_method methods[] = {
    {API_PATH("MetaAPI", "Health"), api_health},
    {API_PATH("WorkflowAPI", "GetClusterInfo"), api_get_cluster_info},
    {API_PATH("DomainAPI", "RegisterDomain"), api_register_domain},
    {API_PATH("DomainAPI", "DescribeDomain"), api_describe_domain},
    {API_PATH("DomainAPI", "ListDomains"), api_list_domains},
    {API_PATH("DomainAPI", "UpdateDomain"), api_update_domain},
    {API_PATH("DomainAPI", "DeprecateDomain"), api_deprecate_domain},
    {API_PATH("DomainAPI", "DeleteDomain"), api_delete_domain},
    {API_PATH("DomainAPI", "FailoverDomain"), api_failover_domain},
    {API_PATH("DomainAPI", "ListFailoverHistory"), api_list_failover_history},
    {"/cadenza.admin.v1.StoreAPI/Backup", api_backup},
    {"/grpc.health.v1.Health/Check", api_grpc_health_check},
    {NULL, NULL},
};

struct api *
api_new(const struct api_options *options)
{
    struct api *api = memory_zalloc(1, sizeof *api);
    api->options = *options;
    return api;
}

void
api_free(struct api *api)
{
    memory_free(api);
}

struct rpc_table
api_table(struct api *api)
{
    return (struct rpc_table){.methods = methods, .door = api};
}
