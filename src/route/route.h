/* route.h - finds the owner of a thing and delivers there: this loop or another one.
 *
 * In this stage a cluster is one process, so an owner is a loop: shard i lives on loop i modulo the
 * number of loops. Callers name the thing, never the loop; when hosts join, only this folder
 * changes. */
#ifndef CADENZA_ROUTE_ROUTE_H
#define CADENZA_ROUTE_ROUTE_H

#include <stdint.h>

#include "base/error.h"
#include "fiber/loop.h"
#include "route/owner.h"

/* Runs function(argument) in a fiber where an owner of this process lives, and waits until it has
 * returned. For the life of what a process has (it opens and closes its shards), and for nothing
 * that one owner wants of another: that is a question (ask.h) or a value (tell.h). Never refused.
 * Yields; ignores cancellation. */
void route_within_process(struct owner owner, void (*function)(void *argument), void *argument);
/* A message to where the shard lives; see loop_post and loop_post_answer. Any loop; no yield. */
must_use bool route_post_to_shard(uint32_t shard, struct loop_message *message);
void route_answer_to_shard(uint32_t shard, struct loop_message *message);

#endif
