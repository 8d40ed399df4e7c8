/* dynamic.c - the set of dynamic values in force: reading it, replacing it. See dynamic.h.
 *
 * How an old set is freed: after the swap no loop can find it, but a fiber that read a text from it
 * may not have yielded yet. A message goes to every other loop and comes back; a loop delivers
 * messages between fibers, so when it has, the fiber has yielded. When the last message is back the
 * set goes. */
#include "config/dynamic.h"

#include "base/check.h"
#include "base/memory.h"
#include "config/dynamic_inside.h"
#include "fiber/loop.h"

struct passage {
    struct loop_message message;
    struct retirement *retirement;
    bool is_posted; /* or needs not be: the owner's own loop */
};

struct retirement {
    struct list node; /* of dynamic->retired */
    struct dynamic *dynamic;
    struct dynamic_set *set;
    struct loop *owner_loop;
    unsigned waiting; /* messages that are not back */
    unsigned count;
    struct passage passages[]; /* one per loop */
};

/* --- retiring old sets ---- */

static void
retirement_end(struct retirement *retirement)
{
    struct dynamic *dynamic = retirement->dynamic;
    check(retirement->waiting == 0);
    list_remove(&retirement->node);
    dynamic_set_free(retirement->set);
    memory_free(retirement);
    latch_done(&dynamic->open);
}

/* Back home. */
static void
passage_return(struct loop_message *message)
{
    struct retirement *retirement = container_of(message, struct passage, message)->retirement;
    check(loop_self() == retirement->owner_loop && retirement->waiting > 0);
    if (--retirement->waiting == 0)
        retirement_end(retirement);
}

/* On another loop, between its fibers. */
static void
passage_arrive(struct loop_message *message)
{
    struct passage *passage = container_of(message, struct passage, message);
    check(loop_self() != passage->retirement->owner_loop);
    message->deliver = passage_return;
    loop_post_answer(passage->retirement->owner_loop, message);
}

static void
retirement_post(struct retirement *retirement)
{
    for (unsigned i = 0; i < retirement->count; i++) {
        struct passage *passage = &retirement->passages[i];
        if (!passage->is_posted)
            passage->is_posted = loop_post(loop_at(i), &passage->message);
    }
}

static void
retire(struct dynamic *dynamic, struct dynamic_set *set)
{
    if (set == NULL || !loop_is_here() || loop_count() == 1) {
        dynamic_set_free(set); /* nobody else reads */
        return;
    }
    unsigned count = loop_count();
    struct retirement *retirement =
        memory_zalloc(1, sizeof *retirement + count * sizeof retirement->passages[0]);
    *retirement = (struct retirement){.dynamic = dynamic,
                                      .set = set,
                                      .owner_loop = loop_self(),
                                      .waiting = count - 1,
                                      .count = count};
    for (unsigned i = 0; i < count; i++) {
        retirement->passages[i] = (struct passage){.message = {.deliver = passage_arrive},
                                                   .retirement = retirement,
                                                   .is_posted = loop_at(i) == loop_self()};
        list_init(&retirement->passages[i].message.node);
    }
    list_push_back(&dynamic->retired, &retirement->node);
    latch_add(&dynamic->open, 1);
    retirement_post(retirement);
}

void
dynamic_retry_retired(struct dynamic *dynamic)
{
    list_each(node, &dynamic->retired)
        retirement_post(list_entry(node, struct retirement, node));
}

/* Nobody reads any more: what no message was sent for has passed. */
static void
give_up_posting(struct dynamic *dynamic)
{
    list_each_safe(node, &dynamic->retired) {
        struct retirement *retirement = list_entry(node, struct retirement, node);
        for (unsigned i = 0; i < retirement->count; i++) {
            retirement->waiting -= !retirement->passages[i].is_posted;
            retirement->passages[i].is_posted = true;
        }
        if (retirement->waiting == 0)
            retirement_end(retirement);
    }
}

/* --- life ---- */

struct dynamic *
dynamic_new(const struct log *log)
{
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = arena_make(arena, struct dynamic);
    dynamic->log = log;
    dynamic->arena = arena;
    list_init(&dynamic->retired);
    latch_init(&dynamic->open, 0);
    for (size_t key = 0; key < DYNAMIC_KEY_COUNT; key++) {
        const struct dynamic_row *row = &dynamic_rows[key];
        const char *config_error =
            value_of_text(&row->rule, row->default_value, arena, &dynamic->defaults[key]);
        check_that(config_error == NULL, "default of %s: %s", row->name, config_error);
    }
    return dynamic;
}

