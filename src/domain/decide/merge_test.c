/* merge_test.c - three or four clusters that change the same domains at the same time end up with
 * the same records, whatever happens to their messages.
 *
 * Method: pure records, no store and no server. Clusters take random requests (register, settings,
 * failovers of domains and attributes, taking attributes away, deprecate, delete) and receive each
 * other's messages, as bytes, in one of two ways, chosen by the seed:
 *
 *   any order   a message may come at any time, and any number of times; no deletes
 *   in order    each source's messages come in their order, but the reader falls back now and then
 *               and reads some again, as after a crash; deletes, and names used again
 *
 * Either way, in half of the runs a cluster passes on what it received, as the real ones do. In the
 * others it sends no more than it must: what it was asked for, and a failover version that no
 * message had, which it made when it merged two.
 *
 * In every step the checker looks at what the change did; at the end all messages are delivered,
 * parked ones are tried again, and then the records are compared but for what is each cluster's
 * own; and each domain is where the newest of all moves of it put it, whatever its attributes did
 * meanwhile. Faults that it finds are failover_version_ge and attribute_moves_default. */
#include "domain/test/merge_fixture.h"
#include "wire/message.h"

/* --- messages ----------------------------------------------------------------------------------
 */

static struct error *
decide_packet(struct merge_fixture *merge_fixture, struct node *node, const struct packet *packet,
              struct domain_decision *decision)
{
    ADMIN(ReplicationTask) *task = NULL;
    EXPECT_OK(
        message_decode(merge_fixture->arena, ADMIN_TYPE(replication_task), packet->bytes, &task));
    const ADMIN(DomainTaskAttributes) *attributes = task->domain_task_attributes;
    struct domain_rules rules = rules_of(merge_fixture, node);
    struct domain_moment moment = next_moment(merge_fixture, node);
    struct domain **by_id = find_id(node, attributes->id);
    return domain_decide_replicated(
        find_name(node, attributes->domain->name), by_id == NULL ? NULL : *by_id, attributes,
        sample_names[packet->source], &rules, &moment, merge_fixture->arena, decision);
}

/* Does the record have a failover version that neither the message nor the record before had? */
static bool
makes_version(struct merge_fixture *merge_fixture, struct node *node, const struct packet *packet,
              const struct domain_decision *decision)
{
    if (decision->what != DOMAIN_UPDATED)
        return false;
    ADMIN(ReplicationTask) *task = NULL;
    EXPECT_OK(
        message_decode(merge_fixture->arena, ADMIN_TYPE(replication_task), packet->bytes, &task));
    const struct domain *before = *find_id(node, task->domain_task_attributes->id);
    int64_t version = decision->next->domain->failover_version;
    return version > before->record->domain->failover_version &&
           version > task->domain_task_attributes->failover_version;
}

/* A message that was just handled changes nothing when it comes once more. */
static void
receive(struct merge_fixture *merge_fixture, struct node *node, const struct packet *packet)
{
    struct domain_decision decision = {0};
    struct error *err = decide_packet(merge_fixture, node, packet, &decision);
    if (err != NULL) {
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(
            merge_fixture->is_ordered); /* a name that was used again before its delete was known */
        EXPECT(node->dead_letter_count < DEAD_LETTERS_MAX);
        node->dead_letters[node->dead_letter_count++] = *packet;
        return;
    }
    const char *id =
        decision.next == NULL ? NULL : arena_text(merge_fixture->arena, decision.next->domain->id);
    bool is_replicated = makes_version(merge_fixture, node, packet, &decision) ||
                         (merge_fixture->is_relaying && decision.what != DOMAIN_UNCHANGED);
    store(merge_fixture, node, &decision);
    if (is_replicated)
        announce(merge_fixture, node, id, &decision);
    EXPECT_OK(decide_packet(merge_fixture, node, packet, &decision));
    EXPECT_EQ(decision.what, DOMAIN_UNCHANGED);
}

