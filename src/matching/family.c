/* family.c - what each loop knows of divided lists: where tasks and polls go. See family.h.
 *
 * The root tells all loops; a loop that was not told sends everything to the root, which is always
 * right. How much waits in a partition is learned from the polls that come back from it. */
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"

bool
list_name_parse(const char *text, struct arena *arena, struct list_name *name)
{
    *name = (struct list_name){.list = text};
    size_t prefix = strlen(PARTITION_PREFIX);
    if (strncmp(text, PARTITION_PREFIX, prefix) != 0)
        return true;
    const char *slash = strrchr(text, '/');
    int64_t partition;
    if ((size_t)(slash - text) <= prefix ||
        !text_parse_int64(slice_text(slash + 1), 1, PARTITIONS_MAX - 1, &partition))
        return false;
    name->list = arena_text_of(arena, slice_of(text + prefix, (size_t)(slash - text) - prefix));
    name->partition = (int32_t)partition;
    return true;
}

const char *
list_name_format(const struct list_name *name, struct arena *arena)
{
    if (name->partition == 0)
        return name->list;
    return arena_format(arena, PARTITION_PREFIX "%s/%d", name->list, (int)name->partition);
}

static bool
has(const int32_t *ids, size_t count, int32_t partition)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == partition)
            return true;
    }
    return false;
}

bool
division_has_read(const struct division *division, int32_t partition)
{
    return has(division->read, division->reads, partition);
}

bool
division_has_write(const struct division *division, int32_t partition)
{
    return has(division->write, division->writes, partition);
}

static void
check_ids(const int32_t *ids, size_t count)
{
    check(count >= 1 && count <= PARTITIONS_MAX && ids[0] == 0);
    for (size_t i = 1; i < count; i++)
        check(ids[i] > 0 && ids[i] < PARTITIONS_MAX && !has(ids, i, ids[i]));
}

void
division_check(const struct division *division)
{
    check(division->writes <= division->reads && division->version >= 0);
    check(division->read_seats.count <= SEATS_MAX && division->write_seats.count <= SEATS_MAX);
    check_ids(division->read, division->reads);
    check_ids(division->write, division->writes);
}

/* NULL: the list is not divided. Costs nothing where none is. */
static struct family *
family_find(struct place *place, const struct address *address)
{
    if (map_count(place->families) == 0)
        return NULL;
    struct address root = *address;
    root.partition = 0;
    struct family *family = map_get(place->families, address_key(&root, place->scratch));
    arena_reset(place->scratch);
    return family;
}

struct family *
family_of(const struct task_list *list)
{
    struct address address = list_address(list);
    return family_find(list->place, &address);
}

/* --- choosing ------------------------------------------------------------------------------------
 */

static bool
seats_take(const struct seats *seats, int32_t partition, uint64_t group)
{
    bool is_for_all = true;
    for (size_t i = 0; i < seats->count; i++) {
        if (seats->seat[i].partition != partition)
            continue;
        if (seats->seat[i].group == group)
            return true;
        is_for_all = false;
    }
    return is_for_all;
}

/* One of the partitions that are for the group, always the same; of all, if none is. */
static size_t
choose_seat(const struct seats *seats, const int32_t *ids, size_t count, uint64_t group)
{
    size_t fitting[PARTITIONS_MAX], found = 0;
    check(count > 0 && count <= PARTITIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (seats_take(seats, ids[i], group))
            fitting[found++] = i;
    }
    return found == 0 ? (size_t)(group % count) : fitting[group % found];
}

/* Tasks and pollers of an isolation group meet in the same partition. */
static bool
choose_by_group(const struct place *place, const struct dynamic_filter *filter, const char *group,
                const struct division *division, bool is_write, size_t *choice)
{
    const struct dynamic *dynamic = place->matching->options.dynamic;
    if (group == NULL || group[0] == '\0' ||
        !dynamic_flag(dynamic, DYNAMIC_TASK_LIST_ISOLATION, filter))
        return false;
    uint64_t hash = map_hash(slice_text(group));
    *choice = is_write
                  ? choose_seat(&division->write_seats, division->write, division->writes, hash)
                  : choose_seat(&division->read_seats, division->read, division->reads, hash);
    return true;
}

static const char *
domain_name(const struct place *place, const char *domain_id)
{
    const struct matching_options *options = &place->matching->options;
    return options->domain_name == NULL ? NULL : options->domain_name(options->context, domain_id);
}

int32_t
family_choose_write(struct place *place, const struct task *task)
{
    struct address address = task_address(task);
    struct family *family = task->kind == LIST_NORMAL ? family_find(place, &address) : NULL;
    if (family == NULL)
        return 0;
    const struct division *division = &family->division;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name(place, task->domain_id);
    size_t choice;
    if (!choose_by_group(place, &filter, task->isolation_group, division, true, &choice))
        choice = family->write_turn++ % division->writes;
    return division->write[choice];
}

