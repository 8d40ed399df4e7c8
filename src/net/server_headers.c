/* server_headers.c - the headers of requests, kept once for all calls that sent the same.
 *
 * The clients of one connection send the same dozen headers with every call; only grpc-timeout
 * differs. So a header block is kept as one piece of bytes with a reference count, the last few of
 * a connection are remembered, and a block that was seen before costs a memcmp: no copy, no check
 * for duplicates, no memory per parked call. What the headers say about admission is found out once
 * per distinct block. */
#include "base/check.h"
#include "base/memory.h"
#include "net/server_inside.h"

#define ENTRY_SIZE  (2 * sizeof(uint16_t))
#define GATHER_KEEP 4096 /* more room is given back after its request */

static const struct slice timeout_name = SLICE_LITERAL("grpc-timeout");

/* ---- gathering ---- */

void
header_begin(struct header_gather *gather, bool is_trailers)
{
    gather->length = 0;
    gather->count = 0;
    gather->timeout_count = 0;
    gather->timeout_length = 0;
    gather->is_too_large = false;
    gather->may_be_pseudo = !is_trailers;
    gather->is_disordered = false;
}

/* Room for an entry of this size at the end. */
static uint8_t *
gather_room(struct header_gather *gather, size_t size)
{
    size_t wanted = gather->length + size;
    if (wanted > gather->room) {
        size_t room = gather->room == 0 ? 1024 : gather->room * 2;
        gather->room = room < wanted ? wanted : room;
        gather->bytes = memory_realloc(gather->bytes, gather->room);
    }
    uint8_t *room = gather->bytes + gather->length;
    gather->length = wanted;
    return room;
}

/* A timeout that does not fit cannot be valid: its length alone says so later. */
static void
gather_timeout(struct header_gather *gather, struct slice value)
{
    size_t room = sizeof gather->timeout;
    gather->timeout_count++;
    gather->timeout_length = (uint8_t)(value.length > room ? 0 : value.length);
    if (gather->timeout_length > 0)
        memcpy(gather->timeout, value.data, value.length);
}

/* Pseudo fields come before all others. */
static void
keep_order(struct header_gather *gather, struct slice name)
{
    bool is_pseudo = name.length > 0 && name.data[0] == ':';
    if (!is_pseudo)
        gather->may_be_pseudo = false;
    else if (!gather->may_be_pseudo)
        gather->is_disordered = true;
}

void
header_add(struct header_gather *gather, struct slice name, struct slice value)
{
    size_t size = ENTRY_SIZE + name.length + value.length;
    gather->count++;
    keep_order(gather, name);
    bool fits = gather->count <= HEADER_COUNT_MAX && gather->length + size <= HEADER_BYTES_MAX;
    if (!fits || gather->is_too_large) {
        gather->is_too_large = true;
        return;
    }
    if (slice_equal(name, timeout_name)) {
        gather_timeout(gather, value);
        return;
    }
    uint16_t lengths[2] = {(uint16_t)name.length, (uint16_t)value.length};
    uint8_t *to = mempcpy(gather_room(gather, size), lengths, sizeof lengths);
    memcpy(mempcpy(to, name.data, name.length), value.data, value.length);
}

/* ---- reading a block ---- */

bool
header_next(struct slice *rest, struct header_entry *entry)
{
    if (rest->length == 0)
        return false;
    uint16_t lengths[2];
    check(rest->length >= sizeof lengths);
    memcpy(lengths, rest->data, sizeof lengths);
    entry->name = slice_of(rest->data + ENTRY_SIZE, lengths[0]);
    entry->value = slice_of(rest->data + ENTRY_SIZE + lengths[0], lengths[1]);
    check(rest->length >= ENTRY_SIZE + lengths[0] + lengths[1]);
    *rest = slice_skip(*rest, ENTRY_SIZE + lengths[0] + lengths[1]);
    return true;
}

struct slice
header_find(const struct header_block *block, struct slice name)
{
    struct slice rest = slice_of(block->bytes, block->length);
    struct header_entry entry;
    while (header_next(&rest, &entry))
        if (slice_equal(entry.name, name))
            return entry.value;
    return (struct slice){0};
}

