/* message_json.h - any message as JSON, for people who read stored rows. Names are those of the
 * proto; what is not set is left out; enums are names, bytes base64. Nothing reads it back. */
#ifndef CADENZA_WIRE_MESSAGE_JSON_H
#define CADENZA_WIRE_MESSAGE_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buffer.h"

/* Appends the object. */
void message_json_append(struct buffer *out, const ProtobufCMessage *message);
/* Appends a text, quoted and escaped. */
void message_json_append_text(struct buffer *out, struct slice text);

#endif
