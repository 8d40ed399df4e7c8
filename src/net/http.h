/* http.h - the HTTP/1.1 door for people and monitors: /healthz, /metrics, later the UI.
 * libmicrohttpd behind it.
 *
 * Runs on the loop that opened it (libmicrohttpd's epoll set is watched by the loop): no threads of
 * its own. Only on the linux platform. */
#ifndef CADENZA_NET_HTTP_H
#define CADENZA_NET_HTTP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

struct http_server;

struct http_answer {
    unsigned status;          /* 200, 404, 503, ... */
    const char *content_type; /* literal */
    struct slice body;        /* in the arena of the request */
};

struct http_routes {
    /* Fills the answer; must not yield. `method` is "GET", "POST", ...; path without the query
     * string. */
    void (*answer)(void *context, const char *method, const char *path, struct slice body,
                   struct arena *arena, struct http_answer *answer);
    void *context;
};

/* Errors: ERR_IO naming the address. */
must_use struct error *http_server_open(const char *address, const struct http_routes *routes,
                                        struct arena *arena, struct http_server **server);
const char *http_server_address(const struct http_server *server);
void http_server_close(struct http_server *server);

#endif
