/* test_fixture.h - the fixture of api/ with the server's own workers in it. */
#ifndef CADENZA_SYSTEM_TEST_FIXTURE_H
#define CADENZA_SYSTEM_TEST_FIXTURE_H

#include "api/test/fixture.h"
#include "system/system.h"

/* At the beginning of a test's body: the workers serve those types, and the system's domains are
 * there. */
void fixture_open_system(struct fixture *fixture, const struct system_types *types);
/* The same in two steps, as when a server starts: tasks may come in between. */
void fixture_wire_system(struct fixture *fixture, const struct system_types *types);
void fixture_start_system(struct fixture *fixture);

#endif
