/* contract.c - what the files of the suite share: a store to test, and short words for it. */
#include "store/test/contract.h"

#include "base/test.h"
#include "store/key.h"

void
contract_run(const struct contract_engine *engine, void (*test)(struct contract *contract))
{
    struct contract contract = {.engine = engine, .arena = arena_new(0)};
    contract.store = engine->open(engine->context);
    test(&contract);
    engine->close(engine->context, contract.store);
    arena_free(contract.arena);
}

void
contract_flush(struct contract *contract)
{
    if (contract->engine->flush != NULL)
        contract->engine->flush(contract->engine->context, contract->store);
}

void
contract_reopen(struct contract *contract)
{
    contract->store = contract->engine->reopen(contract->engine->context, contract->store);
}

struct slice
contract_key(struct contract *contract, uint64_t number)
{
    struct key_writer key;
    key_begin(&key, contract->arena);
    key_u64(&key, number);
    return key_end(&key);
}

void
contract_commit(struct contract *contract, const struct batch *batch, uint64_t guard_expected)
{
    EXPECT_OK(store_commit(contract->store, batch, guard_expected, contract->arena));
}

uint64_t
contract_guard(struct contract *contract, struct partition partition)
{
    uint64_t guard = 0;
    EXPECT_OK(store_guard(contract->store, partition, contract->arena, &guard));
    return guard;
}

void
contract_put(struct contract *contract, struct partition partition, uint64_t guard,
             enum row_kind kind, struct slice key, struct slice value)
{
    uint64_t expected = contract_guard(contract, partition) == 0 ? 0 : guard;
    struct batch *batch = batch_new(contract->arena, partition, guard);
    batch_put(batch, kind, key, value);
    contract_commit(contract, batch, expected);
}

const char *
contract_get(struct contract *contract, struct partition partition, enum row_kind kind,
             struct slice key)
{
    bool found;
    struct slice value;
    EXPECT_OK(store_get(contract->store, partition, kind, key, contract->arena, &found, &value));
    return found ? arena_text_of(contract->arena, value) : NULL;
}

const char *
contract_list(struct contract *contract, const struct scan *scan)
{
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, scan, contract->arena, &rows));
    const char *list = "";
    for (size_t i = 0; i < rows.count; i++)
        list = arena_format(contract->arena, "%s%s%.*s=%.*s", list, i == 0 ? "" : " ",
                            SLICE_ARG(rows.row[i].key), SLICE_ARG(rows.row[i].value));
    return rows.has_more ? arena_format(contract->arena, "%s +", list) : list;
}
