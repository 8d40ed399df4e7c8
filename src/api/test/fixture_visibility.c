/* fixture_visibility.c - the lists of runs of a fixture: an engine in memory, fed as a server feeds
 * it.
 */
#include "api/test/fixture.h"

static void
on_fed(void *context, uint32_t shard, uint64_t fed, uint64_t safe)
{
    struct fixture *fixture = context;
    engine_visibility_stored(fixture->engine, shard, fed, safe);
}

void
fixture_open_visibility(struct fixture *fixture)
{
    fixture->visibility = visibility_open_memory();
    EXPECT_OK(registry_open(fixture->store, fixture->arena, &fixture->registry));
    EXPECT_OK(registry_follow(fixture->registry, fixture->dynamic, DYNAMIC_INTERVAL_MAX, NULL,
                              fixture->arena));
    fixture->feeder = feeder_new(&(struct feeder_options){.on_fed = on_fed,
                                                          .context = fixture,
                                                          .visibility = fixture->visibility,
                                                          .registry = fixture->registry,
                                                          .shard_count = FIXTURE_SHARDS,
                                                          .metrics = fixture->metrics});
}

void
fixture_close_visibility(struct fixture *fixture)
{
    feeder_free(fixture->feeder);
    registry_close(fixture->registry);
    visibility_close(fixture->visibility);
}

struct error *
fixture_check_search(const void *context, const API(SearchAttributes) *attributes,
                     const char *domain_name, struct arena *arena)
{
    const struct fixture *fixture = context;
    struct search_rules rules = {.registry = fixture->registry, .dynamic = fixture->dynamic};
    return api_check_search_attributes(&rules, attributes, domain_name, arena);
}
