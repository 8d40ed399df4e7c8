/* thrift_reader.c - numbers, lengths and headers of thrift, each checked against the end before it
 * is believed. */
#include "wire/thrift_reader.h"

#include <endian.h>

#include "base/check.h"

/* The fewest bytes that a value of a type takes; 0: no such type. */
static size_t
type_size_min(unsigned type)
{
    static const uint8_t sizes[] = {
        [THRIFT_TYPE_BOOL] = 1,   [THRIFT_TYPE_I8] = 1,     [THRIFT_TYPE_DOUBLE] = 8,
        [THRIFT_TYPE_I16] = 2,    [THRIFT_TYPE_I32] = 4,    [THRIFT_TYPE_I64] = 8,
        [THRIFT_TYPE_BINARY] = 4, [THRIFT_TYPE_STRUCT] = 1, [THRIFT_TYPE_MAP] = 6,
        [THRIFT_TYPE_SET] = 5,    [THRIFT_TYPE_LIST] = 5,
    };
    return type < array_length(sizes) ? sizes[type] : 0;
}

struct thrift_reader
thrift_reader_of(struct slice bytes)
{
    static const uint8_t nothing[1]; /* so that pointers can be compared even when data is NULL */
    const uint8_t *data = bytes.data == NULL ? nothing : bytes.data;
    check(bytes.data != NULL || bytes.length == 0);
    return (struct thrift_reader){.at = data, .end = data + bytes.length};
}

bool
thrift_reader_fail(struct thrift_reader *reader, const char *problem)
{
    check(problem != NULL && reader->problem == NULL);
    reader->problem = problem;
    return false;
}

static size_t
reader_left(const struct thrift_reader *reader)
{
    check(reader->at <= reader->end && reader->problem == NULL);
    return (size_t)(reader->end - reader->at);
}

/* The next `size` bytes, or NULL. */
static const uint8_t *
reader_take(struct thrift_reader *reader, size_t size)
{
    if (size > reader_left(reader)) {
        thrift_reader_fail(reader, "cut off");
        return NULL;
    }
    reader->at += size;
    return reader->at - size;
}

bool
thrift_reader_u8(struct thrift_reader *reader, uint8_t *value)
{
    const uint8_t *bytes = reader_take(reader, sizeof *value);
    if (bytes != NULL)
        *value = *bytes;
    return bytes != NULL;
}

static bool
thrift_reader_i16(struct thrift_reader *reader, int16_t *value)
{
    const uint8_t *bytes = reader_take(reader, sizeof *value);
    if (bytes == NULL)
        return false;
    *value = (int16_t)(bytes[0] << 8 | bytes[1]);
    return true;
}

bool
thrift_reader_i32(struct thrift_reader *reader, int32_t *value)
{
    const uint8_t *bytes = reader_take(reader, sizeof *value);
    if (bytes == NULL)
        return false;
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    *value = (int32_t)be32toh(number);
    return true;
}

bool
thrift_reader_i64(struct thrift_reader *reader, int64_t *value)
{
    const uint8_t *bytes = reader_take(reader, sizeof *value);
    if (bytes == NULL)
        return false;
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    *value = (int64_t)be64toh(number);
    return true;
}

bool
thrift_reader_bytes(struct thrift_reader *reader, struct slice *bytes)
{
    int32_t length;
    if (!thrift_reader_i32(reader, &length))
        return false;
    if (length < 0)
        return thrift_reader_fail(reader, "a negative length");
    const uint8_t *data = reader_take(reader, (size_t)length);
    *bytes = slice_of(data, (size_t)length);
    return data != NULL;
}

static bool
reader_type(struct thrift_reader *reader, enum thrift_type *type)
{
    uint8_t number;
    if (!thrift_reader_u8(reader, &number))
        return false;
    if (type_size_min(number) == 0)
        return thrift_reader_fail(reader, "a type that does not exist");
    *type = (enum thrift_type)number;
    return true;
}

