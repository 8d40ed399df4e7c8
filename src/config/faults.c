/* faults.c - collecting what is wrong with a file. See faults.h. */
#include "config/faults.h"

void
faults_add(struct faults *faults, int line, const char *key, const char *format, ...)
{
    check(line >= 0);
    if (faults->told.count >= FAULTS_MAX) {
        faults->untold++;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_vformat(faults->arena, format, arguments);
    va_end(arguments);
    if (key != NULL)
        text = arena_format(faults->arena, "%s: %s", key, text);
    if (line > 0)
        text = arena_format(faults->arena, "%d: %s", line, text);
    if (faults->file != NULL)
        text = arena_format(faults->arena, line > 0 ? "%s:%s" : "%s: %s", faults->file, text);

    /* Insertion sort: duplicates are found while reading, the rest when all has been read. */
    vector_push_in(&faults->told, faults->arena, (struct fault){line, text});
    struct fault *items = faults->told.items;
    for (size_t i = faults->told.count - 1; i > 0 && items[i - 1].line > items[i].line; i--) {
        struct fault later = items[i - 1];
        items[i - 1] = items[i];
        items[i] = later;
    }
}

bool
faults_are_none(const struct faults *faults)
{
    return faults->told.count == 0;
}

struct error *
faults_error(const struct faults *faults)
{
    if (faults_are_none(faults))
        return NULL;
    const char *all = NULL;
    for (size_t i = 0; i < faults->told.count; i++) {
        const char *text = faults->told.items[i].text;
        all = all == NULL ? text : arena_format(faults->arena, "%s\n%s", all, text);
    }
    if (faults->untold > 0)
        all = arena_format(faults->arena, "%s\nand %zu more", all, faults->untold);
    check(all != NULL);
    return error_new(faults->arena, ERR_BAD_REQUEST, "%s", all);
}
