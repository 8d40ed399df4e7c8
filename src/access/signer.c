/* signer.c - see signer.h. */
#include "access/signer.h"

#include <string.h>

#include "access/signing.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/loop.h"

#define KEY_MAX      (64u * 1024)
#define LIFE_SECONDS 600

/* What one loop shows. */
struct shown {
    char *token;      /* NULL: none yet */
    int64_t renew_at; /* by the wall clock, which is what the other side reads it by */
    int64_t made_at;
    struct slice key; /* PEM; that loop's own, in memory_alloc */
};

struct access_signer {
    struct grpc_live_header header;
    char *file;
    struct shown *shown; /* by loop; only that loop touches its own */
    unsigned loop_count;
};

static const char *
make_token(struct slice key, int64_t now, struct arena *arena)
{
    const char *claims = arena_format(
        arena, "{\"Name\":\"cadence-xdc-client\",\"Admin\":true,\"TTL\":%d,\"iat\":%lld}",
        LIFE_SECONDS, (long long)(now / NS_PER_S));
    return access_sign_token(key, claims, arena);
}

/* A clock that was set back makes a token of the future, which is refused: so that one goes, too.
 */
static const char *
current_token(void *context, struct arena *arena)
{
    struct access_signer *signer = context;
    unsigned index = loop_index(loop_self());
    check(index < signer->loop_count);
    struct shown *shown = &signer->shown[index];
    int64_t now = clock_wall();
    if (shown->token == NULL || now >= shown->renew_at || now < shown->made_at) {
        const char *token = make_token(shown->key, now, arena);
        check(token != NULL); /* the key was tried when it was read */
        size_t size = strlen(token) + 1;
        memory_free(shown->token);
        shown->token = memory_alloc(size);
        memcpy(shown->token, token, size);
        shown->made_at = now;
        shown->renew_at = now + LIFE_SECONDS / 2 * NS_PER_S;
    }
    return arena_text(arena, shown->token);
}

/* `known` needs no trial. */
static struct error *
load_key(const char *file, struct slice known, struct arena *arena, struct slice *pem)
{
    struct error *err = file_load(file, KEY_MAX, arena, pem);
    if (err != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", err->message);
    if (!slice_equal(*pem, known) && make_token(*pem, clock_wall(), arena) == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s is no private RSA key in PEM", file);
    return NULL;
}

static void
set_key(struct shown *shown, struct slice pem)
{
    uint8_t *copy = memory_alloc(pem.length);
    memcpy(copy, pem.data, pem.length);
    memory_free((void *)shown->key.data);
    memory_free(shown->token);
    *shown = (struct shown){.key = slice_of(copy, pem.length)};
}

struct error *
access_signer_open(const char *file, struct arena *arena, struct access_signer **signer)
{
    struct slice pem;
    struct error *err = load_key(file, (struct slice){0}, arena, &pem);
    if (err != NULL)
        return err;
    struct access_signer *opened = memory_zalloc(1, sizeof *opened);
    opened->header = (struct grpc_live_header){"cadence-authorization", current_token, opened};
    opened->file = memory_alloc(strlen(file) + 1);
    memcpy(opened->file, file, strlen(file) + 1);
    opened->loop_count = loop_count();
    opened->shown = memory_zalloc(opened->loop_count, sizeof *opened->shown);
    for (unsigned i = 0; i < opened->loop_count; i++)
        set_key(&opened->shown[i], pem);
    *signer = opened;
    return NULL;
}

/* --- another key ---- */

struct renewal {
    struct access_signer *signer;
    struct slice pem;
};

static void
take_key(void *argument)
{
    struct renewal *renewal = argument;
    set_key(&renewal->signer->shown[loop_index(loop_self())], renewal->pem);
}

struct error *
access_signer_renew(struct access_signer *signer, struct arena *arena, bool *is_renewed)
{
    struct renewal renewal = {.signer = signer};
    *is_renewed = false;
    struct slice known = signer->shown[loop_index(loop_self())].key;
    struct error *err = load_key(signer->file, known, arena, &renewal.pem);
    if (err != NULL || slice_equal(renewal.pem, known))
        return err;
    for (unsigned i = 0; i < signer->loop_count; i++) {
        while (loop_call(loop_at(i), take_key, &renewal, arena) != NULL)
            fiber_yield(); /* its mailbox is full, for the moment */
    }
    *is_renewed = true;
    return NULL;
}

void
access_signer_free(struct access_signer *signer)
{
    if (signer == NULL)
        return;
    for (unsigned i = 0; i < signer->loop_count; i++) {
        memory_free(signer->shown[i].token);
        memory_free((void *)signer->shown[i].key.data);
    }
    memory_free(signer->shown);
    memory_free(signer->file);
    memory_free(signer);
}

const struct grpc_live_header *
access_signer_header(const struct access_signer *signer)
{
    return &signer->header;
}
