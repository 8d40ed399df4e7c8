/* signing.c - see signing.h. */
#include "access/signing.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/text.h"

#define SIGNATURE_MAX 2048 /* of a key of 16384 bits */

static const char *
encode(struct slice bytes, struct arena *arena)
{
    return arena_text_of(arena, text_base64_encode(arena, bytes, TEXT_BASE64_URL));
}

/* The signature of `head`; empty: the key cannot sign. */
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

const char *
access_sign_token(struct slice private_key, const char *claims, struct arena *arena)
{
    static const char header[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
    const char *head = arena_format(arena, "%s.%s", encode(slice_text(header), arena),
                                    encode(slice_text(claims), arena));
    struct slice signature = sign(private_key, head, arena);
    if (signature.length == 0)
        return NULL;
    return arena_format(arena, "%s.%s", head, encode(signature, arena));
}