/* By backlog, if all are known and one is long; false: in turn. */
static bool
choose_by_weight(const struct family *family, size_t *choice)
{
    int64_t sum = 0;
    bool is_long = false;
    for (size_t i = 0; i < family->division.reads; i++) {
        if (family->weights[i] < 0)
            return false;
        sum += family->weights[i];
        is_long |= family->weights[i] > BALANCE_THRESHOLD;
    }
    if (!is_long)
        return false;
    check(sum > BALANCE_THRESHOLD);
    int64_t at = (int64_t)entropy_below((uint64_t)sum);
    size_t i = 0;
    while (at >= family->weights[i])
        at -= family->weights[i++];
    check(i < family->division.reads);
    *choice = i;
    return true;
}

static size_t
choose_read(struct place *place, struct family *family, const struct poll *poll)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = poll->domain_name;
    filter.task_list_name = poll->list;
    filter.task_type = (int)poll->type;
    size_t count = family->division.reads, choice;
    if (choose_by_group(place, &filter, poll->isolation_group, &family->division, false, &choice))
        return choice;
    const char *strategy =
        dynamic_text(place->matching->options.dynamic, DYNAMIC_LOAD_BALANCER, &filter);
    if (strcmp(strategy, "random") == 0)
        return (size_t)entropy_below(count);
    if (strcmp(strategy, "round-robin") != 0 && choose_by_weight(family, &choice)) {
        mark("partition_by_weight");
        return choice;
    }
    return family->read_turn++ % count;
}

int32_t
family_choose_read(struct place *place, const struct poll *poll)
{
    check(poll->partition_wanted >= 0 && poll->partition_wanted < PARTITIONS_MAX);
    if (poll->partition_wanted > 0)
        return poll->partition_wanted;
    struct address address = {poll->domain_id, poll->type, poll->list, 0};
    struct family *family = poll->kind == LIST_NORMAL ? family_find(place, &address) : NULL;
    return family == NULL ? 0 : family->division.read[choose_read(place, family, poll)];
}

void
family_note_backlog(struct place *place, const struct poll *poll)
{
    struct address address = {poll->domain_id, poll->type, poll->list, 0};
    struct family *family = poll->kind == LIST_NORMAL ? family_find(place, &address) : NULL;
    if (family == NULL)
        return;
    check(poll->backlog >= 0);
    for (size_t i = 0; i < family->division.reads; i++) {
        if (family->division.read[i] == poll->partition)
            family->weights[i] = poll->backlog;
    }
}

bool
family_redirect(struct place *place, struct offer *offer)
{
    if (offer->task->partition == 0)
        return false;
    struct address address = task_address(offer->task);
    const struct family *family = family_find(place, &address);
    if (family != NULL && division_has_write(&family->division, offer->task->partition))
        return false;
    mark("task_to_a_drained_partition");
    offer->task->partition = 0;
    offer_send(offer);
    return true;
}

/* --- being told ----------------------------------------------------------------------------------
 */

struct telling {
    struct letter letter;
    struct place *place;
    struct division division;
    double rate_asked;
    size_t key_length;
    char key[];
};

static struct family *
family_new(const struct place *place)
{
    struct family *family = memory_zalloc(1, sizeof *family);
    family->read_turn = family->write_turn = (size_t)(place - place->matching->places);
    return family;
}

static void
family_set(struct family *family, const struct telling *telling)
{
    bool is_same = family->division.reads == telling->division.reads;
    family->division = telling->division;
    family->rate_asked = telling->rate_asked;
    for (size_t i = 0; !is_same && i < PARTITIONS_MAX; i++)
        family->weights[i] = -1;
}

static void
telling_arrived(struct letter *letter)
{
    struct telling *telling = container_of(letter, struct telling, letter);
    struct place *place = telling->place;
    struct slice key = slice_of(telling->key, telling->key_length);
    struct family *family = map_get(place->families, key);
    letter_arrived(place->matching);
    check(place_loop(place) == loop_self());
    if (telling->division.reads <= 1) {
        map_remove(place->families, key);
        memory_free(family);
    } else {
        if (family == NULL)
            map_put(place->families, key, family = family_new(place));
        family_set(family, telling);
    }
    memory_free(telling);
}

void
family_tell(struct task_list *root, const struct division *division)
{
    struct matching *matching = root->place->matching;
    check(root->partition == 0 && root->root != NULL);
    division_check(division);
    for (unsigned i = 0; i < matching->loops; i++) {
        struct telling *telling = memory_alloc(sizeof *telling + root->key.length);
        telling->place = &matching->places[i];
        telling->division = *division;
        telling->rate_asked = root->rate_asked;
        telling->key_length = root->key.length;
        memcpy(telling->key, root->key.data, root->key.length);
        telling->letter.deliver = telling_arrived;
        matching_send(matching, loop_at(i), &telling->letter);
    }
    mark("task_list_divided");
}

void
families_free(struct place *place)
{
    size_t cursor = 0;
    void *family;
    while (map_next(place->families, &cursor, NULL, &family))
        memory_free(family);
    map_free(place->families);
}
