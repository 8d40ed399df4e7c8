/* http_get.c - see http_get.h. The answer is gathered until http_answer_read says that it is whole:
 * by its Content-Length, by its last chunk, or by the end of the connection. */
#include "net/http_get.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/socket.h"

#define HEAD_MAX  (64 * 1024)
#define READ_SIZE (64 * 1024)

/* --- what came -------------------------------------------------------------------------------- */

static struct error *
no_http(struct arena *arena, const char *what)
{
    return error_new(arena, ERR_UNAVAILABLE, "the answer is not HTTP/1.1: %s", what);
}

/* The line at the beginning, without its end; false: there is no whole line. */
static bool
take_line(struct slice *rest, struct slice *line)
{
    const uint8_t *end = rest->length == 0 ? NULL : memchr(rest->data, '\n', rest->length);
    if (end == NULL)
        return false;
    size_t length = (size_t)(end - rest->data);
    *line =
        slice_of(rest->data, length > 0 && rest->data[length - 1] == '\r' ? length - 1 : length);
    *rest = slice_of(end + 1, rest->length - length - 1);
    return true;
}

/* The value of a header line with this name. */
static bool
is_header(struct slice line, const char *name, struct slice *value)
{
    size_t length = strlen(name);
    if (line.length <= length || strncasecmp((const char *)line.data, name, length) != 0 ||
        line.data[length] != ':')
        return false;
    *value = slice_of(line.data + length + 1, line.length - length - 1);
    while (value->length > 0 && (value->data[0] == ' ' || value->data[0] == '\t'))
        *value = slice_of(value->data + 1, value->length - 1);
    return true;
}

struct head {
    unsigned status;
    bool is_chunked;
    bool has_length;
    uint64_t length;
};

static struct error *
read_status(struct slice line, struct arena *arena, unsigned *status)
{
    bool is_one = line.length >= 12 && memcmp(line.data, "HTTP/1.", 7) == 0 && line.data[8] == ' ';
    uint64_t number = 0;
    if (!is_one || !text_parse_uint64(slice_of(line.data + 9, 3), 100, 999, &number))
        return no_http(arena, "its first line");
    *status = (unsigned)number;
    return NULL;
}

/* *is_whole: `rest` stands at the body. */
static struct error *
read_head(struct slice *rest, struct arena *arena, struct head *head, bool *is_whole)
{
    struct slice line, value;
    *is_whole = false;
    if (!take_line(rest, &line))
        return NULL;
    struct error *err = read_status(line, arena, &head->status);
    while (err == NULL && take_line(rest, &line)) {
        if (line.length == 0) {
            *is_whole = true;
            return NULL;
        }
        if (is_header(line, "transfer-encoding", &value))
            head->is_chunked =
                value.length == 7 && strncasecmp((const char *)value.data, "chunked", 7) == 0;
        if (is_header(line, "content-length", &value)) {
            head->has_length = true;
            if (!text_parse_uint64(value, 0, UINT32_MAX, &head->length))
                err = no_http(arena, "its Content-Length");
        }
    }
    return err;
}

static int
digit_of(uint8_t byte)
{
    const char *digits = "0123456789abcdef";
    uint8_t small = byte >= 'A' && byte <= 'F' ? (uint8_t)(byte + 32) : byte;
    const char *found = small == 0 ? NULL : strchr(digits, small);
    return found == NULL ? -1 : (int)(found - digits);
}

static bool
read_size(struct slice line, size_t *size)
{
    size_t at = 0;
    *size = 0;
    while (at < line.length && at < 8 && digit_of(line.data[at]) >= 0)
        *size = *size * 16 + (size_t)digit_of(line.data[at++]);
    return at > 0 && (at == line.length || line.data[at] == ';');
}

