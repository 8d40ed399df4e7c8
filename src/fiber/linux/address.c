/* address.c - "name:port" to socket addresses and back.
 *
 * Looking up a name blocks, so the pool does it. It may take longer than the caller is willing to
 * wait: then the caller goes and the lookup frees itself when it comes back. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/linux/inside.h"

struct address_lookup {
    struct pool_job job;
    char *host; /* "" gives every interface (passive) or this host */
    char *port;
    struct addrinfo hints;
    struct addrinfo *list;
    int failed;
    struct fiber *fiber; /* NULL: the caller has gone */
    bool is_done;
};

static void
lookup_work(void *argument)
{
    struct address_lookup *lookup = argument;
    lookup->failed = getaddrinfo(lookup->host[0] == '\0' ? NULL : lookup->host, lookup->port,
                                 &lookup->hints, &lookup->list);
}

static void
lookup_free(struct address_lookup *lookup)
{
    if (lookup->list != NULL)
        freeaddrinfo(lookup->list);
    memory_free(lookup->host);
    memory_free(lookup);
}

static void
lookup_done(struct pool_job *job)
{
    struct address_lookup *lookup = container_of(job, struct address_lookup, job);
    lookup->is_done = true;
    if (lookup->fiber != NULL)
        fiber_wake(lookup->fiber);
    else
        lookup_free(lookup);
}

/* Splits at the last colon; brackets around an IPv6 host go away. */
static struct address_lookup *
lookup_new(const char *address, bool is_passive)
{
    const char *colon = strrchr(address, ':');
    const char *host = address;
    size_t length = (size_t)(colon - address);
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    struct address_lookup *lookup = memory_zalloc(1, sizeof *lookup);
    lookup->host = memory_zalloc(length + 1 + strlen(colon), 1);
    memcpy(lookup->host, host, length);
    lookup->port = lookup->host + length + 1;
    memcpy(lookup->port, colon + 1, strlen(colon + 1));
    lookup->hints = (struct addrinfo){.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    lookup->hints.ai_flags = AI_NUMERICSERV | (is_passive ? AI_PASSIVE : 0);
    lookup->job.work = lookup_work;
    lookup->job.argument = lookup;
    lookup->job.done = lookup_done;
    return lookup;
}

/* Waits for the pool's answer; if it does not come in time the lookup is left to itself. */
static struct error *
lookup_wait(struct address_lookup *lookup, int64_t deadline, struct arena *arena)
{
    lookup->fiber = fiber_self();
    if (!pool_submit(&lookup->job, true)) {
        lookup_free(lookup);
        return error_new(arena, ERR_UNAVAILABLE, "too many lookups of names wait already");
    }
    while (!lookup->is_done) {
        enum wake wake = fiber_wait(deadline);
        if (wake == WAKE_READY || lookup->is_done)
            continue;
        struct error *err = wake_error(wake, arena, "looking up a name");
        lookup->fiber = NULL;
        return err;
    }
    return NULL;
}

struct error *
address_resolve(const char *address, bool is_passive, int64_t deadline, struct arena *arena,
                struct addrinfo **list)
{
    const char *fault = text_address_fault(address, arena);
    if (fault != NULL)
        return error_new(arena, ERR_UNAVAILABLE, "%s", fault);
    struct address_lookup *lookup = lookup_new(address, is_passive);
    lookup->hints.ai_flags |= AI_NUMERICHOST; /* first without asking anybody */
    lookup_work(lookup);
    if (lookup->failed == EAI_NONAME) {
        lookup->hints.ai_flags &= ~AI_NUMERICHOST;
        struct error *err = lookup_wait(lookup, deadline, arena);
        if (err != NULL)
            return error_wrap(err, "%s", address);
    }
    struct error *err = NULL;
    if (lookup->failed != 0)
        err = error_new(arena, ERR_UNAVAILABLE, "%s: %s", address, gai_strerror(lookup->failed));
    *list = lookup->list;
    lookup->list = NULL;
    lookup_free(lookup);
    return err;
}

void
address_print(const struct sockaddr *address, char text[ADDRESS_TEXT_SIZE])
{
    bool is_six = address->sa_family == AF_INET6;
    socklen_t size = is_six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    char host[48], port[8];
    int failed = getnameinfo(address, size, host, sizeof host, port, sizeof port,
                             NI_NUMERICHOST | NI_NUMERICSERV);
    if (failed != 0)
        snprintf(text, ADDRESS_TEXT_SIZE, "unknown");
    else
        snprintf(text, ADDRESS_TEXT_SIZE, is_six ? "[%s]:%s" : "%s:%s", host, port);
}
