/* settings.h - settings that are changed by calls: dynamic config, isolation groups, queues of
 * asynchronous starts. `complete` and `show` of rows of the command tables. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_SETTINGS_H
#define CADENZA_CLI_ADMIN_SETTINGS_H

#include "cli/base/inside.h"

/* --filter and --value, for get, update and restore. */
struct error *settings_complete(struct cli_call *call, ProtobufCMessage *request);
struct error *settings_show_value(struct cli_call *call, const ProtobufCMessage *response);
struct error *settings_show_list(struct cli_call *call, const ProtobufCMessage *response);
/* --set-drains, --remove-all-drains or --json. */
struct error *groups_complete(struct cli_call *call, ProtobufCMessage *request);
struct error *groups_show(struct cli_call *call, const ProtobufCMessage *response);
/* --search_attr_key and --search_attr_type. */
struct error *search_complete(struct cli_call *call, ProtobufCMessage *request);
/* --json of a queue. */
struct error *queue_complete(struct cli_call *call, ProtobufCMessage *request);
/* --num_read_partitions, --num_write_partitions. */
struct error *partitions_complete(struct cli_call *call, ProtobufCMessage *request);

#endif