static struct error *
read_chunks(struct slice rest, struct arena *arena, bool *is_whole, struct slice *body)
{
    uint8_t *joined = arena_alloc(arena, rest.length + 1);
    size_t length = 0, size = 0;
    struct slice line;
    while (take_line(&rest, &line)) {
        if (!read_size(line, &size))
            return no_http(arena, "the size of a chunk");
        if (size == 0) {
            *is_whole = true;
            *body = slice_of(joined, length);
            return NULL;
        }
        if (rest.length < size + 1)
            return NULL;
        memcpy(joined + length, rest.data, size);
        length += size;
        rest = slice_of(rest.data + size, rest.length - size);
        if (!take_line(&rest, &line))
            return NULL;
        if (line.length != 0)
            return no_http(arena, "the end of a chunk");
    }
    return NULL;
}

struct error *
http_answer_read(struct slice bytes, bool is_ended, struct arena *arena, bool *is_whole,
                 unsigned *status, struct slice *body)
{
    struct head head = {0};
    bool has_head = false;
    struct slice rest = bytes;
    *is_whole = false;
    struct error *err = read_head(&rest, arena, &head, &has_head);
    if (err == NULL && !has_head && (is_ended || bytes.length > HEAD_MAX))
        err = no_http(arena, "its head does not end");
    if (err != NULL || !has_head)
        return err;
    *status = head.status;
    *body = slice_of("", 0);
    if (head.status == 304 || head.status == 204) {
        *is_whole = true;
    } else if (head.is_chunked) {
        err = read_chunks(rest, arena, is_whole, body);
    } else if (head.has_length) {
        *is_whole = rest.length >= head.length;
        *body = slice_of(rest.data, *is_whole ? head.length : 0);
    } else {
        *is_whole = is_ended;
        *body = rest;
    }
    if (err == NULL && is_ended && !*is_whole)
        err = no_http(arena, "it ends too early");
    return err;
}

/* --- asking ----------------------------------------------------------------------------------- */

#define NAME_MAX_LENGTH 253 /* of a host */

struct url_parts {
    const char *address; /* host:port */
    const char *host;    /* as in the URL */
    const char *name;    /* without port and brackets */
    const char *path;
    bool is_secure;
};

/* The host without what may stand around it. */
static const char *
name_of(const char *host, size_t length, struct arena *arena)
{
    bool has_brackets = host[0] == '[' && length > 2 && host[length - 1] == ']';
    return arena_format(arena, "%.*s", (int)(has_brackets ? length - 2 : length),
                        has_brackets ? host + 1 : host);
}

static struct error *
read_url(const char *url, struct arena *arena, struct url_parts *url_parts)
{
    static const char plain[] = "http://", secure[] = "https://";
    url_parts->is_secure = strncmp(url, secure, strlen(secure)) == 0;
    if (!url_parts->is_secure && strncmp(url, plain, strlen(plain)) != 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "'%s' is no URL of the form http://host:port/path or https://host/path",
                         url);
    const char *host = url + strlen(url_parts->is_secure ? secure : plain);
    size_t length = strcspn(host, "/?");
    const char *path = host + length;
    url_parts->host = arena_format(arena, "%.*s", (int)length, host);
    const char *colon = strrchr(url_parts->host, ':');
    bool has_port = colon != NULL && strchr(colon, ']') == NULL;
    size_t name_length = has_port ? (size_t)(colon - url_parts->host) : length;
    if (name_length == 0 || name_length > NAME_MAX_LENGTH || strpbrk(url, " \r\n\t") != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "'%s' names no host, or has blanks in it", url);
    url_parts->name = name_of(url_parts->host, name_length, arena);
    url_parts->address =
        has_port ? url_parts->host
                 : arena_format(arena, "%s:%d", url_parts->host, url_parts->is_secure ? 443 : 80);
    url_parts->path = path[0] == '/' ? path : arena_format(arena, "/%s", path);
    return NULL;
}

static struct error *
wait_for(struct socket *socket, unsigned want, int64_t deadline, struct arena *arena)
{
    if (socket_wait(socket, want, deadline) != 0)
        return NULL;
    if (fiber_is_cancelled())
        return error_new(arena, ERR_CANCELLED, "asking over HTTP was cancelled");
    if (clock_monotonic() >= deadline)
        return error_new(arena, ERR_DEADLINE, "the answer did not come in time");
    return NULL;
}

