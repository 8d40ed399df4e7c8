/* tls.c - TLS over a socket's descriptor, by OpenSSL.
 *
 * OpenSSL reads and writes the non-blocking descriptor itself and says what it lacks: a read may
 * have to wait for room to write and the other way round, which is kept in read_needs and
 * write_needs for socket_wait. The error queue of OpenSSL belongs to the thread, so it is emptied
 * before each call and read right after it, with no yield between. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"
#include "fiber/linux/tls_inside.h"
#include "fiber/socket.h"

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
        if (tls->options.verify_host)
            is_set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    } else {
        is_set = SSL_set_tlsext_host_name(ssl, name) == 1;
        if (is_set && tls->options.verify_host)
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
    check(socket->ssl == NULL && socket->loop != NULL &&
          tls->options.is_server == (server_name == NULL));
    socket->ssl = tls_begin(tls);
    int is_set = SSL_set_fd(socket->ssl, socket->descriptor);
    check(is_set == 1);
    if (tls->options.is_server) {
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
    socket_break(socket); /* an end without close_notify is one too: the stream may be truncated */
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
        (void)SSL_shutdown(socket->ssl); /* our close_notify; nobody waits for the other */
    ERR_clear_error();
    SSL_free(socket->ssl);
    socket->ssl = NULL;
}