bool
thrift_reader_field(struct thrift_reader *reader, enum thrift_type *type, int16_t *id)
{
    if (reader_left(reader) > 0 && *reader->at == THRIFT_STOP) {
        reader->at++;
        *type = THRIFT_STOP;
        return true;
    }
    return reader_type(reader, type) && thrift_reader_i16(reader, id);
}

/* Elements take at least a byte each: a loop over them ends after as many steps as there are
 * bytes. */
static bool
reader_count(struct thrift_reader *reader, size_t size_min, size_t *count)
{
    int32_t number;
    check(size_min > 0);
    if (!thrift_reader_i32(reader, &number))
        return false;
    if (number < 0)
        return thrift_reader_fail(reader, "a negative count");
    if ((size_t)number > reader_left(reader) / size_min)
        return thrift_reader_fail(reader, "more elements than bytes are left for");
    *count = (size_t)number;
    return true;
}

bool
thrift_reader_list(struct thrift_reader *reader, enum thrift_type element, size_t *count)
{
    enum thrift_type type;
    if (!reader_type(reader, &type))
        return false;
    if (type != element)
        return thrift_reader_fail(reader, "a list of another type");
    return reader_count(reader, type_size_min(type), count);
}

bool
thrift_reader_map(struct thrift_reader *reader, size_t *count)
{
    enum thrift_type key, value;
    if (!reader_type(reader, &key) || !reader_type(reader, &value))
        return false;
    if (key != THRIFT_TYPE_BINARY || value != THRIFT_TYPE_BINARY)
        return thrift_reader_fail(reader, "a map of other types");
    return reader_count(reader, 2 * type_size_min(THRIFT_TYPE_BINARY), count);
}

static bool skip_value(struct thrift_reader *reader, enum thrift_type type, unsigned depth);

static bool
skip_struct(struct thrift_reader *reader, unsigned depth)
{
    for (;;) {
        enum thrift_type type;
        int16_t id;
        if (!thrift_reader_field(reader, &type, &id))
            return false;
        if (type == THRIFT_STOP)
            return true;
        if (!skip_value(reader, type, depth))
            return false;
    }
}

static bool
skip_list(struct thrift_reader *reader, unsigned depth)
{
    enum thrift_type type;
    size_t count;
    if (!reader_type(reader, &type) || !reader_count(reader, type_size_min(type), &count))
        return false;
    while (count-- > 0)
        if (!skip_value(reader, type, depth))
            return false;
    return true;
}

static bool
skip_map(struct thrift_reader *reader, unsigned depth)
{
    enum thrift_type key, value;
    size_t count;
    if (!reader_type(reader, &key) || !reader_type(reader, &value) ||
        !reader_count(reader, type_size_min(key) + type_size_min(value), &count))
        return false;
    while (count-- > 0)
        if (!skip_value(reader, key, depth) || !skip_value(reader, value, depth))
            return false;
    return true;
}

static bool
skip_value(struct thrift_reader *reader, enum thrift_type type, unsigned depth)
{
    struct slice bytes;
    if (depth == THRIFT_DEPTH_MAX)
        return thrift_reader_fail(reader, "nested too deep");
    switch (type) {
    case THRIFT_TYPE_BINARY:
        return thrift_reader_bytes(reader, &bytes);
    case THRIFT_TYPE_STRUCT:
        return skip_struct(reader, depth + 1);
    case THRIFT_TYPE_MAP:
        return skip_map(reader, depth + 1);
    case THRIFT_TYPE_SET:
    case THRIFT_TYPE_LIST:
        return skip_list(reader, depth + 1);
    default: /* of a fixed size */
        return reader_take(reader, type_size_min(type)) != NULL;
    }
}

bool
thrift_reader_skip(struct thrift_reader *reader, enum thrift_type type)
{
    check(type_size_min(type) > 0);
    return skip_value(reader, type, 0);
}
