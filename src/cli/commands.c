/* commands.c - the table of commands: what --help shows and where each goes. */
#include "cli/inside.h"

#define REMOTE  "address context_timeout tls_cert_path transport "
#define PRINTED "format print_json "
#define QUEUE   "dlq_type source_cluster shard_id last_message_id "
#define CHANGED                                                                                    \
    "domain description owner_email retention active_cluster active_clusters clusters "            \
    "active_clusters_json domain_data domain_data_entry security_token history_archival_status "   \
    "history_uri "                                                                                 \
    "visibility_archival_status visibility_uri "

const struct cli_command cli_commands[] = {
    {
        .words = "group",
        .summary =
            "Runs a whole group of clusters on this machine, for trying things out: a server\n"
            "process for each, with its own ports, data folder and log. It prints their addresses "
            "when\nall are ready; Ctrl-C stops all. Started again it has everything.",
        .examples = "  cadenza group --clusters 3\n"
                    "  cadenza group --clusters 2 --data /tmp/pair --base-port 20000\n",
        .flags = "group_clusters group_data base_port",
        .catches_signals = true,
        .run = cli_group,
    },
    {
        .words = "health",
        .summary = "Asks a running server whether it is well; exit code 0 if it says so.",
        .examples = "  cadenza health\n  cadenza health --address 10.0.0.7:7833\n",
        .flags = REMOTE,
        .run = cli_health,
    },
    {
        .words = "domain register",
        .summary =
            "Makes a new domain. A global one is known to the clusters that --clusters names and\n"
            "active in one of them; only the group's primary cluster registers those.",
        .examples = "  cadenza domain register --domain orders --global_domain false\n"
                    "  cadenza --domain orders domain register --clusters cluster0,cluster1 "
                    "--active_cluster cluster0 --retention 7\n",
        .flags = CHANGED "global_domain " REMOTE,
        .run = cli_domain_register,
    },
    {
        .words = "domain update",
        .summary = "Changes what the flags name and leaves the rest. --active_cluster and\n"
                   "--active_clusters make other clusters active, as domain failover does.",
        .examples = "  cadenza domain update --domain orders --retention 14 --description 'all "
                    "orders'\n"
                    "  cadenza domain update --domain orders --add_bad_binary 5ad4 --reason 'lost "
                    "mails'\n",
        .flags = CHANGED "add_bad_binary remove_bad_binary reason "
                         "failover_type failover_timeout_seconds " REMOTE,
        .run = cli_domain_update,
    },
    {
        .words = "domain describe",
        .summary = "Shows a domain, by its name or its id.",
        .examples = "  cadenza domain describe --domain orders\n"
                    "  cadenza domain describe --domain orders --format json\n",
        .flags = "domain domain_id " PRINTED REMOTE,
        .run = cli_domain_describe,
    },
    {
        .words = "domain failover",
        .summary = "Makes another cluster active for a global domain. With --active_clusters: for "
                   "some of\nits cluster attributes. Any cluster of the group can be asked.",
        .examples =
            "  cadenza domain failover --domain orders --active_cluster cluster1\n"
            "  cadenza domain failover --domain orders --active_clusters region.oslo:cluster2\n"
            "  cadenza domain failover --domain orders --ac cluster1 --failover_type grace "
            "--failover_timeout 120\n",
        .flags = "domain active_cluster active_clusters active_clusters_json reason failover_type "
                 "failover_timeout_seconds " REMOTE,
        .run = cli_domain_failover,
    },
    {
        .words = "domain list",
        .summary = "Shows the domains that are registered.",
        .examples = "  cadenza domain list\n  cadenza domain list --all --format json\n",
        .flags = "all deprecated prefix print_full pagesize " PRINTED REMOTE,
        .run = cli_domain_list,
    },
    {
        /* where the cadence command line has it */
        .words = "admin domain list",
        .summary = "Shows the domains that are registered; the same as domain list.",
        .examples = "  cadenza admin domain list\n",
        .flags = "all deprecated prefix print_full pagesize " PRINTED REMOTE,
        .run = cli_domain_list,
    },
    {
        .words = "domain list-failover-history",
        .summary = "Shows who was active when, the newest failover first.",
        .examples = "  cadenza domain list-failover-history --domain orders\n"
                    "  cadenza domain lfh --domain orders --all --format json\n",
        .flags = "domain all_failovers pagesize " PRINTED REMOTE,
        .run = cli_domain_list_failover_history,
    },
    {
        .words = "domain deprecate",
        .summary = "Lets no new workflows start in a domain; those that run go on.",
        .examples = "  cadenza domain deprecate --domain orders\n",
        .flags = "domain security_token force " REMOTE,
        .run = cli_domain_deprecate,
    },
    {
        .words = "domain delete",
        .summary = "Deletes a deprecated domain for good. Shows it and asks before it does so.",
        .examples = "  cadenza domain delete --domain orders\n"
                    "  cadenza domain delete --domain orders --yes\n",
        .flags = "domain security_token yes " REMOTE,
        .run = cli_domain_delete,
    },
    {
        .words = "admin store info",
        .summary = "Shows what a data folder holds: rows by kind, files by level, sizes. The "
                   "server must be stopped.",
        .examples = "  cadenza admin store info --data ./data\n  cadenza admin store info --data "
                    "./data --format json\n",
        .flags = "data format",
        .run = cli_store_info,
    },
    {
        .words = "admin store check",
        .summary = "Reads all of a data folder: every checksum, every key, every guard, every "
                   "domain record.\n"
                   "Exit code 1 when something is wrong. The server must be stopped.",
        .examples = "  cadenza admin store check --data ./data\n",
        .flags = "data format",
        .run = cli_store_check,
    },
    {
        .words = "admin backup",
        .arguments = "DIR",
        .word_count = 1,
        .summary = "Lets a running server write a copy of its store, of one moment, into a new "
                   "folder DIR on its machine.",
        .examples = "  cadenza admin backup /backups/monday\n",
        .flags = REMOTE,
        .run = cli_backup,
    },
    {
        .words = "admin visibility rebuild",
        .summary = "Lets a running server make its lists of runs anew from the runs, and waits for "
                   "it.\n"
                   "A server does that by itself when it finds that its lists are lost or old.",
        .examples = "  cadenza admin visibility rebuild\n",
        .flags = REMOTE,
        .run = cli_rebuild_visibility,
    },
    {
        .words = "admin restore",
        .arguments = "BACKUP",
        .word_count = 1,
        .summary = "Makes a new data folder from a backup. Its shards get higher range ids, and as "
                   "a member of a group it\n"
                   "has to catch up with the others before it takes writes for global domains.",
        .examples = "  cadenza admin restore /backups/monday --data ./data-restored\n",
        .flags = "data",
        .run = cli_restore,
    },
    {
        .words = "admin hot-workflows",
        .summary = "Shows the workflow ids that are called most, or give most tasks to workers, "
                   "just now;\n* marks what was above the limit of its workflow id.",
        .examples = "  cadenza admin hot-workflows\n"
                    "  cadenza admin hot-workflows --domain orders --count 5 --format json\n",
        .flags = "domain count " PRINTED REMOTE,
        .run = cli_hot_workflows,
    },
    {
        .words = "admin dlq count",
        .summary = "Counts the messages of other clusters that could not be applied here.",
        .examples = "  cadenza admin dlq count\n",
        .flags = PRINTED REMOTE,
        .run = cli_dlq_count,
    },
    {
        .words = "admin dlq read",
        .summary = "Lists them.",
        .examples = "  cadenza admin dlq read --source_cluster cluster1 --shard_id 3\n",
        .flags = QUEUE PRINTED REMOTE,
        .run = cli_dlq_read,
    },
    {
        .words = "admin dlq merge",
        .summary = "Applies them again, in order; what is applied now goes.",
        .examples = "  cadenza admin dlq merge --source_cluster cluster1 --shard_id 3\n",
        .flags = QUEUE REMOTE,
        .run = cli_dlq_merge,
    },
    {
        .words = "admin dlq purge",
        .summary = "Forgets them: what they say is lost here.",
        .examples = "  cadenza admin dlq purge --source_cluster cluster1 --shard_id 3 "
                    "--last_message_id 77\n",
        .flags = QUEUE REMOTE,
        .run = cli_dlq_purge,
    },
    {
        .words = "admin divergence",
        .summary = "Shows which events lost when clusters could not hear each other: those of a "
                   "history that another\none beat, or of a run that lost its workflow id. What "
                   "clients caused among them has happened again.",
        .examples = "  cadenza admin divergence\n"
                    "  cadenza admin divergence --domain orders --format json\n",
        .flags = "domain count " PRINTED REMOTE,
        .run = cli_divergence,
    },
    {
        .words = "config keys",
        .summary = "Shows every setting that can change while a server runs: what it does, its "
                   "default,\nand what its entries may be constrained by.",
        .examples = "  cadenza config keys\n  cadenza config keys --format json\n",
        .flags = PRINTED,
        .run = cli_config_keys,
    },
    {.words = NULL},
};
