/* sqlite_test.c - the SQLite engine keeps the contract, on a real ground. */
#include "visibility/contract.h"
#include "visibility/sqlite/test_place.h"

static struct visibility *
engine_open(void *context)
{
    return place_open(context);
}

static struct visibility *
engine_reopen(void *context, struct visibility *visibility)
{
    visibility_close(visibility);
    return place_open(context);
}

static void
engine_close(void *context, struct visibility *visibility)
{
    visibility_close(visibility);
    place_clear(context);
}

struct visit {
    void (*test)(struct visibility_contract *contract);
};

static void
run_contract(struct place *place, void *argument)
{
    struct visit *visit = argument;
    struct visibility_subject subject = {
        .context = place, .open = engine_open, .reopen = engine_reopen, .close = engine_close};
    visibility_contract_run(&subject, visit->test);
}

#define X(title, ...)                                                                              \
    TEST(visibility_sqlite, title, ##__VA_ARGS__)                                                  \
    {                                                                                              \
        struct visit visit = {.test = visibility_contract_##title};                                \
        place_run(run_contract, &visit);                                                           \
    }
VISIBILITY_CONTRACT(X)
#undef X
