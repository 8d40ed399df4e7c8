/* check.c - the end of the process when a check fails.
 *
 * The line goes out by one write(2), so that it is whole even when other threads write and stdio is
 * broken. abort() leaves a core and lets a sanitizer or the test harness see the place. */
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
check_source_path(const char *file)
{
    const char *found = file;
    for (const char *at = strstr(file, "src/"); at != NULL; at = strstr(at + 1, "src/"))
        if (at == file || at[-1] == '/')
            found = at + strlen("src/");
    return found;
}

void
check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "%s:%d: check failed: %s", check_source_path(file),
                          line, condition);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (format != NULL && used + 3 < sizeof text) {
        memcpy(text + used, ": ", 3);
        used += 2;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text + used, sizeof text - used, format, arguments);
        va_end(arguments);
    }
    used = strnlen(text, sizeof text - 1);
    text[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, used);
    (void)ignored;
    abort();
}
