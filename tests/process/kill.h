/* kill.h - what the kill tests share: the real binary in a process of its own, 32 connections that
 * make calls, kill -9 after a number of answers, and a look into the folder that is left. */
#ifndef CADENZA_TESTS_KILL_H
#define CADENZA_TESTS_KILL_H

#include <sys/types.h>

#include "domain/domains.h"
#include "fiber/sync.h"
#include "net/client.h"

#define KILL_CONNECTIONS 32

struct kill_storm;

/* What one test fills in. */
struct kill_work {
    /* One call of the worker with that number; false: there is nothing left to do. *err is what
     * came of it. */
    bool (*call)(struct kill_storm *storm, unsigned worker, struct grpc_client *client,
                 struct arena *arena, struct error **err);
    /* Compares the folder with what was answered. */
    void (*verify)(struct kill_storm *storm, const struct domains *domains, struct arena *arena);
};

struct kill_storm {
    const struct kill_work *work;
    void *context; /* the test's */
    char folder[64], data[80], address[32];
    pid_t server;
    int round; /* rounds so far */
    unsigned next_worker;
    unsigned calls;    /* of all rounds */
    unsigned answers;  /* of this round */
    unsigned in_doubt; /* calls of all rounds without an answer */
    unsigned kill_at;  /* after so many answers of this round */
    bool is_killed;
    struct latch workers;
};

/* A new folder, a free address. */
void kill_open(struct kill_storm *storm, const struct kill_work *work, void *context);
/* Starts the server, lets all connections work, kills the server after `kill_at` answers, opens the
 * folder and verifies: the counter has no gap and no repeat, and what the test looks for. */
void kill_round(struct kill_storm *storm, unsigned kill_at);
/* Removes the folder. */
void kill_close(struct kill_storm *storm);

/* Calls for the tests. */
must_use struct error *kill_register(struct grpc_client *client, const char *name,
                                     struct arena *arena);
must_use struct error *kill_describe_as(struct grpc_client *client, const char *name,
                                        const char *description, struct arena *arena);

#endif
