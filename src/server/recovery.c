/* recovery.c - see recovery.h. The order is that of design/031: domains, runs, domains once more,
 * versions, the mark. What fails is done again by the next round of who follows the runs; after a
 * crash all of it is. */
#include "server/recovery.h"

#include <string.h>

#include "base/check.h"
#include "base/vector.h"
#include "engine/replicated.h"
#include "fiber/probe.h"
#include "route/owner.h"

#define PAGE_DOMAINS   256
#define ROUNDS_SKIPPED 1000 /* of versions, when somebody is not asked */

/* --- beginning ---- */

static bool
is_waived(const struct recovery *recovery, const struct cluster *cluster)
{
    for (size_t i = 0; recovery->waived != NULL && recovery->waived[i] != NULL; i++)
        if (strcmp(recovery->waived[i], cluster->name) == 0)
            return true;
    return false;
}

/* The names that the flag has, or those of all others. */
static struct error *
read_waived(struct recovery *recovery, const char *accept_loss, struct arena *arena)
{
    const struct cluster_group *group = recovery->group;
    vector_of(const char *) names = {0};
    bool is_all = strcmp(accept_loss, "all") == 0;
    for (size_t i = 0; is_all && i < group->count; i++)
        if (&group->clusters[i] != group->current)
            vector_push_in(&names, arena, group->clusters[i].name);
    for (char *rest = arena_text(arena, accept_loss), *name; !is_all && rest != NULL;) {
        name = strsep(&rest, ",");
        const struct cluster *cluster = cluster_group_find(group, name);
        if (cluster == NULL || cluster == group->current)
            return error_new(arena, ERR_BAD_REQUEST,
                             "--accept-loss: '%s' is not another cluster of the group; name those "
                             "that are not to be waited for, or say 'all'.",
                             name);
        vector_push_in(&names, arena, cluster->name);
    }
    vector_push_in(&names, arena, NULL);
    recovery->waived = names.items;
    return NULL;
}

struct error *
recovery_init(struct recovery *recovery, struct store *store, const struct cluster_group *group,
              const char *accept_loss, const struct log *log, struct arena *arena)
{
    static const char *const words[] = {
        [STORE_RESTORED] = "restored from a backup",
        [STORE_COPIED] = "not where it was written: a copy, perhaps an old one",
    };
    enum store_memory memory = store_memory(store);
    *recovery = (struct recovery){.store = store, .group = group, .log = log};
    recovery->is_needed = memory != STORE_WHOLE;
    struct error *err = accept_loss == NULL ? NULL : read_waived(recovery, accept_loss, arena);
    if (err != NULL || !recovery->is_needed)
        return err;
    probe("member_lost_memory");
    if (group->count == 1)
        log_warn(log, "The store is not what was written last. What it does not have is lost.",
                 log_text("store", words[memory]));
    else
        log_warn(
            log,
            "This cluster lost memory. It decides nothing for global domains until it has read "
            "from every other cluster what it had.",
            log_text("store", words[memory]));
    return NULL;
}

bool
recovery_is_needed(const struct recovery *recovery)
{
    return recovery->is_needed;
}

/* --- nobody to ask ---- */

static bool
has_somebody_to_ask(const struct recovery *recovery)
{
    const struct cluster_group *group = recovery->group;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        if (cluster != group->current && cluster->is_enabled && !is_waived(recovery, cluster))
            return true;
    }
    return false;
}

/* Are there domains that other clusters have, too? */
static bool
has_shared_domains(const struct domains *domains)
{
    struct domain *found[PAGE_DOMAINS];
    size_t count = 0;
    do {
        const char *last = count == 0 ? "" : found[count - 1]->name;
        count = domains_list(domains, last, found, PAGE_DOMAINS);
        for (size_t i = 0; i < count; i++)
            if (found[i]->is_recovering && found[i]->record->domain->n_clusters > 1)
                return true;
    } while (count == PAGE_DOMAINS);
    return false;
}

