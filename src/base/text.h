/* text.h - small formats that arrive as text: UTF-8, percent, base64, numbers, durations.
 *
 * Input comes from outside, so each reader gets its length and returns whether all of it was valid:
 * false leaves the result untouched. What is returned lives in the arena given. */
#ifndef CADENZA_BASE_TEXT_H
#define CADENZA_BASE_TEXT_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

/* Length of the UTF-8 sequence that `bytes` begins with, 1 .. 4; 0 if none does: empty, cut,
 * overlong, a surrogate, or above U+10FFFF. */
size_t text_utf8_sequence(struct slice bytes);
/* Is all of it UTF-8? If not, *bad_offset (may be NULL) is where it breaks. NUL bytes are UTF-8. */
must_use bool text_is_utf8(struct slice bytes, size_t *bad_offset);

/* 0 .. 15 for a hex digit of either case; -1: it is not one. */
int text_hex_value(uint8_t digit);
/* The form of grpc-message: bytes outside 0x20 .. 0x7e, '%' and a space at either end become %XX,
 * upper case. */
struct slice text_percent_encode(struct arena *arena, struct slice bytes);
/* The reverse. As gRPC asks, a '%' without two hex digits stays as it is: this never fails. */
struct slice text_percent_decode(struct arena *arena, struct slice text);

enum text_base64 {
    TEXT_BASE64_STANDARD, /* + and /, written with padding */
    TEXT_BASE64_URL,      /* - and _, written without */
};

struct slice text_base64_encode(struct arena *arena, struct slice bytes, enum text_base64 alphabet);
/* Padding may be there, whole, or not. False: another character, a length that no bytes have, or
 * bits that encode nothing and are not 0, so that no two texts mean the same bytes but for padding.
 */
must_use bool text_base64_decode(struct arena *arena, struct slice text, enum text_base64 alphabet,
                                 struct slice *bytes);

/* Edits (one character put, dropped or replaced) from one text to the other; the case of letters
 * does not count. For suggestions: texts longer than TEXT_DISTANCE_LENGTH_MAX are SIZE_MAX apart.
 */
#define TEXT_DISTANCE_LENGTH_MAX 256
size_t text_distance(struct slice one, struct slice other);

/* A decimal number, all of the text, in low .. high. A '-' may lead where signed; no '+', no
 * blanks. */
must_use bool text_parse_int64(struct slice text, int64_t low, int64_t high, int64_t *number);
must_use bool text_parse_uint64(struct slice text, uint64_t low, uint64_t high, uint64_t *number);

/* What is wrong with an address, as a sentence that names it; NULL: it is host:port or [host]:port,
 * with a port from 0 to 65535. The system silently takes a larger port modulo 65536. */
const char *text_address_fault(const char *address, struct arena *arena);

/* A duration as Go writes it: "1h30m", "-1.5s", "100ms", "0"; units ns us µs ms s m h. Nanoseconds.
 */
must_use bool text_parse_duration(struct slice text, int64_t *nanoseconds);
/* The same way round as Go does it: "1h30m0s", "1.5s", "100ms", "0s". */
char *text_format_duration(struct arena *arena, int64_t nanoseconds);

/* A time as RFC 3339 writes it, with fractions and any offset, in nanoseconds since 1970; cut to
 * the nearest that 64 bits can hold. */
must_use bool text_parse_moment(struct slice text, int64_t *nanoseconds);
/* The reverse, in UTC and without zeros at the end of the fraction, as Go writes it. */
char *text_format_moment(struct arena *arena, int64_t nanoseconds);

#endif
