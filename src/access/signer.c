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
struct loop_signer {
    char *token;      /* NULL: none yet */
    int64_t renew_at; /* by the wall clock, which is what the other side reads it by */
    int64_t made_at;
    struct slice key; /* PEM; that loop's own, in memory_alloc */
};

struct access_signer {
    struct grpc_live_header header;
    char *file;
    struct loop_signer *loop_signer; /* by loop; only that loop touches its own */
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

/* After the clock was set back the token seems to be from the future, which the other side refuses:
 * a new one is made then, too. */
static const char *
current_token(void *context, struct arena *arena)
{
    struct access_signer *signer = context;
    unsigned index = loop_index(loop_self());
    check(index < signer->loop_count);
    struct loop_signer *loop_signer = &signer->loop_signer[index];
    int64_t now = clock_wall();
    if (loop_signer->token == NULL || now >= loop_signer->renew_at || now < loop_signer->made_at) {
        const char *token = make_token(loop_signer->key, now, arena);
        check(token != NULL); /* the key was tried when it was read */
        size_t size = strlen(token) + 1;
        memory_free(loop_signer->token);
        loop_signer->token = memory_alloc(size);
        memcpy(loop_signer->token, token, size);
        loop_signer->made_at = now;
        loop_signer->renew_at = now + LIFE_SECONDS / 2 * NS_PER_S;
    }
    return arena_text(arena, loop_signer->token);
}

/* A key equal to `known` has been tried already. */
static struct error *
load_key(const char *file, struct slice known, struct arena *arena, struct slice *pem)
{
    struct error *err = file_load(file, KEY_MAX, arena, pem);
    if (err != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", err->message);
    if (!slice_equal(*pem, known) && make_token(*pem, clock_wall(), arena) == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s is not an RSA private key in PEM format",
                         file);
    return NULL;
}

static void
set_key(struct loop_signer *loop_signer, struct slice pem)
{
    uint8_t *copy = memory_alloc(pem.length);
    memcpy(copy, pem.data, pem.length);
    memory_free((void *)loop_signer->key.data);
    memory_free(loop_signer->token);
    *loop_signer = (struct loop_signer){.key = slice_of(copy, pem.length)};
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
    opened->loop_signer = memory_zalloc(opened->loop_count, sizeof *opened->loop_signer);
    for (unsigned i = 0; i < opened->loop_count; i++)
        set_key(&opened->loop_signer[i], pem);
    *signer = opened;
    return NULL;
}

/* --- another key ---- */

struct signer_renewal {
    struct access_signer *signer;
    struct slice pem;
};

static void
take_key(void *argument)
{
    struct signer_renewal *signer_renewal = argument;
    struct access_signer *signer = signer_renewal->signer;
    unsigned index = loop_index(loop_self());
    check(index < signer->loop_count);
    set_key(&signer->loop_signer[index], signer_renewal->pem);
}

struct error *
access_signer_renew(struct access_signer *signer, struct arena *arena, bool *is_renewed)
{
    struct signer_renewal signer_renewal = {.signer = signer};
    *is_renewed = false;
    struct slice known = signer->loop_signer[loop_index(loop_self())].key;
    struct error *err = load_key(signer->file, known, arena, &signer_renewal.pem);
    if (err != NULL || slice_equal(signer_renewal.pem, known))
        return err;
    loop_call_every(take_key, &signer_renewal);
    *is_renewed = true;
    return NULL;
}

void
access_signer_free(struct access_signer *signer)
{
    if (signer == NULL)
        return;
    for (unsigned i = 0; i < signer->loop_count; i++) {
        memory_free(signer->loop_signer[i].token);
        memory_free((void *)signer->loop_signer[i].key.data);
    }
    memory_free(signer->loop_signer);
    memory_free(signer->file);
    memory_free(signer);
}

const struct grpc_live_header *
access_signer_header(const struct access_signer *signer)
{
    return &signer->header;
}
