/* forced_text.c - what came of a failover by force. See domain_show.h.
 *
 * What moved is found by comparing the domain before and after: naming the cluster in which
 * something is active already is not an error, and moves nothing. */
#include <string.h>

#include "base/buffer.h"
#include "cli/domain/domain_show.h"
#include "cli/output/table.h"
#include "domain/attributes.h"

#define LINES_MAX 20

/* One thing that was asked to move, before and after. */
struct move_report {
    const char *what;
    const char *cluster; /* where it is now */
    bool is_known;       /* and where it was is known too */
    bool has_moved;
    bool was_draining; /* it was on its way there gracefully */
};

static bool
is_draining(const API(Domain) *domain, const char *scope, const char *name)
{
    const API(FailoverInfo) *info = domain->failover_info;
    for (size_t i = 0; info != NULL && i < info->n_moves; i++) {
        const API(ClusterAttribute) *moves = info->moves[i]->cluster_attribute;
        if (scope == NULL ? moves == NULL
                          : moves != NULL && strcmp(moves->scope, scope) == 0 &&
                                strcmp(moves->name, name) == 0)
            return true;
    }
    return info != NULL && info->n_moves == 0 && scope == NULL;
}

static void
append_line(struct buffer *text, const struct move_report *move_report)
{
    if (move_report->has_moved)
        buffer_append_format(text, "%s successfully failed over to %s.\n", move_report->what,
                             move_report->cluster);
    else if (move_report->was_draining)
        buffer_append_format(
            text, "%s is active in %s; the graceful failover that was in progress has ended.\n",
            move_report->what, move_report->cluster);
    else if (move_report->is_known)
        buffer_append_format(text, "%s was active in %s already; nothing was changed.\n",
                             move_report->what, move_report->cluster);
    else
        buffer_append_format(text, "%s is active in %s.\n", move_report->what,
                             move_report->cluster);
}

static struct move_report
make_domain_report(const API(Domain) *before, const API(Domain) *after, struct arena *arena)
{
    struct move_report move_report = {
        .what = arena_format(arena, "Domain %s", show_text(after->name, arena)),
        .cluster = show_text(after->active_cluster_name, arena),
        .is_known = before != NULL,
    };
    move_report.has_moved =
        before != NULL && strcmp(before->active_cluster_name, after->active_cluster_name) != 0;
    move_report.was_draining = before != NULL && is_draining(before, NULL, NULL);
    return move_report;
}

static struct move_report
make_attribute_report(const struct attribute *attribute, const API(Domain) *before,
                      const API(Domain) *after, struct arena *arena)
{
    struct attributes old = attributes_read(before == NULL ? NULL : before->active_clusters, arena);
    struct attributes new = attributes_read(after->active_clusters, arena);
    const struct attribute *from = attributes_find(&old, attribute->scope, attribute->name);
    const struct attribute *to = attributes_find(&new, attribute->scope, attribute->name);
    struct move_report move_report = {
        .what = arena_format(arena, "%s.%s of domain %s", show_text(attribute->scope, arena),
                             show_text(attribute->name, arena), show_text(after->name, arena)),
        .cluster = show_text(to == NULL ? "no cluster" : to->cluster_name, arena),
        .is_known = before != NULL,
    };
    move_report.has_moved = before != NULL && to != NULL &&
                            (from == NULL || from->failover_version != to->failover_version);
    move_report.was_draining =
        before != NULL && is_draining(before, attribute->scope, attribute->name);
    return move_report;
}

bool
domain_has_moved(const struct domain_moves *moves)
{
    const API(Domain) *before = moves->before;
    return before == NULL || before->failover_version != moves->after->failover_version ||
           before->failover_info != NULL;
}

const char *
domain_show_moves(const struct domain_moves *moves, struct arena *arena)
{
    struct buffer text = {0};
    struct attributes wanted = attributes_read(moves->attributes, arena);
    if (moves->moves_domain) {
        struct move_report move_report = make_domain_report(moves->before, moves->after, arena);
        append_line(&text, &move_report);
    }
    for (size_t i = 0; i < wanted.count && i < LINES_MAX; i++) {
        struct move_report move_report =
            make_attribute_report(&wanted.all[i], moves->before, moves->after, arena);
        append_line(&text, &move_report);
    }
    if (wanted.count > LINES_MAX)
        buffer_append_format(&text,
                             "%zu more attributes were named; cadenza domain describe "
                             "--domain %s shows where they are.\n",
                             wanted.count - LINES_MAX, show_text(moves->after->name, arena));
    const char *kept = arena_text_of(arena, buffer_slice(&text));
    buffer_free(&text);
    return kept;
}
