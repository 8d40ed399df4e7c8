/* failover_preview.c - what a managed failover or rebalance would do: the plan is read as the
 * workflow reads it, and the domains of the server are asked by the same rule. See failover.h. */
#include "cli/domain/domain_show.h"
#include "cli/failover/failover.h"
#include "cli/output/table.h"

/* The domains that the plan would move. Yields. */
static struct error *
failover_find_moves(struct cli_call *call, const struct failover_plan *plan,
                    struct managed_moves *moves)
{
    struct managed_params params;
    struct domain_list list = {0};
    struct error *err =
        managed_read_params(slice_text(plan->input), plan->kind, call->arena, &params);
    if (err == NULL)
        err = cli_list_domains(call, &list);
    if (err != NULL)
        return err;
    moves->count = 0;
    moves->all = arena_zalloc(call->arena, list.count + 1, sizeof moves->all[0]);
    for (size_t i = 0; i < list.count; i++)
        moves->count += managed_pick(plan->kind, &params, list.items[i], call->arena,
                                     &moves->all[moves->count]);
    return NULL;
}

static const char *
show_how(const struct managed_move *move, struct arena *arena)
{
    return move->timeout == 0
               ? "at once"
               : arena_format(arena, "gracefully, within %llds", (long long)move->timeout);
}

/* A domain has a row for itself and one for each cluster attribute that goes. */
static void
print_moves(const struct managed_moves *moves, struct arena *arena)
{
    struct table table = {.columns = 5, .arena = arena};
    table_add(&table, "DOMAIN", "WHAT", "FROM", "TO", "HOW");
    for (size_t i = 0; i < moves->count; i++) {
        const struct managed_move *move = &moves->all[i];
        const char *name = show_text(move->domain, arena), *how = show_how(move, arena);
        if (move->target[0] != '\0')
            table_add(&table, name, "domain", show_text(move->previous, arena),
                      show_text(move->target, arena), how);
        for (size_t k = 0; k < move->attribute_count; k++) {
            const struct managed_attribute *one = &move->attributes[k];
            table_add(&table, name,
                      show_text(arena_format(arena, "%s.%s", one->scope, one->name), arena),
                      show_text(one->previous, arena), show_text(one->target, arena), how);
        }
    }
    cli_print("%s%zu domains would move.\n", moves->count == 0 ? "" : table_text(&table),
              moves->count);
}

static json_t *
moves_json(const struct managed_moves *moves)
{
    json_t *all = json_array();
    for (size_t i = 0; i < moves->count; i++) {
        const struct managed_move *move = &moves->all[i];
        json_t *attributes = json_array();
        for (size_t k = 0; k < move->attribute_count; k++) {
            const struct managed_attribute *one = &move->attributes[k];
            json_array_append_new(attributes,
                                  json_pack("{s:s, s:s, s:s, s:s}", "scope", one->scope, "name",
                                            one->name, "from", one->previous, "to", one->target));
        }
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:I, s:o}", "domain", move->domain, "from",
                                        move->previous, "to", move->target, "timeoutSeconds",
                                        (json_int_t)move->timeout, "attributes", attributes));
    }
    return all;
}

struct error *
failover_preview(struct cli_call *call, const struct failover_plan *plan)
{
    struct managed_moves moves;
    struct error *err = failover_find_moves(call, plan, &moves);
    if (err != NULL)
        return err;
    if (call->as_json)
        cli_print_json(moves_json(&moves));
    else
        print_moves(&moves, call->arena);
    return NULL;
}
