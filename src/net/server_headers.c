/* server_headers.c - the headers of requests, kept once for all calls that sent the same.
 *
 * The clients of one connection send the same dozen headers with every call; only grpc-timeout
 * differs. So a header block is kept as one piece of bytes with a reference count, and the last few
 * of a connection are remembered with what is known of them: their method, and whether they are
 * admitted (server_fields.c).
 *
 * While fields come in, one known block is the guess: so far it has the same fields. A field that
 * the peer has in its compression table comes as the same object as the last time, so two pointers
 * tell that it is the expected one: it is not copied, and its bytes are not even looked at. Where
 * the guess is wrong another known block may continue that way. If none does, the fields are
 * gathered for a new one. */
#include "base/check.h"
#include "base/memory.h"
#include "net/server_inside.h"

#define ENTRY_SIZE  (2 * sizeof(uint16_t))
#define GATHER_KEEP 4096 /* more room is given back after its request */

static const struct slice timeout_name = SLICE_LITERAL("grpc-timeout");

static struct slice
text_of(nghttp2_rcbuf *object)
{
    nghttp2_vec text = nghttp2_rcbuf_get_buf(object);
    return slice_of(text.base, text.len);
}

/* Keeps an object in place of another. */
static void
keep(nghttp2_rcbuf **kept, nghttp2_rcbuf *object)
{
    nghttp2_rcbuf_incref(object);
    if (*kept != NULL)
        nghttp2_rcbuf_decref(*kept);
    *kept = object;
}

/* Where the entry of a field begins. */
static size_t
begin_of(const struct header_block *block, unsigned field)
{
    check(field <= block->field_count);
    return field == 0 ? 0 : block->fields[field - 1].end;
}

/* ---- gathering a new block ---- */

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
    if (gather->timeout_count++ == 0)
        gather->timeout_place = gather->field_count;
    gather->timeout_length = (uint8_t)(value.length > room ? 0 : value.length);
    if (gather->timeout_length > 0)
        memcpy(gather->timeout, value.data, value.length);
}

static void
gather_entry(struct header_gather *gather, struct slice name, struct slice value)
{
    size_t size = ENTRY_SIZE + name.length + value.length;
    bool fits = gather->field_count + gather->timeout_count < HEADER_COUNT_MAX &&
                gather->length + size <= HEADER_BYTES_MAX;
    if (!fits || gather->is_too_large) {
        gather->is_too_large = true;
        return;
    }
    uint16_t lengths[2] = {(uint16_t)name.length, (uint16_t)value.length};
    uint8_t *to = mempcpy(gather_room(gather, size), lengths, sizeof lengths);
    memcpy(mempcpy(to, name.data, name.length), value.data, value.length);
}

