/* services.h - every RPC of the wire: its path and the types it takes and gives.
 *
 * Made of the service descriptors that the protobuf compiler writes, so it cannot differ from
 * proto/. Methods have indexes 0 .. wire_method_count() - 1, the same in every process of one
 * build: handlers, limits and metrics can be plain arrays. */
#ifndef CADENZA_WIRE_SERVICES_H
#define CADENZA_WIRE_SERVICES_H

#include <protobuf-c/protobuf-c.h>

#include "base/compiler.h"
#include "base/slice.h"

struct wire_method {
    const ProtobufCServiceDescriptor *service; /* service->name: "uber.cadence.api.v1.DomainAPI" */
    const char *name;                          /* "DescribeDomain" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    size_t index;
};

/* How many methods there are. */
size_t wire_method_count(void);
/* The method with this index, which must be below the count. */
struct wire_method wire_method_at(size_t index);
/* The method of a path as in ":path", "/uber.cadence.api.v1.DomainAPI/DescribeDomain". False: no
 * such service or method. */
must_use bool wire_method_find(struct slice path, struct wire_method *method);
/* The method that takes this type; true for each request but Health's, which two of them take (the
 * first counts). False: no method takes it. */
must_use bool wire_method_find_request(const ProtobufCMessageDescriptor *type,
                                       struct wire_method *method);
/* The path of a method into `room` of `size` bytes, which must be enough (WIRE_PATH_SIZE is). */
#define WIRE_PATH_SIZE 128
void wire_method_path(const struct wire_method *method, char *room, size_t size);

#endif
