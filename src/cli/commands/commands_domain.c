/* commands_domain.c - the commands about domains: what --help shows and where each goes. */
#include "cli/base/commands.h"

#define CHANGED                                                                                    \
    "domain description owner_email retention active_cluster active_clusters clusters "            \
    "active_clusters_by_region active_clusters_json domain_data domain_data_entry security_token " \
    "history_archival_status "                                                                     \
    "history_uri "                                                                                 \
    "visibility_archival_status visibility_uri "

const struct cli_command cli_domain_commands[] = {
    {
        .words = "domain register",
        .aliases = "re",
        .summary =
            "Registers a new domain. A global one is known to the clusters that --clusters names "
            "and\nactive in one of them; only the group's primary cluster registers those.",
        .examples = "  cadenza domain register --domain orders --global_domain false\n"
                    "  cadenza --domain orders domain register --clusters cluster0,cluster1 "
                    "--active_cluster cluster0 --retention 7\n",
        .flags = CHANGED "global_domain " REMOTE,
        .run = cli_domain_register,
    },
    {
        .words = "domain update",
        .aliases = "up u",
        .summary = "Changes what the flags name and keeps the rest. --active_cluster "
                   "and\n--active_clusters make other clusters active, as domain failover does; "
                   "with\n--failover_type grace the old cluster hands over first, and a line shows "
                   "the progress.",
        .examples = "  cadenza domain update --domain orders --retention 14 --description 'all "
                    "orders'\n"
                    "  cadenza domain update --domain orders --add_bad_binary 5ad4 --reason 'lost "
                    "mails'\n"
                    "  cadenza domain update --domain orders --remove_attributes region.oslo\n",
        .flags = CHANGED "add_bad_binary remove_bad_binary reason remove_attributes force_removal "
                         "failover_type failover_timeout_seconds detach " REMOTE,
        .run = cli_domain_update,
    },
    {
        .words = "domain describe",
        .aliases = "desc",
        .summary = "Shows a domain, by its name or its id.",
        .examples = "  cadenza domain describe --domain orders\n"
                    "  cadenza domain describe --domain orders --format json\n",
        .flags = "domain domain_id " PRINTED REMOTE,
        .run = cli_domain_describe,
    },
    {
        .words = "domain failover",
        .aliases = "fo",
        .summary = "Makes another cluster active for a global domain. With --active_clusters: for "
                   "some of\nits cluster attributes. Any cluster of the group can be asked.\nWith "
                   "--failover_type grace the old cluster hands over first, shard by shard;\na "
                   "line shows the progress; --watch alone follows one that is in progress.",
        .examples =
            "  cadenza domain failover --domain orders --active_cluster cluster1\n"
            "  cadenza domain failover --domain orders --active_clusters region.oslo:cluster2\n"
            "  cadenza domain failover --domain orders --leave_cluster cluster0 --to_cluster "
            "cluster1\n"
            "  cadenza domain failover --domain orders --ac cluster1 --failover_type grace "
            "--failover_timeout 120s\n"
            "  cadenza domain failover --domain orders --watch\n",
        .flags = "domain active_cluster active_clusters active_clusters_by_region "
                 "active_clusters_json leave_cluster to_cluster reason failover_type "
                 "failover_timeout_seconds watch detach " REMOTE,
        .run = cli_domain_failover,
    },
    {
        .words = "domain list",
        .aliases = "l",
        .summary = "Shows the domains that are registered.",
        .examples = "  cadenza domain list\n  cadenza domain list --all --format json\n",
        .flags = "all deprecated prefix print_full pagesize " PRINTED REMOTE,
        .run = cli_domain_list,
    },
    {
        /* where the cadence command line has it */
        .words = "admin domain list",
        .aliases = "l",
        .summary = "Shows the domains that are registered; the same as domain list.",
        .examples = "  cadenza admin domain list\n",
        .flags = "all deprecated prefix print_full pagesize " PRINTED REMOTE,
        .run = cli_domain_list,
    },
    {
        .words = "domain list-failover-history",
        .aliases = "lfh",
        .summary = "Shows which cluster was active when, the newest failover first.",
        .examples = "  cadenza domain list-failover-history --domain orders\n"
                    "  cadenza domain lfh --domain orders --all --format json\n",
        .flags = "domain all_failovers cluster_attribute pagesize " PRINTED REMOTE,
        .run = cli_domain_list_failover_history,
    },
    {
        .words = "domain deprecate",
        .aliases = "dep",
        .summary = "Prevents new workflows from starting in a domain; open ones continue.",
        .examples = "  cadenza domain deprecate --domain orders\n",
        .flags = "domain security_token force " REMOTE,
        .run = cli_domain_deprecate,
    },
    {
        .words = "domain delete",
        .aliases = "del",
        .summary = "Deletes a deprecated domain permanently. Shows it and asks first.",
        .examples = "  cadenza domain delete --domain orders\n"
                    "  cadenza domain delete --domain orders --yes\n",
        .flags = "domain security_token yes " REMOTE,
        .run = cli_domain_delete,
    },
    {
        .words = "domain migration",
        .aliases = "mi",
        .summary = "Compares a domain with one of another server and shows the differences; "
                   "changes nothing.",
        .examples = "  cadenza domain migration --domain orders --destination_address "
                    "10.0.0.7:7833 --destination_domain orders\n"
                    "  cadenza domain migration --domain orders --destination_address "
                    "10.0.0.7:7833 --destination_domain orders --tasklist mail --search_attr "
                    "CustomKeywordField:Keyword --format json\n",
        .flags = "domain destination_address destination_domain migrated_lists "
                 "migrated_attributes " PRINTED REMOTE,
        .run = cli_domain_migration,
    },
    {
        .words = "admin domain getdomainidorname",
        .aliases = "getdn",
        .summary = "Prints the id of a domain by its name, or the name by --domain_id.",
        .examples = "  cadenza admin domain getdomainidorname --domain orders\n",
        .flags = "domain domain_id " REMOTE,
        .run = cli_domain_get_id_or_name,
    },
    {.words = NULL},
};
