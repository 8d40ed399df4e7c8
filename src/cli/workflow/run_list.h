/* run_list.h - lists of runs: asked for page by page, shown as a table or as JSON. Inside cli/
 * only.
 */
#ifndef CADENZA_CLI_WORKFLOW_RUN_LIST_H
#define CADENZA_CLI_WORKFLOW_RUN_LIST_H

#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/names.h"

struct run_list {
    API(WorkflowExecutionInfo) **items;
    size_t count, capacity;
};

/* Adds what a query finds in the domain. `method` is ListWorkflowExecutions,
 * ScanWorkflowExecutions or ListArchivedWorkflowExecutions; pages are of page_size, all of them or
 * only the first. Yields. Errors: the server's. */
must_use struct error *run_list_query(struct cli_call *call, const char *method, const char *query,
                                      int64_t page_size, bool wants_all, struct run_list *list);
/* Drops the runs whose workflow id is in `excluded`. */
void run_list_exclude(struct run_list *list, const struct run_list *excluded);
/* As the flags ask: columns or JSON. */
void run_list_print(struct cli_call *call, const struct run_list *list);
/* "OPEN", "COMPLETED", ... */
const char *run_list_status(const API(WorkflowExecutionInfo) *info, struct arena *arena);

#endif
