/* admin.h - what calls answered about runs, shards and queues: `complete` and `show` of rows of the
 * command tables. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_ADMIN_H
#define CADENZA_CLI_ADMIN_ADMIN_H

#include "cli/base/inside.h"

/* admin workflow describe: what the server keeps of the run, as JSON. */
struct error *admin_show_run(struct cli_call *call, const ProtobufCMessage *response);
/* admin shard list: a table. */
struct error *admin_show_shards(struct cli_call *call, const ProtobufCMessage *response);
/* admin queue describe: --queue_type by name, or by the number that the cadence command line has.
 */
struct error *admin_complete_queue(struct cli_call *call, ProtobufCMessage *request);
struct error *admin_show_queue(struct cli_call *call, const ProtobufCMessage *response);

#endif
