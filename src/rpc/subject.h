/* subject.h - what a call is about: the domain, workflow, task list or shard that its request
 * names.
 *
 * Found here and nowhere else, by the fields of the request, so that who may make a call, what it
 * counts against, where it is answered and what the audit writes down mean the same thing
 * (docs/design/030). Where a request carries another one, as asynchronous starts do, that one is
 * looked at. What is inside of a token only its door can read: here are its bytes. */
#ifndef CADENZA_RPC_SUBJECT_H
#define CADENZA_RPC_SUBJECT_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"
#include "rpc/method.h"
#include "uber/cadence/api/v1/tasklist.pb-c.h"
#include "wire/names.h"

/* Where requests of one type say it; NULL: they have no such field. */
struct subject_fields {
    const ProtobufCFieldDescriptor *outer[2]; /* the requests inside, from the outside in */
    const ProtobufCMessageDescriptor *type;   /* of the one that the others are fields of */
    const ProtobufCFieldDescriptor *domain, *domain_id, *filters, *filters_domain_id;
    const ProtobufCFieldDescriptor *execution, *workflow_id, *run_id, *schedule_id, *token;
    const ProtobufCFieldDescriptor *task_list, *shard;
};

/* In the request's memory. What it does not say is "", empty or NULL. */
struct rpc_subject {
    const void *request; /* the request inside, or the whole; NULL: it was not given */
    const char *domain, *domain_id;
    const char *workflow_id, *run_id;
    const char *schedule_id;
    bool has_token; /* that names domain and workflow instead */
    struct slice token;
    const API(TaskList) *task_list;
    int64_t shard; /* -1: none */
};

/* Once for each method. */
struct subject_fields subject_fields_of(const ProtobufCMessageDescriptor *type);
/* Fills it: of one request of that type, which may be NULL. No yield. */
void subject_read(const struct subject_fields *fields, const ProtobufCMessage *whole,
                  struct rpc_subject *subject);
/* The request inside alone. */
const void *subject_request(const struct subject_fields *fields, const ProtobufCMessage *request);
/* Can the requests name an owner of that kind? */
bool subject_names(const struct subject_fields *fields, enum call_owner owner);

#endif
