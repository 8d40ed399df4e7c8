/* dynamic_race_test.c - values are read on real threads while they are replaced: for TSan and ASan.
 *
 * What simulation cannot see: whether the swap publishes all of a set, and whether an old one is
 * freed under somebody's eyes. Readers hold a text until they yield, which is as long as they may.
 */
#include "base/check.h"
#include "base/test.h"
#include "config/dynamic.h"
#include "fiber/linux/linux.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

#define LOOPS        3
#define REPLACEMENTS 500

struct race {
    struct dynamic *dynamic;
    struct latch readers;  /* on loop 0 */
    bool is_over;          /* atomic */
    uint64_t reads[LOOPS]; /* each written by its loop, read when all have ended */
    int64_t last;
};

struct reader {
    struct loop_message message; /* there to start, back when it has ended */
    struct race *race;
    struct loop *owner_loop;
};

/* A text that was freed, or is not all there yet, is for the sanitizers to see. */
static void
read_once(const struct dynamic *dynamic)
{
    const char *token = dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, NULL);
    check(token[0] == 't' || strcmp(token, "CadenceTeamONLY") == 0);
    size_t length = strlen(token);
    check(length >= 2 && token[length] == '\0');
}

static void
reader_back(struct loop_message *message)
{
    struct reader *reader = container_of(message, struct reader, message);
    latch_done(&reader->race->readers);
}

static void
read_on(void *argument)
{
    struct reader *reader = argument;
    struct race *race = reader->race;
    while (!__atomic_load_n(&race->is_over, __ATOMIC_ACQUIRE)) {
        read_once(race->dynamic);
        race->reads[loop_index(loop_self())]++;
        fiber_yield();
    }
    reader->message.deliver = reader_back;
    loop_post_answer(reader->owner_loop, &reader->message);
}

static void
reader_arrive(struct loop_message *message)
{
    fiber_start("reader", read_on, container_of(message, struct reader, message));
}

static void
run_race(void *argument)
{
    struct race *race = argument;
    struct reader readers[LOOPS];
    latch_init(&race->readers, LOOPS);
    race->dynamic = dynamic_new(NULL);
    for (unsigned i = 0; i < LOOPS; i++) {
        readers[i] = (struct reader){
            .message = {.deliver = reader_arrive}, .race = race, .owner_loop = loop_self()};
        list_init(&readers[i].message.node);
        bool is_posted = loop_post(loop_at(i), &readers[i].message);
        check(is_posted);
    }
    for (int i = 0; i < REPLACEMENTS; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        const char *yaml = arena_format(arena, "history.adminOperationToken: [{value: t%d}]\n", i);
        struct error *err = dynamic_load(race->dynamic, slice_text(yaml), "d.yaml", arena);
        check(err == NULL);
        fiber_yield();
    }
    __atomic_store_n(&race->is_over, true, __ATOMIC_RELEASE);
    latch_wait(&race->readers);
    const char *token = dynamic_text(race->dynamic, DYNAMIC_ADMIN_TOKEN, NULL);
    check(token[0] == 't');
    race->last = token[1] - '0';
    dynamic_free(race->dynamic);
}

TEST(dynamic_race, readers_on_other_threads_see_whole_sets_that_stay_until_they_yield)
{
    struct race race = {0};
    linux_run(&(struct linux_options){.loops = LOOPS, .pool_threads = 1}, run_race, &race);
    EXPECT_EQ(race.last, (REPLACEMENTS - 1) / 100);
    EXPECT(race.reads[0] > 0);
}
