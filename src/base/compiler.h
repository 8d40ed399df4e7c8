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

/* scoped(f) struct x *x = ...; calls f(&x) when x leaves its block: locks are let go of, not
 * forgotten. */
#define scoped(cleanup_function) __attribute__((cleanup(cleanup_function)))

#define array_length(array) (sizeof(array) / sizeof((array)[0]))

/* The struct that `pointer` is the `member` of. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
