/* event_json.h - batches of history as the JSON that Cadence writes into archives, and back.
 *
 * The shape is that of Cadence's own types: names in camelCase, times in nanoseconds, durations in
 * whole seconds, bytes in base64, enums by name, what is not set left out. A history that was
 * archived by Cadence is read, and one that is written here can be read by Cadence. For canonical
 * events (thrift.h), and histories hold no others, writing and reading again gives the same
 * message. The table behind thrift.h says which fields there are. */
#ifndef CADENZA_WIRE_EVENT_JSON_H
#define CADENZA_WIRE_EVENT_JSON_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

/* Appends {"events":[…]}. */
void event_json_append_batch(struct buffer *out, const API(History) *batch);
/* Reads such a batch; members that are not known are skipped. Memory is bounded by a multiple of
 * the bytes. Errors: ERR_CORRUPT. */
must_use struct error *event_json_read_batch(struct slice json, struct arena *arena,
                                             API(History) **batch);
/* The number of an enum's value by its name, in whatever case and with or without underscores; 0:
 * none has it. */
int32_t event_json_find_value(const ProtobufCEnumDescriptor *type, const char *name);

#endif
