/* signer.h - the tokens of a server's own calls to another cluster.
 *
 * Each token says that an administrator calls and lives ten minutes; it is used for half of that,
 * then a new one is made. Each loop makes its own, so that none waits for another. */
#ifndef CADENZA_ACCESS_SIGNER_H
#define CADENZA_ACCESS_SIGNER_H

#include "net/client.h"

struct access_signer;

/* Reads the private key, PEM, of a file. Yields. Errors: ERR_BAD_REQUEST naming the file. */
must_use struct error *access_signer_open(const char *file, struct arena *arena,
                                          struct access_signer **signer);
/* The same file again: if it has another key, every loop signs with that from then on. Yields.
 * Errors as above; the key before stays. */
must_use struct error *access_signer_renew(struct access_signer *signer, struct arena *arena,
                                           bool *is_renewed);
/* When no client has its header any more. NULL is fine. */
void access_signer_free(struct access_signer *signer);

/* The header that a client shows; lives as long as the signer. */
const struct grpc_live_header *access_signer_header(const struct access_signer *signer);

#endif
