/* tls.h - certificates and rules for one side of TLS connections; OpenSSL behind it.
 *
 * In simulation tls_new fails with ERR_UNIMPLEMENTED: simulated networks are plain. */
#ifndef CADENZA_FIBER_TLS_H
#define CADENZA_FIBER_TLS_H

#include <stdbool.h>

#include "base/error.h"

struct tls;

struct tls_options {
    const char *certificate_file; /* PEM chain; needed for a server */
    const char *key_file;         /* PEM */
    const char *const *
        authority_files; /* NULL-terminated PEM files that vouch for the peer; NULL: the system's */
    bool is_server;
    bool require_peer_certificate; /* mutual TLS */
    bool verify_host;              /* clients: the peer's name must fit */
    bool speaks_http1;             /* clients: ask for HTTP/1.1, not for HTTP/2 */
};

/* Reads the files (blocking: call it at start or through the pool). Errors: ERR_BAD_REQUEST naming
 * file and reason. */
must_use struct error *tls_new(const struct tls_options *options, struct arena *arena,
                               struct tls **tls);
void tls_free(struct tls *tls);

/* Looks at the files. If they have changed, and are the same as at the last look, they are read
 * again, and *is_renewed: connections that begin from now on use them, those that are open keep
 * what they have. One caller at a time. Yields. Errors: as tls_new, once for each change; what was
 * read before stays in use. */
must_use struct error *tls_renew(struct tls *tls, struct arena *arena, bool *is_renewed);

#endif
