/* faults.h - all that is wrong with a file, told at once: whoever edits it wants to see it all. */
#ifndef CADENZA_CONFIG_FAULTS_H
#define CADENZA_CONFIG_FAULTS_H

#include "base/error.h"
#include "base/vector.h"

#define FAULTS_MAX 50 /* lines told; of the rest only the number */

struct fault {
    int line;
    const char *text;
};

struct faults {
    const char *file;    /* its name in front of each line; NULL: none */
    struct arena *arena; /* where the texts live */
    vector_of(struct fault) told;
    size_t untold;
};

/* Notes "file:line: key: sentence"; line 0 and key NULL are left out. */
void faults_add(struct faults *faults, int line, const char *key, const char *format, ...)
    printf_like(4, 5);
bool faults_are_none(const struct faults *faults);
/* One ERR_BAD_REQUEST with a line for each, in order of the file; NULL when there are none. */
must_use struct error *faults_error(const struct faults *faults);

#endif
