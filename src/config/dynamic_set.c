/* dynamic_set.c - reads a dynamic file and chooses among its entries. See dynamic.h for the rules.
 *
 * Choosing is asked for by every call, so entries stand in an array per key, parsed: a key that the
 * file does not name costs one comparison. */
#include "config/dynamic_set.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/vector.h"

/* X(enum, name in the file, field of the filter); texts and numbers. */
#define TEXT_CONSTRAINTS(X)                                                                        \
    X(CONSTRAINT_DOMAIN_NAME, "domainName", domain_name)                                           \
    X(CONSTRAINT_DOMAIN_ID, "domainID", domain_id)                                                 \
    X(CONSTRAINT_TASK_LIST_NAME, "taskListName", task_list_name)                                   \
    X(CONSTRAINT_CLUSTER_NAME, "clusterName", cluster_name)                                        \
    X(CONSTRAINT_WORKFLOW_ID, "workflowID", workflow_id)                                           \
    X(CONSTRAINT_WORKFLOW_TYPE, "workflowType", workflow_type)
#define NUMBER_CONSTRAINTS(X)                                                                      \
    X(CONSTRAINT_TASK_TYPE, "taskType", task_type)                                                 \
    X(CONSTRAINT_SHARD_ID, "shardID", shard_id)

enum constraint_kind {
#define X(kind, name, field) kind,
    TEXT_CONSTRAINTS(X) NUMBER_CONSTRAINTS(X)
#undef X
        CONSTRAINT_KIND_COUNT, /* as a kind: one that nobody carries */
};

static const char *const constraint_names[CONSTRAINT_KIND_COUNT] = {
#define X(kind, name, field) [kind] = name,
    TEXT_CONSTRAINTS(X) NUMBER_CONSTRAINTS(X)
#undef X
};

struct constraint {
    enum constraint_kind kind;
    const char *text;
    int64_t number;
};

struct dynamic_entry {
    struct value value;
    vector_of(struct constraint) constraints;
};

struct dynamic_set {
    struct arena *arena;
    vector_of(struct dynamic_entry) entries[DYNAMIC_KEY_COUNT];
};

struct dynamic_parser {
    struct dynamic_set *set;
    struct config_errors *errors;
    const struct log *log;
    struct arena *arena; /* for the tree and sentences */
};

/* --- reading ---- */

static void
warn_of(const struct dynamic_parser *parser, const char *message, const char *key, int line,
        const char *reason)
{
    log_warn(parser->log, message, log_text("key", key), log_text("file", parser->errors->file),
             log_number("line", line), log_text("reason", reason));
}

/* Does the list of words have this one? */
static bool
has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; *at != '\0';) {
        size_t here = strcspn(at, " ");
        if (here == length && memcmp(at, word, length) == 0)
            return true;
        at += here + (at[here] == ' ');
    }
    return false;
}

static enum constraint_kind
find_constraint(const char *name)
{
    enum constraint_kind kind = 0;
    while (kind < CONSTRAINT_KIND_COUNT && strcmp(constraint_names[kind], name) != 0)
        kind++;
    return kind;
}

/* One constraint. What cannot match is kept as such, so that its entry does not hold for all. */
static struct constraint
read_constraint(struct dynamic_parser *parser, enum dynamic_key key, const struct config_part *part)
{
    check(part->name != NULL);
    struct constraint constraint = {.kind = find_constraint(part->name)};
    bool is_number =
        constraint.kind == CONSTRAINT_TASK_TYPE || constraint.kind == CONSTRAINT_SHARD_ID;
    const char *reason = NULL;
    if (!has_word(dynamic_rows[key].filters, part->name))
        reason = arena_format(parser->arena, "this key has no constraint %s",
                              config_quote(part->name, parser->arena));
    else if (part->kind != PART_TEXT || config_part_is_null(part))
        reason = arena_format(parser->arena, "%s is %s", part->name,
                              config_part_describe(part, parser->arena));
    else if (is_number &&
             !text_parse_int64(slice_text(part->text), 0, INT64_MAX, &constraint.number))
        reason = arena_format(parser->arena, "%s is not a number", part->name);
    if (reason != NULL) {
        warn_of(parser, "an entry of the dynamic settings never matches", dynamic_rows[key].name,
                part->line, reason);
        constraint.kind = CONSTRAINT_KIND_COUNT;
    }
    constraint.text = arena_text(parser->set->arena, part->text);
    return constraint;
}

