/* language.h - what lexer, parser and resolver of the query language share. Only for them.
 *
 * A text becomes words (lexer.c), words become a tree (parser.c), and each comparison of the tree
 * is checked against the attributes when it is met (resolve.c). The first thing that is wrong ends
 * the reading: it is kept in the reader, and what comes after is not looked at. */
#ifndef CADENZA_VISIBILITY_LANGUAGE_H
#define CADENZA_VISIBILITY_LANGUAGE_H

#include "visibility/query.h"

enum word_kind {
    WORD_END,
    WORD_NAME,   /* letters: a name, or a word of the language */
    WORD_QUOTED, /* in back quotes: never a word of the language */
    WORD_TEXT,   /* in ' or " */
    WORD_NUMBER,
    WORD_EQUAL,
    WORD_NOT_EQUAL,
    WORD_LESS,
    WORD_LESS_OR_EQUAL,
    WORD_GREATER,
    WORD_GREATER_OR_EQUAL,
    WORD_OPEN,
    WORD_CLOSE,
    WORD_COMMA,
    WORD_BAD, /* a byte that begins nothing, or a text that does not end */
};

struct word {
    enum word_kind kind;
    struct slice source; /* as it stands in the query */
    size_t at;           /* its first byte, from 1 on */
    struct slice value;  /* without quotes and escapes */
};

struct query_reader {
    struct slice text; /* all of the query */
    size_t position;   /* of what was not read yet */
    struct word word;  /* the one looked at */
    const struct attribute_set *attributes;
    const struct query_clusters *clusters; /* NULL: it is unknown where runs are active */
    bool asks_active_cluster;              /* something asks for them */
    struct arena *arena;
    size_t depth;       /* parentheses and NOTs around us */
    size_t comparisons; /* made so far */
    struct error *err;  /* the first one; stays */
};

/* Goes on to the next word. */
void query_next_word(struct query_reader *reader);
/* Is the word this one of the language, in any case? */
bool word_is(const struct word *word, const char *keyword);
/* Fails with "<complaint> near `<word>` at <place>"; "at the end" if no word is left. */
void query_fail(struct query_reader *reader, const struct word *word, const char *format, ...)
    printf_like(3, 4);

/* The attribute of that name. NULL: failed. */
const struct search_attribute *query_resolve_name(struct query_reader *reader,
                                                  const struct word *name);
/* The node of one comparison; the value is a text, a number, or a word such as true. NULL: failed.
 */
struct query_node *query_resolve(struct query_reader *reader,
                                 const struct search_attribute *attribute,
                                 enum query_operator comparison, const struct word *value);
/* What ActiveCluster is resolved to, if the clusters are known; the name is not an attribute of the
 * set.
 */
extern const struct search_attribute query_active_cluster;
struct query_node *query_resolve_active_cluster(struct query_reader *reader,
                                                enum query_operator comparison,
                                                const struct word *value);
/* A node with children, in the arena; of one child it is the child itself. */
struct query_node *query_join(struct arena *arena, enum query_node_kind kind,
                              struct query_node **children, size_t count);
struct query_node *query_negate(struct arena *arena, struct query_node *child);
/* Comparisons of typed values, whole milliseconds of time columns included. */
struct query_node *query_compare(struct arena *arena, const struct search_attribute *attribute,
                                 enum query_operator comparison, struct attribute_value value);

#endif