static void
step_receive(struct merge_fixture *merge_fixture)
{
    struct node *node = &merge_fixture->nodes[below(merge_fixture, (uint64_t)merge_fixture->count)];
    int from = (node->index + 1 + (int)below(merge_fixture, (uint64_t)merge_fixture->count - 1)) %
               merge_fixture->count;
    const struct node *source = &merge_fixture->nodes[from];
    if (source->sent_count == 0)
        return;
    if (!merge_fixture->is_ordered) {
        size_t which =
            (size_t)below(merge_fixture, source->sent_count); /* also one that came already */
        node->is_received[from][which] = true;
        receive(merge_fixture, node, &source->sent[which]);
        return;
    }
    size_t *position = &node->position[from];
    if (below(merge_fixture, 10) == 0) /* as after a crash: some come again */
        *position -= (size_t)below(merge_fixture, *position < 4 ? *position + 1 : 4);
    if (*position < source->sent_count)
        receive(merge_fixture, node, &source->sent[(*position)++]);
}

/* What is still on its way from one to the other; false: nothing. */
static bool
deliver_rest(struct merge_fixture *merge_fixture, struct node *node, int from)
{
    const struct node *source = &merge_fixture->nodes[from];
    bool has_any = false;
    for (size_t i = merge_fixture->is_ordered ? node->position[from] : 0; i < source->sent_count;
         i++) {
        if (!merge_fixture->is_ordered && node->is_received[from][i])
            continue;
        node->is_received[from][i] = has_any = true;
        node->position[from] = i + 1;
        receive(merge_fixture, node, &source->sent[i]);
    }
    return has_any;
}

static void
heal(struct merge_fixture *merge_fixture)
{
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (int i = 0; i < merge_fixture->count * merge_fixture->count; i++) {
            int to = i / merge_fixture->count, from = i % merge_fixture->count;
            goes_on =
                (to != from && deliver_rest(merge_fixture, &merge_fixture->nodes[to], from)) ||
                goes_on;
        }
    }
}

/* A person merges what was parked. */
static void
merge_dead_letters(struct merge_fixture *merge_fixture)
{
    for (int to = 0; to < merge_fixture->count; to++) {
        struct node *node = &merge_fixture->nodes[to];
        size_t count = node->dead_letter_count;
        for (size_t i = 0; i < count; i++)
            receive(merge_fixture, node, &node->dead_letters[i]);
        EXPECT_EQ(node->dead_letter_count, count);
    }
    heal(merge_fixture);
}

/* --- at the end --------------------------------------------------------------------------------
 */

/* The record without what is each cluster's own. */
static struct slice
common_part(const struct domain *domain, struct arena *arena)
{
    STORED(DomainRecord) record = *domain->record;
    record.notification_version = record.failover_notification_version = 0;
    record.last_updated_time = 0;
    record.n_recent_failovers = 0;
    return message_encode(arena, &record.base);
}

static void
expect_same(struct merge_fixture *merge_fixture, struct node *one, struct node *other)
{
    for (size_t i = 0; i < one->known_count; i++) {
        struct domain *domain = one->known[i], **twin = find_id(other, domain->id);
        if (is_deleted(domain)) {
            EXPECT(twin == NULL || is_deleted(*twin));
            continue;
        }
        EXPECT(twin != NULL && !is_deleted(*twin));
        struct slice ours = common_part(domain, merge_fixture->arena);
        struct slice theirs = common_part(*twin, merge_fixture->arena);
        EXPECT_TEXT(sample_print(domain->record->domain->active_clusters, merge_fixture->arena),
                    sample_print((*twin)->record->domain->active_clusters, merge_fixture->arena));
        EXPECT_EQ(domain->record->domain->failover_version,
                  (*twin)->record->domain->failover_version);
        EXPECT(slice_equal(ours, theirs));
    }
}

/* Every failover of a domain that is still there is in every history, also when messages overtake
 * each other. */