static void
read_constraints(struct dynamic_parser *parser, enum dynamic_key key,
                 const struct config_part *part, struct dynamic_entry *entry)
{
    if (config_part_is_null(part))
        return;
    if (part->kind != PART_SECTION) {
        config_errors_add(parser->errors, part->line, dynamic_rows[key].name,
                          "constraints: expected a section, got %s",
                          config_part_describe(part, parser->arena));
        return;
    }
    for (size_t i = 0; i < part->children.count; i++) {
        struct constraint constraint = read_constraint(parser, key, part->children.items[i]);
        vector_push_in(&entry->constraints, parser->set->arena, constraint);
    }
}

/* A value of the key's type. In quotes a number or flag is a text, as in Cadence. */
static void
read_value(struct dynamic_parser *parser, enum dynamic_key key, const struct config_part *part,
           struct dynamic_entry *entry)
{
    const struct key_rule *rule = &dynamic_rows[key].rule;
    bool is_plain_only =
        rule->type == KEY_INTEGER || rule->type == KEY_NUMBER || rule->type == KEY_FLAG;
    const char *reason;
    if (config_part_is_null(part) || (is_plain_only && part->is_quoted))
        reason = arena_format(parser->arena, "expected %s, got %s%s",
                              value_wanted(rule, parser->arena), part->is_quoted ? "the text " : "",
                              config_part_describe(part, parser->arena));
    else
        reason = value_of_part(rule, part, parser->set->arena, &entry->value);
    if (reason != NULL)
        config_errors_add(parser->errors, part->line, dynamic_rows[key].name, "%s", reason);
}

static void
read_entry(struct dynamic_parser *parser, enum dynamic_key key, const struct config_part *part)
{
    const char *name = dynamic_rows[key].name;
    struct dynamic_entry entry = {0};
    bool has_value = false;
    for (size_t i = 0; i < part->children.count && part->kind == PART_SECTION; i++) {
        const struct config_part *child = part->children.items[i];
        if (strcmp(child->name, "value") == 0) {
            read_value(parser, key, child, &entry);
            has_value = true;
        } else if (strcmp(child->name, "constraints") == 0) {
            read_constraints(parser, key, child, &entry);
        } else { /* a misspelt "constraints" would make the entry hold for all */
            config_errors_add(parser->errors, child->line, name,
                              "an entry has value and constraints, not %s",
                              config_quote(child->name, parser->arena));
        }
    }
    if (!has_value)
        config_errors_add(parser->errors, part->line, name, "an entry without a value");
    vector_push_in(&parser->set->entries[key], parser->set->arena, entry);
}

enum dynamic_key
dynamic_find_key(const char *name)
{
    enum dynamic_key key = 0;
    while (key < DYNAMIC_KEY_COUNT && strcmp(dynamic_rows[key].name, name) != 0)
        key++;
    return key;
}

static void
read_key(struct dynamic_parser *parser, const struct config_part *part)
{
    enum dynamic_key key = dynamic_find_key(part->name);
    if (key == DYNAMIC_KEY_COUNT) {
        log_info(parser->log, "a dynamic setting is unknown and ignored",
                 log_text("key", part->name), log_text("file", parser->errors->file),
                 log_number("line", part->line));
        return;
    }
    if (config_part_is_null(part))
        return;
    if (part->kind != PART_LIST) {
        config_errors_add(parser->errors, part->line, part->name,
                          "expected a list of entries (- value: ...), got %s",
                          config_part_describe(part, parser->arena));
        return;
    }
    for (size_t i = 0; i < part->children.count; i++)
        read_entry(parser, key, part->children.items[i]);
}

