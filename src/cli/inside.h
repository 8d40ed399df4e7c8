/* inside.h - what the commands of cli/ share. Only files of cli/ include it. */
#ifndef CADENZA_CLI_INSIDE_H
#define CADENZA_CLI_INSIDE_H

#include "base/arena.h"
#include "base/error.h"
#include "cli/flags.h"

/* What a command's fiber is given. */
struct cli_call {
    const char *const *words; /* after the command's own words */
    const char *data;         /* --data */
    const char *address;      /* --address */
    bool as_json;             /* --format json */
    struct arena *arena;
    int exit_code; /* 0 unless the command says otherwise */
};

struct cli_command {
    const char *words;     /* "admin store info" */
    const char *arguments; /* shown behind them: "DIR" */
    unsigned word_count;   /* of its arguments */
    const char *summary;
    const char *examples;
    bool takes_data, takes_address, takes_format;
    struct error *(*run)(struct cli_call *call); /* in a fiber; may yield */
};

/* Ended by a command without words. */
extern const struct cli_command cli_commands[];

/* Commands, by file. */
struct error *cli_store_info(struct cli_call *call);
struct error *cli_store_check(struct cli_call *call);
struct error *cli_backup(struct cli_call *call);
struct error *cli_restore(struct cli_call *call);
struct error *cli_health(struct cli_call *call);

/* Prints to standard output. */
void cli_print(const char *format, ...) printf_like(1, 2);

#endif
