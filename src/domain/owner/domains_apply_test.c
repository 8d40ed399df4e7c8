/* domains_apply_test.c - what comes from another cluster: applied, superseded or parked; and what
 * is remembered of it. */
#include "base/test.h"
#include "domain/test/cluster_pair.h"
#include "fiber/loop.h"
#include "wire/message.h"

/* --- the walk of the fencing document -----------------------------------------------------------
 */

static void
walk(struct cluster_pair *cluster_pair)
{
    for (int i = 0; i < 10; i++) {
        const char *name = arena_format(cluster_pair->arena, "local-%d", i);
        cluster_pair_register(cluster_pair, EAST, name, false);
        cluster_pair_register(cluster_pair, WEST, name, false);
    }
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), 10);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), 10);
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), 11);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), 11);
    for (int i = 10; i < 13; i++)
        cluster_pair_register(cluster_pair, WEST, arena_format(cluster_pair->arena, "local-%d", i),
                              false);
    cluster_pair_replicate(cluster_pair,
                           WEST); /* orders comes back to its origin, and changes nothing */
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), 11);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), 14);

    cluster_pair_failover(cluster_pair, EAST, "orders", WEST);
    cluster_pair_replicate(cluster_pair, EAST);
    const struct domain *east =
        domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders");
    const struct domain *west =
        domains_find_name(cluster_pair_domains(cluster_pair, WEST), "orders");
    EXPECT_EQ(east->record->failover_notification_version, 11);
    EXPECT_EQ(west->record->failover_notification_version, 14);
    EXPECT_EQ(east->record->notification_version, 12);
    EXPECT_EQ(west->record->notification_version, 15);
    struct gauge *shown =
        metrics_gauge(cluster_pair->metrics, "cadence_domain_notification_version", "", NULL);
    EXPECT_EQ(gauge_value(shown), 15);
}

TEST(domain_apply, two_clusters_count_10_10_then_11_11_then_11_14, "D-018", "D-033", "D-034",
     "D-040")
{
    cluster_pair_run(1, walk);
}

/* Seed 003 has a domain test35 that fails over while the counters of its clusters are at 43, 35 and
 * 33: each takes its own counter for the failover, and moves on by one. Two of the three run here.
 */
static void
test35(struct cluster_pair *cluster_pair)
{
    static const int counts[] = {43, 35};
    cluster_pair_register(cluster_pair, EAST, "test35", true);
    cluster_pair_replicate(cluster_pair, EAST);
    for (int side = EAST; side <= WEST; side++) {
        for (int i = 1; i < counts[side]; i++)
            cluster_pair_register(cluster_pair, side,
                                  arena_format(cluster_pair->arena, "local-%d", i), false);
        EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, side)),
                  counts[side]);
    }
    cluster_pair_failover(cluster_pair, EAST, "test35", WEST);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), 44);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)),
              35); /* not heard of yet */
    cluster_pair_replicate(cluster_pair, EAST);
    for (int side = EAST; side <= WEST; side++) {
        const struct domain *domain =
            domains_find_name(cluster_pair_domains(cluster_pair, side), "test35");
        EXPECT_EQ(domain->record->failover_notification_version, counts[side]);
        EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, side)),
                  counts[side] + 1);
    }
}

TEST(domain_apply, a_failover_takes_the_counter_of_each_cluster, "D-040", "D-041")
{
    cluster_pair_run(1, test35);
}

/* --- settings of operators, and of operations ---------------------------------------------------
 */

static struct error *
isolate(struct cluster_pair *cluster_pair, int side, const char *name)
{
    struct arena *arena = cluster_pair->arena;
    ADMIN(UpdateDomainIsolationGroupsRequest) *request = ADMIN_NEW(
        arena, update_domain_isolation_groups_request, .domain = (char *)name,
        .isolation_groups = API_NEW(arena, isolation_group_configuration, .n_isolation_groups = 1,
                                    .isolation_groups = arena_zalloc(arena, 1, sizeof(void *))));
    request->isolation_groups->isolation_groups[0] =
        API_NEW(arena, isolation_group_partition, .name = "zone-1",
                .state = API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED));
    return domains_set_isolation(cluster_pair_domains(cluster_pair, side), request, arena);
}

