/* match.c - words in a text, and patterns of LIKE. See engine.h. */
#include "base/text.h"
#include "visibility/engine.h"

static uint8_t
lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;
}

static bool
is_of_word(uint8_t byte)
{
    byte = lower(byte);
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
           byte >= 0x80;
}

/* Takes the next word from the front; false: there is none left. */
static bool
take_word(struct slice *text, struct slice *word)
{
    size_t start = 0;
    while (start < text->length && !is_of_word(text->data[start]))
        start++;
    size_t end = start;
    while (end < text->length && is_of_word(text->data[end]))
        end++;
    struct slice rest = slice_skip(*text, start);
    *word = slice_of(rest.data, end - start);
    *text = slice_skip(*text, end);
    return word->length > 0;
}

static bool
words_equal(struct slice one, struct slice other)
{
    if (one.length != other.length)
        return false;
    for (size_t i = 0; i < one.length; i++) {
        if (lower(one.data[i]) != lower(other.data[i]))
            return false;
    }
    return true;
}

/* Does the text begin with the words of the phrase? */
static bool
begins_with(struct slice text, struct slice phrase)
{
    struct slice wanted, word;
    while (take_word(&phrase, &wanted)) {
        if (!take_word(&text, &word) || !words_equal(word, wanted))
            return false;
    }
    return true;
}

bool
visibility_text_matches(struct slice text, struct slice phrase)
{
    struct slice rest = phrase, word;
    if (!take_word(&rest, &word))
        return false;
    for (rest = text;;) {
        if (begins_with(rest, phrase))
            return true;
        if (!take_word(&rest, &word))
            return false;
    }
}

/* --- LIKE ----------------------------------------------------------------------------------- */

/* Bytes of the character at the front; a byte that begins none counts as one. */
static size_t
character(struct slice text)
{
    size_t length = text_utf8_sequence(text);
    return length > 0 ? length : 1;
}

/* Takes what the pattern wants next, and as much of the text; false: they differ. Not for `%`. */
static bool
take_one(struct slice *text, struct slice *pattern)
{
    if (pattern->length == 0 || text->length == 0)
        return false;
    if (pattern->data[0] == '_') {
        *pattern = slice_skip(*pattern, 1);
        *text = slice_skip(*text, character(*text));
        return true;
    }
    if (pattern->data[0] == '\\' && pattern->length > 1)
        *pattern = slice_skip(*pattern, 1);
    bool is_same = lower(pattern->data[0]) == lower(text->data[0]);
    *pattern = slice_skip(*pattern, 1);
    *text = slice_skip(*text, 1);
    return is_same;
}

/* When the rest does not fit, only the newest `%` has to take more: whatever an older one could
 * reach, the newest reaches, too. So there is one place to go back to, and no recursion. */
bool
visibility_text_like(struct slice text, struct slice pattern)
{
    struct slice retry_text = {0}, retry_pattern = {0};
    bool has_retry = false;
    while (text.length > 0 || pattern.length > 0) {
        if (pattern.length > 0 && pattern.data[0] == '%') {
            pattern = slice_skip(pattern, 1);
            retry_text = text;
            retry_pattern = pattern;
            has_retry = true;
            continue;
        }
        if (take_one(&text, &pattern))
            continue;
        if (!has_retry || retry_text.length == 0)
            return false;
        retry_text = slice_skip(retry_text, character(retry_text));
        text = retry_text;
        pattern = retry_pattern;
    }
    return true;
}
