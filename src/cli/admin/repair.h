/* repair.h - `complete` and `show` of the rows that repair runs and shards. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_REPAIR_H
#define CADENZA_CLI_ADMIN_REPAIR_H

#include "cli/base/inside.h"

/* admin workflow delete, fix_corruption: what went. */
struct error *repair_show_deleted(struct cli_call *call, const ProtobufCMessage *response);
struct error *repair_show_repaired(struct cli_call *call, const ProtobufCMessage *response);
/* admin workflow resend: the domain by its name, too; --max_event_id is the last one wanted. */
struct error *repair_complete_resend(struct cli_call *call, ProtobufCMessage *request);
/* --task_type by its name, or by the number that the cadence command line has. */
struct error *repair_complete_task(struct cli_call *call, ProtobufCMessage *request);
/* admin shard timers: the queue that is meant. */
struct error *repair_complete_timers(struct cli_call *call, ProtobufCMessage *request);

#endif
