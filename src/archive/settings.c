/* settings.c - what the config says of archives. See archive.h. */
#include <stdlib.h>

#include "archive/inside.h"

static const char *const kinds[] = {
    [ARCHIVE_HISTORY] = "history", [ARCHIVE_VISIBILITY] = "visibility"};

struct reading {
    const struct config *config;
    const char *kind;
    struct arena *arena;
};

static const char *
text_of(const struct reading *reading, const char *format)
{
    return config_text(reading->config,
                       arena_format(reading->arena, "%s%s.%s", "archival.", reading->kind, format));
}

static const char *
default_of(const struct reading *reading, const char *name)
{
    return config_text(
        reading->config,
        arena_format(reading->arena, "domainDefaults.archival.%s.%s", reading->kind, name));
}

/* enabled, or one of the words that mean no. */
static struct error *
read_status(const struct reading *reading, const char *key, const char *text, bool may_pause,
            bool *is_enabled)
{
    *is_enabled = strcasecmp(text, "enabled") == 0;
    if (*is_enabled || text[0] == '\0' || strcasecmp(text, "disabled") == 0 ||
        (may_pause && strcasecmp(text, "paused") == 0))
        return NULL;
    return error_new(reading->arena, ERR_BAD_REQUEST, "%s.%s.status: %s is none of enabled, %s",
                     key, reading->kind, text, may_pause ? "disabled, paused" : "disabled");
}

/* As Go reads numbers: a 0 in front is octal. */
static struct error *
read_mode(const struct reading *reading, const char *name, unsigned *mode)
{
    const char *text =
        text_of(reading, arena_format(reading->arena, "provider.filestore.%s", name));
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > 07777)
        return error_new(reading->arena, ERR_BAD_REQUEST,
                         "archival.%s.provider.filestore.%s: %s is no mode, 0644 would be one",
                         reading->kind, name, text[0] == '\0' ? "nothing" : text);
    *mode = (unsigned)number;
    return NULL;
}

static struct error *
read_files(const struct reading *reading, struct archive_settings *settings)
{
    settings->has_files = text_of(reading, "provider.filestore.fileMode")[0] != '\0' ||
                          text_of(reading, "provider.filestore.dirMode")[0] != '\0';
    if (!settings->has_files)
        return NULL;
    struct error *err = read_mode(reading, "fileMode", &settings->file_mode);
    return err != NULL ? err : read_mode(reading, "dirMode", &settings->dir_mode);
}

static struct error *
check_settings(const struct reading *reading, const struct archive_settings *settings)
{
    const char *folder;
    struct arena *arena = reading->arena;
    if (!settings->is_enabled && settings->is_readable)
        return error_new(arena, ERR_BAD_REQUEST,
                         "archival.%s.enableRead: nothing can be read while status is not enabled",
                         reading->kind);
    if (!settings->is_enabled)
        return NULL;
    if (!settings->has_files)
        return error_new(arena, ERR_BAD_REQUEST,
                         "archival.%s.provider: filestore with its fileMode and dirMode is needed; "
                         "s3store and gstorage are not served",
                         reading->kind);
    if (settings->default_uri[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "domainDefaults.archival.%s.URI: needed while archival.%s.status is "
                         "enabled",
                         reading->kind, reading->kind);
    struct error *err = archive_uri_folder(settings->default_uri, arena, &folder);
    return err == NULL ? NULL : error_wrap(err, "domainDefaults.archival.%s.URI", reading->kind);
}

static struct error *
read_kind(const struct reading *reading, struct archive_settings *settings)
{
    *settings = (struct archive_settings){.default_uri = default_of(reading, "URI")};
    settings->is_readable = config_flag(
        reading->config, arena_format(reading->arena, "archival.%s.enableRead", reading->kind));
    struct error *err =
        read_status(reading, "archival", text_of(reading, "status"), true, &settings->is_enabled);
    if (err == NULL)
        err = read_status(reading, "domainDefaults.archival", default_of(reading, "status"), false,
                          &settings->is_default_enabled);
    if (err == NULL)
        err = read_files(reading, settings);
    return err != NULL ? err : check_settings(reading, settings);
}

struct error *
archive_settings_read(const struct config *config, struct arena *arena,
                      struct archive_settings settings[2])
{
    struct error *err = NULL;
    for (int kind = ARCHIVE_HISTORY; err == NULL && kind <= ARCHIVE_VISIBILITY; kind++) {
        struct reading reading = {.config = config, .kind = kinds[kind], .arena = arena};
        err = read_kind(&reading, &settings[kind]);
    }
    return err;
}
