/* signer.c - see signer.h. */
#include "access/signer.h"

#include <string.h>

#include "access/signing.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/loop.h"

#define KEY_MAX      (64u * 1024)
#define LIFE_SECONDS 600

/* What one loop shows. */
struct shown {
    char *token;      /* NULL: none yet */
    int64_t renew_at; /* by the wall clock, which is what the other side reads it by */
    int64_t made_at;
};

struct access_signer {
    struct grpc_live_header header;
    uint8_t *key;
    size_t key_length;
    struct shown *shown; /* by loop */
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
        const char *token = make_token(slice_of(signer->key, signer->key_length), now, arena);
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

struct error *
access_signer_open(const char *file, struct arena *arena, struct access_signer **signer)
{
    struct slice pem;
    struct error *err = file_load(file, KEY_MAX, arena, &pem);
    if (err != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", err->message);
    if (make_token(pem, clock_wall(), arena) == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s is no private RSA key in PEM", file);
    struct access_signer *opened = memory_zalloc(1, sizeof *opened);
    opened->header = (struct grpc_live_header){"cadence-authorization", current_token, opened};
    opened->key = memory_alloc(pem.length);
    memcpy(opened->key, pem.data, pem.length);
    opened->key_length = pem.length;
    opened->loop_count = loop_count();
    opened->shown = memory_zalloc(opened->loop_count, sizeof *opened->shown);
    *signer = opened;
    return NULL;
}

void
access_signer_free(struct access_signer *signer)
{
    if (signer == NULL)
        return;
    for (unsigned i = 0; i < signer->loop_count; i++)
        memory_free(signer->shown[i].token);
    memory_free(signer->shown);
    memory_free(signer->key);
    memory_free(signer);
}

const struct grpc_live_header *
access_signer_header(const struct access_signer *signer)
{
    return &signer->header;
}
