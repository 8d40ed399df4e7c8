/* parser.c - the query language by recursive descent, one function per rule:
 *
 *   query      = [ any ] [ ORDER BY name [ ASC | DESC ] ]
 *   any        = all { OR all }
 *   all        = one { AND one }
 *   one        = NOT one | ( any ) | name comparison
 *   comparison = sign value | [ NOT ] IN ( value { , value } ) | [ NOT ] BETWEEN value AND value
 *              | [ NOT ] LIKE value | IS [ NOT ] NULL
 *
 * Only `one` calls back to the top, through a parenthesis or a NOT, and counts these: so the depth
 * of calls is bounded, whatever is read. A rule that fails leaves its complaint in the reader and
 * returns NULL; its callers return NULL, too. */
#include "base/check.h"
#include "base/vector.h"
#include "visibility/language.h"

static struct query_node *parse_any(struct query_reader *reader);

/* Fails at the word looked at. */
static void *
fail_expecting(struct query_reader *reader, const char *expected)
{
    query_fail(reader, &reader->word, "Invalid query. Expected %s", expected);
    return NULL;
}

/* Takes the word if it is this one of the language. */
static bool
take_keyword(struct query_reader *reader, const char *keyword)
{
    if (!word_is(&reader->word, keyword))
        return false;
    query_next_word(reader);
    return true;
}

/* Takes a sign, or fails. */
static bool
expect_sign(struct query_reader *reader, enum word_kind kind, const char *shown)
{
    if (reader->word.kind != kind) {
        fail_expecting(reader, shown);
        return false;
    }
    query_next_word(reader);
    return true;
}

/* --- comparisons ---------------------------------------------------------------------------- */

/* Takes a value: a text, a number, or one of the words that stand for one. */
static bool
take_value(struct query_reader *reader, struct word *value)
{
    const struct word *word = &reader->word;
    bool is_value = word->kind == WORD_TEXT || word->kind == WORD_NUMBER ||
                    word_is(word, "missing") || word_is(word, "true") || word_is(word, "false");
    if (!is_value) {
        fail_expecting(reader, "a value");
        return false;
    }
    *value = *word;
    query_next_word(reader);
    return true;
}

static struct query_node *
parse_sign(struct query_reader *reader, const struct search_attribute *attribute)
{
    static const enum query_operator operators[] = {
        [WORD_EQUAL] = QUERY_EQUAL,     [WORD_NOT_EQUAL] = QUERY_NOT_EQUAL,
        [WORD_LESS] = QUERY_LESS,       [WORD_LESS_OR_EQUAL] = QUERY_LESS_OR_EQUAL,
        [WORD_GREATER] = QUERY_GREATER, [WORD_GREATER_OR_EQUAL] = QUERY_GREATER_OR_EQUAL,
    };
    enum word_kind kind = reader->word.kind;
    if (kind < WORD_EQUAL || kind > WORD_GREATER_OR_EQUAL)
        return fail_expecting(reader, "a comparison");
    query_next_word(reader);
    struct word value;
    return take_value(reader, &value) ? query_resolve(reader, attribute, operators[kind], &value)
                                      : NULL;
}

/* IN is a row of =, NOT IN a row of !=. */
static struct query_node *
parse_in(struct query_reader *reader, const struct search_attribute *attribute, bool is_negated)
{
    vector_of(struct query_node *) nodes = {0};
    if (!expect_sign(reader, WORD_OPEN, "("))
        return NULL;
    do {
        struct word value;
        if (nodes.count > 0)
            query_next_word(reader); /* the comma */
        if (!take_value(reader, &value))
            return NULL;
        enum query_operator comparison = is_negated ? QUERY_NOT_EQUAL : QUERY_EQUAL;
        struct query_node *node = query_resolve(reader, attribute, comparison, &value);
        if (node == NULL)
            return NULL;
        vector_push_in(&nodes, reader->arena, node);
    } while (reader->word.kind == WORD_COMMA);
    if (!expect_sign(reader, WORD_CLOSE, ", or )"))
        return NULL;
    return query_join(reader->arena, is_negated ? QUERY_AND : QUERY_OR, nodes.items, nodes.count);
}

static struct query_node *
parse_between(struct query_reader *reader, const struct search_attribute *attribute,
              bool is_negated)
{
    struct word low, high;
    if (!take_value(reader, &low))
        return NULL;
    if (!take_keyword(reader, "AND"))
        return fail_expecting(reader, "AND");
    if (!take_value(reader, &high))
        return NULL;
    struct query_node *ends[] = {
        query_resolve(reader, attribute, QUERY_GREATER_OR_EQUAL, &low),
        query_resolve(reader, attribute, QUERY_LESS_OR_EQUAL, &high),
    };
    if (reader->err != NULL)
        return NULL;
    struct query_node *node = query_join(reader->arena, QUERY_AND, ends, 2);
    return is_negated ? query_negate(reader->arena, node) : node;
}

static struct query_node *
parse_like(struct query_reader *reader, const struct search_attribute *attribute, bool is_negated)
{
    struct word value;
    if (!take_value(reader, &value))
        return NULL;
    return query_resolve(reader, attribute, is_negated ? QUERY_NOT_LIKE : QUERY_LIKE, &value);
}

