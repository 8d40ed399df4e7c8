/* active_test.c - who is active: every kind of domain, asked in every cluster. */
#include "domain/active.h"

#include "base/test.h"
#include "domain/test/samples.h"
#include "wire/message.h"

struct question {
    const char *what;
    bool is_global;
    const char *active_cluster; /* of the domain, with this version: */
    int64_t failover_version;
    bool is_graceful;       /* a failover to the active cluster is on its way */
    const char *attributes; /* of the domain, NULL: none */
    struct cluster_attribute asked;
    /* the answer */
    const char *cluster;
    int64_t version;
    enum active_status in[3]; /* seen in east, west, north */
};

#define HERE      ACTIVE_HERE
#define ELSEWHERE ACTIVE_ELSEWHERE
#define PENDING   ACTIVE_PENDING
#define UNKNOWN   ACTIVE_UNKNOWN_ATTRIBUTE
#define CITIES    "city.a:east=10,city.b:west=21,region.a:north=32"

/* Seed example of an active-active domain: default active in the third cluster at 52, cities with
 * versions of their own. */
static const struct question questions[] = {
    {"a local domain is active where it is",
     false,
     "east",
     -24,
     false,
     NULL,
     {NULL, NULL},
     "east",
     -24,
     {HERE, HERE, HERE}},
    {"a local domain has no attributes",
     false,
     "east",
     -24,
     false,
     NULL,
     {"city", "a"},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
    {"a global domain is active in one cluster",
     true,
     "west",
     11,
     false,
     NULL,
     {NULL, NULL},
     "west",
     11,
     {ELSEWHERE, HERE, ELSEWHERE}},
    {"a graceful failover is pending where it goes to",
     true,
     "west",
     11,
     true,
     NULL,
     {NULL, NULL},
     "west",
     11,
     {ELSEWHERE, PENDING, ELSEWHERE}},
    {"an active-passive domain has no attributes",
     true,
     "west",
     11,
     false,
     NULL,
     {"city", "a"},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
    {"without an attribute the domain decides",
     true,
     "north",
     52,
     false,
     CITIES,
     {NULL, NULL},
     "north",
     52,
     {ELSEWHERE, ELSEWHERE, HERE}},
    {"an attribute decides alone",
     true,
     "north",
     52,
     false,
     CITIES,
     {"city", "a"},
     "east",
     10,
     {HERE, ELSEWHERE, ELSEWHERE}},
    {"another one is elsewhere",
     true,
     "north",
     52,
     false,
     CITIES,
     {"city", "b"},
     "west",
     21,
     {ELSEWHERE, HERE, ELSEWHERE}},
    {"scopes are apart",
     true,
     "north",
     52,
     false,
     CITIES,
     {"region", "a"},
     "north",
     32,
     {ELSEWHERE, ELSEWHERE, HERE}},
    {"a graceful failover of the domain leaves attributes alone",
     true,
     "north",
     52,
     true,
     CITIES,
     {"region", "a"},
     "north",
     32,
     {ELSEWHERE, ELSEWHERE, HERE}},
    {"a name that is not there",
     true,
     "north",
     52,
     false,
     CITIES,
     {"city", "c"},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
    {"a scope that is not there",
     true,
     "north",
     52,
     false,
     CITIES,
     {"town", "a"},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
    {"an empty scope is one that is not there",
     true,
     "north",
     52,
     false,
     CITIES,
     {"", ""},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
    {"a scope without a name",
     true,
     "north",
     52,
     false,
     CITIES,
     {"city", NULL},
     "",
     -1,
     {UNKNOWN, UNKNOWN, UNKNOWN}},
};

static struct domain *
domain_of(const struct question *question, struct arena *arena)
{
    STORED(DomainRecord) *record =
        STORED_NEW(arena, domain_record, .format = DOMAIN_RECORD_FORMAT,
                   .domain = API_NEW(arena, domain, .id = "id", .name = "orders",
                                     .is_global_domain = question->is_global,
                                     .active_cluster_name = (char *)question->active_cluster,
                                     .failover_version = question->failover_version));
    if (question->is_graceful)
        sample_drain(record, question->failover_version, arena);
    if (question->attributes != NULL)
        record->domain->active_clusters = sample_attributes(question->attributes, arena);
    return domain_from_record(record);
}

static void
expect_answer(const struct question *question, const struct domain *domain, int current)
{
    struct active_cluster active = domain_active(domain, &question->asked, sample_group(current));
    if (active.status != question->in[current] || active.failover_version != question->version ||
        strcmp(active.cluster_name, question->cluster) != 0)
        TEST_FAIL("%s: in %s the answer is status %d, cluster '%s', version %lld", question->what,
                  sample_names[current], active.status, active.cluster_name,
                  (long long)active.failover_version);
}

TEST(active, every_question_has_its_answer_in_every_cluster)
{
    for (size_t i = 0; i < array_length(questions); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct domain *domain = domain_of(&questions[i], arena);
        for (int current = EAST; current <= NORTH; current++)
            expect_answer(&questions[i], domain, current);
        domain_drop(domain);
    }
}

/* Two clusters that both think they may write would fork histories. */
TEST(active, at_most_one_cluster_may_mutate_what_is_global)
{
    for (size_t i = 0; i < array_length(questions); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct domain *domain = domain_of(&questions[i], arena);
        int writers = 0;
        for (int current = EAST; current <= NORTH; current++)
            writers += domain_active(domain, &questions[i].asked, sample_group(current)).status ==
                       ACTIVE_HERE;
        EXPECT(writers <= 1 || !questions[i].is_global);
        domain_drop(domain);
    }
}

ARENA_TEST(active, no_attribute_at_all_asks_for_the_domain)
{
    struct domain *domain = domain_of(&questions[5], arena);
    struct active_cluster active = domain_active(domain, NULL, sample_group(NORTH));
    EXPECT_EQ(active.status, ACTIVE_HERE);
    EXPECT_EQ(active.failover_version, 52);
    EXPECT(domain_is_active_active(domain));
    domain_drop(domain);
    domain = domain_of(&questions[2], arena);
    EXPECT(!domain_is_active_active(domain));
    domain_drop(domain);
}