static struct error *
send_all(struct socket *socket, struct slice bytes, int64_t deadline, struct arena *arena)
{
    while (bytes.length > 0) {
        int64_t count = socket_write(socket, bytes.data, bytes.length);
        if (count < 0)
            return error_new(arena, ERR_UNAVAILABLE, "the connection was closed");
        bytes = slice_of(bytes.data + count, bytes.length - (size_t)count);
        struct error *err = count > 0 ? NULL : wait_for(socket, SOCKET_WRITABLE, deadline, arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* Grows with what comes. */
struct response_buffer {
    uint8_t *bytes;
    size_t length, room;
};

static bool
read_more(struct socket *socket, struct response_buffer *response_buffer, int64_t *count)
{
    if (response_buffer->room - response_buffer->length < READ_SIZE) {
        size_t room = response_buffer->room * 2 + 2 * READ_SIZE;
        uint8_t *wider = memory_zalloc(1, room);
        if (response_buffer->length > 0)
            memcpy(wider, response_buffer->bytes, response_buffer->length);
        memory_free(response_buffer->bytes);
        response_buffer->bytes = wider;
        response_buffer->room = room;
    }
    *count = socket_read(socket, response_buffer->bytes + response_buffer->length,
                         response_buffer->room - response_buffer->length);
    if (*count > 0)
        response_buffer->length += (size_t)*count;
    return *count > 0;
}

static struct error *
read_answer(struct socket *socket, const struct http_get *get,
            struct response_buffer *response_buffer, struct arena *arena, unsigned *status,
            struct slice *body)
{
    bool is_whole = false;
    while (!is_whole) {
        int64_t count = 0;
        bool has_more = read_more(socket, response_buffer, &count);
        bool is_ended = count == SOCKET_END;
        if (count == SOCKET_BROKEN) /* what has come so far was not whole */
            return error_new(arena, ERR_UNAVAILABLE, "the connection broke within the answer");
        if (response_buffer->length > get->size_max + HEAD_MAX)
            return error_new(arena, ERR_UNAVAILABLE, "the answer has more than %zu bytes",
                             get->size_max);
        struct slice bytes = slice_of(response_buffer->bytes, response_buffer->length);
        struct error *err = NULL;
        if (has_more || is_ended) {
            scoped(arena_drop) struct arena *look = arena_new(0);
            struct slice found = {0};
            err = http_answer_read(bytes, is_ended, look, &is_whole, status, &found);
            if (err == NULL && is_whole)
                *body = arena_slice(arena, found);
            err = err == NULL ? NULL : error_copy(arena, err);
        } else {
            err = wait_for(socket, SOCKET_READABLE, get->deadline, arena);
        }
        if (err != NULL)
            return err;
    }
    return NULL;
}

static struct error *
connect_to(const struct http_get *get, const struct url_parts *url_parts, struct arena *arena,
           struct socket **socket)
{
    const char *name = get->server_name == NULL ? url_parts->name : get->server_name;
    if (url_parts->is_secure && get->tls == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "'%s' wants TLS", get->url);
    struct error *err = socket_connect(url_parts->address, get->deadline, arena, socket);
    if (err != NULL || !url_parts->is_secure)
        return err;
    err = socket_start_tls(*socket, get->tls, name, get->deadline, arena);
    if (err != NULL)
        socket_close(*socket);
    return err;
}

struct error *
http_get(const struct http_get *get, struct arena *arena, unsigned *status, struct slice *body)
{
    struct url_parts url_parts = {0};
    struct socket *socket = NULL;
    struct error *err = read_url(get->url, arena, &url_parts);
    if (err == NULL)
        err = connect_to(get, &url_parts, arena, &socket);
    if (err != NULL)
        return err;
    const char *request = arena_format(arena,
                                       "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n"
                                       "User-Agent: cadenza\r\nConnection: close\r\n\r\n",
                                       url_parts.path, url_parts.host);
    struct response_buffer response_buffer = {0};
    err = send_all(socket, slice_text(request), get->deadline, arena);
    if (err == NULL)
        err = read_answer(socket, get, &response_buffer, arena, status, body);
    socket_close(socket);
    memory_free(response_buffer.bytes);
    return err;
}
