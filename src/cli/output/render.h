/* render.h - messages as JSON and as text, guided by their descriptors. Pure. Inside cli/ only.
 *
 * Two dialects. RENDER_CADENCE is the JSON of Cadence's own tools, which replayers and scripts
 * read: times in nanoseconds, durations as ...Seconds, payloads in base64, a failure as reason and
 * details, an event with its eventType. RENDER_READABLE is for people: times as dates, durations as
 * 1m30s, payloads as the JSON or text that they hold, a name in place of {"name": ...}. What is
 * unset or empty is left out in both. */
#ifndef CADENZA_CLI_OUTPUT_RENDER_H
#define CADENZA_CLI_OUTPUT_RENDER_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

enum render { RENDER_CADENCE, RENDER_READABLE };

/* A new reference. */
json_t *render_message(const ProtobufCMessage *message, enum render dialect, struct arena *arena);
/* What a payload holds, in that dialect; NULL gives NULL. */
json_t *render_payload(const API(Payload) *payload, enum render dialect, struct arena *arena);
/* "WorkflowExecutionStarted"; "Unknown" for an event without attributes. */
const char *render_event_type(const API(HistoryEvent) *event, struct arena *arena);
/* The attributes of an event; NULL: it has none that we know. */
const ProtobufCMessage *render_event_attributes(const API(HistoryEvent) *event);

/* JSON on one line for people: "taskList: orders, input: [1,2]"; each member is cut at `length_max`
 * characters (0: never), marked by "…". Control characters become '?'. */
const char *render_line(const json_t *json, size_t length_max, struct arena *arena);
/* As JSON on one line, whole. */
const char *render_compact(const json_t *json, struct arena *arena);
/* Indented, with a line end. */
const char *render_text(const json_t *json, struct arena *arena);
/* "2026-11-15T09:00:00.25Z" with as many digits as the time has. */
const char *render_time(int64_t nanoseconds, struct arena *arena);
/* For people: "0s", "1.2s", "3m4s", "2h5m", "3d4h". */
const char *render_span(int64_t nanoseconds, struct arena *arena);

#endif
