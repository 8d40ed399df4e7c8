/* signing.h - tokens for callers that have a private key. */
#ifndef CADENZA_ACCESS_SIGNING_H
#define CADENZA_ACCESS_SIGNING_H

#include "base/arena.h"
#include "base/slice.h"

/* A token (JWT) that says `claims`, JSON, signed with RS256 by the key, PEM; NULL: the key is not a
 * private RSA key. */
const char *access_sign_token(struct slice private_key, const char *claims, struct arena *arena);

#endif
