/* test_samples.c - see test_samples.h. */
#include "access/test_samples.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/check.h"
#include "base/text.h"

static struct slice
take_bytes(BIO *bio, struct arena *arena)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    struct slice taken = arena_slice(arena, slice_of(bytes, (size_t)length));
    BIO_free(bio);
    return taken;
}

struct sample_pair
sample_pair_make(struct arena *arena)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    BIO *secret = BIO_new(BIO_s_mem()), *open = BIO_new(BIO_s_mem());
    bool is_written = PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                      PEM_write_bio_PUBKEY(open, key) == 1;
    check(is_written);
    EVP_PKEY_free(key);
    return (struct sample_pair){take_bytes(secret, arena), take_bytes(open, arena)};
}

/* --- tokens ---- */

static const char *
encode(struct slice bytes, struct arena *arena)
{
    return arena_text_of(arena, text_base64_encode(arena, bytes, TEXT_BASE64_URL));
}

static const char *
make_head(const char *header, const char *grants, struct arena *arena)
{
    return arena_format(arena, "%s.%s", encode(slice_text(header), arena),
                        encode(slice_text(grants), arena));
}

static struct slice
sign(struct slice secret, const char *head, struct arena *arena)
{
    BIO *bio = BIO_new_mem_buf(secret.data, (int)secret.length);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t *bytes = arena_zalloc(arena, 512, 1);
    size_t length = 512;
    bool is_signed =
        EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, bytes, &length, (const uint8_t *)head, strlen(head)) == 1;
    check(is_signed);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return slice_of(bytes, length);
}

const char *
sample_token(const struct sample_pair *pair, const char *grants, const char *key_name,
             struct arena *arena)
{
    const char *name = key_name == NULL ? "" : arena_format(arena, ",\"kid\":\"%s\"", key_name);
    const char *header = arena_format(arena, "{\"alg\":\"RS256\",\"typ\":\"JWT\"%s}", name);
    const char *head = make_head(header, grants, arena);
    return arena_format(arena, "%s.%s", head, encode(sign(pair->secret, head, arena), arena));
}

const char *
sample_token_unsigned(const char *grants, struct arena *arena)
{
    return arena_format(arena, "%s.", make_head("{\"alg\":\"none\"}", grants, arena));
}

const char *
sample_token_forged(const struct sample_pair *pair, const char *grants, struct arena *arena)
{
    const char *head = make_head("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", grants, arena);
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    HMAC(EVP_sha256(), pair->open.data, (int)pair->open.length, (const uint8_t *)head, strlen(head),
         bytes, &length);
    return arena_format(arena, "%s.%s", head, encode(slice_of(bytes, length), arena));
}

/* --- a set of keys ---- */

static const char *
encode_number(const EVP_PKEY *key, const char *name, struct arena *arena)
{
    BIGNUM *number = NULL;
    bool is_there = EVP_PKEY_get_bn_param(key, name, &number) == 1;
    check(is_there);
    uint8_t bytes[512];
    int count = BN_bn2bin(number, bytes);
    BN_free(number);
    return encode(slice_of(bytes, (size_t)count), arena);
}

const char *
sample_key_set(const struct sample_pair *pair, const char *key_name, struct arena *arena)
{
    BIO *bio = BIO_new_mem_buf(pair->open.data, (int)pair->open.length);
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    const char *set = arena_format(
        arena,
        "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"other\"},{\"kty\":\"RSA\",\"kid\":\"%s\","
        "\"use\":\"sig\",\"n\":\"%s\",\"e\":\"%s\"}]}",
        key_name, encode_number(key, "n", arena), encode_number(key, "e", arena));
    EVP_PKEY_free(key);
    BIO_free(bio);
    return set;
}
