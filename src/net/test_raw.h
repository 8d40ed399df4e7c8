/* test_raw.h - HTTP/2 by hand, for tests that must send what no well-behaved client sends.
 *
 * Frames and header blocks are built from bytes (literal fields, no compression). What comes back
 * is read frame by frame and summed up in a struct raw. */
#ifndef CADENZA_NET_TEST_RAW_H
#define CADENZA_NET_TEST_RAW_H

#include <nghttp2/nghttp2.h>

#include "base/buffer.h"
#include "fiber/socket.h"
#include "net/test_service.h"

struct raw {
    struct socket *socket;
    nghttp2_hd_inflater *inflater;
    uint8_t *input; /* read, not parsed yet */
    size_t input_length;
    int32_t stream;  /* of the last HEADERS: what is said of others is not noted */
    bool is_watched; /* the frame that is parsed belongs to it */
    /* What the server said so far. -1: nothing of the kind. */
    int http_status, grpc_status;
    int64_t reset_code, goaway_code;
    char details[1024];   /* grpc-status-details-bin; "": none */
    char error_name[64];  /* rpc-application-error-name; "": none */
    char rpc_service[64]; /* "": none */
    unsigned data_bytes, pings, goaways;
    bool is_stream_ended; /* a frame with END_STREAM came */
    bool is_closed;       /* the connection is */
};

struct raw_field {
    const char *name, *value;
};

/* Connects and sends nothing. */
void raw_connect(struct raw *raw, const struct test_service *service);
/* Connects, sends the preface and empty SETTINGS. */
void raw_open(struct raw *raw, const struct test_service *service);
void raw_close(struct raw *raw);
/* Forgets what came so far. */
void raw_forget(struct raw *raw);
/* Writes all, as far as the server takes it; false: it does not any more. */
bool raw_send(struct raw *raw, const void *bytes, size_t count);
bool raw_frame(struct raw *raw, unsigned type, unsigned flags, int32_t stream,
               struct slice payload);
/* A HEADERS frame of these fields; the last has the name NULL. */
bool raw_headers(struct raw *raw, unsigned flags, int32_t stream, const struct raw_field *fields);
/* The header block as bytes in the arena. */
struct slice raw_block(const struct raw_field *fields, struct arena *arena);
/* Fields of a good request for the path, in the arena. */
struct raw_field *raw_good_fields(const char *path, struct arena *arena);
/* A good request in two frames: HEADERS, DATA with the message. */
bool raw_request(struct raw *raw, int32_t stream, const char *path, struct slice message);

/* Reads until a stream or the connection has ended one way or another. False: ten seconds passed.
 */
must_use bool raw_wait(struct raw *raw);
/* Reads until the connection is closed. */
must_use bool raw_wait_closed(struct raw *raw);
/* Reads what is there now or comes within `patience`. */
void raw_read_for(struct raw *raw, int64_t patience);

/* After every insult: a good call works. */
void raw_expect_alive(struct test_service *service, struct arena *arena);
/* Closes all three: the connection, after a look at the server, the server. */
void raw_finish(struct raw *raw, struct test_service *service, struct arena *arena);

#endif
