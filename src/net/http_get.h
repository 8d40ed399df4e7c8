/* http_get.h - one request over HTTP/1.1: GET, the whole answer, close. For sources outside that
 * offer nothing better.
 *
 * A connection per request: callers that use long polls ask seldom. Over https the server must
 * prove its name; see fiber/tls.h for what else is asked of it. */
#ifndef CADENZA_NET_HTTP_GET_H
#define CADENZA_NET_HTTP_GET_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

struct tls;

struct http_get {
    const char *url; /* http://host[:port][/path][?query], or https:// */
    struct tls *tls; /* for https, a client's that speaks HTTP/1.1; NULL: such URLs are refused */
    const char *server_name; /* that it must prove; NULL: the host's */
    size_t size_max;         /* of the answer's body; more is an error */
    int64_t deadline;        /* monotonic, of all of it */
};

/* *status is 200, 304, ...; the body is in the arena. Yields. Errors: ERR_BAD_REQUEST (no such
 * URL), ERR_UNAVAILABLE (no connection, a certificate that does not fit, or what came is
 * no HTTP), ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *http_get(const struct http_get *get, struct arena *arena, unsigned *status,
                                struct slice *body);

/* --- for tests: reading what came, pure ---- */

/* Takes a whole answer, head and body. *is_whole: nothing is missing; `is_ended`: no more will
 * come. Errors: ERR_UNAVAILABLE (no HTTP). */
must_use struct error *http_answer_read(struct slice bytes, bool is_ended, struct arena *arena,
                                        bool *is_whole, unsigned *status, struct slice *body);

#endif
