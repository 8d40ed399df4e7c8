/* config.h - the settings a server starts with: YAML in Cadence's sections, checked against one
 * table.
 *
 * keys.h declares every key that the server reads: name, type, default, one sentence. A key that is
 * not declared is an error that names file, line and key, and the nearest declared one. Keys of
 * Cadence that have no meaning here (ringpop, kafka, ...) are declared as ignored, so that a file
 * made for Cadence starts; each use is logged once. Old names of Cadence's are read as the new
 * ones. ${VAR:default} in a scalar is replaced from the environment. Nothing written (key:), ~ and
 * null mean: not given. Values are checked when they are loaded, so reading one cannot fail;
 * reading a key that is not declared is a check.
 *
 * A path is the way through the sections, "persistence.numHistoryShards"; a name that the user
 * chooses is part of the path, "clusterGroupMetadata.clusterGroup.cluster1.rpcAddress", and
 * declared as "*"; so it holds no dot. */
#ifndef CADENZA_CONFIG_CONFIG_H
#define CADENZA_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"

struct config;

/* How variables are looked up: getenv for a process, a table for a test. NULL result: not set; NULL
 * function: none is. */
struct config_environment {
    const char *(*get)(void *context, const char *name);
    void *context;
};

/* The variables of this process. */
extern const struct config_environment config_environment_of_process;

/* All defaults. */
struct config *config_default(void);
/* Reads YAML over the defaults; `file` names it in errors. All faults of a file are listed
 * together, one per line of the message: "file:line: key: sentence". Errors: ERR_BAD_REQUEST. */
must_use struct error *config_parse(struct slice yaml, const char *file,
                                    const struct config_environment *environment,
                                    struct arena *arena, struct config **config);
/* Sets one key from a command line flag, with the same checks; a list is separated by commas.
 * Errors: ERR_BAD_REQUEST, "key: sentence". */
must_use struct error *config_set(struct config *config, const char *path, const char *value,
                                  struct arena *arena);
/* NULL is fine. */
void config_free(struct config *config);
/* Logs which keys were given but are ignored. */
void config_log_ignored(const struct config *config, const struct log *log);

/* Values, from the file or the default of the table. A text lives as long as the config; "" when
 * nothing is set. */
const char *config_text(const struct config *config, const char *path);
int64_t config_integer(const struct config *config, const char *path);
bool config_flag(const struct config *config, const char *path);
int64_t config_duration(const struct config *config, const char *path); /* ns */
/* Was it given (and not only defaulted)? */
bool config_is_given(const struct config *config, const char *path);
/* Names below a section with names of the user's choice, in order of the file, NULL-terminated. */
const char *const *config_names(const struct config *config, const char *path, struct arena *arena);
/* A list of scalars, NULL-terminated. */
const char *const *config_list(const struct config *config, const char *path, struct arena *arena);

#endif
