/* services.c - the list of services, and the search by path in it. */
#include "wire/services.h"

#include <stdio.h>

#include "base/check.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

/* The busiest first: a search goes down the list. */
static const ProtobufCServiceDescriptor *const services[] = {
    &uber__cadence__api__v1__worker_api__descriptor,
    &uber__cadence__api__v1__workflow_api__descriptor,
    &uber__cadence__admin__v1__admin_api__descriptor,
    &uber__cadence__api__v1__domain_api__descriptor,
    &uber__cadence__api__v1__visibility_api__descriptor,
    &uber__cadence__api__v1__schedule_api__descriptor,
    &uber__cadence__api__v1__meta_api__descriptor,
    &grpc__health__v1__health__descriptor,
    &cadenza__admin__v1__store_api__descriptor,
    &cadenza__admin__v1__limits_api__descriptor,
    &cadenza__admin__v1__runs_api__descriptor,
    &cadenza__admin__v1__visibility_api__descriptor,
    &cadenza__admin__v1__audit_api__descriptor,
    &cadenza__admin__v1__replication_api__descriptor,
    &cadenza__admin__v1__entity_api__descriptor,
};

static struct wire_method
method_of(const ProtobufCServiceDescriptor *service, unsigned index, size_t before)
{
    check(index < service->n_methods);
    const ProtobufCMethodDescriptor *method = &service->methods[index];
    return (struct wire_method){
        .service = service,
        .name = method->name,
        .request = method->input,
        .response = method->output,
        .index = before + index,
    };
}

size_t
wire_method_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < array_length(services); i++)
        count += services[i]->n_methods;
    return count;
}

struct wire_method
wire_method_at(size_t index)
{
    size_t before = 0;
    for (size_t i = 0; i < array_length(services); i++) {
        if (index < before + services[i]->n_methods)
            return method_of(services[i], (unsigned)(index - before), before);
        before += services[i]->n_methods;
    }
    unreachable("method %zu of %zu", index, before);
}

/* Which method of the service has this name; n_methods: none. */
static unsigned
service_find(const ProtobufCServiceDescriptor *service, struct slice name)
{
    unsigned low = 0, high = service->n_methods;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        unsigned index = service->method_indices_by_name[middle];
        int order = slice_compare(slice_text(service->methods[index].name), name);
        if (order == 0)
            return index;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return service->n_methods;
}

bool
wire_method_find(struct slice path, struct wire_method *method)
{
    if (path.length == 0 || path.data[0] != '/')
        return false;
    struct slice name = slice_skip(path, 1);
    const uint8_t *slash = name.length == 0 ? NULL : memchr(name.data, '/', name.length);
    if (slash == NULL)
        return false;
    struct slice service = slice_of(name.data, (size_t)(slash - name.data));
    name = slice_skip(name, service.length + 1);
    size_t before = 0;
    for (size_t i = 0; i < array_length(services); i++) {
        if (slice_equal(service, slice_text(services[i]->name))) {
            unsigned index = service_find(services[i], name);
            if (index == services[i]->n_methods)
                return false;
            *method = method_of(services[i], index, before);
            return true;
        }
        before += services[i]->n_methods;
    }
    return false;
}

bool
wire_method_find_request(const ProtobufCMessageDescriptor *type, struct wire_method *method)
{
    size_t before = 0;
    for (size_t i = 0; i < array_length(services); i++) {
        for (unsigned j = 0; j < services[i]->n_methods; j++) {
            if (services[i]->methods[j].input == type) {
                *method = method_of(services[i], j, before);
                return true;
            }
        }
        before += services[i]->n_methods;
    }
    return false;
}

void
wire_method_path(const struct wire_method *method, char *room, size_t size)
{
    int length = snprintf(room, size, "/%s/%s", method->service->name, method->name);
    check_that(length > 0 && (size_t)length < size, "no room for /%s/%s", method->service->name,
               method->name);
}
