/* trace.c - what happened, as a number and as lines; and the probes of a scenario.
 *
 * The hash takes in every step: when, where, what kind, and a number that says which; and every
 * byte that hosts write to sockets and files. Names and numbers only, never an address: two runs of
 * one seed must agree on it, on any machine. Bytes are taken in because a host that lets an address
 * or memory it never wrote slip into what it sends would otherwise show only much later. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fiber/sim/inside.h"

static const char *const step_names[STEP_KIND_COUNT] = {
#define X(kind, name) [kind] = name,
    STEP_KINDS(X)
#undef X
};

/* One round of a multiplicative mix: each bit of the word reaches the high half, the shift brings
 * it down. */
static uint64_t
mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t
mix_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

static void
print_step(const struct world *world, const struct host *host, unsigned loop, const char *kind,
           const char *what, uint64_t number)
{
    fprintf(stderr, "%lld.%09lld %s/%u %s%s%s %llu\n", (long long)(world->now / 1000000000),
            (long long)(world->now % 1000000000), host == NULL ? "-" : host->name, loop, kind,
            what == NULL ? "" : " ", what == NULL ? "" : what, (unsigned long long)number);
}

void
world_trace(struct world *world, const struct host *host, unsigned loop, enum step_kind kind,
            const char *what, uint64_t number)
{
    uint64_t place = host == NULL ? 0 : host->index + 1;
    uint64_t hash = mix(world->hash, (uint64_t)world->now);
    hash = mix(hash, place << 32 | (uint64_t)loop << 8 | kind);
    hash = mix(hash, number);
    if (what != NULL)
        hash = mix_text(hash, what);
    world->hash = hash;
    if (world->options.print_trace)
        print_step(world, host, loop, step_names[kind], what, number);
}

void
world_trace_bytes(struct world *world, const void *bytes, size_t count)
{
    const uint8_t *next = bytes;
    uint64_t hash = mix(world->hash, count), word;
    for (; count >= sizeof word; count -= sizeof word, next += sizeof word) {
        memcpy(&word, next, sizeof word);
        hash = mix(hash, word);
    }
    for (; count > 0; count--)
        hash = mix(hash, *next++);
    world->hash = hash;
}

uint64_t
world_trace_hash(const struct world *world)
{
    return world->hash;
}

/* --- probes ----------------------------------------------------------------------------------- */

/* Where `name` is, or where it would be put. */
static size_t
find_probe(const struct world *world, const char *name, bool *is_there)
{
    size_t low = 0, high = world->probe_count;
    *is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, world->probes[middle].name);
        if (order == 0)
            *is_there = true;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void
world_probe(struct world *world, const char *name)
{
    bool is_there;
    size_t place = find_probe(world, name, &is_there);
    if (!is_there) {
        size_t size = (world->probe_count + 1) * sizeof *world->probes;
        world->probes = world_memory_resize(world, world->probes, size);
        struct probe_count *probe = &world->probes[place];
        memmove(probe + 1, probe, (world->probe_count - place) * sizeof *probe);
        *probe = (struct probe_count){.name = world_text(world, name)};
        world->probe_count++;
    }
    world->probes[place].count++;
}

uint64_t
world_probe_count(const struct world *world, const char *name)
{
    bool is_there;
    size_t place = find_probe(world, name, &is_there);
    return is_there ? world->probes[place].count : 0;
}

void
world_print_probes(const struct world *world)
{
    for (size_t i = 0; i < world->probe_count; i++)
        fprintf(stderr, "%8llu %s\n", (unsigned long long)world->probes[i].count,
                world->probes[i].name);
}

void
probes_free(struct world *world)
{
    for (size_t i = 0; i < world->probe_count; i++)
        memory_free(world->probes[i].name);
    memory_free(world->probes);
}
