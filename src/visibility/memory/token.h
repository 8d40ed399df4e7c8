/* token.h - places in the order of a query, and page tokens that name one. Only for memory.c. */
#ifndef CADENZA_VISIBILITY_MEMORY_TOKEN_H
#define CADENZA_VISIBILITY_MEMORY_TOKEN_H

#include "visibility/evaluate.h"

struct memory_position {
    bool has_value; /* else it is among the last */
    struct attribute_value value;
    struct slice run_id;
};

/* The place of a row; points into it. */
struct memory_position memory_position_of(const struct query *query,
                                          const struct visibility_row *row);
/* <0, 0, >0 in the order of the query. */
int memory_position_compare(const struct query *query, const struct memory_position *one,
                            const struct memory_position *other);
/* The token of the place behind which the next page begins. */
struct slice memory_token_write(const struct memory_position *position, struct arena *arena);
/* The place of a token. Error: ERR_BAD_REQUEST, it was made for another order or not by us. */
must_use struct error *memory_token_read(const struct query *query, struct slice token,
                                         struct arena *arena, struct memory_position *position);

#endif
