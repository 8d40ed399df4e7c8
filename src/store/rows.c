/* rows.c - the table of rows.h as data. */
#include "store/rows.h"

static const struct row_facts facts[ROW_KIND_END] = {
#define X(kind, number, partition, access, life, name) [kind] = {partition, access, life, name},
    ROW_KINDS(X)
#undef X
};

const struct row_facts *
row_facts(enum row_kind kind)
{
    if ((unsigned)kind >= ROW_KIND_END || facts[kind].name == NULL)
        return NULL;
    return &facts[kind];
}
