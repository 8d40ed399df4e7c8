/* inside.h - what the commands of cli/ share. Only files of cli/ include it.
 *
 * A command is a row of a table: the words that name it, the flags it takes (by name, of the one
 * table of flags) and the function that does it. The function runs in a fiber and finds what was
 * given in its call. */
#ifndef CADENZA_CLI_BASE_INSIDE_H
#define CADENZA_CLI_BASE_INSIDE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/base/flags.h"

/* What the domain commands can be given; NULL, empty or false: not given. */
struct domain_flags {
    const char *name, *id, *description, *owner_email, *retention, *is_global, *security_token;
    const char *active_cluster, *active_clusters_json, *failover_type, *failover_timeout, *reason;
    const char *history_status, *history_uri, *visibility_status, *visibility_uri;
    const char *add_bad_binary, *remove_bad_binary;
    const char *page_size, *prefix;
    const char *leave_cluster, *to_cluster, *attribute;
    struct flag_list clusters, active_clusters, regions, removed_attributes, data, data_entries;
    bool wants_all, wants_deprecated, wants_full, is_forced, is_confirmed;
};

#define CLI_FLAGS_MAX 224 /* rows of both tables of flags */

/* What a command's fiber is given. */
struct cli_call {
    const struct cli_command *command;
    const char *const *words;  /* after the command's own words */
    const char *data;          /* --data; NULL: not given */
    const char *address;       /* --address */
    const char *timeout;       /* --context_timeout, seconds; NULL: the command's own */
    const char *transport;     /* --transport */
    const char *tls_authority; /* --tls_cert_path; NULL: plain */
    const char *token;         /* --jwt, or made from the key; NULL: none */
    const char *token_key;     /* --jwt-private-key; NULL: none */
    const char *format;        /* --format */
    bool prints_json;          /* --print_json */
    bool as_json;              /* one of the two */
    struct domain_flags domain;
    const char *group_clusters, *base_port; /* of `group` */
    const char *count;                      /* --count */
    /* Of flags that have no place above, by their row: cli_text, cli_is_on, cli_list. */
    const char *given[CLI_FLAGS_MAX];
    bool is_on[CLI_FLAGS_MAX];
    struct flag_list lists[CLI_FLAGS_MAX];
    bool is_terminal; /* standard output is one, and colours are welcome */
    struct arena *arena;
    int exit_code; /* 0 unless the command says otherwise; with an error 1 or, if set, that */
};

/* A command that is one call: flags → fields of the request → the call → what came of it. Fields
 * with a flag are written "path.of.field=flag", with a final '!' if the flag is required. */
struct cli_rpc {
    const ProtobufCMessageDescriptor *request; /* says which method is called */
    const char *fields;
    const char *done; /* printed; {field} stands for one of the response or else the request */
    int64_t timeout;  /* ns; 0: 5 s */
    /* Completes the request by what a flag's value alone does not say; may be NULL. */
    struct error *(*complete)(struct cli_call *call, ProtobufCMessage *request);
    /* Shows the response instead of `done`; NULL, and no `done`: as JSON. */
    struct error *(*show)(struct cli_call *call, const ProtobufCMessage *response);
};

struct cli_command {
    const char *words;      /* "admin store info" */
    const char *aliases;    /* of its last word, as in the cadence command line: "desc d" */
    const char *arguments;  /* shown after them: "DIR" */
    const char *positional; /* the flags whose values the arguments are; may be NULL */
    unsigned word_count;    /* of its arguments, at most */
    unsigned word_min;      /* how many of them are required, if `positional` is set */
    const char *summary;
    const char *examples;
    const char *flags;                           /* keys of cli_flags, with blanks between */
    bool catches_signals;                        /* Ctrl-C and SIGTERM reach platform_on_stop */
    struct error *(*run)(struct cli_call *call); /* in a fiber; may yield. NULL: by rpc */
    const struct cli_rpc *rpc;
    /* Not supported: a sentence that says why, and what to use instead. It is printed whatever
     * flags are given. */
    const char *why_not;
};

/* Words that several commands begin with. */
struct cli_group_words {
    const char *words, *aliases, *summary, *examples;
};

/* A flag that commands may take. */
struct cli_flag {
    const char *key; /* what commands call it; not the name if that means two things */
    const char *name, *aliases;
    const char *argument; /* NULL: a switch */
    const char *help;
    size_t offset; /* in struct cli_call: a text, or a list, or for a switch a bool; 0: by row */
    bool is_list;
    const char *otherwise;   /* the value when it is not given; NULL: none */
    const char *environment; /* a variable that can replace it; NULL: none */
};

/* Ended by a command without words, by a flag without key, by a group without words. */
extern const struct cli_command cli_general_commands[], cli_domain_commands[],
    cli_workflow_commands[], cli_find_commands[], cli_change_commands[], cli_admin_commands[],
    cli_config_commands[], cli_schedule_commands[], cli_repair_commands[], cli_failover_commands[];
extern const struct cli_flag cli_flags[], cli_more_flags[];
extern const struct cli_group_words cli_group_words[];

/* All commands, in the order in which help shows them; NULL after the last. */
const struct cli_command *cli_command_at(size_t index);
/* All flags of both tables, by row; NULL after the last. */
const struct cli_flag *cli_flag_at(size_t row);
/* The keys of all flags that a command takes: its own, those of its fields and arguments. */
const char *cli_command_keys(const struct cli_command *command, struct arena *arena);
/* Is `word` one of the words of `words`? */
bool cli_has_word(const char *words, const char *word, size_t length);

