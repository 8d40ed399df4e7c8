/* server_fields.c - what HTTP/2 and gRPC demand of the header fields of a request.
 *
 * nghttp2 would check every field of every request. But a connection sends the same few header
 * blocks again and again, so it is done here, once for each distinct one (server_headers.c); which
 * characters may stand in names and values is still said by nghttp2. What HTTP/2 forbids makes the
 * request malformed, and its stream is reset (RFC 9113, 8.1.1). */
#include <strings.h>

#include "base/text.h"
#include "net/server_inside.h"

static bool
is_word(struct slice text, const char *word)
{
    return text.length == strlen(word) &&
           strncasecmp((const char *)text.data, word, text.length) == 0;
}

/* ---- one field ---- */

static int
check_scheme(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool is_letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        bool is_sign = text[i] == '+' || text[i] == '-' || text[i] == '.';
        if (!is_letter && (i == 0 || (!is_digit && !is_sign)))
            return 0;
    }
    return length > 0;
}

/* Fields whose values have a form of their own; there are no other pseudo fields. */
static const struct {
    struct slice name;
    int (*check)(const uint8_t *value, size_t length);
} forms[] = {
    {SLICE_LITERAL(":method"), nghttp2_check_method},
    {SLICE_LITERAL(":scheme"), check_scheme},
    {SLICE_LITERAL(":path"), nghttp2_check_path},
    {SLICE_LITERAL(":authority"), nghttp2_check_authority},
    {SLICE_LITERAL("host"), nghttp2_check_authority},
};

static bool
has_good_value(const struct header_entry *entry)
{
    struct slice value = entry->value;
    for (size_t i = 0; i < array_length(forms); i++)
        if (slice_equal(entry->name, forms[i].name))
            return forms[i].check(value.data, value.length) != 0;
    return entry->name.data[0] != ':' &&
           nghttp2_check_header_value_rfc9113(value.data, value.length) != 0;
}

/* Fields that speak about a connection of HTTP/1.1. */
static bool
is_of_connection(const struct header_entry *entry)
{
    static const struct slice names[] = {
        SLICE_LITERAL("connection"),        SLICE_LITERAL("keep-alive"),
        SLICE_LITERAL("proxy-connection"),  SLICE_LITERAL("upgrade"),
        SLICE_LITERAL("transfer-encoding"),
    };
    for (size_t i = 0; i < array_length(names); i++)
        if (slice_equal(entry->name, names[i]))
            return true;
    return slice_equal(entry->name, slice_text("te")) && !is_word(entry->value, "trailers");
}

/* As they may be in a request or behind its body. */
static bool
fields_are_good(struct slice fields)
{
    struct header_entry entry;
    while (header_next(&fields, &entry)) {
        bool is_good = nghttp2_check_header_name(entry.name.data, entry.name.length) != 0 &&
                       has_good_value(&entry) && !is_of_connection(&entry);
        if (!is_good)
            return false;
    }
    return true;
}

/* ---- all together ---- */

static bool
is_pseudo(const struct header_entry *entry)
{
    return entry->name.length > 0 && entry->name.data[0] == ':';
}

/* Pseudo fields come before all others. */
static bool
is_in_order(struct slice fields, unsigned pseudo_count)
{
    struct header_entry entry;
    for (unsigned i = 0; header_next(&fields, &entry); i++)
        if (i >= pseudo_count && is_pseudo(&entry))
            return false;
    return true;
}

unsigned
fields_count_pseudo(struct slice fields)
{
    struct header_entry entry;
    unsigned count = 0;
    while (header_next(&fields, &entry) && is_pseudo(&entry))
        count++;
    return count;
}

bool
fields_are_trailers(struct slice fields)
{
    return is_in_order(fields, 0) && fields_are_good(fields);
}

/* How often a field is there. */
static size_t
count_of(struct slice fields, const char *name, struct slice *value)
{
    struct header_entry entry;
    size_t count = 0;
    while (header_next(&fields, &entry)) {
        if (!slice_equal(entry.name, slice_text(name)))
            continue;
        *value = entry.value;
        count++;
    }
    return count;
}

