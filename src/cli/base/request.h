/* request.h - requests from texts: a field of a message, named by its path, takes what a person
 * typed. Pure. Inside cli/ only.
 *
 * The type of the field decides how the text is read: numbers and true/false as such; a value of an
 * enum by its name (without the name of the enum; case and underscores do not count); a duration as
 * seconds or as Go writes it (90, 1h30m); a time as time_read says; a payload as JSON values, which
 * are checked and sent as they are. */
#ifndef CADENZA_CLI_BASE_REQUEST_H
#define CADENZA_CLI_BASE_REQUEST_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

struct request_context {
    struct arena *arena;
    int64_t now; /* wall, ns: for times given as how long ago */
};

/* Gives the field at `path` ("workflow_execution.run_id") this value; messages on the way are made.
 * `flag` is what an error calls it. Errors: ERR_BAD_REQUEST. */
must_use struct error *request_set(const struct request_context *context, ProtobufCMessage *message,
                                   const char *path, const char *flag, const char *value);
/* The text of the field at `path`, a string; NULL: there is no such field. */
const char *request_text(const ProtobufCMessage *message, const char *path);

/* Nanoseconds since 1970 of "2026-11-15T09:00:00Z", of a number of nanoseconds, or of a time so
 * long before `now`: 15m, 15minute, 2d, 1week. */
must_use bool time_read(const char *text, int64_t now, int64_t *nanoseconds);

/* Is it one JSON value or more, with blanks between? If not, *wrong is a sentence that says why. */
must_use bool json_values_check(const char *text, struct arena *arena, const char **wrong);
/* Cuts it into its values: *count texts. The text must be one that passed the check. */
const char **json_values_cut(const char *text, struct arena *arena, size_t *count);
/* The same for words with `separator` between; empty ones are left out unless it is '|'. */
const char **words_cut(const char *text, char separator, struct arena *arena, size_t *count);

#endif