struct grpc_header *
header_list(const struct header_block *block, struct arena *arena, size_t *count)
{
    struct grpc_header *headers = arena_zalloc(arena, HEADER_COUNT_MAX, sizeof *headers);
    struct slice rest = slice_of(block->bytes, block->length);
    struct header_entry entry;
    *count = 0;
    while (header_next(&rest, &entry)) {
        if (entry.name.length == 0 || entry.name.data[0] == ':')
            continue;
        check(*count < HEADER_COUNT_MAX);
        headers[(*count)++] = (struct grpc_header){entry.name, entry.value};
    }
    return headers;
}

/* ---- what the headers say ---- */

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

static struct header_verdict
judge(const struct header_block *block, struct slice service_name)
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

/* ---- the cache ---- */

static void
cache_put(struct header_gather *gather, size_t place, struct header_block *block)
{
    memmove(gather->cache + 1, gather->cache, place * sizeof gather->cache[0]);
    gather->cache[0] = block;
}

static struct header_block *
cache_find(struct header_gather *gather)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE; i++) {
        struct header_block *block = gather->cache[i];
        if (block == NULL || block->length != gather->length)
            continue;
        if (memcmp(block->bytes, gather->bytes, gather->length) == 0) {
            cache_put(gather, i, block);
            return block;
        }
    }
    return NULL;
}

static size_t
block_size(const struct header_block *block)
{
    return sizeof *block + block->length;
}

static struct header_block *
block_new(const struct header_gather *gather, const struct grpc_server *server)
{
    const struct grpc_service *service = &server->options.service;
    struct header_block *block = memory_alloc(sizeof *block + gather->length);
    *block = (struct header_block){.is_cached = true, .length = gather->length};
    if (gather->length > 0)
        memcpy(block->bytes, gather->bytes, gather->length);
    block->path = find(block, ":path");
    block->method = service->find(service->context, block->path);
    bool is_request =
        fields_are_request(slice_of(block->bytes, block->length), &block->body_length);
    block->verdict = is_request ? judge(block, server->service_name)
                                : (struct header_verdict){.is_malformed = true};
    return block;
}

/* Takes the block out of the cache. */
static void
block_forget(struct header_block *block)
{
    check(block->is_cached);
    block->is_cached = false;
    if (block->references == 0)
        memory_free(block);
}

/* A large block of bytes is not kept for the next one. */
static void
gather_done(struct header_gather *gather)
{
    if (gather->room <= GATHER_KEEP)
        return;
    memory_free(gather->bytes);
    gather->bytes = NULL;
    gather->room = 0;
}

struct header_block *
header_end(struct header_gather *gather, const struct grpc_server *server)
{
    struct header_block *block = cache_find(gather);
    if (block == NULL) {
        block = block_new(gather, server);
        if (gather->cache[HEADER_CACHE_SIZE - 1] != NULL)
            block_forget(gather->cache[HEADER_CACHE_SIZE - 1]);
        cache_put(gather, HEADER_CACHE_SIZE - 1, block);
    }
    gather_done(gather);
    if (block->references++ == 0)
        gather->held += block_size(block);
    return block;
}

bool
header_end_trailers(struct header_gather *gather)
{
    bool is_good =
        !gather->is_disordered && fields_are_good(slice_of(gather->bytes, gather->length));
    gather_done(gather);
    return is_good;
}

void
header_release(struct header_gather *gather, struct header_block *block)
{
    check(block->references > 0);
    if (--block->references > 0)
        return;
    check(gather->held >= block_size(block));
    gather->held -= block_size(block);
    if (!block->is_cached)
        memory_free(block);
}

void
header_gather_free(struct header_gather *gather)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE; i++)
        if (gather->cache[i] != NULL)
            block_forget(gather->cache[i]);
    check(gather->held == 0);
    memory_free(gather->bytes);
    *gather = (struct header_gather){0};
}
