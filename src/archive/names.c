/* names.c - the names of files of an archive, as in Cadence's filestore. See inside.h. */
#include <stdio.h>

#include "archive/inside.h"
#include "base/farm.h"
#include "base/text.h"

#define HISTORY_END ".history"
#define RECORD_END  ".visibility"

static unsigned long long
hash(const char *text)
{
    return farm_fingerprint64(slice_text(text));
}

const char *
archive_history_prefix(const char *domain_id, const char *workflow_id, const char *run_id,
                       struct arena *arena)
{
    return arena_format(arena, "%llu%llu%llu", hash(domain_id), hash(workflow_id), hash(run_id));
}

const char *
archive_history_name(const char *prefix, int64_t version, struct arena *arena)
{
    return arena_format(arena, "%s_%lld" HISTORY_END, prefix, (long long)version);
}

/* Takes a number that ends at `end` from the front of a text. */
static bool
ends_with(struct slice text, const char *end, struct slice *front)
{
    size_t length = strlen(end);
    if (text.length < length || memcmp(text.data + text.length - length, end, length) != 0)
        return false;
    *front = slice_of(text.data, text.length - length);
    return true;
}

bool
archive_history_version(const char *name, const char *prefix, int64_t *version)
{
    size_t length = strlen(prefix);
    struct slice digits;
    return strncmp(name, prefix, length) == 0 && name[length] == '_' &&
           ends_with(slice_text(name + length + 1), HISTORY_END, &digits) &&
           text_parse_int64(digits, INT64_MIN, INT64_MAX, version);
}

const char *
archive_record_name(int64_t close_time, const char *run_id, struct arena *arena)
{
    return arena_format(arena, "%lld_%llu" RECORD_END, (long long)close_time, hash(run_id));
}

bool
archive_record_name_read(const char *name, struct record_name *read)
{
    const char *line = strchr(name, '_');
    struct slice digits;
    read->name = name;
    return line != NULL && ends_with(slice_text(line + 1), RECORD_END, &digits) &&
           text_parse_int64(slice_of(name, (size_t)(line - name)), INT64_MIN, INT64_MAX,
                            &read->close_time) &&
           text_parse_uint64(digits, 0, UINT64_MAX, &read->run_hash);
}

/* Hashes compare as texts, as Cadence has it: so either side's tokens would do. */
int
archive_record_name_compare(const struct record_name *one, const struct record_name *other)
{
    if (one->close_time != other->close_time)
        return one->close_time > other->close_time ? -1 : 1;
    char digits[2][24];
    snprintf(digits[0], sizeof digits[0], "%llu", (unsigned long long)one->run_hash);
    snprintf(digits[1], sizeof digits[1], "%llu", (unsigned long long)other->run_hash);
    return strcmp(digits[1], digits[0]);
}
