/* memory_test.c - the memory engine keeps the contract. */
#include "base/test.h"
#include "visibility/test/contract.h"

static struct visibility *
open_memory(void *context)
{
    return visibility_open_memory();
}

static void
close_memory(void *context, struct visibility *visibility)
{
    visibility_close(visibility);
}

static const struct visibility_subject subject = {.open = open_memory, .close = close_memory};

#define X(title, ...)                                                                              \
    TEST(visibility_memory, title, ##__VA_ARGS__)                                                  \
    {                                                                                              \
        visibility_contract_run(&subject, visibility_contract_##title);                            \
    }
VISIBILITY_CONTRACT(X)
#undef X
