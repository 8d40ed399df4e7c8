/* recovery.c - see recovery.h. The order is that of design/031: domains, runs, versions, the mark.
 * What fails is done again by the next round of who follows the runs; a crash begins anew. */
#include "server/recovery.h"

#include "base/check.h"
#include "engine/replicated.h"
#include "fiber/probe.h"
#include "route/owner.h"

void
recovery_init(struct recovery *recovery, struct store *store, const struct cluster_group *group,
              const struct log *log)
{
    static const char *const words[] = {
        [STORE_RESTORED] = "restored from a backup",
        [STORE_COPIED] = "not where it was written: a copy, perhaps an old one",
    };
    enum store_memory memory = store_memory(store);
    *recovery = (struct recovery){.store = store, .group = group, .log = log};
    recovery->is_needed = memory != STORE_WHOLE && cluster_group_has_peers(group);
    if (!recovery->is_needed)
        return;
    probe("member_lost_memory");
    log_warn(log,
             "This cluster lost memory. It decides nothing for global domains until it has read "
             "from every other cluster what it had.",
             log_text("store", words[memory]));
}

bool
recovery_is_needed(const struct recovery *recovery)
{
    return recovery->is_needed;
}

static struct error *
set_whole(struct recovery *recovery, struct arena *arena)
{
    struct error *err = store_set_whole(recovery->store, arena);
    return err == NULL ? NULL : error_wrap(err, "recording that the store is whole");
}

void
recovery_follow(struct recovery *recovery, struct runs_in *runs_in)
{
    check(route_is_here(owner_of_domains()) && recovery->runs_in == NULL);
    recovery->runs_in = runs_in;
    if (recovery->has_domains)
        runs_in_read_past(runs_in);
    if (recovery->is_needed || store_memory(recovery->store) == STORE_WHOLE)
        return;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = set_whole(recovery, arena); /* nobody can know what it lost */
    if (err != NULL)
        log_warn(recovery->log, "The store stays marked as one that lost memory.", log_error(err));
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

static int64_t
heard_of(void *context, const char *domain_id)
{
    const struct recovery *recovery = context;
    return runs_in_heard(recovery->runs_in, domain_id);
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
        err = engine_show_runs_again(recovery->engine, arena);
        if (err == NULL)
            err = domains_recover(recovery->domains, heard_of, recovery, arena);
    }
    if (err == NULL)
        err = set_whole(recovery, arena);
    if (err != NULL)
        return err;
    probe("member_recovered");
    log_info(recovery->log, "This cluster has read what it lost, as far as the others have it, and "
                            "goes on. What it had acknowledged and not replicated is lost.");
    return NULL;
}
