/* mapping_fuzz.c - any bytes as a source of entities, and as an answer over HTTP: nothing may read
 * or write past its end, and what is accepted is sorted and has each key once. */
#include "base/check.h"
#include "entity/mapping.h"
#include "net/http_get.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct mapping mapping = {0};
    if (mapping_read(slice_of(data, size), arena, &mapping) == NULL) {
        for (size_t i = 0; i < mapping.count; i++)
            check(mapping_find(&mapping, mapping.entries[i].key) == &mapping.entries[i]);
    }
    bool is_whole = false;
    unsigned status = 0;
    struct slice body = {0};
    if (http_answer_read(slice_of(data, size), size % 2 == 0, arena, &is_whole, &status, &body) ==
            NULL &&
        is_whole)
        check(status >= 100 && status <= 999 && body.length <= size);
    arena_free(arena);
    return 0;
}
