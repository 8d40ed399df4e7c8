/* sanitizer.h - notifies AddressSanitizer and ThreadSanitizer of a change of stacks.
 *
 * Both follow the stack by its address; a switch that they do not know of looks like an overflow or
 * a race. In other builds everything here is empty. */
#ifndef CADENZA_FIBER_SANITIZER_H
#define CADENZA_FIBER_SANITIZER_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

#if HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* ThreadSanitizer counts calls and returns: a function of its own around the switch would be
 * entered on one side and left on the other. */
#define SANITIZER_INLINE static inline __attribute__((always_inline))

/* Before a jump: remembers the fake stack of the side that is left; `fake_stack` NULL: it will not
 * come back. The rest names the stack that is entered. */
SANITIZER_INLINE void
sanitizer_leave(void **fake_stack, const void *bottom, size_t size, void *thread)
{
#if HAS_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
#endif
#if HAS_TSAN
    __tsan_switch_to_fiber(thread, 0);
#endif
    (void)fake_stack, (void)bottom, (void)size, (void)thread;
}

/* After a jump: takes the own fake stack back and, where asked, learns the bounds of the stack
 * left. */
SANITIZER_INLINE void
sanitizer_arrive(void *fake_stack, const void **bottom_left, size_t *size_left)
{
#if HAS_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom_left, size_left);
#endif
    (void)fake_stack, (void)bottom_left, (void)size_left;
}

/* ThreadSanitizer keeps a context of its own for every fiber; NULL in other builds. */
static inline void *
sanitizer_thread_self(void)
{
#if HAS_TSAN
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

static inline void *
sanitizer_thread_new(void)
{
#if HAS_TSAN
    return __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static inline void
sanitizer_thread_free(void *thread)
{
#if HAS_TSAN
    __tsan_destroy_fiber(thread);
#endif
    (void)thread;
}

/* Frames that were dropped without returning leave poison behind. */
static inline void
sanitizer_clean(void *bytes, size_t size)
{
#if HAS_ASAN
    __asan_unpoison_memory_region(bytes, size);
#endif
    (void)bytes, (void)size;
}

#endif
