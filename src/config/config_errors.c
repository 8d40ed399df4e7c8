/* config_errors.c - collecting what is wrong with a file. See config_errors.h. */
#include "config/config_errors.h"

void
config_errors_add(struct config_errors *errors, int line, const char *key, const char *format, ...)
{
    check(line >= 0);
    if (errors->listed.count >= CONFIG_ERRORS_MAX) {
        errors->unlisted++;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_vformat(errors->arena, format, arguments);
    va_end(arguments);
    if (key != NULL)
        text = arena_format(errors->arena, "%s: %s", key, text);
    if (line > 0)
        text = arena_format(errors->arena, "%d: %s", line, text);
    if (errors->file != NULL)
        text = arena_format(errors->arena, line > 0 ? "%s:%s" : "%s: %s", errors->file, text);

    /* Insertion sort: duplicates are found while reading, the rest when all has been read. */
    vector_push_in(&errors->listed, errors->arena, (struct config_error){line, text});
    struct config_error *items = errors->listed.items;
    for (size_t i = errors->listed.count - 1; i > 0 && items[i - 1].line > items[i].line; i--) {
        struct config_error later = items[i - 1];
        items[i - 1] = items[i];
        items[i] = later;
    }
}

bool
config_errors_are_none(const struct config_errors *errors)
{
    return errors->listed.count == 0;
}

struct error *
config_errors_join(const struct config_errors *errors)
{
    if (config_errors_are_none(errors))
        return NULL;
    const char *all = NULL;
    for (size_t i = 0; i < errors->listed.count; i++) {
        const char *text = errors->listed.items[i].text;
        all = all == NULL ? text : arena_format(errors->arena, "%s\n%s", all, text);
    }
    if (errors->unlisted > 0)
        all = arena_format(errors->arena, "%s\nand %zu more", all, errors->unlisted);
    check(all != NULL);
    return error_new(errors->arena, ERR_BAD_REQUEST, "%s", all);
}