static bool
is_path_of(struct slice path, struct slice scheme, struct slice method)
{
    bool is_free = !is_word(scheme, "http") && !is_word(scheme, "https");
    bool is_all = slice_equal(path, slice_text("*")) && slice_equal(method, slice_text("OPTIONS"));
    return is_free || is_all || slice_starts_with(path, slice_text("/"));
}

static bool
has_good_target(struct slice fields)
{
    struct slice method = {0}, scheme = {0}, path = {0}, ignored;
    size_t methods = count_of(fields, ":method", &method);
    size_t schemes = count_of(fields, ":scheme", &scheme);
    size_t paths = count_of(fields, ":path", &path);
    size_t authorities = count_of(fields, ":authority", &ignored);
    size_t hosts = count_of(fields, "host", &ignored);
    if (methods != 1 || authorities > 1 || hosts > 1)
        return false;
    if (slice_equal(method, slice_text("CONNECT")))
        return schemes == 0 && paths == 0 && authorities == 1;
    return schemes == 1 && paths == 1 && authorities + hosts > 0 &&
           is_path_of(path, scheme, method);
}

bool
fields_are_request(struct slice fields, int64_t *body_length)
{
    struct slice text = {0};
    size_t count = count_of(fields, "content-length", &text);
    *body_length = -1;
    if (count > 1 || (count == 1 && !text_parse_int64(text, 0, INT64_MAX, body_length)))
        return false;
    return is_in_order(fields, fields_count_pseudo(fields)) && fields_are_good(fields) &&
           has_good_target(fields);
}

/* ---- gRPC ---- */

static struct slice
find(const struct header_block *block, const char *name)
{
    return header_find(block, slice_text(name));
}

/* At most HEADER_COUNT_MAX entries, once per distinct block: comparing all pairs is cheap enough.
 */
static bool
has_duplicate(const struct header_block *block)
{
    struct slice rest = slice_of(block->bytes, block->length);
    struct header_entry entry, other;
    while (header_next(&rest, &entry)) {
        struct slice later = rest;
        while (header_next(&later, &other))
            if (slice_equal(entry.name, other.name))
                return true;
    }
    return false;
}

/* "application/grpc", alone or followed by "+proto", ";charset=..." */
static bool
is_grpc_type(struct slice type)
{
    struct slice base = slice_text("application/grpc");
    if (!slice_starts_with(type, base))
        return false;
    return type.length == base.length || type.data[base.length] == '+' ||
           type.data[base.length] == ';';
}

static bool
is_proto_or_absent(const struct header_block *block)
{
    struct slice type = find(block, "content-type");
    struct slice encoding = find(block, "rpc-encoding");
    struct slice plus = slice_text("application/grpc+");
    if (slice_starts_with(type, plus) &&
        !slice_starts_with(slice_skip(type, plus.length), slice_text("proto")))
        return false;
    return encoding.length == 0 || slice_equal(encoding, slice_text("proto"));
}

static struct header_verdict
refusal(enum grpc_status status, const char *message)
{
    return (struct header_verdict){.http_status = 200, .status = status, .message = message};
}

struct header_verdict
fields_judge(const struct header_block *block, struct slice service_name)
{
    if (!slice_equal(find(block, ":method"), slice_text("POST")))
        return (struct header_verdict){.http_status = 405};
    if (!is_grpc_type(find(block, "content-type")))
        return (struct header_verdict){.http_status = 415};
    if (has_duplicate(block))
        return refusal(GRPC_INVALID_ARGUMENT, "a request header is given twice");
    struct slice service = find(block, "rpc-service");
    if (service.length > 0 && !slice_equal(service, service_name))
        return refusal(GRPC_UNIMPLEMENTED, "rpc-service names a service that is not here");
    if (!is_proto_or_absent(block))
        return refusal(GRPC_UNIMPLEMENTED, "only the encoding proto is supported");
    return refusal(GRPC_OK, NULL);
}
