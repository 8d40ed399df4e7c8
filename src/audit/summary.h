/* summary.h - a request in a few words, for people. */
#ifndef CADENZA_AUDIT_SUMMARY_H
#define CADENZA_AUDIT_SUMMARY_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

/* "name=orders active_cluster_name=west replication{…}": what is set, cut at some length. Bytes and
 * tokens are left out. */
const char *summary_of(const ProtobufCMessage *message, struct arena *arena);

#endif
