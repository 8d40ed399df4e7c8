/* credentials.h - how a server proves who it is: the certificate of its gRPC port, those that it
 * shows to the other clusters of the group, and the keys that sign the tokens of its calls to them.
 *
 * Certificates and keys are read again when their files change; connections that are open keep
 * their certificates. A file that cannot be used is a line in the log, and what was read before
 * stays in use. */
#ifndef CADENZA_SERVER_CREDENTIALS_H
#define CADENZA_SERVER_CREDENTIALS_H

#include "base/log.h"
#include "cluster/group.h"
#include "net/client.h"

struct credentials;

/* Reads the files that the config names. The group and the log outlive it. Yields. Errors:
 * ERR_BAD_REQUEST naming file and reason. */
must_use struct error *credentials_open(const struct config *config,
                                        const struct cluster_group *group, const struct log *log,
                                        struct arena *arena, struct credentials **credentials);
/* After all its users. Yields. NULL does nothing. */
void credentials_close(struct credentials *credentials);

/* For the server's own port; NULL: it is plain. */
struct tls *credentials_tls(const struct credentials *credentials);
/* Towards each cluster of the group, in its order; NULL where it is plain. */
struct tls *const *credentials_peer_tls(const struct credentials *credentials);
/* What is shown to each, in the same order; NULL where nothing is. */
const struct grpc_live_header *const *credentials_tokens(const struct credentials *credentials);

#endif
