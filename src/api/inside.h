/* inside.h - what the handlers of api/ share. Only files of api/ include it. */
#ifndef CADENZA_API_INSIDE_H
#define CADENZA_API_INSIDE_H

#include <protobuf-c/protobuf-c.h>

#include "api/api.h"
#include "base/map.h"
#include "wire/services.h"

/* One call on its way through a handler. */
struct api_call {
    struct api *api;
    struct grpc_call *grpc;
    struct arena *arena;
    const ProtobufCMessage *request; /* decoded; of the method's request type */
    ProtobufCMessage *response;      /* initialised; of the method's response type */
    struct domain *kept; /* a reference that the response needs until it is encoded; NULL: none */
};

struct method {
    const char *path; /* "/uber.cadence.api.v1.MetaAPI/Health" */
    /* Fills the response, or says why not. Runs in the call's fiber; may yield. The response is
     * encoded right after the handler's return. */
    struct error *(*handle)(struct api_call *call);
};

/* A method with its types and the series it counts in. */
struct method_state {
    const struct method *method;
    struct wire_method wire;
    struct counter *requests;
    struct counter *errors;
    struct histogram *latency;
};

struct api {
    struct api_options options;
    struct map *by_path;          /* path → struct method_state */
    struct method_state *methods; /* one per method of the table */
    struct arena *arena;          /* of the api's own life */
};

/* The table; ended by a method without a path. */
extern const struct method api_methods[];

/* The error as the public door says it: what clients do not know becomes UNKNOWN, as in Cadence. */
struct error *api_error_at_door(const struct error *err, const char *path, struct arena *arena);

/* Handlers, one file per service. */
struct error *api_health(struct api_call *call);
struct error *api_grpc_health_check(struct api_call *call);
struct error *api_get_cluster_info(struct api_call *call);
struct error *api_register_domain(struct api_call *call);
struct error *api_describe_domain(struct api_call *call);
struct error *api_list_domains(struct api_call *call);
struct error *api_update_domain(struct api_call *call);
struct error *api_deprecate_domain(struct api_call *call);
struct error *api_backup(struct api_call *call);

#endif