/* There is no such block yet: what came so far is what the guess begins with. */
static void
gather_guess(struct header_gather *gather)
{
    size_t length = gather->guess == NULL ? 0 : begin_of(gather->guess, gather->field_count);
    if (length > 0)
        memcpy(gather_room(gather, length), gather->guess->bytes, length);
    gather->guess = NULL;
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

/* Of HEADER_PLACES, where a name is looked for first. */
static size_t
place_of(struct slice name)
{
    size_t last = name.length == 0 ? 0 : name.data[name.length - 1];
    return (name.length * 5 + last) % HEADER_PLACES;
}

/* The entry of a field and those behind it. */
static struct slice
entries_from(const struct header_block *block, unsigned field)
{
    return slice_skip(slice_of(block->bytes, block->length), begin_of(block, field));
}

struct slice
header_find(const struct header_block *block, struct slice name)
{
    unsigned first = block->places[place_of(name)];
    if (first == 0)
        return (struct slice){0};
    struct slice rest = entries_from(block, first - 1);
    struct header_entry entry;
    while (header_next(&rest, &entry))
        if (slice_equal(entry.name, name))
            return entry.value;
    return (struct slice){0};
}

struct call_header *
header_list(const struct header_block *block, struct arena *arena, size_t *count)
{
    struct call_header *headers = arena_zalloc(arena, HEADER_COUNT_MAX, sizeof *headers);
    struct slice rest = slice_of(block->bytes, block->length);
    struct header_entry entry;
    *count = 0;
    while (header_next(&rest, &entry)) {
        if (entry.name.length == 0 || entry.name.data[0] == ':')
            continue;
        check(*count < HEADER_COUNT_MAX);
        headers[(*count)++] = (struct call_header){entry.name, entry.value};
    }
    return headers;
}

/* ---- comparing with known blocks ---- */

void
header_begin(struct header_gather *gather, bool is_trailers)
{
    gather->length = 0;
    gather->guess = is_trailers ? NULL : gather->cache[0];
    gather->field_count = 0;
    gather->timeout_count = 0;
    gather->timeout_length = 0;
    gather->is_too_large = false;
}

/* Does the block have all that came, and this next? */
static bool
goes_on_with(const struct header_block *block, const struct header_gather *gather,
             const nghttp2_rcbuf *name, const nghttp2_rcbuf *value)
{
    unsigned at = gather->field_count;
    return at < block->field_count && block->fields[at].name == name &&
           block->fields[at].value == value;
}

/* The same for objects that it is not known by. */
static bool
goes_on_with_text(const struct header_block *block, const struct header_gather *gather,
                  const struct header_entry *text)
{
    if (gather->field_count >= block->field_count)
        return false;
    struct slice rest = entries_from(block, gather->field_count);
    struct header_entry entry;
    bool is_there = header_next(&rest, &entry);
    check(is_there);
    return slice_equal(entry.value, text->value) && slice_equal(entry.name, text->name);
}

static bool
begins_as_guess(const struct header_block *block, const struct header_gather *gather)
{
    size_t length = begin_of(gather->guess, gather->field_count);
    return gather->field_count <= block->field_count &&
           begin_of(block, gather->field_count) == length &&
           memcmp(block->bytes, gather->guess->bytes, length) == 0;
}

/* A better guess by the objects of the next field; NULL: none. */
static struct header_block *
guess_by_object(const struct header_gather *gather, const nghttp2_rcbuf *name,
                const nghttp2_rcbuf *value)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE && gather->cache[i] != NULL; i++)
        if (goes_on_with(gather->cache[i], gather, name, value) &&
            begins_as_guess(gather->cache[i], gather))
            return gather->cache[i];
    return NULL;
}

/* The same by its text; from now on the block is known by these objects. */
static struct header_block *
guess_by_text(const struct header_gather *gather, const struct header_entry *text,
              nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE && gather->cache[i] != NULL; i++) {
        struct header_block *block = gather->cache[i];
        if (!goes_on_with_text(block, gather, text) || !begins_as_guess(block, gather))
            continue;
        keep(&block->fields[gather->field_count].name, name);
        keep(&block->fields[gather->field_count].value, value);
        return block;
    }
    return NULL;
}

/* One of a dozen, as far as known blocks go: the path. */
static seldom void
add_unexpected(struct header_gather *gather, nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    bool is_new = gather->guess == NULL;
    struct header_block *better = is_new ? NULL : guess_by_object(gather, name, value);
    if (better == NULL) {
        struct header_entry text = {text_of(name), text_of(value)};
        if (slice_equal(text.name, timeout_name)) {
            keep(&gather->timeout_name, name);
            gather_timeout(gather, text.value);
            return;
        }
        better = is_new ? NULL : guess_by_text(gather, &text, name, value);
        if (better == NULL) {
            gather_guess(gather);
            gather_entry(gather, text.name, text.value);
        }
    }
    gather->guess = better;
    gather->field_count++;
}

void
header_add(struct header_gather *gather, nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    if (name == gather->timeout_name)
        gather_timeout(gather, text_of(value));
    else if (gather->guess != NULL && goes_on_with(gather->guess, gather, name, value))
        gather->field_count++;
    else
        add_unexpected(gather, name, value);
}

/* ---- the end of a block ---- */

static void
cache_put(struct header_gather *gather, size_t place, struct header_block *block)
{
    memmove(gather->cache + 1, gather->cache, place * sizeof gather->cache[0]);
    gather->cache[0] = block;
}

