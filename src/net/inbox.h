/* inbox.h - one message that arrives in pieces: the body of a unary call, on either side.
 *
 * Takes the bytes of DATA frames as they come and knows as early as possible that they are wrong. A
 * peer cannot make it reserve memory by lying about the length: beyond `arena_max` the room grows
 * with what has really come. */
#ifndef CADENZA_NET_INBOX_H
#define CADENZA_NET_INBOX_H

#include "net/grpc.h"

struct inbox {
    uint8_t *bytes; /* the message; in the arena, or from memory.h when is_owned */
    size_t length;  /* of the message, as its prefix says; valid once prefix_length is 5 */
    size_t received;
    size_t room;
    uint8_t prefix[GRPC_PREFIX_SIZE];
    uint8_t prefix_length;
    bool is_owned;
};

enum inbox_verdict {
    INBOX_OK,
    INBOX_TOO_LARGE,  /* the prefix announces more than message_max */
    INBOX_COMPRESSED, /* flag 1 */
    INBOX_BAD_FLAG,   /* flag above 1 */
    INBOX_SURPLUS,    /* bytes after the message */
    INBOX_SHORT,      /* ended inside the message or its prefix */
    INBOX_EMPTY,      /* ended without a byte */
};

/* Adds a piece. Messages of up to `arena_max` bytes are reserved at once in `arena`. Anything but
 * INBOX_OK is final. */
enum inbox_verdict inbox_add(struct inbox *inbox, struct slice piece, size_t message_max,
                             size_t arena_max, struct arena *arena);
/* The body has ended: is it one whole message? */
enum inbox_verdict inbox_end(const struct inbox *inbox);
/* What is wrong, as a sentence for the peer; and the gRPC status for it. */
const char *inbox_sentence(enum inbox_verdict verdict);
enum grpc_status inbox_status(enum inbox_verdict verdict);
/* Frees what it owns; it is empty afterwards. */
void inbox_clear(struct inbox *inbox);

#endif
