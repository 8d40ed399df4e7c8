/* frame.c - the life of the frame. See system.h.
 *
 * Each loop has its own: where a task list of ours lives is where it is asked for (system_wanted),
 * polled and worked on, so nothing here goes from one owner to another. Only the frame's own
 * beginning and end go through all loops of the process. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/domains.h"
#include "fiber/loop.h"
#include "route/owner.h"
#include "system/inside.h"

static struct system_loop *
loop_here(struct system_frame *frame)
{
    unsigned index = route_place_here();
    check(index < frame->loop_count);
    return &frame->loops[index];
}

struct system_frame *
system_new(const struct system_types *types, struct domains *domains)
{
    struct system_frame *frame = memory_zalloc(1, sizeof *frame);
    frame->types = types;
    frame->domains = domains;
    frame->loop_count = route_place_count();
    frame->loops = memory_zalloc(frame->loop_count, sizeof *frame->loops);
    for (unsigned i = 0; i < frame->loop_count; i++) {
        struct system_loop *loop = &frame->loops[i];
        loop->frame = frame;
        loop->served_lists = map_new();
        latch_init(&loop->working, 0);
        for (int type = 0; type < TASK_TYPE_COUNT; type++)
            list_init(&loop->hungry[type]);
    }
    return frame;
}

/* Is the list one of a type that is served in this domain? `domain` is the type's. */
static bool
is_there(const struct system_frame *frame, const char *domain_id, const char *domain)
{
    if (domain == NULL)
        return true;
    const struct domain *found = domains_find_id(frame->domains, domain_id);
    return found != NULL && strcmp(found->name, domain) == 0;
}

bool
system_serves(const struct system_frame *frame, const char *domain_id, const char *list)
{
    for (const struct system_workflow *const *at = frame->types->workflows; *at != NULL; at++) {
        if (strcmp((*at)->list, list) == 0 && is_there(frame, domain_id, (*at)->domain))
            return true;
    }
    for (const struct system_activity *const *at = frame->types->activities; *at != NULL; at++) {
        if (strcmp((*at)->list, list) == 0 && is_there(frame, domain_id, (*at)->domain))
            return true;
    }
    return false;
}

const struct system_workflow *
system_find_workflow(const struct system_frame *frame, const char *domain_id, const char *type)
{
    for (const struct system_workflow *const *at = frame->types->workflows; *at != NULL; at++) {
        if (strcmp((*at)->type, type) == 0 && is_there(frame, domain_id, (*at)->domain))
            return *at;
    }
    return NULL;
}

const struct system_activity *
system_find_activity(const struct system_frame *frame, const char *domain_id, const char *type)
{
    for (const struct system_activity *const *at = frame->types->activities; *at != NULL; at++) {
        if (strcmp((*at)->type, type) == 0 && is_there(frame, domain_id, (*at)->domain))
            return *at;
    }
    return NULL;
}

/* Not before the parts are there; matching asks again. */
static bool
is_on(const struct system_frame *frame, const char *domain_id, const char *list)
{
    for (const struct system_workflow *const *at = frame->types->workflows; *at != NULL; at++) {
        if ((*at)->is_on == NULL || strcmp((*at)->list, list) != 0)
            continue;
        if (frame->parts.domains == NULL || !(*at)->is_on(&frame->parts, domain_id))
            return false;
    }
    return true;
}

void
system_wanted(struct system_frame *frame, const char *domain_id, const char *list,
              enum task_type type)
{
    struct system_loop *loop = loop_here(frame);
    if (!loop->is_stopping && is_on(frame, domain_id, list))
        served_list_want(loop, domain_id, list, type);
}

static void
open_here(void *argument)
{
    struct system_loop *loop = loop_here(argument);
    check(!loop->is_open && !loop->is_stopping);
    loop->is_open = true;
    loop_feed(loop);
}

void
system_open(struct system_frame *frame, const struct system_parts *parts)
{
    check(parts->engine != NULL && parts->matching != NULL);
    check(parts->domains == frame->domains); /* by which lists were served until now */
    check(frame->parts.engine == NULL);      /* once */
    frame->parts = *parts;
    loop_call_every(open_here, frame);
}

static void
stop_here(void *argument)
{
    struct system_loop *loop = loop_here(argument);
    loop->is_stopping = true;
    slots_stop(loop);
}

static void
wait_here(void *argument)
{
    latch_wait(&loop_here(argument)->working);
}

void
system_stop(struct system_frame *frame)
{
    loop_call_every(stop_here, frame);
    loop_call_every(wait_here, frame);
}

void
system_free(struct system_frame *frame)
{
    for (unsigned i = 0; i < frame->loop_count; i++) {
        struct system_loop *loop = &frame->loops[i];
        check(loop->working.open == 0 && map_count(loop->served_lists) == 0);
        map_free(loop->served_lists);
    }
    memory_free(frame->loops);
    memory_free(frame);
}
