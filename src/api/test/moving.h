/* moving.h - a domain that goes from cluster to cluster. For tests of api/ in a group of samples
 * (domain/test/samples.h). */
#ifndef CADENZA_API_TEST_MOVING_H
#define CADENZA_API_TEST_MOVING_H

#include "api/test/fixture.h"
#include "domain/test/samples.h"

/* Registers the domain "moving", active here. */
void moving_register(struct fixture *fixture);
/* It goes there, gracefully within so many seconds; 0: by force. */
must_use struct error *moving_try(struct fixture *fixture, const char *cluster, int64_t seconds);
/* By force, and it must succeed. */
void moving_go(struct fixture *fixture, const char *cluster);
/* Registers it and starts workflow "wf" of it. A poll for its first decision. */
API(PollForDecisionTaskRequest) *moving_begin(struct fixture *fixture);

#endif
