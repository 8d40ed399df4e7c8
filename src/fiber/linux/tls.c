/* tls.c - TLS over a socket's descriptor, by OpenSSL.
 *
 * OpenSSL reads and writes the non-blocking descriptor itself and says what it lacks: a read may
 * have to wait for room to write and the other way round, which is kept in read_needs and
 * write_needs for socket_wait. The error queue of OpenSSL belongs to the thread, so it is emptied
 * before each call and read right after it, with no yield between. */
#include "fiber/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"
#include "fiber/socket.h"

struct tls {
    SSL_CTX *context;
    bool is_server;
    bool verify_host;
};

static const unsigned char alpn[] = {2, 'h', '2'};

/* OpenSSL's newest reason, or `otherwise`. */
static const char *
tls_reason(const char *otherwise)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : otherwise;
}

/* ---- keys and rules ---- */

/* A client that offers protocols must offer ours; one that offers none is taken at its word. */
static int
choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length,
                const unsigned char *offered, unsigned int offered_length, void *argument)
{
    int found = SSL_select_next_proto((unsigned char **)chosen, length, alpn, sizeof alpn, offered,
                                      offered_length);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static struct error *
load_own_certificate(struct tls *tls, const struct tls_options *options, struct arena *arena)
{
    if (options->certificate_file == NULL)
        return !options->is_server ? NULL
                                   : error_new(arena, ERR_BAD_REQUEST,
                                               "a TLS server needs a certificate and a key");
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(tls->context, options->certificate_file) != 1)
        return error_new(arena, ERR_BAD_REQUEST, "certificate %s: %s", options->certificate_file,
                         tls_reason("cannot be read"));
    if (options->key_file == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "certificate %s has no key",
                         options->certificate_file);
    if (SSL_CTX_use_PrivateKey_file(tls->context, options->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(tls->context) != 1)
        return error_new(arena, ERR_BAD_REQUEST, "key %s: %s", options->key_file,
                         tls_reason("cannot be read"));
    return NULL;
}

static struct error *
load_authorities(struct tls *tls, const struct tls_options *options, struct arena *arena)
{
    ERR_clear_error();
    if (options->authority_files == NULL) {
        if (SSL_CTX_set_default_verify_paths(tls->context) != 1)
            return error_new(arena, ERR_BAD_REQUEST, "the system's authorities: %s",
                             tls_reason("cannot be read"));
        return NULL;
    }
    STACK_OF(X509_NAME) *names =
        sk_X509_NAME_new_null(); /* told to clients, so that they can choose */
    struct error *err = NULL;
    for (const char *const *file = options->authority_files; *file != NULL && err == NULL; file++)
        if (SSL_CTX_load_verify_file(tls->context, *file) != 1 ||
            SSL_add_file_cert_subjects_to_stack(names, *file) != 1)
            err = error_new(arena, ERR_BAD_REQUEST, "authority %s: %s", *file,
                            tls_reason("cannot be read"));
    SSL_CTX_set_client_CA_list(tls->context, names);
    return err;
}

static void
set_rules(struct tls *tls, const struct tls_options *options)
{
    SSL_CTX *context = tls->context;
    int is_set = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    check(is_set == 1);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1); /* one system call per record instead of two */
    int verify = SSL_VERIFY_NONE;
    if (!options->is_server)
        verify = SSL_VERIFY_PEER;
    else if (options->require_peer_certificate)
        verify = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, verify, NULL);
    if (options->is_server)
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    else
        SSL_CTX_set_alpn_protos(context, alpn, sizeof alpn);
}

struct error *
tls_new(const struct tls_options *options, struct arena *arena, struct tls **result)
{
    *result = NULL;
    struct tls *tls = memory_zalloc(1, sizeof *tls);
    tls->is_server = options->is_server;
    tls->verify_host = options->verify_host;
    tls->context = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());
    check_that(tls->context != NULL, "OpenSSL: %s", tls_reason("no context"));
    set_rules(tls, options);
    struct error *err = load_own_certificate(tls, options, arena);
    if (err == NULL && (!options->is_server || options->require_peer_certificate))
        err = load_authorities(tls, options, arena);
    if (err != NULL) {
        tls_free(tls);
        return err;
    }
    *result = tls;
    return NULL;
}

void
tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    memory_free(tls);
}

/* ---- handshake ---- */

