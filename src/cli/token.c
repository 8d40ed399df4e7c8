/* token.c - a token made from a private key (--jwt-private-key), as the cadence command line makes
 * it: an administrator's, signed with RS256, for ten minutes. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/text.h"
#include "cli/inside.h"
#include "fiber/clock.h"
#include "fiber/file.h"

#define KEY_MAX       (64u * 1024)
#define LIFE_SECONDS  600
#define SIGNATURE_MAX 2048 /* of a key of 16384 bits */

static const char *
encode(struct slice bytes, struct arena *arena)
{
    return arena_text_of(arena, text_base64_encode(arena, bytes, TEXT_BASE64_URL));
}

/* The signature of `head`; empty: the key is none that signs. */
static struct slice
sign(struct slice pem, const char *head, struct arena *arena)
{
    uint8_t *bytes = arena_zalloc(arena, SIGNATURE_MAX, 1);
    size_t length = SIGNATURE_MAX;
    BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.length);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_signed =
        key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
        EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, bytes, &length, (const uint8_t *)head, strlen(head)) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return slice_of(bytes, is_signed ? length : 0);
}

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
    const char *head = arena_format(
        arena, "%s.%s", encode(slice_text("{\"alg\":\"RS256\",\"typ\":\"JWT\"}"), arena),
        encode(slice_text(claims), arena));
    struct slice signature = sign(pem, head, arena);
    if (signature.length == 0)
        return cli_wrong(call,
                         error_new(arena, ERR_BAD_REQUEST,
                                   "--jwt-private-key: %s is no private RSA key in PEM", file));
    call->token = arena_format(arena, "%s.%s", head, encode(signature, arena));
    return NULL;
}
