/* methods.c - which RPCs are served, and by whom. Their types come from the protos
 * (wire/services.h). */
#include "api/inside.h"

#define API_PATH(service, name) "/uber.cadence.api.v1." service "/" name

const struct method api_methods[] = {
    {API_PATH("MetaAPI", "Health"), api_health},
    {API_PATH("WorkflowAPI", "GetClusterInfo"), api_get_cluster_info},
    {API_PATH("DomainAPI", "RegisterDomain"), api_register_domain},
    {API_PATH("DomainAPI", "DescribeDomain"), api_describe_domain},
    {API_PATH("DomainAPI", "ListDomains"), api_list_domains},
    {API_PATH("DomainAPI", "UpdateDomain"), api_update_domain},
    {API_PATH("DomainAPI", "DeprecateDomain"), api_deprecate_domain},
    {"/cadenza.admin.v1.StoreAPI/Backup", api_backup},
    {"/grpc.health.v1.Health/Check", api_grpc_health_check},
    {NULL, NULL},
};
