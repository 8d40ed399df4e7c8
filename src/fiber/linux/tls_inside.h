/* tls_inside.h - what tls.c and tls_files.c share. */
#ifndef CADENZA_FIBER_TLS_INSIDE_H
#define CADENZA_FIBER_TLS_INSIDE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>

#include "fiber/tls.h"

struct tls {
    struct tls_options options; /* in `arena` */
    struct arena *arena;
    pthread_mutex_t mutex; /* of `context`: connections begin on every loop */
    SSL_CTX *context;
    /* For the renewal: what the files looked like when they were read, and at the last check. */
    uint64_t fingerprint_of_used, fingerprint_before;
};

/* A connection that begins now. Any loop. */
SSL *tls_begin(struct tls *tls);
/* OpenSSL's newest reason, or `otherwise`. */
const char *tls_reason(const char *otherwise);

#endif
