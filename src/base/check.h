/* check.h - asserts that stay on in release.
 *
 * A failed check is a bug of ours: it prints one line (file, line, condition, message) to standard
 * error and aborts. What can happen without a bug is a struct error (error.h), never a check. */
#ifndef CADENZA_BASE_CHECK_H
#define CADENZA_BASE_CHECK_H

#include "base/compiler.h"

/* Aborts unless `condition` holds. Cheap enough for every hot path. */
#define check(condition)                                                                           \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : check_failed(__FILE__, __LINE__, #condition, NULL))

/* The same with a printf-like sentence that says what was seen. */
#define check_that(condition, ...)                                                                 \
    (__builtin_expect(!!(condition), 1)                                                            \
         ? (void)0                                                                                 \
         : check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__))

/* Whether to walk over all of a struct to check its invariants: in builds with AddressSanitizer, in
 * which all tests and simulations run. Elsewhere checks take constant time. */
#if defined(__SANITIZE_ADDRESS__)
#define CHECK_DEEPLY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECK_DEEPLY 1
#endif
#endif
#ifndef CHECK_DEEPLY
#define CHECK_DEEPLY 0
#endif

/* A place that cannot be reached. */
#define unreachable(...) check_failed(__FILE__, __LINE__, "unreachable", __VA_ARGS__)

/* Prints the line and aborts. `format` may be NULL. */
no_return void check_failed(const char *file, int line, const char *condition, const char *format,
                            ...) printf_like(4, 5);

/* What follows the last "src/" of a __FILE__: the name by which people know the file. */
const char *check_source_path(const char *file);

#endif