PAIR_TEST(domain_apply, isolation_groups_are_set_in_the_primary_and_are_replicated,
          cluster_pair_run(1, body), "D-032")
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_KIND(isolate(cluster_pair, EAST, "nobody"), ERR_ENTITY_NOT_EXISTS);
    struct error *err = isolate(cluster_pair, WEST, "orders");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "Cluster is not primary cluster") != NULL);
    EXPECT_OK(isolate(cluster_pair, EAST, "orders"));
    cluster_pair_replicate(cluster_pair, EAST);
    for (int side = EAST; side <= WEST; side++) {
        const struct domain *domain =
            domains_find_name(cluster_pair_domains(cluster_pair, side), "orders");
        EXPECT_EQ(domain->record->config_version, 1);
        EXPECT_EQ(domain->record->domain->isolation_groups->n_isolation_groups, 1);
        EXPECT_TEXT(domain->record->domain->isolation_groups->isolation_groups[0]->name, "zone-1");
    }
    EXPECT_OK(dynamic_load(cluster_pair->dynamic,
                           slice_text("frontend.failoverCoolDown: [{value: 1m}]"), "test",
                           cluster_pair->arena));
    EXPECT_KIND(isolate(cluster_pair, EAST, "orders"), ERR_SERVICE_BUSY);
}

PAIR_TEST(domain_apply, a_migrating_cluster_takes_versions_of_its_new_remainder,
          cluster_pair_run(1, body), "D-047")
{
    struct cluster clusters[CLUSTER_PAIR_GROUP_SIZE];
    struct cluster_group *group = &cluster_pair->side[EAST].group;
    memcpy(clusters, cluster_pair_group, sizeof clusters);
    clusters[WEST].new_initial_failover_version = 7;
    group->clusters = clusters;
    group->current = group->primary = &clusters[EAST];
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_failover(cluster_pair, EAST, "orders", WEST);
    const struct domain *domain =
        domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders");
    EXPECT_EQ(domain->record->domain->failover_version, 1);
    EXPECT_OK(dynamic_load(cluster_pair->dynamic,
                           slice_text("history.useNewInitialFailoverVersion: [{value: true}]"),
                           "test", cluster_pair->arena));
    cluster_pair_failover(cluster_pair, EAST, "orders", EAST);
    cluster_pair_failover(cluster_pair, EAST, "orders", WEST);
    domain = domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders");
    EXPECT_EQ(domain->record->domain->failover_version, 17);
    cluster_pair_reopen(cluster_pair, EAST); /* nothing points to the stack any more */
}

/* --- deletes ------------------------------------------------------------------------------------
 */

static void
look_for_nothing(void *argument)
{
    struct domains *domains = argument;
    EXPECT(domains_find_name(domains, "orders") == NULL);
    EXPECT_EQ(domains_count(domains), 1);
    EXPECT_EQ(domains_notification_version(domains), 4);
}

static void
deletes(struct cluster_pair *cluster_pair)
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_register(cluster_pair, EAST, "bills", false);
    const char *id =
        arena_text(cluster_pair->arena,
                   domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders")->id);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST); /* east has not heard of it */
    cluster_pair_delete(cluster_pair, EAST, "orders");
    for (unsigned i = 0; i < loop_count(); i++)
        EXPECT_OK(loop_call(loop_at(i), look_for_nothing, cluster_pair_domains(cluster_pair, EAST),
                            cluster_pair->arena));
    EXPECT(domains_find_id(cluster_pair_domains(cluster_pair, EAST), id) == NULL);
    cluster_pair_reopen(cluster_pair, EAST);
    look_for_nothing(cluster_pair_domains(cluster_pair, EAST));

    cluster_pair_replicate(cluster_pair, WEST); /* a late failover does not bring it back */
    look_for_nothing(cluster_pair_domains(cluster_pair, EAST));
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "orders") == NULL);
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(strcmp(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "orders")->id, id) !=
           0);
    cluster_pair_reopen(cluster_pair, WEST);
    EXPECT(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "orders") != NULL);
}

