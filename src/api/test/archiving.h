/* archiving.h - what the tests of archives share. */
#ifndef CADENZA_API_TEST_ARCHIVING_H
#define CADENZA_API_TEST_ARCHIVING_H

#include "api/test/child_tree.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define ARCHIVING_ON  API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED)
#define ARCHIVING_OFF API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED)

/* Says that "orders" archives both kinds, or neither, at this URI ("": it says nothing of one). */
must_use struct error *archiving_update(struct fixture *fixture, int status, const char *uri);
API(Domain) *archiving_describe(struct fixture *fixture, const char *name);
/* A run that is closed at once. Its id. */
const char *archiving_run(struct fixture *fixture, const char *workflow_id);
/* Until every closed run is gone. */
void archiving_pass(struct fixture *fixture);

#endif
