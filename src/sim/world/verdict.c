/* verdict.c - see verdict.h. */
#include "sim/world/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
verdict_violate(struct verdict *verdict, const char *format, ...)
{
    if (verdict->violation != NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->room, sizeof verdict->room, format, arguments);
    va_end(arguments);
    verdict->violation = verdict->room;
}

bool
verdict_is_expected(const struct error *err)
{
    if (err == NULL)
        return true;
    enum error_kind kind = err->kind;
    return kind == ERR_UNAVAILABLE || kind == ERR_DEADLINE || kind == ERR_CANCELLED ||
           kind == ERR_FENCED || kind == ERR_OUTCOME_UNKNOWN || kind == ERR_SERVICE_BUSY ||
           kind == ERR_ENTITY_NOT_EXISTS || strstr(err->message, "Shutting down") != NULL;
}
