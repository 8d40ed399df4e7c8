/* commands.c - the tables of commands as one, and the words that several of them begin with. */
#include <string.h>

#include "base/check.h"
#include "base/compiler.h"
#include "cli/base/inside.h"

static const struct cli_command *const tables[] = {
    cli_general_commands, cli_workflow_commands, cli_change_commands, cli_find_commands,
    cli_domain_commands,  cli_schedule_commands, cli_admin_commands,  cli_failover_commands,
    cli_repair_commands,  cli_config_commands,
};

const struct cli_command *
cli_command_at(size_t index)
{
    for (size_t i = 0; i < array_length(tables); i++) {
        for (const struct cli_command *command = tables[i]; command->words != NULL; command++) {
            if (index-- == 0)
                return command;
        }
    }
    return NULL;
}

const struct cli_group_words cli_group_words[] = {
    {"workflow", "wf", "Starts, inspects and controls workflows.",
     "  cadenza workflow start --domain orders --tasklist mail --workflow_type greet --input "
     "'\"Ann\"'\n"
     "  cadenza workflow list --domain orders --open\n"},
    {"workflow activity", "act", "Completes or fails activities on behalf of a worker.",
     "  cadenza workflow activity complete --domain orders -w order-7 --activity_id 3 --result "
     "'\"paid\"'\n"},
    {"workflow batch", NULL, "Performs one operation on all workflows that a query finds.",
     "  cadenza workflow batch list --domain orders\n"},
    {"tasklist", "tl", "Inspects task lists: pollers and backlog.",
     "  cadenza tasklist list --domain orders\n"},
    {"schedule", "sched", "Starts workflows on a schedule.",
     "  cadenza schedule list --domain orders\n"},
    {"domain", "d", "Creates domains, changes them, fails them over.",
     "  cadenza domain register --domain orders --global_domain false\n"
     "  cadenza domain list\n"},
    {"cluster", "cl", "Asks about the cluster as a whole.", "  cadenza cluster health\n"},
    {"config", NULL, "Shows the settings that can change while a server runs.",
     "  cadenza config keys\n"},
    {"admin", "adm", "For operators of the server.", "  cadenza admin cluster describe\n"},
    {"admin workflow", "wf", "Repairs workflows.",
     "  cadenza admin workflow refresh-tasks --domain orders -w order-7\n"},
    {"admin domain", "d", "Domain commands under the names that the cadence CLI has for them.",
     "  cadenza admin domain list\n"},
    {"admin tasklist", "tl", "Task lists and their partitions.",
     "  cadenza admin tasklist describe --domain orders --tasklist mail\n"},
    {"admin cluster", "cl", "The cluster's parts and search attributes.",
     "  cadenza admin cluster describe\n"},
    {"admin cluster failover", "fo", "Moves many domains at a time: those whose data allow it.",
     "  cadenza admin cluster failover query\n"},
    {"admin cluster rebalance", "rb", "Moves domains to the clusters that they prefer.",
     "  cadenza admin cluster rebalance list\n"},
    {"admin config", "c", "Settings that are stored in the cluster.",
     "  cadenza admin config list\n"},
    {"admin isolation-groups", "ig", "Takes groups of workers out of use.",
     "  cadenza admin isolation-groups get-global\n"},
    {"admin async-wf-queue", "aq", "Queues of asynchronous starts.",
     "  cadenza admin async-wf-queue get --domain orders\n"},
    {"admin history_host", "hist", "Hosts and shards.",
     "  cadenza admin history_host getshard --workflow_id order-7 --number_of_shards 16\n"},
    {"admin shard", "shar", "Shards and their owners.", "  cadenza admin shard list\n"},
    {"admin queue", "q", "Tasks and timers that wait in a shard.",
     "  cadenza admin queue describe --shard_id 3 --queue_type timer\n"},
    {"admin dlq", NULL, "Dead letters: messages of other clusters that could not be applied here.",
     "  cadenza admin dlq count\n"},
    {"admin entity", NULL,
     "What workflows belong to (users, cities), and the region in which each is now.",
     "  cadenza admin entity list\n"
     "  cadenza admin entity set user-location seattle us-east\n"},
    {"admin kafka", "ka", "Commands of the cadence CLI for message queues; this server has none.",
     "  cadenza admin kafka rereplicate --domain orders -w order-7 -r "
     "2b0d6d5a-1f3c-4e8e-9a57-0c6f6a4b7d11 --source_cluster cluster1\n"},
    {"admin elasticsearch", "es", "Not supported: the server keeps visibility itself.",
     "  cadenza admin elasticsearch catIndex\n"},
    {"admin database", "db", "Not supported: the server maintains its own store.",
     "  cadenza admin database scan\n"},
    {"admin store", NULL, "Inspects the data folder of a stopped server.",
     "  cadenza admin store info --data ./data\n"},
    {"admin visibility", NULL, "What list, scan and count calls are answered from.",
     "  cadenza admin visibility rebuild\n"},
    {0},
};
