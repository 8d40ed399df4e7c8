/* tell.c - see tell.h. */
#include "route/tell.h"

#include "base/check.h"
#include "route/inside.h"

static void
deliver(struct loop_message *message)
{
    struct route_value *value = container_of(message, struct route_value, message);
    struct route_service *service = value->service;
    value->notice->take(service->context, value);
    size_t before = atomic_fetch_sub(&service->on_the_way, 1); /* the service may end now */
    check(before > 0);
}

enum urgency { MAY_BE_REFUSED, NEVER_REFUSED, NEVER_AT_ONCE };

static bool
post(struct loop *loop, struct route_service *service, struct route_value *value,
     enum urgency urgency)
{
    value->message.deliver = deliver;
    atomic_fetch_add(&service->on_the_way, 1);
    if (urgency != MAY_BE_REFUSED)
        loop_post_answer(loop, &value->message);
    else if (!loop_post(loop, &value->message)) {
        atomic_fetch_sub(&service->on_the_way, 1);
        return false;
    }
    return true;
}

static inline bool
send_value(struct owner owner, struct route_service *service, const struct route_notice *notice,
           struct route_value *value, enum urgency urgency)
{
    struct loop *self = loop_self(), *loop = route_loop_of(owner, self);
    value->notice = notice;
    value->service = service;
    if (loop != self || urgency == NEVER_AT_ONCE)
        return post(loop, service, value, urgency);
    notice->take(service->context, value);
    return true;
}

/* As between hosts: what arrives was read from bytes. */
static bool
send_bytes(struct owner owner, struct route_service *service, const struct route_notice *notice,
           struct route_value *value, enum urgency urgency, enum crossing crossing)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice bytes = notice->encode(value, arena);
    unsigned copies = crossing == CROSSING_LOST ? 0 : crossing == CROSSING_TWICE ? 2 : 1;
    for (unsigned i = 0; i < copies; i++) {
        struct route_value *copy = notice->decode(bytes);
        check_that(copy != NULL, "%s cannot be read", notice->name);
        if (send_value(owner, service, notice, copy, urgency))
            continue;
        notice->free(copy);
        if (i == 0)
            return false;
    }
    notice->free(value);
    return true;
}

static inline bool
tell(struct owner owner, struct route_service *service, const struct route_notice *notice,
     struct route_value *value, enum urgency urgency)
{
    enum crossing crossing =
        loop_crossing(loop_self(), notice->may_be_lost, notice->may_come_twice);
    if (crossing == CROSSING_WHOLE)
        return send_value(owner, service, notice, value, urgency);
    return send_bytes(owner, service, notice, value, urgency, crossing);
}

bool
route_tell(struct owner owner, struct route_service *service, const struct route_notice *notice,
           struct route_value *value)
{
    return tell(owner, service, notice, value, MAY_BE_REFUSED);
}

void
route_tell_surely(struct owner owner, struct route_service *service,
                  const struct route_notice *notice, struct route_value *value)
{
    bool is_told = tell(owner, service, notice, value, NEVER_REFUSED);
    check(is_told);
}

void
route_tell_later(struct owner owner, struct route_service *service,
                 const struct route_notice *notice, struct route_value *value)
{
    bool is_told = tell(owner, service, notice, value, NEVER_AT_ONCE);
    check(is_told);
}
