/* settings.c - what the config says of archives. See archive.h. */
#include <stdlib.h>

#include "archive/inside.h"

static const char *const kinds[] = {
    [ARCHIVE_HISTORY] = "history", [ARCHIVE_VISIBILITY] = "visibility"};

struct settings_reader {
    const struct config *config;
    const char *kind;
    struct arena *arena;
};

static const char *
text_of(const struct settings_reader *settings_reader, const char *format)
{
    return config_text(settings_reader->config,
                       arena_format(settings_reader->arena, "%s%s.%s", "archival.",
                                    settings_reader->kind, format));
}

static const char *
default_of(const struct settings_reader *settings_reader, const char *name)
{
    return config_text(settings_reader->config,
                       arena_format(settings_reader->arena, "domainDefaults.archival.%s.%s",
                                    settings_reader->kind, name));
}

/* enabled, or one of the words that mean no. */
static struct error *
read_status(const struct settings_reader *settings_reader, const char *key, const char *text,
            bool may_pause, bool *is_enabled)
{
    *is_enabled = strcasecmp(text, "enabled") == 0;
    if (*is_enabled || text[0] == '\0' || strcasecmp(text, "disabled") == 0 ||
        (may_pause && strcasecmp(text, "paused") == 0))
        return NULL;
    return error_new(settings_reader->arena, ERR_BAD_REQUEST,
                     "%s.%s.status: %s is not one of enabled, %s", key, settings_reader->kind, text,
                     may_pause ? "disabled, paused" : "disabled");
}

/* As Go reads numbers: a 0 in front is octal. */
static struct error *
read_mode(const struct settings_reader *settings_reader, const char *name, unsigned *mode)
{
    const char *text = text_of(settings_reader,
                               arena_format(settings_reader->arena, "provider.filestore.%s", name));
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > 07777)
        return error_new(settings_reader->arena, ERR_BAD_REQUEST,
                         "archival.%s.provider.filestore.%s: %s is not a mode such as 0644",
                         settings_reader->kind, name, text[0] == '\0' ? "nothing" : text);
    *mode = (unsigned)number;
    return NULL;
}

static struct error *
read_files(const struct settings_reader *settings_reader, struct archive_settings *settings)
{
    settings->has_files = text_of(settings_reader, "provider.filestore.fileMode")[0] != '\0' ||
                          text_of(settings_reader, "provider.filestore.dirMode")[0] != '\0';
    if (!settings->has_files)
        return NULL;
    struct error *err = read_mode(settings_reader, "fileMode", &settings->file_mode);
    return err != NULL ? err : read_mode(settings_reader, "dirMode", &settings->dir_mode);
}

static struct error *
check_settings(const struct settings_reader *settings_reader,
               const struct archive_settings *settings)
{
    const char *folder;
    struct arena *arena = settings_reader->arena;
    if (!settings->is_enabled && settings->is_readable)
        return error_new(arena, ERR_BAD_REQUEST,
                         "archival.%s.enableRead: nothing can be read while status is not enabled",
                         settings_reader->kind);
    if (!settings->is_enabled)
        return NULL;
    if (!settings->has_files)
        return error_new(arena, ERR_BAD_REQUEST,
                         "archival.%s.provider: filestore with its fileMode and dirMode is needed; "
                         "s3store and gstorage are not served",
                         settings_reader->kind);
    if (settings->default_uri[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "domainDefaults.archival.%s.URI: needed while archival.%s.status is "
                         "enabled",
                         settings_reader->kind, settings_reader->kind);
    struct error *err = archive_uri_folder(settings->default_uri, arena, &folder);
    return err == NULL ? NULL
                       : error_wrap(err, "domainDefaults.archival.%s.URI", settings_reader->kind);
}

static struct error *
read_kind(const struct settings_reader *settings_reader, struct archive_settings *settings)
{
    *settings = (struct archive_settings){.default_uri = default_of(settings_reader, "URI")};
    settings->is_readable = config_flag(
        settings_reader->config,
        arena_format(settings_reader->arena, "archival.%s.enableRead", settings_reader->kind));
    struct error *err = read_status(settings_reader, "archival", text_of(settings_reader, "status"),
                                    true, &settings->is_enabled);
    if (err == NULL)
        err = read_status(settings_reader, "domainDefaults.archival",
                          default_of(settings_reader, "status"), false,
                          &settings->is_default_enabled);
    if (err == NULL)
        err = read_files(settings_reader, settings);
    return err != NULL ? err : check_settings(settings_reader, settings);
}

struct error *
archive_settings_read(const struct config *config, struct arena *arena,
                      struct archive_settings settings[2])
{
    struct error *err = NULL;
    for (int kind = ARCHIVE_HISTORY; err == NULL && kind <= ARCHIVE_VISIBILITY; kind++) {
        struct settings_reader settings_reader = {
            .config = config, .kind = kinds[kind], .arena = arena};
        err = read_kind(&settings_reader, &settings[kind]);
    }
    return err;
}
