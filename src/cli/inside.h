/* inside.h - what the commands of cli/ share. Only files of cli/ include it.
 *
 * A command is a row of a table: the words that name it, the flags it takes (by name, of the one
 * table of flags) and the function that does it. The function runs in a fiber and finds what was
 * given in its call. */
#ifndef CADENZA_CLI_INSIDE_H
#define CADENZA_CLI_INSIDE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/flags.h"

/* What the domain commands can be given; NULL, empty or false: not given. */
struct domain_flags {
    const char *name, *id, *description, *owner_email, *retention, *is_global, *security_token;
    const char *active_cluster, *active_clusters_json, *failover_type, *failover_timeout, *reason;
    const char *history_status, *history_uri, *visibility_status, *visibility_uri;
    const char *add_bad_binary, *remove_bad_binary;
    const char *page_size, *prefix;
    struct flag_list clusters, active_clusters, data, data_entries;
    bool wants_all, wants_deprecated, wants_full, is_forced, is_confirmed;
};

/* What `admin dlq` can be given; NULL: not given. */
struct dlq_flags {
    const char *type, *source, *shard, *last;
};

/* What a command's fiber is given. */
struct cli_call {
    const char *const *words;  /* after the command's own words */
    const char *data;          /* --data; NULL: not given */
    const char *address;       /* --address */
    const char *timeout;       /* --context_timeout, seconds; NULL: the command's own */
    const char *transport;     /* --transport */
    const char *tls_authority; /* --tls_cert_path; NULL: plain */
    const char *format;        /* --format */
    bool prints_json;          /* --print_json */
    bool as_json;              /* one of the two */
    struct domain_flags domain;
    const char *group_clusters, *base_port; /* of `group` */
    const char *count;                      /* --count */
    struct dlq_flags dlq;
    struct arena *arena;
    int exit_code; /* 0 unless the command says otherwise; with an error 1 or, if set, that */
};

struct cli_command {
    const char *words;     /* "admin store info" */
    const char *arguments; /* shown behind them: "DIR" */
    unsigned word_count;   /* of its arguments */
    const char *summary;
    const char *examples;
    const char *flags;                           /* keys of cli_flags, with blanks between */
    bool catches_signals;                        /* Ctrl-C and SIGTERM reach ground_on_stop */
    struct error *(*run)(struct cli_call *call); /* in a fiber; may yield */
};

/* A flag that commands may take. */
struct cli_flag {
    const char
        *key; /* what commands call it; differs from the name where a name means two things */
    const char *name, *aliases;
    const char *argument; /* NULL: a switch */
    const char *help;
    size_t offset; /* in struct cli_call: a text, or a list, or for a switch a bool */
    bool is_list;
};

/* Ended by a command without words, by a flag without key. */
extern const struct cli_command cli_commands[];
extern const struct cli_flag cli_flags[];

/* The table for command_line_read of the flags that `keys` names, of all for NULL; values go to
 * `call`. */
const struct flag *cli_flags_table(const char *keys, struct cli_call *call, struct arena *arena);

/* Commands, by file. */
struct error *cli_store_info(struct cli_call *call);
struct error *cli_store_check(struct cli_call *call);
struct error *cli_backup(struct cli_call *call);
struct error *cli_rebuild_visibility(struct cli_call *call);
struct error *cli_restore(struct cli_call *call);
struct error *cli_health(struct cli_call *call);
struct error *cli_domain_register(struct cli_call *call);
struct error *cli_domain_update(struct cli_call *call);
struct error *cli_domain_describe(struct cli_call *call);
struct error *cli_domain_failover(struct cli_call *call);
struct error *cli_domain_list(struct cli_call *call);
struct error *cli_domain_deprecate(struct cli_call *call);
struct error *cli_domain_delete(struct cli_call *call);
struct error *cli_domain_list_failover_history(struct cli_call *call);
struct error *cli_group(struct cli_call *call);
struct error *cli_hot_workflows(struct cli_call *call);
struct error *cli_divergence(struct cli_call *call);
struct error *cli_config_keys(struct cli_call *call);
struct error *cli_dlq_count(struct cli_call *call);
struct error *cli_dlq_read(struct cli_call *call);
struct error *cli_dlq_purge(struct cli_call *call);
struct error *cli_dlq_merge(struct cli_call *call);

/* Prints to standard output. */
void cli_print(const char *format, ...) printf_like(1, 2);
/* The same for JSON, indented; lets go of it. */
struct json_t;
void cli_print_json(struct json_t *json);
/* The error, with the exit code for wrong arguments. NULL gives NULL. */
struct error *cli_wrong(struct cli_call *call, struct error *err);

/* One call to the server at call->address, on a connection of its own, for at most `timeout` (ns)
 * or what --context_timeout says. *response points to a message of `type`. Yields. Errors: the
 * server's; ERR_UNAVAILABLE. */
must_use struct error *cli_ask(struct cli_call *call, const char *path,
                               const ProtobufCMessage *request, int64_t timeout,
                               const ProtobufCMessageDescriptor *type, ProtobufCMessage **response);

#endif
