/* tls_test.c - calls under TLS and mutual TLS. Linux only: simulated networks are plain.
 *
 * One certificate, made here by OpenSSL, is server, client and authority at once. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "fiber/contract/contract.h"
#include "fiber/tls.h"
#include "net/test_service.h"

struct identity {
    const char *certificate_file, *key_file;
    const char *authority_files[2];
};

static void
add_extension(X509 *certificate, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    EXPECT(extension != NULL);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static X509 *
certificate_new(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    EXPECT(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

static struct identity
identity_make(const char *name, struct arena *arena)
{
    struct identity identity = {
        .certificate_file = arena_format(arena, "%s/%s.pem", contract_folder(), name),
        .key_file = arena_format(arena, "%s/%s.key", contract_folder(), name),
    };
    identity.authority_files[0] = identity.certificate_file;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_new(key);
    FILE *file = fopen(identity.certificate_file, "w");
    EXPECT(file != NULL && PEM_write_X509(file, certificate) == 1);
    fclose(file);
    file = fopen(identity.key_file, "w");
    EXPECT(file != NULL && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return identity;
}

static struct tls *
server_tls(const struct identity *identity, bool is_mutual, struct arena *arena)
{
    struct tls *tls;
    EXPECT_OK(tls_new(
        &(struct tls_options){
            .certificate_file = identity->certificate_file,
            .key_file = identity->key_file,
            .authority_files = identity->authority_files,
            .is_server = true,
            .require_peer_certificate = is_mutual,
        },
        arena, &tls));
    return tls;
}

static struct tls *
client_tls(const struct identity *trusted, const struct identity *own, struct arena *arena)
{
    struct tls *tls;
    EXPECT_OK(tls_new(
        &(struct tls_options){
            .certificate_file = own == NULL ? NULL : own->certificate_file,
            .key_file = own == NULL ? NULL : own->key_file,
            .authority_files = trusted->authority_files,
            .verify_host = true,
        },
        arena, &tls));
    return tls;
}

/* Echoes `size` bytes; returns what the call said. */
static struct error *
echo(const struct test_service *service, struct tls *tls, size_t size, struct arena *arena)
{
    struct grpc_client *client = grpc_client_new(
        &(struct grpc_client_options){.address = grpc_server_address(service->server), .tls = tls});
    struct slice message = slice_of(arena_zalloc(arena, size, 1), size), response = {0};
    struct error *err = test_call(client, "/test/echo", message, arena, &response);
    if (err == NULL)
        EXPECT(slice_equal(response, message));
    grpc_client_free(client);
    return err;
}

CONTRACT(tls, calls_of_any_size_pass_under_tls, 1)
{
    struct identity identity = identity_make("server", arena);
    struct tls *server = server_tls(&identity, false, arena);
    struct tls *client = client_tls(&identity, NULL, arena);
    struct test_service service;
    test_service_open(&service, &(struct grpc_server_options){.tls = server}, arena);
    EXPECT_OK(echo(&service, client, 10, arena));
    EXPECT_OK(echo(&service, client, 5000000, arena));
    test_service_close(&service);
    tls_free(client);
    tls_free(server);
}

CONTRACT(tls, a_plain_client_and_one_that_trusts_another_are_not_served, 1)
{
    struct identity identity = identity_make("server", arena);
    struct identity other = identity_make("other", arena);
    struct tls *server = server_tls(&identity, false, arena);
    struct tls *stranger = client_tls(&other, NULL, arena);
    struct test_service service;
    test_service_open(&service, &(struct grpc_server_options){.tls = server}, arena);
    EXPECT_KIND(echo(&service, NULL, 10, arena), ERR_UNAVAILABLE);
    EXPECT_KIND(echo(&service, stranger, 10, arena), ERR_UNAVAILABLE);
    EXPECT_EQ(atomic_load(&service.handled), 0);
    test_service_close(&service);
    tls_free(stranger);
    tls_free(server);
}

CONTRACT(tls, mutual_tls_serves_only_clients_with_a_certificate, 1)
{
    struct identity identity = identity_make("server", arena);
    struct identity other = identity_make("other", arena);
    struct tls *server = server_tls(&identity, true, arena);
    struct tls *known = client_tls(&identity, &identity, arena);
    struct tls *anonymous = client_tls(&identity, NULL, arena);
    struct tls *unknown = client_tls(&identity, &other, arena);
    struct test_service service;
    test_service_open(&service, &(struct grpc_server_options){.tls = server}, arena);
    EXPECT_KIND(echo(&service, anonymous, 10, arena), ERR_UNAVAILABLE);
    EXPECT_KIND(echo(&service, unknown, 10, arena), ERR_UNAVAILABLE);
    EXPECT_EQ(atomic_load(&service.handled), 0);
    EXPECT_OK(echo(&service, known, 10, arena));
    test_service_close(&service);
    tls_free(unknown);
    tls_free(anonymous);
    tls_free(known);
    tls_free(server);
}
