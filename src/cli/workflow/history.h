/* history.h - reading the history of a run, page by page. Inside cli/ only. */
#ifndef CADENZA_CLI_WORKFLOW_HISTORY_H
#define CADENZA_CLI_WORKFLOW_HISTORY_H

#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

struct cli_history_reader {
    struct cli_call *call;
    const char *domain, *workflow_id;
    const char *run_id; /* ""; the current one */
    bool waits;         /* for events that are yet to come */
    ProtobufCBinaryData token;
    bool is_over; /* nothing follows */
};

/* The next page; its events may be none when the reader waits and nothing came. Yields. Errors: the
 * server's. */
must_use struct error *history_next(struct cli_history_reader *reader, API(History) **page);
/* A run from its flags: --domain, --workflow_id, --run_id. Error: one is missing. */
must_use struct error *history_open(struct cli_call *call, struct cli_history_reader *reader);

#endif
