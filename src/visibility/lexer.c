/* lexer.c - the words of a query, one at a time. See language.h. */
#include <stdarg.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "visibility/language.h"

#define SHOWN_MAX ((size_t)32) /* bytes of a word in an error */

static bool
is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool
is_letter(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           byte >= 0x80;
}

static bool
is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* The byte `ahead` of the place; 0 behind the end. (A NUL in the text begins no word either.) */
static uint8_t
peek(const struct query_reader *reader, size_t ahead)
{
    size_t place = reader->position + ahead;
    return place < reader->text.length ? reader->text.data[place] : 0;
}

static size_t
skip_digits(const struct query_reader *reader, size_t ahead)
{
    while (is_digit(peek(reader, ahead)))
        ahead++;
    return ahead;
}

/* The length of the number here: sign, digits, fraction, exponent. 0: there is none. */
static size_t
number_length(const struct query_reader *reader)
{
    size_t sign = peek(reader, 0) == '-' || peek(reader, 0) == '+';
    size_t end = skip_digits(reader, sign);
    bool has_digits = end > sign;
    if (peek(reader, end) == '.') {
        size_t fraction = skip_digits(reader, end + 1);
        has_digits |= fraction > end + 1;
        end = fraction;
    }
    if (!has_digits)
        return 0;
    if (peek(reader, end) == 'e' || peek(reader, end) == 'E') {
        size_t exponent = end + 1;
        exponent += peek(reader, exponent) == '-' || peek(reader, exponent) == '+';
        if (is_digit(peek(reader, exponent)))
            end = skip_digits(reader, exponent);
    }
    return is_letter(peek(reader, end)) ? 0 : end; /* 12ab is neither */
}

static size_t
name_length(const struct query_reader *reader)
{
    size_t end = 0;
    if (!is_letter(peek(reader, 0)))
        return 0;
    while (is_letter(peek(reader, end)) || is_digit(peek(reader, end)) || peek(reader, end) == '.')
        end++;
    return end;
}

/* What a character behind a backslash stands for, as in MySQL; others for themselves. */
static uint8_t
unescape(uint8_t letter)
{
    switch (letter) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    default:
        return letter;
    }
}

/* The length of the quoted text here, with its quotes, which stand in it doubled or behind a
 * backslash. 0: it does not end. */
static size_t
quoted_length(const struct query_reader *reader)
{
    uint8_t quote = peek(reader, 0);
    size_t left = reader->text.length - reader->position;
    for (size_t end = 1; end < left; end++) {
        uint8_t byte = peek(reader, end);
        if (byte == quote && peek(reader, end + 1) != quote)
            return end + 1;
        end += byte == quote || (byte == '\\' && quote != '`');
    }
    return 0;
}

static void
read_quoted(const struct query_reader *reader, struct word *word)
{
    size_t end = quoted_length(reader), length = 0;
    if (end == 0)
        return; /* stays WORD_BAD, all of the rest */
    check(end >= 2);
    uint8_t quote = peek(reader, 0);
    uint8_t *value = arena_alloc(reader->arena, end);
    for (size_t i = 1; i < end - 1; i++) {
        uint8_t byte = peek(reader, i);
        if (byte == quote)
            i++; /* doubled */
        else if (byte == '\\' && quote != '`')
            byte = unescape(peek(reader, ++i));
        value[length++] = byte;
    }
    word->kind = quote == '`' ? WORD_QUOTED : WORD_TEXT;
    check(length <= end - 2);
    word->source.length = end;
    word->value = slice_of(value, length);
}

/* One or two signs; the longer one first. */
static void
read_sign(const struct query_reader *reader, struct word *word)
{
    static const struct {
        char text[3];
        enum word_kind kind;
    } signs[] = {
        {"!=", WORD_NOT_EQUAL},
        {"<>", WORD_NOT_EQUAL},
        {"<=", WORD_LESS_OR_EQUAL},
        {"<", WORD_LESS},
        {">=", WORD_GREATER_OR_EQUAL},
        {">", WORD_GREATER},
        {"=", WORD_EQUAL},
        {"(", WORD_OPEN},
        {")", WORD_CLOSE},
        {",", WORD_COMMA},
    };
    for (size_t i = 0; i < array_length(signs); i++) {
        size_t length = strlen(signs[i].text);
        if (peek(reader, 0) != (uint8_t)signs[i].text[0] ||
            (length == 2 && peek(reader, 1) != (uint8_t)signs[i].text[1]))
            continue;
        word->kind = signs[i].kind;
        word->source.length = length;
        return;
    }
    size_t length = text_utf8_sequence(word->source);
    word->source.length = length > 0 ? length : 1;
}

void
query_next_word(struct query_reader *reader)
{
    while (is_blank(peek(reader, 0)))
        reader->position++;
    struct slice rest = slice_skip(reader->text, reader->position);
    struct word word = {.kind = WORD_BAD, .source = rest, .at = reader->position + 1};
    size_t name = name_length(reader), number = number_length(reader);
    uint8_t first = peek(reader, 0);
    if (rest.length == 0) {
        word.kind = WORD_END;
    } else if (name > 0 || number > 0) {
        word.kind = name > 0 ? WORD_NAME : WORD_NUMBER;
        word.source.length = name > 0 ? name : number;
        word.value = word.source;
    } else if (first == '\'' || first == '"' || first == '`') {
        read_quoted(reader, &word);
    } else {
        read_sign(reader, &word);
    }
    check(word.source.length <= rest.length);
    check(word.kind == WORD_END || word.source.length > 0); /* or we would never arrive */
    reader->position += word.source.length;
    check(reader->position <= reader->text.length);
    reader->word = word;
}

bool
word_is(const struct word *word, const char *keyword)
{
    return word->kind == WORD_NAME && word->value.length == strlen(keyword) &&
           strncasecmp((const char *)word->value.data, keyword, word->value.length) == 0;
}

/* As much of the word as an error shows: never half a character. */
static struct slice
shown(const struct word *word)
{
    size_t length = 0;
    while (length < word->source.length) {
        size_t step = text_utf8_sequence(slice_skip(word->source, length));
        step = step > 0 ? step : 1;
        if (length + step > SHOWN_MAX)
            break;
        length += step;
    }
    return slice_of(word->source.data, length);
}

void
query_fail(struct query_reader *reader, const struct word *word, const char *format, ...)
{
    if (reader->err != NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    const char *complaint = arena_vformat(reader->arena, format, arguments);
    va_end(arguments);
    if (word->kind == WORD_END)
        reader->err = error_new(reader->arena, ERR_BAD_REQUEST, "%s at the end", complaint);
    else
        reader->err = error_new(reader->arena, ERR_BAD_REQUEST, "%s near `%.*s` at %zu", complaint,
                                SLICE_ARG(shown(word)), word->at);
}