/* What was given for the flag with this key, or its default, or NULL; that there is such a flag is
 * checked. */
const char *cli_text(const struct cli_call *call, const char *key);
bool cli_is_on(const struct cli_call *call, const char *key);
const struct flag_list *cli_list(const struct cli_call *call, const char *key);
/* The same as a number, `otherwise` when it was not given. Error: not a number from low to high. */
must_use struct error *cli_number(struct cli_call *call, const char *key, int64_t low, int64_t high,
                                  int64_t otherwise, int64_t *number);
bool cli_flag_is_switch(const char *key);
/* The name that users type. */
const char *cli_flag_name(const char *key);
/* The flag's value; an error that says what to give, when there is none. */
must_use struct error *cli_need(struct cli_call *call, const char *key, const char **value);
/* The same for the domain. */
must_use struct error *cli_need_domain(struct cli_call *call, const char **domain);

/* The table for command_line_read of the flags that `keys` names, of all for NULL; values go to
 * `call`. */
const struct flag *cli_flags_table(const char *keys, struct cli_call *call, struct arena *arena);

/* As if the flag had been given this value. */
void cli_give(struct cli_call *call, const char *key, const char *value);
/* Flags that were not given get the value of their environment variable. */
void cli_flags_from_environment(struct cli_call *call);

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
struct domain_list;
/* The domains in use, all pages. Yields. Errors: the server's. */
must_use struct error *cli_list_domains(struct cli_call *call, struct domain_list *list);
struct error *cli_group(struct cli_call *call);
struct error *cli_hot_workflows(struct cli_call *call);
struct error *cli_divergence(struct cli_call *call);
struct error *cli_audit(struct cli_call *call);
struct error *cli_entity_list(struct cli_call *call);
struct error *cli_entity_get(struct cli_call *call);
struct error *cli_entity_set(struct cli_call *call);
struct error *cli_entity_delete(struct cli_call *call);
struct error *cli_entity_watchers(struct cli_call *call);
struct error *cli_config_keys(struct cli_call *call);
struct error *cli_workflow_start(struct cli_call *call);
struct error *cli_workflow_run(struct cli_call *call);
struct error *cli_workflow_show(struct cli_call *call);
struct error *cli_workflow_observe(struct cli_call *call);
struct error *cli_workflow_list(struct cli_call *call);
struct error *cli_workflow_list_all(struct cli_call *call);
struct error *cli_workflow_scan(struct cli_call *call);
struct error *cli_workflow_list_archived(struct cli_call *call);
struct error *cli_workflow_count(struct cli_call *call);
struct error *cli_workflow_reset(struct cli_call *call);
struct error *cli_workflow_reset_batch(struct cli_call *call);
struct error *cli_workflow_query_types(struct cli_call *call);
struct error *cli_batch_start(struct cli_call *call);
struct error *cli_batch_list(struct cli_call *call);
struct error *cli_batch_describe(struct cli_call *call);
struct error *cli_batch_terminate(struct cli_call *call);
struct error *cli_cluster_health(struct cli_call *call);
struct error *cli_completion(struct cli_call *call);
struct error *cli_dev(struct cli_call *call);
struct error *cli_admin_get_shard(struct cli_call *call);
struct error *cli_domain_migration(struct cli_call *call);
struct error *cli_domain_get_id_or_name(struct cli_call *call);
struct error *cli_shard_describe(struct cli_call *call);
struct error *cli_schedule_list(struct cli_call *call);
struct error *cli_doctor(struct cli_call *call);
struct error *cli_dlq_count(struct cli_call *call);
struct error *cli_dlq_read(struct cli_call *call);
struct error *cli_dlq_purge(struct cli_call *call);
struct error *cli_dlq_merge(struct cli_call *call);

/* Prints to standard output. */
void cli_print(const char *format, ...) printf_like(1, 2);
/* A line for people on standard error, where programs do not look. */
void cli_note(const char *format, ...) printf_like(1, 2);
/* Prints JSON, indented, and releases it. */
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

/* Runs a command that is one call. */
struct error *cli_run_rpc(struct cli_call *call);
/* The request of a command that is one call, made from its flags. */
must_use struct error *cli_make_request(struct cli_call *call, const struct cli_rpc *rpc,
                                        ProtobufCMessage **request);
/* Sends it by the method that takes such requests. Yields. Errors: as cli_ask. */
must_use struct error *cli_call_rpc(struct cli_call *call, const struct cli_rpc *rpc,
                                    const ProtobufCMessage *request, ProtobufCMessage **response);
/* Makes call->token from --jwt-private-key, where it was given and --jwt was not. Yields. Error:
 * it is not such a key. */
must_use struct error *cli_make_token(struct cli_call *call);
/* Who asks, for requests and histories: user@host. */
const char *cli_identity(struct arena *arena);
/* Adds what to do next to an error, where its kind and text leave no doubt. */
struct error *cli_advise(struct cli_call *call, struct error *err);

/* The commands' text: an overview, what begins with some words, one command. */
const char *cli_help_overview(struct arena *arena);
const char *cli_help_group(const struct cli_group_words *group, struct arena *arena);
/* docs/cli.md. */
const char *cli_help_document(struct arena *arena);

#endif
