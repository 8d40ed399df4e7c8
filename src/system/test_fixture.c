/* test_fixture.c - see test_fixture.h. */
#include "system/test_fixture.h"

static bool
is_served(void *context, const char *domain_id, const char *list)
{
    return system_serves(context, domain_id, list);
}

static void
wanted(void *context, const char *domain_id, const char *list, enum task_type type)
{
    system_wanted(context, domain_id, list, type);
}

static void
stop(void *context)
{
    system_stop(context);
}

static void
free_frame(void *context)
{
    system_free(context);
}

void
fixture_wire_system(struct fixture *fixture, const struct system_types *types)
{
    EXPECT_OK(system_register_domains(fixture->domains, fixture->dynamic, fixture->arena));
    struct system_frame *frame = system_new(types, fixture->domains);
    fixture->system = (struct fixture_system){.context = frame,
                                              .is_served = is_served,
                                              .wanted = wanted,
                                              .stop = stop,
                                              .free = free_frame};
}

void
fixture_start_system(struct fixture *fixture)
{
    system_open(fixture->system.context,
                &(struct system_parts){.domains = fixture->domains,
                                       .group = fixture->group,
                                       .dynamic = fixture->dynamic,
                                       .engine = atomic_load(&fixture->engine),
                                       .matching = fixture->matching,
                                       .visibility = fixture->visibility,
                                       .registry = fixture->registry,
                                       .api = fixture->api,
                                       .log = &fixture->log});
}

void
fixture_open_system(struct fixture *fixture, const struct system_types *types)
{
    fixture_wire_system(fixture, types);
    fixture_start_system(fixture);
}
