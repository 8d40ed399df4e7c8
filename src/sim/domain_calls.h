/* domain_calls.h - the calls that the simulated clients make, over the real client and wire. Only
 * files of sim/ include it. */
#ifndef CADENZA_SIM_DOMAIN_CALLS_H
#define CADENZA_SIM_DOMAIN_CALLS_H

#include "base/error.h"
#include "sim/domain_load.h"

struct load_clients; /* a connection to each host, of one fiber */
struct load_clients *load_clients_new(struct sim_cluster *cluster);
void load_clients_free(struct load_clients *clients);

struct load_call {
    struct load_clients *clients;
    unsigned host; /* whom to ask */
    struct arena *arena;
};

const char *load_domain_name(struct arena *arena, unsigned worker, unsigned index);
must_use struct error *load_register(struct load_call *call, const char *name);
/* Sets the description to a number. */
must_use struct error *load_describe_as(struct load_call *call, const char *name,
                                        uint32_t sequence);
/* Reads that number back; 0: no description. */
must_use struct error *load_read(struct load_call *call, const char *name, uint32_t *sequence);
/* Calls `visit` for every domain that the host knows. */
must_use struct error *load_list(struct load_call *call,
                                 void (*visit)(void *context, const char *name, uint32_t sequence),
                                 void *context);

/* Counts an answer; an error that the server should never give is a violation. */
void load_count(struct domain_load *load, const struct error *err);
/* Notes the first violation. */
void domain_load_violate(struct domain_load *load, const char *format, ...) printf_like(2, 3);

#endif
