/* dynamic.h - settings that change while the server runs, in Cadence's file format:
 *
 *   system.maxRetentionDays:
 *   - value: 30
 *   - value: 90
 *     constraints: {domainName: orders}
 *
 * The first entry in file order whose constraints all equal the asker's filters wins; else the last
 * entry without constraints; else the default of the table (keys.h). An entry with a constraint
 * that the asker does not carry never matches. Unknown keys are logged (Cadence has hundreds) and
 * ignored. A file that cannot be read or parsed, or has a value of a wrong type, is refused as a
 * whole: the values stay as they were.
 *
 * A set of values is immutable. The owner reads the file again when it changed, publishes a new set
 * by pointer swap, and frees the old one when every loop has passed on: so a text that was read
 * must not be used across a yield. */
#ifndef CADENZA_CONFIG_DYNAMIC_H
#define CADENZA_CONFIG_DYNAMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "config/config.h"
#include "config/keys.h"

struct dynamic;
struct value;

/* What the asker is about; NULL / negative: not known. */
struct dynamic_filter {
    const char *domain_name;
    const char *domain_id;
    const char *task_list_name;
    int task_type; /* 0 decision, 1 activity; use -1 for none */
    int64_t shard_id;
    const char *cluster_name;
    const char *workflow_id;
    const char *workflow_type;
};
#define DYNAMIC_NO_FILTER ((struct dynamic_filter){.task_type = -1, .shard_id = -1})

/* A set of values with no file behind it: all defaults. `log` must live longer. */
struct dynamic *dynamic_new(const struct log *log);
/* Replaces all values by those of a file's text; on an error nothing changes. On loop 0, or before
 * loops run. Errors: ERR_BAD_REQUEST, all faults of the file, "file:line: key: sentence" each. */
must_use struct error *dynamic_load(struct dynamic *dynamic, struct slice yaml, const char *file,
                                    struct arena *arena);
/* The same for settings that are kept elsewhere: they stand over those of the file, key by key:
 * where one of their entries fits the asker it wins. */
must_use struct error *dynamic_load_stored(struct dynamic *dynamic, struct slice yaml,
                                           const char *origin, struct arena *arena);
/* Would it be loaded? */
must_use struct error *dynamic_check(struct slice yaml, const char *file, struct arena *arena);
/* Reads the file now, and again whenever it changed, checking every `interval` ns. Starts a fiber
 * on the current loop (must be loop 0), which ends with dynamic_free. The first read must succeed,
 * else nothing is followed. Yields. Errors: as file_load, ERR_BAD_REQUEST. */
must_use struct error *dynamic_follow(struct dynamic *dynamic, const char *file, int64_t interval,
                                      struct arena *arena);
/* How often a server looks: dynamicconfig.filebased.pollInterval, but at least this often: a limit
 * that is lowered in a storm has to hold within a second. */
#define DYNAMIC_INTERVAL_MAX 500000000LL
int64_t dynamic_interval(const struct config *config);
/* Frees it, on the loop that made it, when nobody uses it any more. Yields if a file was followed,
 * or an old set is still on its way out. NULL is fine. */
void dynamic_free(struct dynamic *dynamic);

/* Is the key set for anybody? Else its default holds for all. Any loop; cheap. */
bool dynamic_is_set(const struct dynamic *dynamic, enum dynamic_key key);

/* Values; any loop. `key` must be declared with that type (a check). A NULL filter carries nothing.
 * Texts live until the next yield. */
int64_t dynamic_integer(const struct dynamic *dynamic, enum dynamic_key key,
                        const struct dynamic_filter *filter);
double dynamic_number(const struct dynamic *dynamic, enum dynamic_key key,
                      const struct dynamic_filter *filter);
bool dynamic_flag(const struct dynamic *dynamic, enum dynamic_key key,
                  const struct dynamic_filter *filter);
int64_t dynamic_duration(const struct dynamic *dynamic, enum dynamic_key key,
                         const struct dynamic_filter *filter); /* ns */
const char *dynamic_text(const struct dynamic *dynamic, enum dynamic_key key,
                         const struct dynamic_filter *filter);
/* Any of them (value.h); lives until the next yield. */
const struct value *dynamic_value(const struct dynamic *dynamic, enum dynamic_key key,
                                  const struct dynamic_filter *filter);
/* The key with this name; DYNAMIC_KEY_COUNT: there is none. */
enum dynamic_key dynamic_find_key(const char *name);
/* Sets the field of the filter that a constraint of this name is compared with. False: there is no
 * such constraint, or it takes a number and the text is not one. */
must_use bool dynamic_filter_set(struct dynamic_filter *filter, const char *name, const char *text);
/* A list of texts, in the arena, NULL-terminated. */
const char *const *dynamic_list(const struct dynamic *dynamic, enum dynamic_key key,
                                const struct dynamic_filter *filter, struct arena *arena);

#endif
