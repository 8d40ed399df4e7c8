/* names.h - short names for what the protobuf compiler names at length.
 *
 *   API(DescribeDomainRequest) *request    the struct of uber.cadence.api.v1.DescribeDomainRequest
 *   API_TYPE(describe_domain_request)      its descriptor, for message.h
 *   API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED)   a number of an enum
 *   API_NEW(arena, describe_domain_request, .name = "orders")   one with these fields (message.h)
 *   API_DECISION(arena, start_timer, .timer_id = "t")   a decision whose attributes have these
 *   API_EVENT(arena, timer_fired, .timer_id = "t")   the same of an event
 *
 * The same for the other packages. The struct itself comes from the generated header of its file,
 * for example "uber/cadence/api/v1/service_domain.pb-c.h". */
#ifndef CADENZA_WIRE_NAMES_H
#define CADENZA_WIRE_NAMES_H

#define API(name)            Uber__Cadence__Api__V1__##name
#define API_TYPE(name)       (&uber__cadence__api__v1__##name##__descriptor)
#define API_VALUE(name)      UBER__CADENCE__API__V1__##name
#define ADMIN(name)          Uber__Cadence__Admin__V1__##name
#define ADMIN_TYPE(name)     (&uber__cadence__admin__v1__##name##__descriptor)
#define ADMIN_VALUE(name)    UBER__CADENCE__ADMIN__V1__##name
#define SHARED(name)         Uber__Cadence__Shared__V1__##name
#define SHARED_TYPE(name)    (&uber__cadence__shared__v1__##name##__descriptor)
#define GOOGLE(name)         Google__Protobuf__##name
#define GOOGLE_TYPE(name)    (&google__protobuf__##name##__descriptor)
#define HEALTH(name)         Grpc__Health__V1__##name
#define HEALTH_TYPE(name)    (&grpc__health__v1__##name##__descriptor)
#define STORED(name)         Cadenza__Storage__V1__##name
#define STORED_TYPE(name)    (&cadenza__storage__v1__##name##__descriptor)
#define STORE_API(name)      Cadenza__Admin__V1__##name
#define INTERNAL(name)       Cadenza__Internal__V1__##name
#define INTERNAL_TYPE(name)  (&cadenza__internal__v1__##name##__descriptor)
#define INTERNAL_VALUE(name) CADENZA__INTERNAL__V1__##name

#define API_NEW(arena, name, ...) MESSAGE_NEW(arena, uber__cadence__api__v1__##name, __VA_ARGS__)
#define API_DECISION(arena, kind, ...)                                                             \
    ((API(Decision) *)message_new_around(                                                          \
        (arena), API_TYPE(decision),                                                               \
        &API_NEW(arena, kind##_decision_attributes, __VA_ARGS__)->base))
#define API_EVENT(arena, kind, ...)                                                                \
    ((API(HistoryEvent) *)message_new_around(                                                      \
        (arena), API_TYPE(history_event),                                                          \
        &API_NEW(arena, kind##_event_attributes, __VA_ARGS__)->base))
#define ADMIN_NEW(arena, name, ...)                                                                \
    MESSAGE_NEW(arena, uber__cadence__admin__v1__##name, __VA_ARGS__)
#define GOOGLE_NEW(arena, name, ...) MESSAGE_NEW(arena, google__protobuf__##name, __VA_ARGS__)
#define STORED_NEW(arena, name, ...) MESSAGE_NEW(arena, cadenza__storage__v1__##name, __VA_ARGS__)

#define STORE_API_NEW(arena, name, ...) MESSAGE_NEW(arena, cadenza__admin__v1__##name, __VA_ARGS__)
#define INTERNAL_NEW(arena, name, ...)                                                             \
    MESSAGE_NEW(arena, cadenza__internal__v1__##name, __VA_ARGS__)

#endif