TEST(domain_apply, a_deleted_domain_is_gone_on_every_loop_and_late_messages_do_not_bring_it_back)
{
    cluster_pair_run(3, deletes);
}

/* --- positions and dead letters -----------------------------------------------------------------
 */

static int64_t
position_of(struct cluster_pair *cluster_pair, const char *source)
{
    int64_t handled = 0;
    EXPECT_OK(domains_position(cluster_pair_domains(cluster_pair, WEST), source,
                               cluster_pair->arena, &handled));
    return handled;
}

static void
positions(struct cluster_pair *cluster_pair)
{
    struct domains *west = cluster_pair_domains(cluster_pair, WEST);
    EXPECT_EQ(position_of(cluster_pair, "east"), -1);
    EXPECT_OK(domains_set_position(west, "east", 7, cluster_pair->arena));
    EXPECT_EQ(position_of(cluster_pair, "east"), -1); /* nothing to remember in an empty cluster */
    cluster_pair_register(cluster_pair, WEST, "a", false);
    EXPECT_OK(domains_set_position(west, "east", 7, cluster_pair->arena));
    EXPECT_OK(domains_set_position(west, "south", 9, cluster_pair->arena));
    EXPECT_OK(domains_set_position(west, "south", 3, cluster_pair->arena));
    cluster_pair_reopen(cluster_pair, WEST);
    EXPECT_EQ(position_of(cluster_pair, "east"), 7);
    EXPECT_EQ(position_of(cluster_pair, "south"), 3);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), 1);
}

TEST(domain_apply, a_position_is_durable_and_no_change_of_a_domain)
{
    cluster_pair_run(1, positions);
}

static struct domain_dead_letters
letters_of(struct cluster_pair *cluster_pair, uint64_t after, size_t count_max)
{
    struct domain_dead_letters letters;
    EXPECT_OK(domains_read_dead_letters(cluster_pair_domains(cluster_pair, WEST), after, INT64_MAX,
                                        count_max, cluster_pair->arena, &letters));
    uint64_t count = 0;
    EXPECT_OK(domains_count_dead_letters(cluster_pair_domains(cluster_pair, WEST),
                                         cluster_pair->arena, &count));
    EXPECT(after > 0 || letters.has_more || letters.count == count);
    return letters;
}

PAIR_TEST(domain_apply, what_cannot_be_applied_is_one_dead_letter_and_applied_when_it_can_be,
          cluster_pair_run(1, body), "D-049", "D-050")
{
    struct domains *west = cluster_pair_domains(cluster_pair, WEST);
    cluster_pair_register(cluster_pair, WEST, "orders", false);
    cluster_pair_register(cluster_pair, WEST, "bills", false);
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_register(cluster_pair, EAST, "bills", true);
    cluster_pair_register(cluster_pair, EAST, "fine", true);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair->side[EAST].replicated = 0;
    cluster_pair_replicate(cluster_pair, EAST); /* all of it again */
    EXPECT(domains_find_name(west, "fine") != NULL);
    EXPECT_EQ(domains_notification_version(west), 3);
    struct domain_dead_letters letters = letters_of(cluster_pair, 0, 100);
    EXPECT_EQ(letters.count, 2); /* each once */
    EXPECT_EQ(letters.id[0], 1);
    EXPECT_TEXT(letters.letter[0]->source, "east");
    EXPECT(strstr(letters.letter[0]->reason, "orders") != NULL);
    EXPECT(letters_of(cluster_pair, 0, 1).has_more);
    EXPECT_EQ(letters_of(cluster_pair, 1, 1).id[0], 2);

    struct domain_merged merged;
    EXPECT_OK(domains_merge_dead_letters(west, INT64_MAX, cluster_pair->arena, &merged));
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 2); /* nothing has changed */
    EXPECT_EQ(merged.applied, 0);
    EXPECT_EQ(merged.left, 2);
    EXPECT(strstr(merged.reasons, "message 1 of cluster east: ") != NULL);
    EXPECT(strstr(merged.reasons, "message 2 of cluster east: ") != NULL);
    cluster_pair_delete(cluster_pair, WEST, "bills");
    EXPECT_OK(domains_merge_dead_letters(west, INT64_MAX, cluster_pair->arena, &merged));
    EXPECT_EQ(merged.applied, 1);
    EXPECT_EQ(merged.left, 1);
    letters = letters_of(cluster_pair, 0, 100);
    EXPECT_EQ(letters.count, 1);
    EXPECT_EQ(letters.id[0], 1);
    EXPECT(domains_find_name(west, "bills")->record->domain->is_global_domain);

    EXPECT_OK(domains_purge_dead_letters(west, INT64_MAX, cluster_pair->arena));
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 0);
    cluster_pair_reopen(cluster_pair, WEST);
    cluster_pair->side[EAST].replicated = 0;
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).id[0], 3); /* an id never comes back */
    EXPECT_EQ(domains_newest_dead_letter(cluster_pair_domains(cluster_pair, WEST)), 3);
}