/* The known block that has these fields and no more; NULL: none. */
static struct header_block *
cache_find(struct header_gather *gather)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE && gather->guess != NULL; i++) {
        struct header_block *block = gather->cache[i];
        bool is_it = block != NULL && block->field_count == gather->field_count &&
                     (block == gather->guess || begins_as_guess(block, gather));
        if (is_it) {
            cache_put(gather, i, block);
            return block;
        }
    }
    return NULL;
}

static size_t
block_size(const struct header_block *block)
{
    size_t objects = block->length + block->field_count * sizeof block->fields[0];
    return sizeof *block + block->length + objects;
}

/* Where each field ends, and where names are found. By which objects it is known turns out when it
 * comes again. */
static void
find_fields(struct header_block *block)
{
    struct slice rest = slice_of(block->bytes, block->length);
    struct header_entry entry;
    while (header_next(&rest, &entry))
        block->field_count++;
    block->fields = memory_zalloc(block->field_count, sizeof block->fields[0]);
    rest = slice_of(block->bytes, block->length);
    for (unsigned i = 0; header_next(&rest, &entry); i++) {
        uint8_t *place = &block->places[place_of(entry.name)];
        block->fields[i].end = block->length - rest.length;
        if (*place == 0)
            *place = (uint8_t)(i + 1);
    }
}

static struct header_block *
block_new(const struct header_gather *gather, const struct grpc_server *server)
{
    const struct grpc_service *service = &server->options.service;
    struct header_block *block = memory_alloc(sizeof *block + gather->length);
    *block = (struct header_block){.is_cached = true, .length = gather->length};
    if (gather->length > 0)
        memcpy(block->bytes, gather->bytes, gather->length);
    find_fields(block);
    struct slice fields = slice_of(block->bytes, block->length);
    block->pseudo_count = fields_count_pseudo(fields);
    block->path = header_find(block, slice_text(":path"));
    block->method = service->find(service->context, block->path);
    block->verdict = fields_are_request(fields, &block->body_length)
                         ? fields_judge(block, server->service_name)
                         : (struct header_verdict){.is_malformed = true};
    return block;
}

static void
block_free(struct header_block *block)
{
    for (unsigned i = 0; i < block->field_count; i++) {
        if (block->fields[i].name == NULL)
            continue;
        nghttp2_rcbuf_decref(block->fields[i].name);
        nghttp2_rcbuf_decref(block->fields[i].value);
    }
    memory_free(block->fields);
    memory_free(block);
}

/* Takes the block out of the cache. */
static void
block_forget(struct header_block *block)
{
    check(block->is_cached);
    block->is_cached = false;
    if (block->references == 0)
        block_free(block);
}

struct header_block *
header_end(struct header_gather *gather, const struct grpc_server *server)
{
    struct header_block *block = cache_find(gather);
    if (block == NULL) {
        gather_guess(gather);
        block = block_new(gather, server);
        if (gather->cache[HEADER_CACHE_SIZE - 1] != NULL)
            block_forget(gather->cache[HEADER_CACHE_SIZE - 1]);
        cache_put(gather, HEADER_CACHE_SIZE - 1, block);
        gather_done(gather);
    }
    gather->is_disordered =
        gather->timeout_count > 0 && gather->timeout_place < block->pseudo_count;
    if (block->references++ == 0)
        gather->held += block_size(block);
    return block;
}

bool
header_end_trailers(struct header_gather *gather)
{
    bool is_good = fields_are_trailers(slice_of(gather->bytes, gather->length));
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
        block_free(block);
}

void
header_gather_free(struct header_gather *gather)
{
    for (size_t i = 0; i < HEADER_CACHE_SIZE; i++)
        if (gather->cache[i] != NULL)
            block_forget(gather->cache[i]);
    check(gather->held == 0);
    if (gather->timeout_name != NULL)
        nghttp2_rcbuf_decref(gather->timeout_name);
    memory_free(gather->bytes);
    *gather = (struct header_gather){0};
}
