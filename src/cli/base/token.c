/* token.c - a token made from a private key (--jwt-private-key), as the cadence command line makes
 * it: an administrator's, signed with RS256, for ten minutes. */
#include "access/signing.h"
#include "cli/base/inside.h"
#include "fiber/clock.h"
#include "fiber/file.h"

#define KEY_MAX      (64u * 1024)
#define LIFE_SECONDS 600

struct error *
cli_make_token(struct cli_call *call)
{
    struct arena *arena = call->arena;
    const char *file = cli_text(call, "jwt-private-key");
    struct slice pem;
    if (call->token != NULL || file == NULL)
        return NULL;
    struct error *err = file_load(file, KEY_MAX, arena, &pem);
    if (err != NULL)
        return cli_wrong(call, error_wrap(err, "--jwt-private-key"));
    const char *claims = arena_format(arena, "{\"Admin\":true,\"TTL\":%d,\"iat\":%lld}",
                                      LIFE_SECONDS, (long long)(clock_wall() / NS_PER_S));
    call->token = access_sign_token(pem, claims, arena);
    if (call->token == NULL)
        return cli_wrong(
            call, error_new(arena, ERR_BAD_REQUEST,
                            "--jwt-private-key: %s is not an RSA private key in PEM format", file));
    return NULL;
}
