/* schedule.h - the parts of the schedule commands that a row of the table does not say. Inside cli/
 * only. */
#ifndef CADENZA_CLI_SCHEDULE_SCHEDULE_H
#define CADENZA_CLI_SCHEDULE_SCHEDULE_H

#include "cli/base/inside.h"

/* An update that changes something: a spec or policies as a whole take the place of what was, so
 * what the flags do not name is asked from the server first. Yields. */
struct error *schedule_complete_update(struct cli_call *call, ProtobufCMessage *request);

#endif
