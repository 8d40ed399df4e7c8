/* server_fields.c - may these header fields be a request's, as far as HTTP/2 itself knows?
 *
 * nghttp2 would ask that of every field of every request. But a connection sends the same few
 * header blocks again and again, so it is asked here, once for each distinct one
 * (server_headers.c); which characters may stand in names and values is still said by nghttp2.
 * Whatever is wrong makes the request malformed, and its stream is reset (RFC 9113, 8.1.1). That
 * pseudo fields come first is seen where fields are gathered. */
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

bool
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
    return fields_are_good(fields) && has_good_target(fields);
}