static struct query_node *
parse_is(struct query_reader *reader, const struct search_attribute *attribute)
{
    static const struct word missing = {.kind = WORD_NAME, .value = SLICE_LITERAL("missing")};
    bool is_negated = take_keyword(reader, "NOT");
    if (!take_keyword(reader, "NULL") && !take_keyword(reader, "missing"))
        return fail_expecting(reader, "NULL");
    return query_resolve(reader, attribute, is_negated ? QUERY_NOT_EQUAL : QUERY_EQUAL, &missing);
}

static struct query_node *
parse_comparison(struct query_reader *reader)
{
    const struct word *word = &reader->word;
    if (word->kind == WORD_TEXT || word->kind == WORD_NUMBER) {
        query_fail(reader, word, "invalid comparison expression: a name comes first");
        return NULL;
    }
    if (word->kind != WORD_NAME && word->kind != WORD_QUOTED)
        return fail_expecting(reader, "a name");
    const struct search_attribute *attribute = query_resolve_name(reader, word);
    if (attribute == NULL)
        return NULL;
    query_next_word(reader);
    if (take_keyword(reader, "IS"))
        return parse_is(reader, attribute);
    bool is_negated = take_keyword(reader, "NOT");
    if (take_keyword(reader, "IN"))
        return parse_in(reader, attribute, is_negated);
    if (take_keyword(reader, "BETWEEN"))
        return parse_between(reader, attribute, is_negated);
    if (take_keyword(reader, "LIKE"))
        return parse_like(reader, attribute, is_negated);
    return is_negated ? fail_expecting(reader, "IN, BETWEEN or LIKE")
                      : parse_sign(reader, attribute);
}

/* --- AND, OR, NOT --------------------------------------------------------------------------- */

static struct query_node *
parse_one(struct query_reader *reader)
{
    bool is_negation = word_is(&reader->word, "NOT");
    if (!is_negation && reader->word.kind != WORD_OPEN)
        return parse_comparison(reader);
    if (++reader->depth > QUERY_DEPTH_MAX)
        return fail_expecting(reader, "less depth");
    query_next_word(reader);
    struct query_node *node = is_negation ? parse_one(reader) : parse_any(reader);
    if (node == NULL || (!is_negation && !expect_sign(reader, WORD_CLOSE, ")")))
        return NULL;
    check(reader->depth > 0);
    reader->depth--;
    return is_negation ? query_negate(reader->arena, node) : node;
}

/* What the rule below finds, with the keyword between. */
static struct query_node *
parse_row(struct query_reader *reader, const char *keyword, enum query_node_kind kind,
          struct query_node *(*parse_item)(struct query_reader *reader))
{
    vector_of(struct query_node *) nodes = {0};
    do {
        struct query_node *node = parse_item(reader);
        if (node == NULL)
            return NULL;
        vector_push_in(&nodes, reader->arena, node);
    } while (take_keyword(reader, keyword));
    return query_join(reader->arena, kind, nodes.items, nodes.count);
}

static struct query_node *
parse_all(struct query_reader *reader)
{
    return parse_row(reader, "AND", QUERY_AND, parse_one);
}

static struct query_node *
parse_any(struct query_reader *reader)
{
    return parse_row(reader, "OR", QUERY_OR, parse_all);
}

/* --- the whole ------------------------------------------------------------------------------ */

static struct error *
order_error(struct query_reader *reader, const char *complaint)
{
    return error_new(reader->arena, ERR_BAD_REQUEST, "%s", complaint);
}

/* Behind ORDER: B-024, B-025. */
static void
parse_order(struct query_reader *reader, struct query *query)
{
    if (!take_keyword(reader, "BY")) {
        fail_expecting(reader, "BY");
        return;
    }
    const struct word *word = &reader->word;
    if (word->kind != WORD_NAME && word->kind != WORD_QUOTED) {
        fail_expecting(reader, "a name");
        return;
    }
    query->order = attribute_find(reader->attributes, arena_text_of(reader->arena, word->value));
    if (query->order == NULL) {
        reader->err = order_error(reader, "invalid order by attribute");
        return;
    }
    query_next_word(reader);
    query->is_ascending = !take_keyword(reader, "DESC");
    if (query->is_ascending)
        take_keyword(reader, "ASC");
    if (reader->word.kind == WORD_COMMA)
        reader->err =
            order_error(reader, "Error when parse query: only one field can be used to sort");
    else if (query->order->type == ATTRIBUTE_STRING)
        reader->err = order_error(
            reader, "Error when parse query: not able to sort by IndexedValueTypeString field, "
                    "use IndexedValueTypeKeyword field");
}

struct error *
query_parse(const char *text, const struct attribute_set *attributes, struct arena *arena,
            struct query *query)
{
    return query_parse_active(text, attributes, NULL, arena, query);
}

struct error *
query_parse_active(const char *text, const struct attribute_set *attributes,
                   const struct query_clusters *clusters, struct arena *arena, struct query *query)
{
    struct query_reader reader = {
        .text = slice_text(text), .attributes = attributes, .clusters = clusters, .arena = arena};
    *query = (struct query){0};
    query_next_word(&reader);
    if (reader.word.kind != WORD_END && !word_is(&reader.word, "ORDER"))
        query->where = parse_any(&reader);
    check(reader.err == NULL || query->where == NULL);
    check(reader.err != NULL || reader.depth == 0);
    if (reader.err == NULL && take_keyword(&reader, "ORDER"))
        parse_order(&reader, query);
    if (reader.err == NULL && reader.word.kind != WORD_END)
        fail_expecting(&reader, query->order != NULL ? "the end" : "AND, OR or ORDER BY");
    query->asks_active_cluster = reader.asks_active_cluster;
    return reader.err;
}
