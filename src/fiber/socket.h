/* socket.h - streams of bytes between hosts: TCP, plain or under TLS.
 *
 * Reads and writes never wait; socket_wait does. A socket belongs to the loop that opened or
 * adopted it and is used by one fiber at a time for waiting. Addresses are "127.0.0.1:7833",
 * "[::1]:7833", "name:port"; port 0 listens on a free one. TLS is a property given at opening:
 * reads and writes then carry the inner bytes. */
#ifndef CADENZA_FIBER_SOCKET_H
#define CADENZA_FIBER_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "fiber/loop.h"

struct listener;
struct socket;
struct tls; /* keys and rules of one side, see tls.h; NULL: plain */

/* Listens on the current loop. Errors: ERR_IO naming address and reason. Yields. */
must_use struct error *listener_open(const char *address, struct arena *arena,
                                     struct listener **listener);
/* The address in use, with the real port; lives as long as the listener. */
const char *listener_address(const struct listener *listener);
/* The next connection, not yet usable until socket_adopt'ed by the loop that will own it. Yields.
 * Errors: ERR_CANCELLED, ERR_DEADLINE; ERR_UNAVAILABLE after listener_close. Running out of
 * descriptors is waited out inside. */
must_use struct error *listener_accept(struct listener *listener, struct arena *arena,
                                       struct socket **socket);
/* Stops listening; a waiting accept ends with ERR_UNAVAILABLE. */
void listener_close(struct listener *listener);
void listener_free(struct listener *listener);

/* Makes the current loop the owner of an accepted socket. Never yields. */
void socket_adopt(struct socket *socket);
/* Connects. Yields until `deadline` (monotonic). Errors: ERR_UNAVAILABLE, ERR_DEADLINE,
 * ERR_CANCELLED. */
must_use struct error *socket_connect(const char *address, int64_t deadline, struct arena *arena,
                                      struct socket **socket);
/* Puts TLS on an open socket and does the handshake (ALPN h2, or what the rules say). `server_name`
 * NULL: we are the server. Yields. Errors: ERR_UNAVAILABLE with OpenSSL's reason, ERR_DEADLINE,
 * ERR_CANCELLED. */
must_use struct error *socket_start_tls(struct socket *socket, struct tls *tls,
                                        const char *server_name, int64_t deadline,
                                        struct arena *arena);

enum { SOCKET_READABLE = 1, SOCKET_WRITABLE = 2 };
/* Waits until the socket can do one of `want`, fiber_wake, or a deadline. Yields. Returns what it
 * can do now; 0: woken, deadline or cancel (check fiber_is_cancelled and the clock). A broken
 * socket is both. */
unsigned socket_wait(struct socket *socket, unsigned want, int64_t deadline);

/* Bytes read (> 0), 0: would have to wait, SOCKET_END: the peer has finished, SOCKET_BROKEN: reset,
 * closed, TLS error. */
#define SOCKET_END    (-1)
#define SOCKET_BROKEN (-2)
must_use int64_t socket_read(struct socket *socket, void *bytes, size_t room);
/* Bytes taken (> 0, perhaps fewer than given), 0: would have to wait, SOCKET_BROKEN. */
must_use int64_t socket_write(struct socket *socket, const void *bytes, size_t count);
/* The other side, for logs. Lives as long as the socket. */
const char *socket_peer(const struct socket *socket);
/* Closes the connection (TLS close_notify, FIN) and frees the socket. */
void socket_close(struct socket *socket);

#endif
