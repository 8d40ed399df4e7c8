/* server.h - a server is a value: its parts, built in order, started, drained and stopped in the
 * reverse one.
 *
 * The same code serves a real process (process.h) and a simulated host (sim/): what differs, the
 * store, comes in open. Order: domains (read from the store) → matching → search attributes →
 * engine (takes the shards) → feeder of visibility → api and replication → gRPC port → the server's
 * own workers → following the other clusters → ready. Stopping: health fails first; then the other
 * clusters are no longer followed, waiting polls end and no new calls are accepted; calls in
 * progress end; then the parts go in reverse, except that the engine goes before matching, to which
 * it hands tasks.
 *
 * Engine and matching do not know each other: a task that the engine offers is added to its list,
 * and a task that matching has stored or dropped is done for the engine. */
#ifndef CADENZA_SERVER_SERVER_H
#define CADENZA_SERVER_SERVER_H

#include "api/api.h"
#include "config/config.h"
#include "config/dynamic.h"
#include "store/store.h"

struct server;

struct server_options {
    const struct config *config;
    const char *config_file;       /* where it came from, for refusals; NULL: nowhere */
    struct dynamic *dynamic;       /* stored settings are put over it */
    struct store *store;           /* stays the caller's; to be closed after server_stop */
    struct visibility *visibility; /* stays the caller's, as the store does */
    const char *grpc_address;      /* NULL: as configured */
    const char *host;              /* who we are among the hosts of the cluster; NULL: "cadenza" */
    const char *accept_loss;       /* recovery.h; NULL: nothing */
    uint32_t shard_count;          /* what the store was made with; 0: as configured */
    const struct log *log;
    struct metrics *metrics;
    _Atomic(enum server_phase)
        *phase; /* the caller's, so that a health page exists before and after the server */
    int64_t domain_refresh_interval;   /* for several hosts on one store; 0: alone */
    bool has_system_domains;           /* registers those of system workflows at the first start */
    size_t transfers_max, wakeups_max; /* engine/engine.h; 0: a default */
    bool skips_time; /* the clock jumps when everything waits for timers (skip.h); one loop only */
};

/* Starts all parts; when it returns the server answers. On loop 0. Yields. Errors: a bad setting
 * (ERR_BAD_REQUEST), an address in use (ERR_IO), the store. */
must_use struct error *server_start(const struct server_options *options, struct arena *arena,
                                    struct server **server);
/* The address of the gRPC port, with its real number. */
const char *server_grpc_address(const struct server *server);
/* While it recovers from lost memory: what is not served and what is waited for, "recovering: …"
 * (domains_recovery_text). NULL: it does not. From any loop, no yield; not once it is stopped. */
const char *server_recovery_text(const struct server *server);
/* Drains and stops; calls that do not end within `grace` ns are cut. `grace` is 0 or more. On the
 * loop that started it. Yields; cannot be cancelled. */
void server_stop(struct server *server, int64_t grace);

#endif
