/* http_test.c - the HTTP/1.1 door over real sockets. */
#include "net/http.h"

#include <stdio.h>

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/socket.h"

struct seen {
    int requests;
};

static void
answer(void *context, const char *method, const char *path, struct slice body, struct arena *arena,
       struct http_answer *answer)
{
    struct seen *seen = context;
    seen->requests++;
    if (strcmp(path, "/echo") != 0)
        return;
    answer->status = 200;
    answer->content_type = "text/special";
    answer->body =
        slice_text(arena_format(arena, "%s %zu %.*s", method, body.length, SLICE_ARG(body)));
}

/* Sends a request that asks the server to close, and reads all it says. */
static const char *
talk(const struct http_server *server, const char *request, struct arena *arena)
{
    struct socket *socket;
    size_t room = 1 << 16, length = 0;
    char *text = arena_zalloc(arena, 1, room);
    EXPECT_OK(socket_connect(http_server_address(server), clock_monotonic() + 5 * NS_PER_S, arena,
                             &socket));
    for (size_t sent = 0, size = strlen(request); sent < size;) {
        int64_t count = socket_write(socket, request + sent, size - sent);
        EXPECT(count >= 0);
        sent += (size_t)count;
        if (count == 0)
            (void)socket_wait(socket, SOCKET_WRITABLE, NEVER);
    }
    for (int64_t count; (count = socket_read(socket, text + length, room - 1 - length)) >= 0;) {
        length += (size_t)count;
        if (count == 0)
            EXPECT(socket_wait(socket, SOCKET_READABLE, clock_monotonic() + 5 * NS_PER_S) != 0);
    }
    socket_close(socket);
    return text;
}

static struct http_server *
open_server(struct seen *seen, struct arena *arena)
{
    struct http_server *server;
    struct http_routes routes = {answer, seen};
    EXPECT_OK(http_server_open("127.0.0.1:0", &routes, arena, &server));
    return server;
}

CONTRACT(http, a_request_is_answered_with_what_the_routes_say, 1)
{
    struct seen seen = {0};
    struct http_server *server = open_server(&seen, arena);
    const char *text =
        talk(server, "GET /echo?q=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", arena);
    EXPECT(strncmp(text, "HTTP/1.1 200 ", 13) == 0);
    EXPECT(strstr(text, "text/special") != NULL);
    EXPECT(strstr(text, "\r\n\r\nGET 0 ") != NULL);
    EXPECT_EQ(seen.requests, 1);
    http_server_close(server);
}

CONTRACT(http, unknown_paths_are_not_found_and_head_has_no_body, 1)
{
    struct seen seen = {0};
    struct http_server *server = open_server(&seen, arena);
    const char *text =
        talk(server, "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", arena);
    EXPECT(strncmp(text, "HTTP/1.1 404 ", 13) == 0);
    text = talk(server, "HEAD /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", arena);
    EXPECT(strncmp(text, "HTTP/1.1 200 ", 13) == 0);
    EXPECT(strstr(text, "GET 0") == NULL);
    http_server_close(server);
}

CONTRACT(http, a_body_is_collected_up_to_its_limit, 1)
{
    struct seen seen = {0};
    struct http_server *server = open_server(&seen, arena);
    const char *text = talk(server,
                            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                            "Connection: close\r\n\r\nhello",
                            arena);
    EXPECT(strstr(text, "\r\n\r\nPOST 5 hello") != NULL);

    size_t size = 2 << 20;
    char *large = arena_alloc(arena, size + 200);
    int length = snprintf(large, 200,
                          "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n"
                          "Connection: close\r\n\r\n",
                          size);
    memset(large + length, 'x', size);
    large[(size_t)length + size] = '\0';
    text = talk(server, large, arena);
    EXPECT(strncmp(text, "HTTP/1.1 413 ", 13) == 0);
    EXPECT_EQ(seen.requests, 1);
    http_server_close(server);
}

CONTRACT(http, garbage_is_refused_and_the_next_request_is_served, 1)
{
    struct seen seen = {0};
    struct http_server *server = open_server(&seen, arena);
    (void)talk(server, "\x16\x03\x01 what is this\r\n\r\n", arena);
    (void)talk(server, "GET\r\n\r\n", arena);
    const char *text =
        talk(server, "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", arena);
    EXPECT(strncmp(text, "HTTP/1.1 200 ", 13) == 0);
    EXPECT_EQ(seen.requests, 1);
    http_server_close(server);
}

CONTRACT(http, an_address_that_is_taken_or_is_none_is_an_error_that_names_it, 1)
{
    struct seen seen = {0};
    struct http_routes routes = {answer, &seen};
    struct http_server *server = open_server(&seen, arena), *other;
    struct error *err = http_server_open(http_server_address(server), &routes, arena, &other);
    EXPECT_KIND(err, ERR_IO);
    EXPECT(strstr(err->message, http_server_address(server)) != NULL);
    static const char *const wrong[] = {"",         "nowhere", "127.0.0.1",      "127.0.0.1:99999",
                                        "1.2.3:80", "[::1:80", "host.example:80"};
    for (size_t i = 0; i < array_length(wrong); i++)
        EXPECT_KIND(http_server_open(wrong[i], &routes, arena, &other), ERR_IO);
    http_server_close(server);
}
