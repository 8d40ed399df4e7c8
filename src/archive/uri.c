/* uri.c - "file:///folder": which folder a URI names. See inside.h. */
#include "archive/inside.h"
#include "base/text.h"

#define SCHEME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."

/* Others of Cadence's, for which nothing is configured here. */
static bool
is_known_scheme(struct slice scheme)
{
    return slice_equal(scheme, slice_text("s3")) || slice_equal(scheme, slice_text("gs"));
}

static struct error *
refuse(struct arena *arena, const char *text)
{
    return error_new(arena, ERR_BAD_REQUEST, "%s", text);
}

/* A path that leads nowhere else: no "..", no NUL. */
static bool
is_plain_path(const char *path, size_t length)
{
    if (strlen(path) != length)
        return false;
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
        if (at[-1] == '/' && (at[2] == '/' || at[2] == '\0'))
            return false;
    return true;
}

/* What stands behind "file:". */
static struct error *
read_path(const char *rest, struct arena *arena, const char **folder)
{
    if (strncmp(rest, "//", 2) == 0) {
        size_t host = strcspn(rest + 2, "/?#");
        if (host > 0 && strncmp(rest + 2, "localhost", host) != 0)
            return refuse(arena, "URI is invalid: a file has no host, three slashes are needed");
        rest += 2 + host;
    }
    struct slice path = text_percent_decode(arena, slice_of(rest, strcspn(rest, "?#")));
    const char *text = arena_text_of(arena, path);
    if (text[0] == '\0')
        return refuse(arena, "directory path is empty");
    if (text[0] != '/' || !is_plain_path(text, path.length))
        return refuse(arena, "URI is invalid");
    *folder = text;
    return NULL;
}

struct error *
archive_uri_folder(const char *uri, struct arena *arena, const char **folder)
{
    size_t length = strspn(uri, SCHEME_LETTERS);
    if (uri[0] == '/')
        return refuse(arena, "unknown archiver scheme");
    if (length == 0 || uri[length] != ':' || uri[length + 1] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "parse \"%s\": invalid URI for request", uri);
    struct slice scheme = slice_of(uri, length);
    if (slice_equal(scheme, slice_text("file")))
        return read_path(uri + length + 1, arena, folder);
    return refuse(arena, is_known_scheme(scheme)
                             ? "unable to find archiver config for the given scheme"
                             : "unknown archiver scheme");
}
