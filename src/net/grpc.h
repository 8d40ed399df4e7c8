/* grpc.h - words that server and client of gRPC share: limits, headers, status.
 *
 * Unary gRPC over HTTP/2 (nghttp2), bytes in and bytes out: this folder knows nothing of messages.
 */
#ifndef CADENZA_NET_GRPC_H
#define CADENZA_NET_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/call.h"

#define GRPC_MESSAGE_MAX_DEFAULT (32u * 1024 * 1024)

/* Codes of gRPC that are spoken of by name. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
};

/* --- pure functions, fuzzed
 * ------------------------------------------------------------------------ */

/* "2994398u", "1M": up to 8 digits and one of H M S m u n → nanoseconds (capped at about 290
 * years). False: not of that form. */
must_use bool grpc_timeout_parse(struct slice text, int64_t *nanoseconds);
/* The shortest exact form that fits 8 digits, rounded up. */
const char *grpc_timeout_format(int64_t nanoseconds, struct arena *arena);

/* google.rpc.Status with one Any, as grpc-status-details-bin carries it (base64 without padding).
 */
struct slice grpc_status_details_encode(int code, const char *message, const char *type_name,
                                        struct slice detail, struct arena *arena);
/* Back: the message name of the first Any (what follows the last '/' of its type), its bytes; both
 * empty when there is no Any. Everything lives in `arena`. False: not of that form. */
must_use bool grpc_status_details_decode(struct slice header, struct arena *arena, int *code,
                                         struct slice *message, struct slice *type_name,
                                         struct slice *detail);

/* The error kind that a status and the name of its detail (empty: none) stand for;
 * ERR_UNCATEGORISED when none does. */
enum error_kind grpc_status_kind(int status, struct slice type_name);
/* A text as a message of the wire can carry it: valid UTF-8 (what is not becomes '?') and short
 * enough for the header limits of all known clients. */
struct slice grpc_message_clean(const char *text, struct arena *arena);

/* What the beginning of a message says. */
enum grpc_frame { GRPC_FRAME_OK, GRPC_FRAME_TOO_LARGE, GRPC_FRAME_COMPRESSED, GRPC_FRAME_BAD_FLAG };

/* The five bytes before a message: flag and length. `length` is set in any case. */
#define GRPC_PREFIX_SIZE 5
enum grpc_frame grpc_prefix_parse(const uint8_t prefix[GRPC_PREFIX_SIZE], size_t message_max,
                                  size_t *length);
void grpc_prefix_write(uint8_t prefix[GRPC_PREFIX_SIZE], size_t length);

#endif
