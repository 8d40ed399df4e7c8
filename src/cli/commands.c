/* commands.c - the table of commands: what --help shows and where each goes. */
#include "cli/inside.h"

const struct cli_command cli_commands[] = {
    {
        .words = "health",
        .summary = "Asks a running server whether it is well; exit code 0 if it says so.",
        .examples = "  cadenza health\n  cadenza health --address 10.0.0.7:7833\n",
        .takes_address = true,
        .run = cli_health,
    },
    {
        .words = "admin store info",
        .summary = "Shows what a data folder holds: rows by kind, files by level, sizes. The "
                   "server must be stopped.",
        .examples = "  cadenza admin store info --data ./data\n  cadenza admin store info --data "
                    "./data --format json\n",
        .takes_data = true,
        .takes_format = true,
        .run = cli_store_info,
    },
    {
        .words = "admin store check",
        .summary = "Reads all of a data folder: every checksum, every key, every guard, every "
                   "domain record.\n"
                   "Exit code 1 when something is wrong. The server must be stopped.",
        .examples = "  cadenza admin store check --data ./data\n",
        .takes_data = true,
        .takes_format = true,
        .run = cli_store_check,
    },
    {
        .words = "admin backup",
        .arguments = "DIR",
        .word_count = 1,
        .summary = "Lets a running server write a copy of its store, of one moment, into a new "
                   "folder DIR on its machine.",
        .examples = "  cadenza admin backup /backups/monday\n",
        .takes_address = true,
        .run = cli_backup,
    },
    {
        .words = "admin restore",
        .arguments = "BACKUP",
        .word_count = 1,
        .summary = "Makes a new data folder from a backup. Its shards get higher range ids, and as "
                   "a member of a group it\n"
                   "has to catch up with the others before it takes writes for global domains.",
        .examples = "  cadenza admin restore /backups/monday --data ./data-restored\n",
        .takes_data = true,
        .run = cli_restore,
    },
    {.words = NULL},
};
