/* compiler.h - the few words that C lacks.
 *
 * Nothing here has a cost or a state. */
#ifndef CADENZA_BASE_COMPILER_H
#define CADENZA_BASE_COMPILER_H

#include <stddef.h>

#define must_use          __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define no_return         __attribute__((noreturn))
#define maybe_unused      __attribute__((unused))
/* A function for the rare case of a hot one: kept out of it, so that the usual case stays short. */
#define seldom __attribute__((noinline, cold))

/* scoped(f) struct x *x = ...; calls f(&x) when x leaves its block: locks are let go of, not
 * forgotten. */
#define scoped(cleanup_function) __attribute__((cleanup(cleanup_function)))

/* Does AddressSanitizer watch this build? */
#if defined(__SANITIZE_ADDRESS__)
#define IS_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_ADDRESS_SANITIZED 1
#endif
#endif
#ifndef IS_ADDRESS_SANITIZED
#define IS_ADDRESS_SANITIZED 0
#endif

#define array_length(array) (sizeof(array) / sizeof((array)[0]))

/* The struct that `pointer` is the `member` of. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