static struct error *
load(struct dynamic *dynamic, struct dynamic_set **place, struct slice yaml, const char *file,
     struct arena *arena)
{
    struct config_errors errors = {.file = file, .arena = arena};
    struct dynamic_set *set = dynamic_set_read(yaml, &errors, dynamic->log);
    if (set == NULL)
        return config_errors_join(&errors);
    struct dynamic_set *old = __atomic_exchange_n(place, set, __ATOMIC_ACQ_REL);
    retire(dynamic, old);
    log_info(dynamic->log, "dynamic settings are in force", log_text("file", file),
             log_number("keys", (int64_t)dynamic_set_count(set)));
    return NULL;
}

struct error *
dynamic_load(struct dynamic *dynamic, struct slice yaml, const char *file, struct arena *arena)
{
    return load(dynamic, &dynamic->current, yaml, file, arena);
}

struct error *
dynamic_load_stored(struct dynamic *dynamic, struct slice yaml, const char *origin,
                    struct arena *arena)
{
    return load(dynamic, &dynamic->stored, yaml, origin, arena);
}

struct error *
dynamic_check(struct slice yaml, const char *file, struct arena *arena)
{
    struct config_errors errors = {.file = file, .arena = arena};
    struct dynamic_set *set = dynamic_set_read(yaml, &errors, NULL);
    dynamic_set_free(set);
    return set == NULL ? config_errors_join(&errors) : NULL;
}

void
dynamic_free(struct dynamic *dynamic)
{
    if (dynamic == NULL)
        return;
    dynamic_stop_following(dynamic);
    give_up_posting(dynamic);
    if (dynamic->open.open > 0)
        latch_wait(&dynamic->open);
    check(list_is_empty(&dynamic->retired));
    dynamic_set_free(dynamic->current);
    dynamic_set_free(dynamic->stored);
    arena_free(dynamic->arena);
}

/* --- values ---- */

bool
dynamic_is_set(const struct dynamic *dynamic, enum dynamic_key key)
{
    return dynamic_set_has(__atomic_load_n(&dynamic->stored, __ATOMIC_ACQUIRE), key) ||
           dynamic_set_has(__atomic_load_n(&dynamic->current, __ATOMIC_ACQUIRE), key);
}

const struct value *
dynamic_value(const struct dynamic *dynamic, enum dynamic_key key,
              const struct dynamic_filter *filter)
{
    const struct dynamic_set *stored = __atomic_load_n(&dynamic->stored, __ATOMIC_ACQUIRE);
    const struct value *value = dynamic_set_choose(stored, key, filter);
    if (value != NULL)
        return value;
    const struct dynamic_set *set = __atomic_load_n(&dynamic->current, __ATOMIC_ACQUIRE);
    value = dynamic_set_choose(set, key, filter);
    return value == NULL ? &dynamic->defaults[key] : value;
}

static const struct value *
choose(const struct dynamic *dynamic, enum dynamic_key key, enum key_type type,
       const struct dynamic_filter *filter)
{
    check(key < DYNAMIC_KEY_COUNT && dynamic_rows[key].name != NULL);
    check_that(dynamic_rows[key].rule.type == type, "%s has another type", dynamic_rows[key].name);
    return dynamic_value(dynamic, key, filter);
}

int64_t
dynamic_integer(const struct dynamic *dynamic, enum dynamic_key key,
                const struct dynamic_filter *filter)
{
    return choose(dynamic, key, KEY_INTEGER, filter)->integer;
}

double
dynamic_number(const struct dynamic *dynamic, enum dynamic_key key,
               const struct dynamic_filter *filter)
{
    return choose(dynamic, key, KEY_NUMBER, filter)->number;
}

bool
dynamic_flag(const struct dynamic *dynamic, enum dynamic_key key,
             const struct dynamic_filter *filter)
{
    return choose(dynamic, key, KEY_FLAG, filter)->integer != 0;
}

int64_t
dynamic_duration(const struct dynamic *dynamic, enum dynamic_key key,
                 const struct dynamic_filter *filter)
{
    return choose(dynamic, key, KEY_DURATION, filter)->integer;
}

const char *
dynamic_text(const struct dynamic *dynamic, enum dynamic_key key,
             const struct dynamic_filter *filter)
{
    return choose(dynamic, key, KEY_TEXT, filter)->text;
}

const char *const *
dynamic_list(const struct dynamic *dynamic, enum dynamic_key key,
             const struct dynamic_filter *filter, struct arena *arena)
{
    const char *const *list = choose(dynamic, key, KEY_LIST, filter)->list;
    vector_of(const char *) copy = {0};
    for (; *list != NULL; list++)
        vector_push_in(&copy, arena, arena_text(arena, *list));
    vector_push_in(&copy, arena, NULL);
    return copy.items;
}
