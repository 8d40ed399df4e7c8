/* keys.c - the keys that signatures of tokens are checked with: one public key in a PEM file, or a
 * set of RSA keys as JSON (RFC 7517). */
#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "access/inside.h"
#include "base/check.h"
#include "base/text.h"
#include "fiber/file.h"

#define FILE_BYTES_MAX ((size_t)1024 * 1024)

/* --- one key ---- */

static struct error *
load_public_key(const char *path, struct arena *arena, struct slice *pem)
{
    struct error *err = file_load(path, FILE_BYTES_MAX, arena, pem);
    if (err != NULL)
        return err;
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->length);
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    bool is_good = key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return is_good ? NULL : error_new(arena, ERR_BAD_REQUEST, "%s has no RSA public key", path);
}

/* --- a set of keys ---- */

static bool
decode_number(const json_t *text, struct arena *arena, BIGNUM **number)
{
    const char *encoded = json_string_value(text);
    struct slice bytes = {0};
    *number = NULL;
    if (encoded != NULL &&
        text_base64_decode(arena, slice_text(encoded), TEXT_BASE64_URL, &bytes) && bytes.length > 0)
        *number = BN_bin2bn(bytes.data, (int)bytes.length, NULL);
    return *number != NULL;
}

static EVP_PKEY *
make_key(BIGNUM *modulus, BIGNUM *exponent)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = NULL;
    if (OSSL_PARAM_BLD_push_BN(builder, "n", modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, "e", exponent) == 1)
        parameters = OSSL_PARAM_BLD_to_param(builder);
    if (parameters != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        key = NULL;
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    return key;
}

static struct slice
write_key(EVP_PKEY *key, struct arena *arena)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int is_written = PEM_write_bio_PUBKEY(bio, key);
    check(is_written == 1);
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    struct slice pem = arena_slice(arena, slice_of(bytes, (size_t)length));
    BIO_free(bio);
    return pem;
}

/* Keys of other kinds, or for other uses, are skipped. */
static bool
is_rsa_key(const json_t *entry)
{
    const char *kind = json_string_value(json_object_get(entry, "kty"));
    const char *use = json_string_value(json_object_get(entry, "use"));
    return kind != NULL && strcmp(kind, "RSA") == 0 && (use == NULL || strcmp(use, "sig") == 0);
}

static struct error *
add_key(const json_t *entry, const char *path, struct arena *arena, struct access_keys *keys)
{
    const char *name = json_string_value(json_object_get(entry, "kid"));
    if (!is_rsa_key(entry) || name == NULL)
        return NULL;
    BIGNUM *modulus = NULL, *exponent = NULL;
    EVP_PKEY *key = NULL;
    if (decode_number(json_object_get(entry, "n"), arena, &modulus) &&
        decode_number(json_object_get(entry, "e"), arena, &exponent))
        key = make_key(modulus, exponent);
    BN_free(modulus);
    BN_free(exponent);
    if (key == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s: key '%s' is no RSA key", path, name);
    struct slice *pem = arena_make(arena, struct slice);
    *pem = write_key(key, arena);
    EVP_PKEY_free(key);
    map_put(keys->by_name, slice_text(name), pem);
    return NULL;
}

static struct error *
load_key_set(const char *path, struct arena *arena, struct access_keys *keys)
{
    struct slice bytes;
    struct error *err = file_load(path, FILE_BYTES_MAX, arena, &bytes);
    if (err != NULL)
        return err;
    json_error_t fault;
    json_t *set =
        json_loadb((const char *)bytes.data, bytes.length, JSON_REJECT_DUPLICATES, &fault);
    const json_t *list = json_object_get(set, "keys");
    if (!json_is_array(list)) {
        json_decref(set);
        return error_new(arena, ERR_BAD_REQUEST, "%s has no list 'keys' in JSON", path);
    }
    keys->by_name = map_new();
    for (size_t i = 0; i < json_array_size(list) && err == NULL; i++)
        err = add_key(json_array_get(list, i), path, arena, keys);
    json_decref(set);
    keys->set = bytes;
    if (err == NULL && map_count(keys->by_name) == 0)
        err = error_new(arena, ERR_BAD_REQUEST, "%s has no RSA key with a name (kid)", path);
    return err;
}

/* --- both ---- */

struct error *
access_keys_load(const char *public_key_file, const char *key_set_file, struct arena *arena,
                 struct access_keys *keys)
{
    struct error *err = NULL;
    *keys = (struct access_keys){0};
    if (public_key_file[0] != '\0')
        err = load_public_key(public_key_file, arena, &keys->own);
    if (err == NULL && key_set_file[0] != '\0')
        err = load_key_set(key_set_file, arena, keys);
    if (err != NULL)
        access_keys_free(keys);
    return err;
}

void
access_keys_free(struct access_keys *keys)
{
    map_free(keys->by_name);
    keys->by_name = NULL;
}
