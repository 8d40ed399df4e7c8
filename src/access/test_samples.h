/* test_samples.h - keys and tokens for tests: what an issuer of tokens does. */
#ifndef CADENZA_ACCESS_TEST_SAMPLES_H
#define CADENZA_ACCESS_TEST_SAMPLES_H

#include "base/arena.h"

/* A pair of RSA keys, as PEM. */
struct sample_pair {
    struct slice secret, open;
};
struct sample_pair sample_pair_make(struct arena *arena);
/* A token with this JSON, signed with RS256; key_name NULL: without a key id. */
const char *sample_token(const struct sample_pair *pair, const char *grants, const char *key_name,
                         struct arena *arena);
/* Not signed at all, and "signed" with a secret that everybody knows, the public key. */
const char *sample_token_unsigned(const char *grants, struct arena *arena);
const char *sample_token_forged(const struct sample_pair *pair, const char *grants,
                                struct arena *arena);
/* The public key as the set of a provider, with another kind of key beside it. */
const char *sample_key_set(const struct sample_pair *pair, const char *key_name,
                           struct arena *arena);

#endif
