/* target.h - what decisions that aim at something outside the run have in common: a domain, a list,
 * a workflow id. */
#ifndef CADENZA_ENGINE_COMMAND_TARGET_H
#define CADENZA_ENGINE_COMMAND_TARGET_H

#include "engine/command/inside.h"

/* The domain that a decision names; "" is the run's own. NULL: it was refused, because there is no
 * such domain (`unknown` is a format with its name) or the run may not aim at it. */
const struct domain *target_find_domain(struct decision_list *decision_list, const char *name,
                                        API(DecisionTaskFailedCause) cause, const char *unknown);
/* The list that a decision names, or the run's own. NULL: it was refused. */
API(TaskList) *target_choose_list(struct decision_list *decision_list,
                                  const API(TaskList) *requested,
                                  API(DecisionTaskFailedCause) cause);
bool target_is_longer(const struct decision_list *decision_list, const char *text,
                      enum dynamic_key limit);
/* What is wrong with the names of a workflow elsewhere; NULL: nothing. */
const char *target_find_fault(const struct decision_list *decision_list, const char *domain,
                              const API(WorkflowExecution) *execution);

#endif
