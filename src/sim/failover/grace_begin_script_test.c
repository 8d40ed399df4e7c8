/* grace_begin_script_test.c - what a graceful failover needs before it begins, and what is shown of
 * it while it lasts and afterwards, asked over the wire. */
#include "sim/scripts/script.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT 30 /* seconds */

static API(Domain) *
describe(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
    EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
    fiber_set_deadline(NEVER);
    return domain;
}

static struct error *
ask(struct script *script, unsigned at, const char *to, int64_t timeout)
{
    struct load_call call = {.clients = script->clients, .host = at, .arena = script->arena};
    struct load_failover failover = {.name = SCRIPT_DOMAIN, .cluster = to, .timeout = timeout};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + 10 * NS_PER_S);
    struct error *err = load_failover(&call, &failover, &domain);
    fiber_set_deadline(NEVER);
    return err;
}

static void
await_end(struct script *script, unsigned cluster)
{
    for (int i = 0; i < 2000 && describe(script, cluster)->failover_info != NULL; i++)
        script_sleep(script, 20 * NS_PER_MS);
    EXPECT(describe(script, cluster)->failover_info == NULL);
}

static const API(FailoverEvent) *
newest(struct script *script, unsigned cluster)
{
    API(ListFailoverHistoryResponse) *response =
        SCRIPT_OK(script, cluster, list_failover_history,
                  .filters = API_NEW(script->arena, list_failover_history_request_filters,
                                     .domain_id = (char *)script->domain_id));
    EXPECT(response->n_failover_events > 0);
    return response->failover_events[0];
}

static void
expect_refused(struct error *err, enum error_kind kind, const char *says, const char *names)
{
    EXPECT_KIND(err, kind);
    if (strstr(err->message, says) == NULL || strstr(err->message, names) == NULL)
        TEST_FAIL("the refusal says: %s", err->message);
}

/* --- it may not begin ---- */

static void
play_refusals(struct script *script)
{
    expect_refused(ask(script, 0, "cluster1", TIMEOUT), ERR_BAD_REQUEST,
                   "Cannot start the graceful failover from a to-be-passive cluster.",
                   "--domain " SCRIPT_DOMAIN
                   " domain update --failover_type grace --active_cluster cluster1");
    expect_refused(
        ask(script, 0, "cluster0", TIMEOUT), ERR_BAD_REQUEST,
        "Cannot start the graceful failover from an active cluster to an active cluster.", "");
    script_part(script);
    int64_t before = describe(script, 1)->failover_version;
    expect_refused(ask(script, 1, "cluster1", TIMEOUT), ERR_UNCATEGORISED, /* an internal error */
                   "Failed to verify failover version from all clusters", "cluster0");
    EXPECT_EQ(describe(script, 1)->failover_version, before);
    EXPECT(describe(script, 1)->failover_info == NULL);
    script_failover(script, 1); /* by force it can be done */
    script_heal(script);
    expect_refused(ask(script, 0, "cluster0", TIMEOUT), ERR_BAD_REQUEST,
                   "Concurrent failover is not allowed", "cluster1");
}

TEST(grace_begin, is_refused_unless_every_cluster_answers_and_agrees, "F-002", "F-003", "F-006")
{
    script_play(2, 0, play_refusals);
}

/* --- it is seen ---- */

static void
play_seen(struct script *script)
{
    script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    script_await(script, 1, "w", 4);
    script_crash(script, 2); /* not of the domain: nobody asks it */
    EXPECT_OK(ask(script, 1, "cluster1", TIMEOUT));
    const API(Domain) *domain = describe(script, 1);
    EXPECT_TEXT(domain->active_cluster_name, "cluster1"); /* answered before it is over */
    EXPECT(domain->failover_info != NULL);
    EXPECT_EQ(domain->failover_info->failover_version, domain->failover_version);
    struct maybe_int64 start, end;
    EXPECT_OK(presence_read_timestamp(script->arena, "start",
                                      domain->failover_info->failover_start_timestamp, &start));
    EXPECT_OK(presence_read_timestamp(script->arena, "end",
                                      domain->failover_info->failover_expire_timestamp, &end));
    EXPECT_EQ(end.value - start.value, TIMEOUT * NS_PER_S);
    expect_refused(ask(script, 1, "cluster1", TIMEOUT), ERR_BAD_REQUEST,
                   "Cannot start concurrent graceful failover.", "");
    await_end(script, 1);
    EXPECT_OK(script_signal(script, 1, "w", "go"));
    script_decide(script, 1, NULL, 0);
    const API(FailoverEvent) *event = newest(script, 1);
    EXPECT_EQ(event->failover_type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL));
    EXPECT_EQ(event->n_outcomes, 1);
    EXPECT_TEXT(event->outcomes[0]->result, "complete");
    EXPECT_EQ(event->outcomes[0]->n_missing_shards, 0);
    EXPECT(event->outcomes[0]->shard_count > 0);
    script_expect_same(script, "w");
}

TEST(grace_begin, is_answered_at_once_and_shown_until_it_is_over, "D-014", "F-004", "F-015",
     "F-016")
{
    script_play(3, 2, play_seen);
}

/* --- its time runs out ---- */

static void
play_timeout(struct script *script)
{
    script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    script_await(script, 1, "w", 4);
    EXPECT_OK(ask(script, 1, "cluster1", 2));
    script_part(script); /* no marker comes */
    script_sleep(script, NS_PER_S);
    bool is_pending = describe(script, 1)->failover_info != NULL;
    script_sleep(script, 2 * NS_PER_S);
    EXPECT(describe(script, 1)->failover_info == NULL);
    EXPECT_OK(script_signal(script, 1, "w", "go"));
    if (is_pending) /* else all markers came before the cut */
        EXPECT_TEXT(newest(script, 1)->outcomes[0]->result, "timed out");
    script_heal(script);
    script_decide(script, 1, NULL, 0);
    script_expect_same(script, "w");
}

TEST(grace_begin, becomes_active_at_its_timeout_and_says_so, "F-027", "F-041")
{
    script_play(2, 0, play_timeout);
}