/* The name is another domain's in west: what comes of the global one is parked. Then that one is
 * deleted, which cannot be parked: there is nothing to delete, and nothing may be left to revive.
 */
PAIR_TEST(domain_apply, a_dead_letter_does_not_revive_a_domain_that_was_deleted_meanwhile,
          cluster_pair_run(1, body))
{
    cluster_pair_register(cluster_pair, WEST, "orders", false);
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair_delete(cluster_pair, EAST, "orders");
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 2); /* it was made, and deprecated */
    cluster_pair_reopen(cluster_pair, WEST);
    struct domains *west = cluster_pair_domains(cluster_pair, WEST);
    EXPECT(!domains_find_name(west, "orders")->record->domain->is_global_domain);
    cluster_pair_delete(cluster_pair, WEST, "orders");
    struct domain_merged merged;
    EXPECT_OK(domains_merge_dead_letters(west, INT64_MAX, cluster_pair->arena, &merged));
    EXPECT_EQ(merged.applied, 2);
    EXPECT_TEXT(merged.reasons, "");
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 0);
    EXPECT(domains_find_name(west, "orders") == NULL);
    cluster_pair_replicate(cluster_pair, WEST); /* east has buried it already */
    EXPECT(domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders") == NULL);
}

PAIR_TEST(domain_apply, a_dead_letter_is_kept_by_a_cluster_that_never_had_a_domain,
          cluster_pair_run(1, body))
{
    ADMIN(ReplicationTask) *task = ADMIN_NEW(cluster_pair->arena, replication_task);
    EXPECT_OK(
        domains_apply(cluster_pair_domains(cluster_pair, WEST), "east", task, cluster_pair->arena));
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 1);
    cluster_pair_register(cluster_pair, WEST, "a", false);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, WEST, 1, 10).count, 1);
    cluster_pair_reopen(cluster_pair, WEST);
    EXPECT_EQ(letters_of(cluster_pair, 0, 100).count, 1);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, WEST, 1, 10).count, 1);
    EXPECT(cluster_pair_read_log(cluster_pair, WEST, 0, 10).is_cut);
}

/* --- failovers ----------------------------------------------------------------------------------
 */

static struct domain_failovers
list_failovers(struct cluster_pair *cluster_pair, int side, struct slice token, size_t count_max)
{
    struct domain_failovers failovers;
    const char *id = domains_find_name(cluster_pair_domains(cluster_pair, side), "orders")->id;
    EXPECT_OK(domains_list_failovers(cluster_pair_domains(cluster_pair, side), id, token, count_max,
                                     cluster_pair->arena, &failovers));
    return failovers;
}

