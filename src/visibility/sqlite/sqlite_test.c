/* sqlite_test.c - the SQLite engine keeps the contract, on a real platform. */
#include "visibility/sqlite/test_fixture.h"
#include "visibility/test/contract.h"

static struct visibility *
engine_open(void *context)
{
    return visibility_fixture_open(context);
}

static struct visibility *
engine_reopen(void *context, struct visibility *visibility)
{
    visibility_close(visibility);
    return visibility_fixture_open(context);
}

static void
engine_close(void *context, struct visibility *visibility)
{
    visibility_close(visibility);
    visibility_fixture_clear(context);
}

struct contract_call {
    void (*test)(struct visibility_contract *contract);
};

static void
run_contract(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct contract_call *contract_call = argument;
    struct visibility_subject subject = {.context = visibility_fixture,
                                         .open = engine_open,
                                         .reopen = engine_reopen,
                                         .close = engine_close};
    visibility_contract_run(&subject, contract_call->test);
}

#define X(title, ...)                                                                              \
    TEST(visibility_sqlite, title, ##__VA_ARGS__)                                                  \
    {                                                                                              \
        struct contract_call contract_call = {.test = visibility_contract_##title};                \
        visibility_fixture_run(run_contract, &contract_call);                                      \
    }
VISIBILITY_CONTRACT(X)
#undef X