static bool
is_numeric(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Which name the server must prove, and which one we ask it for. */
static void
name_server(SSL *ssl, const struct tls *tls, const char *name)
{
    bool is_set = true;
    if (is_numeric(name)) {
        if (tls->verify_host)
            is_set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    } else {
        is_set = SSL_set_tlsext_host_name(ssl, name) == 1;
        if (is_set && tls->verify_host)
            is_set = SSL_set1_host(ssl, name) == 1;
    }
    check_that(is_set, "OpenSSL does not take the name %s", name);
}

/* What the descriptor must become before OpenSSL can go on; 0: it cannot. */
static unsigned
tls_needs(SSL *ssl, int result)
{
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return SOCKET_READABLE;
    case SSL_ERROR_WANT_WRITE:
        return SOCKET_WRITABLE;
    default:
        return 0;
    }
}

static struct error *
handshake_error(SSL *ssl, const char *peer, struct arena *arena)
{
    long verified = SSL_get_verify_result(ssl);
    const char *reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                               : tls_reason("the peer closed the connection");
    return error_new(arena, ERR_UNAVAILABLE, "TLS with %s: %s", peer, reason);
}

/* Why a wait that brought nothing must end; NULL: it need not. */
static struct error *
wait_must_end(int64_t deadline, struct arena *arena)
{
    if (fiber_is_cancelled())
        return wake_error(WAKE_CANCELLED, arena, "shaking hands for TLS");
    if (clock_monotonic() >= deadline || clock_monotonic() >= fiber_deadline())
        return wake_error(WAKE_DEADLINE, arena, "shaking hands for TLS");
    return NULL;
}

static struct error *
handshake(struct socket *socket, int64_t deadline, struct arena *arena)
{
    for (;;) {
        ERR_clear_error();
        int result = SSL_do_handshake(socket->ssl);
        if (result == 1)
            return NULL;
        unsigned needs = tls_needs(socket->ssl, result);
        if (needs == 0)
            return handshake_error(socket->ssl, socket->peer, arena);
        poller_is_blocked(&socket->poller, needs);
        while (poller_wait(&socket->poller, needs, deadline) == 0) {
            struct error *err = wait_must_end(deadline, arena);
            if (err != NULL)
                return err;
        }
    }
}

struct error *
socket_start_tls(struct socket *socket, struct tls *tls, const char *server_name, int64_t deadline,
                 struct arena *arena)
{
    check(socket->ssl == NULL && socket->loop != NULL && tls->is_server == (server_name == NULL));
    socket->ssl = SSL_new(tls->context);
    check(socket->ssl != NULL);
    int is_set = SSL_set_fd(socket->ssl, socket->descriptor);
    check(is_set == 1);
    if (tls->is_server) {
        SSL_set_accept_state(socket->ssl);
    } else {
        SSL_set_connect_state(socket->ssl);
        name_server(socket->ssl, tls, server_name);
    }
    struct error *err = handshake(socket, deadline, arena);
    if (err != NULL)
        socket_break(socket);
    else
        socket->poller.ready |= SOCKET_READABLE; /* inner bytes may have come with the last step */
    return err;
}

/* ---- reading and writing ---- */

/* After a call that did nothing: would have to wait, the end, or broken. */
static int64_t
tls_outcome(struct socket *socket, int result, unsigned *needs)
{
    unsigned lacking = tls_needs(socket->ssl, result);
    if (lacking != 0) {
        *needs = lacking;
        poller_is_blocked(&socket->poller, lacking);
        return 0;
    }
    if (SSL_get_error(socket->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return SOCKET_END;
    socket_break(socket); /* an end without TLS's goodbye is one too: it may be a cut */
    return SOCKET_BROKEN;
}

int64_t
tls_read(struct socket *socket, void *bytes, size_t room)
{
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_read_ex(socket->ssl, bytes, room, &count);
    socket->read_needs = SOCKET_READABLE;
    return result == 1 ? (int64_t)count : tls_outcome(socket, result, &socket->read_needs);
}

int64_t
tls_write(struct socket *socket, const void *bytes, size_t count)
{
    size_t taken = 0;
    ERR_clear_error();
    int result = SSL_write_ex(socket->ssl, bytes, count, &taken);
    socket->write_needs = SOCKET_WRITABLE;
    if (result == 1)
        return (int64_t)taken;
    int64_t outcome = tls_outcome(socket, result, &socket->write_needs);
    return outcome == SOCKET_END ? SOCKET_BROKEN : outcome;
}

void
tls_close(struct socket *socket)
{
    ERR_clear_error();
    if (!socket->is_broken && SSL_is_init_finished(socket->ssl))
        (void)SSL_shutdown(socket->ssl); /* our half of the goodbye; nobody waits for the other */
    ERR_clear_error();
    SSL_free(socket->ssl);
    socket->ssl = NULL;
}
