/* commands_general.c - the commands that belong to no group. */
#include "cli/base/commands.h"

const struct cli_command cli_general_commands[] = {
    {
        .words = "dev",
        .summary =
            "Runs a temporary server with one domain, for trying things out and for your own "
            "tests. Its\ndata are deleted when it ends. With --skip-time nobody waits for timers.",
        .examples = "  cadenza dev\n"
                    "  cadenza dev --domain orders --skip-time --grpc 127.0.0.1:0\n",
        .flags = "dev_domain dev_grpc dev_http skip-time",
        .catches_signals = true,
        .run = cli_dev,
    },
    {
        .words = "group",
        .summary = "Runs a whole group of clusters on this machine, for trying things out: a "
                   "server\nprocess for each, with its own ports, data folder and log. It prints "
                   "their addresses when\nall are ready; Ctrl-C stops all. The data are kept for "
                   "the next start.",
        .examples = "  cadenza group --clusters 3\n"
                    "  cadenza group --clusters 2 --data /tmp/pair --base-port 20000\n",
        .flags = "group_clusters group_data base_port",
        .catches_signals = true,
        .run = cli_group,
    },
    {
        .words = "health",
        .summary = "Asks a running server whether it is healthy; exit code 0 if it is.",
        .examples = "  cadenza health\n  cadenza health --address 10.0.0.7:7833\n",
        .flags = REMOTE,
        .run = cli_health,
    },
    {
        .words = "completion",
        .arguments = "bash|zsh|fish",
        .word_count = 1,
        .word_min = 1,
        .summary = "Prints what a shell needs to complete commands and flags with the tab key.",
        .examples = "  cadenza completion bash\n"
                    "  cadenza completion fish\n",
        .flags = "",
        .run = cli_completion,
    },
    {.words = NULL},
};
