/* workflow_describe.h - what a call answered about one workflow, for people and programs: the
 * `show` of rows of the command tables. Inside cli/ only. */
#ifndef CADENZA_CLI_WORKFLOW_WORKFLOW_DESCRIBE_H
#define CADENZA_CLI_WORKFLOW_WORKFLOW_DESCRIBE_H

#include "cli/base/inside.h"

/* workflow describe: JSON with the members of the cadence command line. */
struct error *workflow_show_description(struct cli_call *call, const ProtobufCMessage *response);
/* workflow query, stack: the answer as JSON, or as the text that it is. */
struct error *workflow_show_answer(struct cli_call *call, const ProtobufCMessage *response);
/* workflow diagnose: waits for the report of the diagnostics run and shows it. Yields. */
struct error *workflow_complete_diagnosis(struct cli_call *call, ProtobufCMessage *request);
struct error *workflow_show_diagnosis(struct cli_call *call, const ProtobufCMessage *response);

#endif
