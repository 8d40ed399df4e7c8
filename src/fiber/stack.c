/* stack.c - stacks of fibers: a mapping with a guard page below and the struct fiber at its top.
 *
 * A stack is not from any heap: a simulated crash drops heaps and stacks by separate ways. An ended
 * fiber's stack goes to a pool of its loop, the newest first out since its pages are warm; what
 * exceeds the bound is unmapped, so a burst of fibers does not stay in memory for ever. */
#include <stdint.h>
#include <sys/mman.h>

#include "base/check.h"
#include "fiber/core.h"
#include "fiber/sanitizer.h"

#define GUARD_SIZE 4096

/* Sanitizers make frames bigger. */
#if HAS_ASAN || HAS_TSAN
#define STACK_SIZE (2 * FIBER_STACK_SIZE)
#else
#define STACK_SIZE FIBER_STACK_SIZE
#endif

static struct fiber *
stack_map(void)
{
    char *low = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    check_that(low != MAP_FAILED, "no memory for the stack of a fiber");
    int failed = mprotect(low, GUARD_SIZE, PROT_NONE);
    check_that(failed == 0, "no guard page for the stack of a fiber: too many mappings?");
    size_t room = (sizeof(struct fiber) + 63) & ~(size_t)63;
    struct fiber *fiber = (struct fiber *)(low + GUARD_SIZE + STACK_SIZE - room);
    fiber->stack_low = low + GUARD_SIZE;
    fiber->stack_size = STACK_SIZE - room;
    return fiber;
}

struct fiber *
stack_take(struct loop *loop)
{
    struct list *node = list_pop_front(&loop->spare_stacks);
    if (node == NULL)
        return stack_map();
    loop->spare_stack_count--;
    return list_entry(node, struct fiber, node);
}

void
stack_give(struct loop *loop, struct fiber *fiber)
{
    if (loop->spare_stack_count >= SPARE_STACKS_MAX) {
        stack_drop(fiber);
        return;
    }
    sanitizer_clean(fiber->stack_low, fiber->stack_size);
    list_push_front(&loop->spare_stacks, &fiber->node);
    loop->spare_stack_count++;
}

void
stack_drop(struct fiber *fiber)
{
    sanitizer_clean(fiber->stack_low, fiber->stack_size);
    int failed = munmap((char *)fiber->stack_low - GUARD_SIZE, GUARD_SIZE + STACK_SIZE);
    check(failed == 0);
}

void
stack_drop_spare(struct loop *loop)
{
    for (struct list *node; (node = list_pop_front(&loop->spare_stacks)) != NULL;)
        stack_drop(list_entry(node, struct fiber, node));
    loop->spare_stack_count = 0;
}
