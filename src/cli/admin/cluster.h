/* cluster.h - what calls answered about task lists and the cluster: `complete` and `show` of rows
 * of the command tables. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_CLUSTER_H
#define CADENZA_CLI_ADMIN_CLUSTER_H

#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

struct error *task_list_complete(struct cli_call *call, ProtobufCMessage *request);
struct error *task_list_show(struct cli_call *call, const ProtobufCMessage *response);
struct error *task_list_show_all(struct cli_call *call, const ProtobufCMessage *response);
struct error *task_list_show_partitions(struct cli_call *call, const ProtobufCMessage *response);
struct error *cluster_show_search_attributes(struct cli_call *call,
                                             const ProtobufCMessage *response);

#endif
