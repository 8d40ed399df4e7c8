/* history_sample.h - version histories as texts, for the tests of this folder. */
#ifndef CADENZA_ENGINE_TEST_HISTORY_SAMPLE_H
#define CADENZA_ENGINE_TEST_HISTORY_SAMPLE_H

#include "engine/branches/branches.h"

/* VERSIONS({3, 1}, {5, 2}): lives as long as the block. */
#define VERSIONS(...)                                                                              \
    ((struct versions){(const struct version_item[]){__VA_ARGS__},                                 \
                       sizeof((const struct version_item[]){__VA_ARGS__}) /                        \
                           sizeof(struct version_item)})
#define ITEM(id, version) ((struct version_item){(id), (version)})

/* "(3,1)(5,2)" */
const char *sample_text(struct versions versions, struct arena *arena);
/* The histories, the current one first: "(2,1)(4,3) | (3,1)". */
const char *sample_branches(const struct run_branches *branches, struct arena *arena);
/* A branch of the store with a name of one byte, in one tree for all. */
struct history_branch sample_branch(uint8_t name);

#endif
