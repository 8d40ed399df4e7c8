/* schedule_inside.h - what the files of the schedules' load share. */
#ifndef CADENZA_SIM_SCHEDULE_SCHEDULE_INSIDE_H
#define CADENZA_SIM_SCHEDULE_SCHEDULE_INSIDE_H

#include "sim/schedule/schedule_load.h"
#include "sim/world/calls.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"

#define SCHEDULE_DOMAIN "plans"

/* The client, in its fiber. */
struct schedule_client {
    struct schedule_load *load;
    struct arena *arena; /* of one step */
    struct load_clients *clients;
};

char *schedule_case_id(unsigned case_number, struct arena *arena);
/* Sends a call until it is acknowledged. Yields. */
#define schedule_send(client, request, response)                                                   \
    schedule_send_at((client), &(request)->base, (ProtobufCMessage **)(response))
void schedule_send_at(struct schedule_client *client, const ProtobufCMessage *request,
                      ProtobufCMessage **response);
/* Compares what was started with the models. Yields. */
void schedule_verify(struct schedule_client *client);

#endif