static void
history(struct cluster_pair *cluster_pair)
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(list_failovers(cluster_pair, EAST, (struct slice){0}, 10).count, 0);
    for (int i = 0; i < 7; i++) /* to west 1, to east 10, to west 11, … */
        cluster_pair_failover(cluster_pair, EAST, "orders", i % 2 == 0 ? WEST : EAST);
    struct slice token = {0};
    int64_t version = 32; /* the newest is 31 */
    size_t seen = 0, pages = 0;
    do {
        struct domain_failovers page = list_failovers(cluster_pair, EAST, token, 3);
        for (size_t i = 0; i < page.count; i++, seen++) {
            EXPECT(page.failover[i]->failover_version < version);
            version = page.failover[i]->failover_version;
        }
        token = page.token;
        pages++;
    } while (token.length > 0);
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(pages, 3);
    EXPECT_EQ(version, 1);

    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair->side[EAST].replicated = 0;
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(list_failovers(cluster_pair, WEST, (struct slice){0}, 100).count, 7);

    struct domain_failovers none;
    const char *id = domains_find_name(cluster_pair_domains(cluster_pair, EAST), "orders")->id;
    static const char *const bad[] = {"x", "12345678", "1234567812345678", "1234567812345678\x01"};
    for (size_t i = 0; i < array_length(bad); i++)
        EXPECT_KIND(domains_list_failovers(cluster_pair_domains(cluster_pair, EAST), id,
                                           slice_text(bad[i]), 3, cluster_pair->arena, &none),
                    ERR_BAD_REQUEST);
    EXPECT_OK(domains_list_failovers(cluster_pair_domains(cluster_pair, EAST), "nobody",
                                     (struct slice){0}, 3, cluster_pair->arena, &none));
    EXPECT_EQ(none.count, 0);
}

TEST(domain_apply, the_history_of_failovers_is_paged_newest_first_and_has_each_once, "D-052")
{
    cluster_pair_run(1, history);
}

/* Both fail over while they cannot hear each other, in the same way: the history has both, once. */
PAIR_TEST(domain_apply, a_failover_that_is_known_is_not_entered_again, cluster_pair_run(1, body))
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST);
    cluster_pair_failover(cluster_pair, EAST, "orders", WEST);
    cluster_pair_failover(cluster_pair, EAST, "orders", EAST);
    uint64_t before = domains_notification_version(cluster_pair_domains(cluster_pair, EAST));
    for (int round = 0; round < 3; round++) {
        cluster_pair->side[WEST].replicated = 0;
        cluster_pair_replicate(cluster_pair, WEST); /* older than what east has */
    }
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), before);
    struct domain_failovers east = list_failovers(cluster_pair, EAST, (struct slice){0}, 100);
    EXPECT_EQ(east.count, 3); /* to east, and twice to west */
    EXPECT_EQ(east.failover[1]->failover_version, east.failover[2]->failover_version);
    EXPECT(east.failover[1]->is_superseded != east.failover[2]->is_superseded);
    EXPECT(strcmp(east.failover[1]->origin, east.failover[2]->origin) != 0);
}

/* East moves the domain to south (2) while west, unheard, takes it for itself (1). */
static void
superseded(struct cluster_pair *cluster_pair)
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST);
    cluster_pair_failover(cluster_pair, EAST, "orders", SOUTH);
    uint64_t before = domains_notification_version(cluster_pair_domains(cluster_pair, EAST));
    for (int round = 0; round < 3; round++) {
        cluster_pair->side[WEST].replicated = 0;
        cluster_pair_replicate(cluster_pair, WEST);
    }
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), before);
    struct domain_failovers east = list_failovers(cluster_pair, EAST, (struct slice){0}, 100);
    EXPECT_EQ(east.count, 2);
    EXPECT_EQ(east.failover[0]->failover_version, 2);
    EXPECT_EQ(east.failover[1]->failover_version, 1);
    EXPECT(!east.failover[0]->is_superseded && east.failover[1]->is_superseded);

    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_TEXT(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "orders")
                    ->record->domain->active_cluster_name,
                "south");
    struct domain_failovers west = list_failovers(cluster_pair, WEST, (struct slice){0}, 100);
    EXPECT_EQ(west.count, 2);
    EXPECT(!west.failover[0]->is_superseded && !west.failover[1]->is_superseded);
}

TEST(domain_apply, a_failover_that_came_too_late_changes_nothing_and_is_entered_once)
{
    cluster_pair_run(1, superseded);
}