static void
expect_histories(struct merge_fixture *merge_fixture)
{
    for (size_t i = 0; i < merge_fixture->made_count; i++) {
        const struct entry *made = &merge_fixture->made[i];
        for (int n = 0; n < merge_fixture->count; n++) {
            struct node *node = &merge_fixture->nodes[n];
            struct domain **domain = find_id(node, made->domain_id);
            if (domain != NULL && !is_deleted(*domain) &&
                !has_entry(node->history, node->history_count, made->domain_id,
                           made->failover_version))
                TEST_FAIL("%s lacks failover %lld", sample_names[n],
                          (long long)made->failover_version);
        }
    }
}

/* The greatest version that moved the domain itself. */
static int64_t
newest_move(const struct merge_fixture *merge_fixture, const char *domain_id)
{
    int64_t newest = -1;
    for (size_t i = 0; i < merge_fixture->moved_count; i++) {
        if (strcmp(merge_fixture->moved[i].domain_id, domain_id) == 0 &&
            merge_fixture->moved[i].failover_version > newest)
            newest = merge_fixture->moved[i].failover_version;
    }
    return newest;
}

/* Nobody undid a move but who moved the domain as well. */
static void
expect_places(struct merge_fixture *merge_fixture)
{
    const struct node *node = &merge_fixture->nodes[0]; /* the others have the same */
    for (size_t i = 0; i < node->known_count; i++) {
        const struct domain *domain = node->known[i];
        if (is_deleted(domain))
            continue;
        int64_t newest = newest_move(merge_fixture, domain->id);
        const struct cluster *cluster =
            cluster_group_of_version(rules_of(merge_fixture, node).group, newest);
        EXPECT(cluster != NULL);
        EXPECT_TEXT(domain->record->domain->active_cluster_name, cluster->name);
        EXPECT_EQ(domain_record_moved_version(domain->record), newest);
    }
}

static void
merge_fixture_drop(struct merge_fixture *merge_fixture)
{
    for (int n = 0; n < merge_fixture->count; n++) {
        for (size_t i = 0; i < merge_fixture->nodes[n].known_count; i++)
            domain_drop(merge_fixture->nodes[n].known[i]);
    }
    arena_free(merge_fixture->arena);
}

static void
run(uint64_t seed)
{
    struct arena *arena = arena_new(0);
    struct merge_fixture *merge_fixture = arena_make(arena, struct merge_fixture);
    merge_fixture->arena = arena;
    merge_fixture->is_ordered = seed % 2 == 0;
    merge_fixture->is_relaying = seed / 2 % 2 == 0;
    merge_fixture->count = 3 + (int)(seed / 4 % 2);
    merge_fixture->nodes =
        arena_zalloc(arena, (size_t)merge_fixture->count, sizeof *merge_fixture->nodes);
    make_group(merge_fixture);
    random_seed(&merge_fixture->random, seed);
    for (int n = 0; n < merge_fixture->count; n++)
        merge_fixture->nodes[n].index = n;
    for (int i = 0; i < STEPS; i++) {
        if (below(merge_fixture, 2) == 0)
            step_request(merge_fixture);
        else
            step_receive(merge_fixture);
    }
    heal(merge_fixture);
    merge_dead_letters(merge_fixture);
    for (int n = 1; n < merge_fixture->count; n++) {
        expect_same(merge_fixture, &merge_fixture->nodes[0], &merge_fixture->nodes[n]);
        expect_same(merge_fixture, &merge_fixture->nodes[n], &merge_fixture->nodes[0]);
    }
    expect_histories(merge_fixture);
    expect_places(merge_fixture);
    merge_fixture_drop(merge_fixture);
}

TEST(merge, clusters_agree_in_the_end_whatever_happens_to_their_messages)
{
    for (int i = 0; i < test_seed_count(); i++) {
        for (uint64_t kind = 0; kind < 8; kind++)
            run(8 * test_seed(i) + kind);
    }
}