struct dynamic_set *
dynamic_set_read(struct slice yaml, struct config_errors *errors, const struct log *log)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    const struct config_part *root = config_read_yaml(yaml, errors, scratch);
    if (root == NULL)
        return NULL;
    struct arena *arena = arena_new(0);
    struct dynamic_set *set = arena_make(arena, struct dynamic_set);
    set->arena = arena;
    check(root->kind == PART_SECTION);
    struct dynamic_parser parser = {.set = set, .errors = errors, .log = log, .arena = scratch};
    for (size_t i = 0; i < root->children.count; i++)
        read_key(&parser, root->children.items[i]);
    if (config_errors_are_none(errors))
        return set;
    dynamic_set_free(set);
    return NULL;
}

void
dynamic_set_free(struct dynamic_set *set)
{
    if (set != NULL)
        arena_free(set->arena);
}

/* --- choosing ---- */

static bool
constraint_holds(const struct constraint *constraint, const struct dynamic_filter *filter)
{
    switch (constraint->kind) {
#define X(kind, name, field)                                                                       \
    case kind:                                                                                     \
        return filter->field != NULL && strcmp(filter->field, constraint->text) == 0;
        TEXT_CONSTRAINTS(X)
#undef X
#define X(kind, name, field)                                                                       \
    case kind:                                                                                     \
        return filter->field >= 0 && filter->field == constraint->number;
        NUMBER_CONSTRAINTS(X)
#undef X
    case CONSTRAINT_KIND_COUNT:
        return false;
    }
    unreachable("constraint %d", (int)constraint->kind);
}

bool
dynamic_filter_set(struct dynamic_filter *filter, const char *name, const char *text)
{
    int64_t number = 0;
    bool is_number = text_parse_int64(slice_text(text), 0, INT32_MAX, &number);
    switch (find_constraint(name)) {
#define X(kind, name, field)                                                                       \
    case kind:                                                                                     \
        filter->field = text;                                                                      \
        return true;
        TEXT_CONSTRAINTS(X)
#undef X
#define X(kind, name, field)                                                                       \
    case kind:                                                                                     \
        filter->field = (int)number;                                                               \
        return is_number;
        NUMBER_CONSTRAINTS(X)
#undef X
    case CONSTRAINT_KIND_COUNT:
        break;
    }
    return false;
}

static bool
entry_matches(const struct dynamic_entry *entry, const struct dynamic_filter *filter)
{
    for (size_t i = 0; i < entry->constraints.count; i++) {
        if (!constraint_holds(&entry->constraints.items[i], filter))
            return false;
    }
    return true;
}

bool
dynamic_set_has(const struct dynamic_set *set, enum dynamic_key key)
{
    check(key < DYNAMIC_KEY_COUNT);
    return set != NULL && set->entries[key].count > 0;
}

/* Of a key that the file names. */
static seldom const struct value *
choose_entry(const struct dynamic_set *set, enum dynamic_key key,
             const struct dynamic_filter *filter)
{
    const struct dynamic_filter nothing = DYNAMIC_NO_FILTER;
    const struct dynamic_entry *chosen = NULL;
    for (size_t i = 0; i < set->entries[key].count; i++) {
        const struct dynamic_entry *entry = &set->entries[key].items[i];
        if (entry->constraints.count == 0) {
            chosen = entry; /* unless a later one is meant for the asker, or for all */
        } else if (entry_matches(entry, filter == NULL ? &nothing : filter)) {
            chosen = entry;
            break;
        }
    }
    return chosen == NULL ? NULL : &chosen->value;
}

const struct value *
dynamic_set_choose(const struct dynamic_set *set, enum dynamic_key key,
                   const struct dynamic_filter *filter)
{
    return dynamic_set_has(set, key) ? choose_entry(set, key, filter) : NULL;
}

size_t
dynamic_set_count(const struct dynamic_set *set)
{
    size_t count = 0;
    for (size_t key = 0; set != NULL && key < DYNAMIC_KEY_COUNT; key++)
        count += set->entries[key].count > 0;
    return count;
}
