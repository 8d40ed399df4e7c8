/* verdict.h - the first thing that a run broke. Later ones follow from it and are not kept. */
#ifndef CADENZA_SIM_WORLD_VERDICT_H
#define CADENZA_SIM_WORLD_VERDICT_H

#include "base/compiler.h"
#include "base/error.h"

struct verdict {
    const char *violation; /* NULL: none; points into `room` */
    char room[256];
};

/* Notes what is broken, if nothing was before. */
void verdict_violate(struct verdict *verdict, const char *format, ...) printf_like(2, 3);
/* May a call end so while hosts crash and lines are cut? NULL: it went well. */
bool verdict_is_expected(const struct error *err);

#endif
