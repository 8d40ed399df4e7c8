/* cluster.h - what calls answered about task lists and the cluster: `complete` and `show` of rows
 * of the command tables. Inside cli/ only. */
#ifndef CADENZA_CLI_ADMIN_CLUSTER_H
#define CADENZA_CLI_ADMIN_CLUSTER_H

#include <jansson.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

struct error *task_list_complete(struct cli_call *call, ProtobufCMessage *request);
struct error *task_list_show(struct cli_call *call, const ProtobufCMessage *response);
struct error *task_list_show_all(struct cli_call *call, const ProtobufCMessage *response);
struct error *task_list_show_partitions(struct cli_call *call, const ProtobufCMessage *response);
struct error *cluster_show_search_attributes(struct cli_call *call,
                                             const ProtobufCMessage *response);
struct error *cluster_show_peers(struct cli_call *call, const ProtobufCMessage *response);

/* --- what a cluster that lost memory has read of the others; pure ---- */

/* "5 of 16 shards were read", "has not answered yet". Of a peer with is_past_wanted. */
const char *peer_past_text(const STORE_API(Peer) *peer, struct arena *arena);
/* Does it wait for any peer, or for what follows when all were read? */
bool peers_have_past_wanted(const STORE_API(DescribePeersResponse) *peers);
/* For people, lines; and as JSON, a new reference. */
const char *peers_text(const STORE_API(DescribePeersResponse) *peers, struct arena *arena);
json_t *peers_json(const STORE_API(DescribePeersResponse) *peers, struct arena *arena);

#endif
