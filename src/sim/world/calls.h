/* calls.h - the calls that the simulated clients make, over the real client and wire. Only files of
 * sim/ include it.
 *
 * Each asks one host and ends by the fiber's deadline. Answers live in the call's arena. */
#ifndef CADENZA_SIM_WORLD_CALLS_H
#define CADENZA_SIM_WORLD_CALLS_H

#include "base/error.h"
#include "net/grpc.h"
#include "sim/world/sim.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

struct load_clients; /* a connection to each host, of one fiber */
struct load_clients *load_clients_new(struct sim *sim);
void load_clients_free(struct load_clients *clients);

struct load_call {
    struct load_clients *clients;
    unsigned host; /* whom to ask */
    struct arena *arena;
    bool is_worker;                    /* says that it is one, of a version that knows everything */
    bool wants_committed;              /* of a list: all that was committed before the call */
    const struct call_header *headers; /* others; NULL: none */
    size_t header_count;
};

/* Any call: that of the method that takes this request. NULL for a response that nobody reads. */
#define load_send(call, request, response)                                                         \
    load_send_at((call), &(request)->base, (ProtobufCMessage **)(response))
must_use struct error *load_send_at(struct load_call *call, const ProtobufCMessage *request,
                                    ProtobufCMessage **response);

/* One attribute of an active-active domain, and the cluster that is (to be) active for it. */
struct load_attribute {
    const char *scope, *name;
    const char *cluster;
};

/* As a request has them; those of one scope stand together. */
API(ActiveClusters) *load_make_attributes(struct arena *arena,
                                          const struct load_attribute *attributes, size_t count);

struct load_registration {
    const char *name;
    bool is_global;             /* replicated to `cluster_count` clusters */
    unsigned cluster_count;     /* of a global one: cluster0 … */
    const char *active_cluster; /* of a global one */
    const struct load_attribute *attributes;
    size_t attribute_count; /* 0: not active-active */
};
must_use struct error *load_register(struct load_call *call,
                                     const struct load_registration *registration);

/* Sets the description to a number. */
must_use struct error *load_describe_as(struct load_call *call, const char *name,
                                        uint32_t sequence);
/* That number; 0: no description. */
uint32_t load_sequence(const API(Domain) *domain);
must_use struct error *load_describe(struct load_call *call, const char *name,
                                     API(Domain) **domain);
/* Calls `visit` for every domain that the host knows. */
must_use struct error *load_list(struct load_call *call,
                                 void (*visit)(void *context, const char *name, uint32_t sequence),
                                 void *context);

/* Moves a domain, or one attribute of it (`attribute` not NULL), to another cluster; by
 * FailoverDomain or by UpdateDomain. `domain` is as the answer shows it. */
struct load_failover {
    const char *name;
    const char *cluster;                    /* NULL: the domain itself stays */
    const struct load_attribute *attribute; /* NULL: no attribute moves */
    bool by_update;
    int64_t timeout; /* seconds that a graceful one has; 0: by force; not by_update */
};
must_use struct error *load_failover(struct load_call *call, const struct load_failover *failover,
                                     API(Domain) **domain);
must_use struct error *load_deprecate(struct load_call *call, const char *name);
must_use struct error *load_delete(struct load_call *call, const char *name);
/* Calls `visit` for every failover of the domain that the host knows. */
must_use struct error *load_list_failovers(struct load_call *call, const char *domain_id,
                                           void (*visit)(void *context,
                                                         const API(ClusterFailover) *failover),
                                           void *context);
/* The host's dead letters; the second tries them once more. */
must_use struct error *load_count_dead_letters(struct load_call *call, uint64_t *count);
must_use struct error *load_merge_dead_letters(struct load_call *call);

#endif
