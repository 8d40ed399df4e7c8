/* identity.c - the identity of a data folder: lines of text in DIR/CADENZA.
 *
 * Format and cluster, what state the database is in, and what the folder has of its past: `memory`,
 * one word, and `place`, the inode and birth time of the lock file of the folder that this was
 * written in. Formats 1 and 2 had "restored: yes" or "no" instead of the two: such a folder has no
 * place, and gets the one that it is found at. */
#include <inttypes.h>

#include "base/check.h"
#include "base/text.h"
#include "fiber/file.h"
#include "store/rocks/inside.h"

#define IDENTITY_SIZE_MAX  4096
#define HEAD               "cadenza data folder, format "
#define NOWHERE            "-"
#define FORMAT_WITH_MEMORY 3

/* What the line about the database says. */
static const char *
database_word(const struct folder_identity *identity)
{
    if (identity->is_restoring)
        return "being restored";
    return identity->is_made ? "made" : "to be made";
}

const char *
folder_show_place(const struct folder_place *place, struct arena *arena)
{
    if (place->inode == 0)
        return NOWHERE;
    if (place->born <= 0)
        return arena_format(arena, "%" PRIu64, place->inode);
    return arena_format(arena, "%" PRIu64 ".%" PRId64, place->inode, place->born);
}

struct error *
folder_write_identity(const char *path, const struct folder_identity *identity, struct arena *arena)
{
    check(strchr(identity->cluster_name, '\n') == NULL);
    check(identity->shard_count > 0);
    char *text = arena_format(arena,
                              HEAD "%u\ncluster: %s\nshards: %" PRIu32 "\ndatabase: %s\n"
                                   "closed: %s\nmemory: %s\nplace: %s\nguards: %s\n",
                              FOLDER_FORMAT, identity->cluster_name, identity->shard_count,
                              database_word(identity), identity->was_closed ? "yes" : "no",
                              store_memory_word(identity->memory),
                              folder_show_place(&identity->place, arena),
                              identity->raise_guards ? "to be raised" : "good");
    return file_save(folder_join(arena, path, FOLDER_IDENTITY), slice_text(text), arena);
}

/* Takes the line "name: value\n" from the front of *text; NULL if it is another. */
static char *
take_line(struct slice *text, const char *name, struct arena *arena)
{
    struct slice head = slice_text(name);
    if (!slice_starts_with(*text, head))
        return NULL;
    struct slice rest = slice_skip(*text, head.length);
    const uint8_t *end = rest.length == 0 ? NULL : memchr(rest.data, '\n', rest.length);
    if (end == NULL)
        return NULL;
    size_t length = (size_t)(end - rest.data);
    *text = slice_skip(rest, length + 1);
    return arena_text_of(arena, slice_of(rest.data, length));
}

/* The same for a line with one of two words. */
static bool
take_choice(struct slice *text, const char *name, const char *yes, const char *no, bool *is_yes,
            struct arena *arena)
{
    const char *value = take_line(text, name, arena);
    if (value == NULL)
        return false;
    *is_yes = strcmp(value, yes) == 0;
    return *is_yes || strcmp(value, no) == 0;
}

static bool
take_number(struct slice *text, const char *name, uint64_t low, uint32_t *number,
            struct arena *arena)
{
    const char *value = take_line(text, name, arena);
    uint64_t read;
    if (value == NULL || !text_parse_uint64(slice_text(value), low, UINT32_MAX, &read))
        return false;
    *number = (uint32_t)read;
    return true;
}

static bool
take_database(struct slice *text, struct folder_identity *identity, struct arena *arena)
{
    const char *word = take_line(text, "database: ", arena);
    if (word == NULL)
        return false;
    identity->is_made = strcmp(word, "made") == 0;
    identity->is_restoring = strcmp(word, "being restored") == 0;
    return strcmp(word, database_word(identity)) == 0;
}

static bool
take_memory(struct slice *text, struct folder_identity *identity, struct arena *arena)
{
    const char *word = take_line(text, "memory: ", arena);
    for (int memory = STORE_WHOLE; word != NULL && memory <= STORE_COPIED; memory++) {
        identity->memory = (enum store_memory)memory;
        if (strcmp(word, store_memory_word(identity->memory)) == 0)
            return true;
    }
    return false;
}

/* "INODE.BORN", "INODE", or "-". */
static bool
take_place(struct slice *text, struct folder_place *place, struct arena *arena)
{
    char *word = take_line(text, "place: ", arena);
    *place = (struct folder_place){.inode = 0};
    if (word == NULL || strcmp(word, NOWHERE) == 0)
        return word != NULL;
    char *dot = strchr(word, '.');
    uint64_t born = 0;
    if (dot != NULL && !text_parse_uint64(slice_text(dot + 1), 1, INT64_MAX, &born))
        return false;
    if (dot != NULL)
        *dot = '\0';
    place->born = (int64_t)born;
    return text_parse_uint64(slice_text(word), 1, UINT64_MAX, &place->inode);
}

/* What the folder has of its past. */
static bool
take_past(struct slice *text, struct folder_identity *identity, struct arena *arena)
{
    if (identity->format >= FORMAT_WITH_MEMORY)
        return take_memory(text, identity, arena) && take_place(text, &identity->place, arena);
    bool is_restored;
    if (!take_choice(text, "restored: ", "yes", "no", &is_restored, arena))
        return false;
    identity->memory = is_restored ? STORE_RESTORED : STORE_WHOLE;
    return true;
}

static bool
identity_parse(struct slice text, struct folder_identity *identity, struct arena *arena)
{
    if (!take_number(&text, HEAD, 1, &identity->format, arena))
        return false;
    if (identity->format > FOLDER_FORMAT)
        return true; /* the rest may mean anything; the caller refuses it */
    identity->cluster_name = take_line(&text, "cluster: ", arena);
    return identity->cluster_name != NULL &&
           take_number(&text, "shards: ", 1, &identity->shard_count, arena) &&
           take_database(&text, identity, arena) &&
           take_choice(&text, "closed: ", "yes", "no", &identity->was_closed, arena) &&
           take_past(&text, identity, arena) &&
           take_choice(&text, "guards: ", "to be raised", "good", &identity->raise_guards, arena) &&
           text.length == 0;
}

struct error *
folder_read_identity(const char *path, struct arena *arena, struct folder_identity *identity)
{
    char *name = folder_join(arena, path, FOLDER_IDENTITY);
    struct slice text;
    struct error *err = file_load(name, IDENTITY_SIZE_MAX, arena, &text);
    if (err != NULL)
        return err;
    *identity = (struct folder_identity){.format = 0};
    if (!identity_parse(text, identity, arena))
        return error_new(arena, ERR_CORRUPT, "%s is damaged: it does not say what the folder is",
                         name);
    if (identity->format > FOLDER_FORMAT)
        return error_new(arena, ERR_BAD_REQUEST,
                         "data folder %s has format %u; this program knows formats up to %d: it "
                         "was written by a newer one",
                         path, identity->format, FOLDER_FORMAT);
    return NULL;
}
