/* kill_test.c - kill -9 in the middle of a storm of domain changes: every acknowledged change is
 * there afterwards.
 *
 * What is at stake: an answer leaves only when its commit is on the disk, and the notification
 * version counts each write once. Method: the real binary, 32 connections that register or update
 * domains; after a random number of answers the process is killed. Then the data folder is opened
 * here and compared with what was answered. Many times on the same folder, so that every round also
 * checks all rounds before it. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"
#include "base/text.h"
#include "kill.h"

/* --- registrations ------------------------------------------------------------------------------
 */

#define SYSTEM_DOMAINS  3 /* that a server registers at its first start */
#define REGISTER_ROUNDS 50
#define REGISTERED      1000 /* names of a round */

struct registrations {
    unsigned next; /* name of this round */
    uint8_t acknowledged[REGISTER_ROUNDS][REGISTERED];
};

static bool
register_next(struct kill_storm *storm, unsigned worker, struct grpc_client *client,
              struct arena *arena, struct error **err)
{
    struct registrations *all = storm->context;
    if (all->next == REGISTERED)
        return false;
    unsigned number = all->next++;
    *err = kill_register(client, arena_format(arena, "r%d-%u", storm->round, number), arena);
    all->acknowledged[storm->round][number] = *err == NULL;
    return true;
}

static void
verify_registrations(struct kill_storm *storm, const struct domains *domains, struct arena *arena)
{
    struct registrations *all = storm->context;
    for (int r = 0; r <= storm->round; r++) {
        for (unsigned i = 0; i < REGISTERED; i++) {
            char name[32];
            snprintf(name, sizeof name, "r%d-%u", r, i);
            if (all->acknowledged[r][i] && domains_find_name(domains, name) == NULL)
                TEST_FAIL("round %d: %s was acknowledged and is lost", storm->round, name);
        }
    }
    /* Each registration is one write: as many domains as the counter says. */
    EXPECT_EQ(domains_count(domains), domains_notification_version(domains));
}

TEST(kill, fifty_kills_lose_no_acknowledged_domain_and_leave_no_gap_in_the_counter)
{
    static const struct kill_work work = {register_next, verify_registrations};
    struct random random;
    random_seed(&random, test_seed(test_seed_count() - 1));
    struct registrations *all = memory_zalloc(1, sizeof *all);
    struct kill_storm storm;
    kill_open(&storm, &work, all);
    for (int i = 0; i < REGISTER_ROUNDS; i++) {
        all->next = 0;
        kill_round(&storm, 1 + (unsigned)random_below(&random, REGISTERED - KILL_CONNECTIONS));
    }
    kill_close(&storm);
    memory_free(all);
}

/* --- updates ------------------------------------------------------------------------------------
 */

#define UPDATE_ROUNDS 15
#define UPDATED       200
#define ANSWERS_MAX   4000 /* of a round */

struct updated_domain {
    bool is_registered;
    uint32_t tried, acknowledged; /* descriptions: numbers that count up */
};

struct updates {
    struct updated_domain domains[UPDATED];
    unsigned next[KILL_CONNECTIONS]; /* what the worker takes next */
    uint64_t written;                /* changes that were acknowledged, each one write */
};

/* A domain belongs to one worker, which has one call in the air: so its descriptions come in order.
 */
static bool
update_next(struct kill_storm *storm, unsigned worker, struct grpc_client *client,
            struct arena *arena, struct error **err)
{
    struct updates *all = storm->context;
    unsigned number = worker + KILL_CONNECTIONS * all->next[worker]++;
    if (number >= UPDATED) {
        all->next[worker] = 1;
        number = worker;
    }
    struct updated_domain *domain = &all->domains[number];
    const char *name = arena_format(arena, "d%u", number);
    if (!domain->is_registered) {
        *err = kill_register(client, name, arena);
        all->written += *err == NULL;
        if (*err != NULL && (*err)->kind == ERR_DOMAIN_ALREADY_EXISTS && storm->round > 0)
            *err = NULL; /* it landed in a round before, unheard */
        domain->is_registered = *err == NULL;
    } else {
        uint32_t sequence = ++domain->tried;
        *err = kill_describe_as(client, name, arena_format(arena, "%u", sequence), arena);
        all->written += *err == NULL;
        if (*err == NULL)
            domain->acknowledged = sequence;
    }
    return true;
}

static void
verify_updates(struct kill_storm *storm, const struct domains *domains, struct arena *arena)
{
    struct updates *all = storm->context;
    for (unsigned i = 0; i < UPDATED; i++) {
        const struct updated_domain *expected = &all->domains[i];
        const struct domain *domain = domains_find_name(domains, arena_format(arena, "d%u", i));
        if (expected->is_registered && domain == NULL)
            TEST_FAIL("round %d: d%u was acknowledged and is lost", storm->round, i);
        if (domain == NULL)
            continue;
        uint64_t sequence = 0;
        struct slice text = slice_text(domain->record->domain->description);
        EXPECT(text.length == 0 || text_parse_uint64(text, 0, UINT32_MAX, &sequence));
        if (sequence < expected->acknowledged || sequence > expected->tried)
            TEST_FAIL("round %d: d%u has description %llu; acknowledged %u, tried %u", storm->round,
                      i, (unsigned long long)sequence, expected->acknowledged, expected->tried);
    }
    uint64_t counted = domains_notification_version(domains);
    EXPECT(counted >= all->written + SYSTEM_DOMAINS);
    EXPECT(counted <= all->written + storm->in_doubt + SYSTEM_DOMAINS);
}

TEST(kill, fifteen_kills_lose_no_acknowledged_update_and_leave_no_gap_in_the_counter)
{
    static const struct kill_work work = {update_next, verify_updates};
    struct random random;
    random_seed(&random, test_seed(test_seed_count() - 1));
    struct updates *all = memory_zalloc(1, sizeof *all);
    struct kill_storm storm;
    kill_open(&storm, &work, all);
    for (int i = 0; i < UPDATE_ROUNDS; i++)
        kill_round(&storm, 1 + (unsigned)random_below(&random, ANSWERS_MAX));
    kill_close(&storm);
    memory_free(all);
}
