/* failover_words.c - what came of a failover by force. See domain_show.h.
 *
 * What moved is told by comparing the domain before and after: naming the cluster where something
 * is active already is no error, and moves nothing. */
#include <string.h>

#include "base/buffer.h"
#include "cli/domain_show.h"
#include "cli/table.h"
#include "domain/attributes.h"

#define LINES_MAX 20

/* One thing that was asked to move, before and after. */
struct asked {
    const char *what;
    const char *cluster; /* where it is now */
    bool is_known;       /* and where it was is known too */
    bool has_moved;
    bool drained; /* it was on its way there gracefully */
};

static bool
drains(const API(Domain) *domain, const char *scope, const char *name)
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
append_line(struct buffer *text, const struct asked *asked)
{
    if (asked->has_moved)
        buffer_append_format(text, "%s successfully failed over to %s.\n", asked->what,
                             asked->cluster);
    else if (asked->drained)
        buffer_append_format(text,
                             "%s is active in %s: the graceful failover that was under way is "
                             "ended.\n",
                             asked->what, asked->cluster);
    else if (asked->is_known)
        buffer_append_format(text, "%s was active in %s already; nothing was changed.\n",
                             asked->what, asked->cluster);
    else
        buffer_append_format(text, "%s is active in %s.\n", asked->what, asked->cluster);
}

static struct asked
ask_default(const API(Domain) *before, const API(Domain) *after, struct arena *arena)
{
    struct asked asked = {
        .what = arena_format(arena, "Domain %s", show_text(after->name, arena)),
        .cluster = show_text(after->active_cluster_name, arena),
        .is_known = before != NULL,
    };
    asked.has_moved =
        before != NULL && strcmp(before->active_cluster_name, after->active_cluster_name) != 0;
    asked.drained = before != NULL && drains(before, NULL, NULL);
    return asked;
}

static struct asked
ask_attribute(const struct attribute *attribute, const API(Domain) *before,
              const API(Domain) *after, struct arena *arena)
{
    struct attributes old = attributes_read(before == NULL ? NULL : before->active_clusters, arena);
    struct attributes new = attributes_read(after->active_clusters, arena);
    const struct attribute *from = attributes_find(&old, attribute->scope, attribute->name);
    const struct attribute *to = attributes_find(&new, attribute->scope, attribute->name);
    struct asked asked = {
        .what = arena_format(arena, "%s.%s of domain %s", show_text(attribute->scope, arena),
                             show_text(attribute->name, arena), show_text(after->name, arena)),
        .cluster = show_text(to == NULL ? "no cluster" : to->cluster_name, arena),
        .is_known = before != NULL,
    };
    asked.has_moved = before != NULL && to != NULL &&
                      (from == NULL || from->failover_version != to->failover_version);
    asked.drained = before != NULL && drains(before, attribute->scope, attribute->name);
    return asked;
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
        struct asked asked = ask_default(moves->before, moves->after, arena);
        append_line(&text, &asked);
    }
    for (size_t i = 0; i < wanted.count && i < LINES_MAX; i++) {
        struct asked asked = ask_attribute(&wanted.all[i], moves->before, moves->after, arena);
        append_line(&text, &asked);
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
