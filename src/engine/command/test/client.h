/* client.h - how a client library reads a history: the state machine of a worker, in its strictest
 * form.
 *
 * A worker does not ask for the ids of its decisions' events. It takes the first one to be the one
 * behind DecisionTaskCompleted, each other one to be the next, and keeps a machine under each id.
 * Everything else in the history has to be about a machine that is there and can take it. A history
 * that breaks this stops the workflow ("Unknown DecisionId"). */
#ifndef CADENZA_ENGINE_COMMAND_TEST_CLIENT_H
#define CADENZA_ENGINE_COMMAND_TEST_CLIENT_H

#include "engine/command/test/fixture.h"

#define CLIENT_EVENTS_MAX 4096
#define CLIENT_LIST_MAX   50

/* What waits under the id of the event that began it. */
enum client_machine {
    CLIENT_NOTHING, /* no machine: a marker, a signal, ... */
    CLIENT_ACTIVITY,
    CLIENT_TIMER,
    CLIENT_CHILD,
    CLIENT_EXTERNAL,
};
enum client_state { CLIENT_BEGUN, CLIENT_RUNNING, CLIENT_OVER };

/* A list of decisions that was sent as the answer to a started decision. */
struct client_list {
    API(Decision__AttributesCase) kinds[CLIENT_LIST_MAX];
    size_t count;
};

struct client {
    struct client_list *sent[CLIENT_EVENTS_MAX]; /* by the id of DecisionTaskStarted; the newest */
    struct {
        enum client_machine machine;
        enum client_state state;
        int64_t started_id;
    } by_id[CLIENT_EVENTS_MAX];
    size_t seen; /* events that were read */
};

/* Remembers what is sent as the answer to the newest decision. */
void client_send(struct client *client, struct fixture *fixture, API(Decision) *const *decisions,
                 size_t count);
/* Reads the events of the newest run, from the first one or, sticky, those that are new. Fails the
 * test at the first one that a client cannot understand. */
void client_read(struct client *client, const struct fixture *fixture, bool is_sticky,
                 uint64_t seed);

#endif
