/* client_result.c - what a call sends with every request, and what its answer means. */
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/client_inside.h"

/* ---- fields of every call ---- */

/* Headers of the caller are copied into one block: they must live as long as the client. */
static struct slice
keep(char **at, struct slice bytes)
{
    if (bytes.length > 0)
        memcpy(*at, bytes.data, bytes.length);
    struct slice kept = slice_of(*at, bytes.length);
    *at += bytes.length;
    return kept;
}

void
client_fields_init(struct grpc_client *client, const struct grpc_client_options *options)
{
    const nghttp2_nv fixed[] = {
        http2_field(":method", slice_text("POST"), NV_LIVES),
        http2_field(":scheme", slice_text(client->tls == NULL ? "http" : "https"), NV_LIVES),
        http2_field(":authority", slice_text(client->authority), NV_LIVES),
        http2_field("te", slice_text("trailers"), NV_LIVES),
        http2_field("content-type", slice_text("application/grpc"), NV_LIVES),
        http2_field("user-agent", slice_text("cadenza/" CADENZA_VERSION), NV_LIVES),
    };
    size_t size = 0, count = array_length(fixed);
    for (size_t i = 0; i < options->header_count; i++)
        size += options->headers[i].name.length + options->headers[i].value.length;
    client->field_bytes = memory_alloc(size);
    client->fields = memory_alloc((count + options->header_count) * sizeof *client->fields);
    memcpy(client->fields, fixed, sizeof fixed);
    char *at = client->field_bytes;
    for (size_t i = 0; i < options->header_count; i++) {
        struct slice name = keep(&at, options->headers[i].name);
        struct slice value = keep(&at, options->headers[i].value);
        client->fields[count++] = http2_field_named(name, value, NV_LIVES);
    }
    client->field_count = count;
}

/* ---- answers ---- */

/* As gRPC maps the status of a proxy that knows no gRPC. */
static enum error_kind
kind_of_http(int http_status)
{
    switch (http_status) {
    case 400:
        return ERR_INTERNAL;
    case 401:
    case 403:
        return ERR_ACCESS_DENIED;
    case 404:
        return ERR_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_UNCATEGORISED;
    }
}

static struct error *
no_status(const struct client_call *call)
{
    if (call->http_status != 0 && call->http_status != 200)
        return error_new(call->arena, kind_of_http(call->http_status), "HTTP status %d",
                         call->http_status);
    if (call->reset_code == NGHTTP2_CANCEL)
        return error_new(call->arena, ERR_CANCELLED, "the server cancelled the call");
    return error_new(call->arena, ERR_UNAVAILABLE,
                     "the server ended the call without a status (HTTP/2 code %u): it is unknown "
                     "whether it was done",
                     call->reset_code);
}

static struct error *
said_error(const struct client_call *call)
{
    struct arena *arena = call->arena;
    struct slice text = text_percent_decode(arena, call->message);
    struct slice inner_message, type_name = {0}, detail = {0};
    int code;
    bool has_details = call->details.length > 0 &&
                       grpc_status_details_decode(call->details, arena, &code, &inner_message,
                                                  &type_name, &detail) &&
                       code == call->status;
    enum error_kind kind =
        grpc_status_kind(call->status, has_details ? type_name : (struct slice){0});
    bool is_odd = error_kind_status(kind) != call->status;
    struct error *err =
        is_odd ? error_new(arena, kind, "status %d: %.*s", call->status, SLICE_ARG(text))
               : error_new(arena, kind, "%.*s", SLICE_ARG(text));
    if (error_kind_detail(kind) != NULL)
        err->detail = detail;
    return err;
}

struct error *
client_result(const struct client_call *call, struct slice *response)
{
    if (call->verdict != INBOX_OK)
        return error_new(call->arena,
                         grpc_status_kind(inbox_status(call->verdict), (struct slice){0}),
                         "the answer: %s", inbox_sentence(call->verdict));
    if (call->status < 0)
        return no_status(call);
    if (call->status != GRPC_OK)
        return said_error(call);
    enum inbox_verdict verdict = inbox_end(&call->inbox);
    if (verdict != INBOX_OK)
        return error_new(call->arena, ERR_INTERNAL, "the answer: %s", inbox_sentence(verdict));
    *response = slice_of(call->inbox.bytes, call->inbox.length);
    if (call->inbox.is_owned)
        *response = arena_slice(call->arena, *response);
    return NULL;
}
