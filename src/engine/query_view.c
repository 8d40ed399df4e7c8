/* query_view.c - what a query has to know of its run. See engine.h. */
#include "domain/active.h"
#include "engine/branches/history_message.h"
#include "engine/inside.h"
#include "fiber/clock.h"
#include "wire/errors.h"
#include "wire/message.h"

/* A view while it is filled. */
struct query_answer {
    INTERNAL(QueryView) * view;
    bool is_zombie;
};

/* A cluster attribute that the domain does not have is nobody's: then any cluster that is asked
 * answers. */
static void
look_home(const struct served_look *look, const struct run *run, INTERNAL(QueryView) * view)
{
    const struct engine_options *options = &look->engine->options;
    const STORED(RunRecord) *core = run->core;
    const API(ActiveClusterSelectionPolicy) *policy = core->active_cluster_selection_policy;
    const struct domain *domain = domains_find_id(options->domains, core->domain_id);
    struct cluster_attribute attribute = cluster_attribute_of(policy);
    view->is_active_here = true;
    view->active_cluster = "";
    if (domain == NULL)
        return;
    struct active_cluster active =
        domains_active_run(options->domains, domain, &attribute, run_last_version(run));
    view->is_active_here =
        active.status == ACTIVE_HERE || active.status == ACTIVE_UNKNOWN_ATTRIBUTE;
    view->active_cluster = arena_text(look->arena, active.cluster_name);
}

/* The sticky list, if its worker was seen lately enough. */
static const char *
fresh_sticky_list(const struct engine_options *options, const STORED(RunRecord) *core)
{
    const struct domain *domain = domains_find_id(options->domains, core->domain_id);
    if (core->sticky_task_list == NULL)
        return "";
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain == NULL ? "" : domain->name;
    int64_t age = clock_wall() - core->sticky_time;
    bool is_fresh = age <= dynamic_duration(options->dynamic, DYNAMIC_STICKY_TTL, &filter);
    return is_fresh ? core->sticky_task_list->name : "";
}

static void
look_query(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    struct query_answer *answer = look->answer;
    INTERNAL(QueryView) *view = answer->view;
    const STORED(RunRecord) *core = run->core;
    struct history_lineage lineage = run_lineage(run, look->arena);
    const char *list = core->task_list == NULL ? "" : core->task_list->name;
    answer->is_zombie = run_is_zombie(run);
    view->workflow_type = message_new(look->arena, API_TYPE(workflow_type));
    if (core->workflow_type != NULL)
        view->workflow_type->name = arena_text(look->arena, core->workflow_type->name);
    view->run_id = arena_text(look->arena, core->run_id);
    view->lineage = history_lineage_to_message(&lineage, look->arena);
    view->next_event_id = core->next_event_id;
    view->previous_started_id = core->previous_started_event_id;
    view->history_bytes = core->history_bytes;
    view->is_open = run_is_open(run);
    view->has_decision = core->decision != NULL;
    view->close_status = core->close_status;
    view->list = arena_text(look->arena, list);
    view->sticky_list = arena_text(look->arena, fresh_sticky_list(&look->engine->options, core));
    view->sticky_timeout = core->sticky_timeout;
    view->client_name = arena_text(look->arena, core->client_name);
    view->client_feature_version = arena_text(look->arena, core->client_feature_version);
    look_home(look, run, view);
}

static struct error *
serve_view(void *engine, struct owner owner, const void *request, struct arena *arena, void *view)
{
    struct query_answer answer = {.view = view};
    struct error *err = engine_serve_look(engine, owner, request, look_query, arena, &answer);
    if (err != NULL || !answer.is_zombie)
        return err;
    const INTERNAL(RunKey) *key = ((const INTERNAL(RunLook) *)request)->key;
    return errors_entity_not_exists(arena, NULL, /* nobody works on it (E-043) */
                                    "Workflow execution not found.  WorkflowId: %s, RunId: %s",
                                    key->workflow_id, key->run_id);
}

/* Lost: the query fails, and its client asks again. Twice: it only reads. */
static const struct route_question view_question = {
    .name = "shard.query_view",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(query_view),
    .serve = serve_view,
    .may_come_twice = true,
};

static struct query_view
view_from_message(const INTERNAL(QueryView) * message, struct arena *arena)
{
    return (struct query_view){
        .run_id = message->run_id,
        .lineage = history_lineage_from_message(message->lineage, arena),
        .next_event_id = message->next_event_id,
        .previous_started_id = message->previous_started_id,
        .history_bytes = message->history_bytes,
        .is_open = message->is_open,
        .is_active_here = message->is_active_here,
        .active_cluster = message->active_cluster,
        .has_decision = message->has_decision,
        .close_status = message->close_status,
        .workflow_type = message->workflow_type,
        .list = message->list,
        .sticky_list = message->sticky_list,
        .sticky_timeout = message->sticky_timeout,
        .client_name = message->client_name,
        .client_feature_version = message->client_feature_version,
    };
}

struct error *
engine_query_view(struct engine *engine, const struct run_key *key, bool is_strong,
                  struct arena *arena, struct query_view *view)
{
    INTERNAL(QueryView) answer = INTERNAL_VALUE(QUERY_VIEW__INIT);
    struct error *err = (is_strong ? engine_ask_look_surely
                                   : engine_ask_look)(engine, key, &view_question, arena, &answer);
    if (err == NULL)
        *view = view_from_message(&answer, arena);
    return err;
}
