/* rows.c - the table of rows.h as data. */
#include "store/rows.h"

static const struct row_traits traits[ROW_KIND_END] = {
#define X(kind, number, partition, access, life, name) [kind] = {partition, access, life, name},
    ROW_KINDS(X)
#undef X
};

const struct row_traits *
row_traits(enum row_kind kind)
{
    if ((unsigned)kind >= ROW_KIND_END || traits[kind].name == NULL)
        return NULL;
    return &traits[kind];
}
