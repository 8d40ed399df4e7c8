/* priority_test.c - the queue against a search through all nodes, and with a million timers. */
#include "base/priority.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"

enum { NODES = 300 };

static struct priority_node *
model_first(struct priority_node *nodes)
{
    struct priority_node *best = NULL;
    for (int i = 0; i < NODES; i++) {
        struct priority_node *node = &nodes[i];
        if (!priority_is_queued(node))
            continue;
        if (best == NULL || node->key < best->key ||
            (node->key == best->key && node->sequence < best->sequence))
            best = node;
    }
    return best;
}

/* Which nodes are queued is known from the calls, not from the queue. */
static void
step(struct random *random, struct priority *queue, struct priority_node *nodes, bool *is_queued)
{
    size_t at = random_below(random, NODES);
    struct priority_node *node = &nodes[at];
    struct priority_node *first = model_first(nodes);
    if (random_below(random, 4) == 0) {
        EXPECT(priority_pop(queue) == first);
        if (first != NULL)
            is_queued[first - nodes] = false;
    } else if (is_queued[at]) {
        priority_remove(queue, node);
        is_queued[at] = false;
    } else {
        node->key = (int64_t)random_below(random, 50) - 25; /* few keys: the sequence decides */
        node->sequence = random_next(random);
        priority_push(queue, node);
        is_queued[at] = true;
    }
}

TEST(priority, the_first_is_always_the_smallest_by_key_and_sequence)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        struct priority queue = {0};
        struct priority_node nodes[NODES] = {0};
        bool is_queued[NODES] = {0};
        for (int i = 0; i < 20000; i++) {
            step(&random, &queue, nodes, is_queued);
            EXPECT(priority_first(&queue) == model_first(nodes));
            size_t count = 0;
            for (int j = 0; j < NODES; j++) {
                EXPECT(priority_is_queued(&nodes[j]) == is_queued[j]);
                count += is_queued[j];
            }
            EXPECT_EQ(queue.count, count);
        }
        priority_free(&queue);
        EXPECT(model_first(nodes) == NULL);
    }
}

TEST(priority, a_million_timers_come_out_in_order_after_half_were_cancelled)
{
    const size_t count = 1000000;
    struct random random;
    random_seed(&random, 1);
    struct priority queue = {0};
    struct priority_node *nodes = memory_zalloc(count, sizeof *nodes);
    for (size_t i = 0; i < count; i++) {
        nodes[i].key = (int64_t)random_below(&random, 10000);
        nodes[i].sequence = i;
        priority_push(&queue, &nodes[i]);
    }
    for (size_t i = 0; i < count; i += 2)
        priority_remove(&queue, &nodes[i]);
    struct priority_node *before = priority_pop(&queue);
    size_t popped = 1;
    for (struct priority_node *node; (node = priority_pop(&queue)) != NULL; before = node) {
        EXPECT(before->key < node->key ||
               (before->key == node->key && before->sequence < node->sequence));
        EXPECT(node->sequence % 2 == 1);
        popped++;
    }
    EXPECT_EQ(popped, count / 2);
    memory_free(nodes);
    priority_free(&queue);
}