static void
go_on_alone(struct recovery *recovery)
{
    if (recovery->waived == NULL && has_shared_domains(recovery->domains)) {
        log_fail(
            recovery->log,
            "This cluster lost memory, and no other one is enabled in its configuration that "
            "could be asked. Domains that others have, too, are not served. Enable the others, "
            "or accept that what was lost stays lost: cadenza server --accept-loss all");
        return;
    }
    scoped(arena_drop) struct arena *arena = arena_new(0);
    recovery->has_domains = true;
    struct error *err = recovery_end(recovery, arena);
    if (err != NULL)
        log_fail(recovery->log, "Going on after memory was lost failed. Start the server again.",
                 log_error(err));
}

/* --- asking ---- */

void
recovery_follow(struct recovery *recovery, struct domains_in *domains_in, struct runs_in *runs_in)
{
    check(route_is_here(owner_of_domains()) && recovery->runs_in == NULL);
    recovery->domains_in = domains_in;
    recovery->runs_in = runs_in;
    if (recovery->has_domains)
        runs_in_read_past(runs_in);
    else if (recovery->is_needed && !has_somebody_to_ask(recovery))
        go_on_alone(recovery);
}

void
recovery_note_domains(void *context)
{
    struct recovery *recovery = context;
    check(route_is_here(owner_of_domains()));
    recovery->has_domains = true;
    if (recovery->runs_in != NULL)
        runs_in_read_past(recovery->runs_in);
}

void
recovery_ask_again(void *context)
{
    struct recovery *recovery = context;
    check(recovery->has_domains);
    if (recovery->domains_in != NULL) /* else the server stops, and begins again when it starts */
        domains_in_ask_again(recovery->domains_in);
}

void
recovery_leave_domains(struct recovery *recovery)
{
    check(route_is_here(owner_of_domains()));
    recovery->domains_in = NULL;
}

/* --- the end ---- */

/* Nobody knows which versions one that is not asked has seen. */
static bool
is_somebody_left_out(const struct recovery *recovery)
{
    const struct cluster_group *group = recovery->group;
    bool is_left_out = false;
    for (size_t i = 0; i < group->count; i++)
        is_left_out =
            is_left_out ||
            (&group->clusters[i] != group->current &&
             (!group->clusters[i].is_enabled || is_waived(recovery, &group->clusters[i])));
    return is_left_out;
}

/* A cluster that knew more changes of domains than there are now would pass over new ones that have
 * the same numbers: each has to have begun again with our log. */
static struct error *
check_followers(const struct recovery *recovery, struct arena *arena)
{
    const struct cluster_group *group = recovery->group;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        bool counts =
            cluster != group->current && cluster->is_enabled && !is_waived(recovery, cluster);
        const char *follower = arena_format(arena, "cluster:%s", cluster->name);
        if (counts && !domains_follower_has_begun(recovery->domains, follower))
            return error_new(arena, ERR_UNAVAILABLE,
                             "Cluster %s has not asked for the changes of domains yet, since this "
                             "one lost memory.",
                             cluster->name);
    }
    return NULL;
}

static struct heard_versions
heard_of(void *context, const char *domain_id)
{
    const struct recovery *recovery = context;
    struct heard_versions heard = runs_in_heard(recovery->runs_in, domain_id);
    heard.rounds_skipped = is_somebody_left_out(recovery) ? ROUNDS_SKIPPED : 0;
    return heard;
}

/* Another cluster may not have what was sent to this one's other peers and lost here since: they
 * all read the runs once more, before anything goes on. */
struct error *
recovery_end(void *context, struct arena *arena)
{
    struct recovery *recovery = context;
    struct error *err = NULL;
    check(recovery->is_needed && recovery->has_domains);
    if (domains_are_recovering(recovery->domains)) {
        err = check_followers(recovery, arena);
        if (err == NULL)
            err = engine_show_runs_again(recovery->engine, arena);
        if (err == NULL)
            err = domains_recover(recovery->domains, heard_of, recovery, arena);
    }
    if (err == NULL)
        err = store_set_whole(recovery->store, arena);
    if (err != NULL)
        return err;
    probe("member_recovered");
    log_info(recovery->log, "This cluster has read what it lost, as far as the others have it, and "
                            "goes on. What it had acknowledged and not replicated is lost.");
    return NULL;
}
