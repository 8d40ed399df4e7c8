/* config_errors.h - all that is wrong with a file, reported together: its editor wants to see all
 * of it. */
#ifndef CADENZA_CONFIG_CONFIG_ERRORS_H
#define CADENZA_CONFIG_CONFIG_ERRORS_H

#include "base/error.h"
#include "base/vector.h"

#define CONFIG_ERRORS_MAX 50 /* lines reported; of the rest only the number */

struct config_error {
    int line;
    const char *text;
};

struct config_errors {
    const char *file;    /* its name in front of each line; NULL: none */
    struct arena *arena; /* where the texts live */
    vector_of(struct config_error) listed;
    size_t unlisted;
};

/* Notes "file:line: key: sentence"; line 0 and key NULL are left out. */
void config_errors_add(struct config_errors *errors, int line, const char *key, const char *format,
                       ...) printf_like(4, 5);
bool config_errors_are_none(const struct config_errors *errors);
/* One ERR_BAD_REQUEST with a line for each, in order of the file; NULL when there are none. */
must_use struct error *config_errors_join(const struct config_errors *errors);

#endif
