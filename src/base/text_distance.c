/* text_distance.c - how far two words are apart, for "did you mean ...?". See text.h.
 *
 * The classic table of edits, one row of it at a time. */
#include <ctype.h>

#include "base/text.h"

static size_t
least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

size_t
text_distance(struct slice one, struct slice other)
{
    size_t row[TEXT_DISTANCE_LENGTH_MAX + 1];
    if (one.length > TEXT_DISTANCE_LENGTH_MAX || other.length > TEXT_DISTANCE_LENGTH_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= other.length; j++)
        row[j] = j;
    for (size_t i = 1; i <= one.length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= other.length; j++) {
            bool is_same = tolower(one.data[i - 1]) == tolower(other.data[j - 1]);
            size_t best = least(is_same ? diagonal : diagonal + 1, row[j] + 1, row[j - 1] + 1);
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[other.length];
}
