/* tls_files.c - certificates and keys: read at the start, and again when their files change.
 *
 * A connection keeps the context it began with; a new context takes the place of the old one under
 * a mutex, since connections of all loops begin with it. A renewal writes several files one after
 * the other, so files are read only when two checks have found them unchanged. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/tls_inside.h"
#include "fiber/pool.h"

static const unsigned char alpn[] = {2, 'h', '2'};
static const unsigned char alpn_http1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

const char *
tls_reason(const char *otherwise)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : otherwise;
}

/* ---- why a file is not taken ---- */

/* What the system says about a file that should be read; NULL: it can be. */
static const char *
system_reason(const char *file)
{
    struct stat found;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return strerror(errno);
    bool is_folder = fstat(descriptor, &found) == 0 && S_ISDIR(found.st_mode);
    close(descriptor);
    return is_folder ? strerror(EISDIR) : NULL;
}

/* OpenSSL says "system lib" for a file that it cannot open, and "no start line" for one that is not
 * PEM. `what` should have been in it. */
static struct error *
refuse_file(const char *role, const char *file, const char *what, struct arena *arena)
{
    unsigned long code = ERR_peek_error(); /* the first: later ones say that it failed */
    const char *reason = system_reason(file);
    bool is_no_start =
        ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    bool is_no_key =
        ERR_GET_LIB(code) == ERR_LIB_OSSL_DECODER && ERR_GET_REASON(code) == ERR_R_UNSUPPORTED;
    if (reason == NULL && (is_no_start || is_no_key))
        reason = arena_format(arena, "has no %s in PEM form", what);
    if (reason == NULL)
        reason = ERR_reason_error_string(code);
    if (reason == NULL)
        reason = "cannot be read";
    return error_new(arena, ERR_BAD_REQUEST, "%s %s: %s", role, file, reason);
}

/* ---- rules ---- */

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
load_own_certificate(SSL_CTX *context, const struct tls_options *options, struct arena *arena)
{
    if (options->certificate_file == NULL)
        return !options->is_server ? NULL
                                   : error_new(arena, ERR_BAD_REQUEST,
                                               "a TLS server needs a certificate and a key");
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, options->certificate_file) != 1)
        return refuse_file("certificate", options->certificate_file, "certificate", arena);
    if (options->key_file == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "certificate %s has no key",
                         options->certificate_file);
    if (SSL_CTX_use_PrivateKey_file(context, options->key_file, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(context) == 1)
        return NULL;
    unsigned long code = ERR_peek_last_error();
    if (ERR_GET_LIB(code) == ERR_LIB_X509 && (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
                                              ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH))
        return error_new(arena, ERR_BAD_REQUEST, "key %s: is not the key of certificate %s",
                         options->key_file, options->certificate_file);
    return refuse_file("key", options->key_file, "private key", arena);
}

static struct error *
load_authorities(SSL_CTX *context, const struct tls_options *options, struct arena *arena)
{
    ERR_clear_error();
    if (options->authority_files == NULL) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            return error_new(arena, ERR_BAD_REQUEST, "the system's authorities: %s",
                             tls_reason("cannot be read"));
        return NULL;
    }
    STACK_OF(X509_NAME) *names =
        sk_X509_NAME_new_null(); /* sent to clients, so that they can choose */
    struct error *err = NULL;
    for (const char *const *file = options->authority_files; *file != NULL && err == NULL; file++)
        if (SSL_CTX_load_verify_file(context, *file) != 1 ||
            SSL_add_file_cert_subjects_to_stack(names, *file) != 1)
            err = refuse_file("authority", *file, "certificate", arena);
    SSL_CTX_set_client_CA_list(context, names);
    return err;
}

static void
set_rules(SSL_CTX *context, const struct tls_options *options)
{
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
    else if (options->speaks_http1)
        SSL_CTX_set_alpn_protos(context, alpn_http1, sizeof alpn_http1);
    else
        SSL_CTX_set_alpn_protos(context, alpn, sizeof alpn);
}

/* ---- files ---- */

static uint64_t
mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

/* What a file looks like from outside; one that is replaced by a rename is another. */
static uint64_t
fingerprint_add(uint64_t hash, const char *file)
{
    struct stat found;
    if (file == NULL || stat(file, &found) != 0)
        return mix(hash, 1);
    hash = mix(hash, (uint64_t)found.st_ino);
    hash = mix(hash, (uint64_t)found.st_size);
    hash = mix(hash, (uint64_t)found.st_mtim.tv_sec);
    return mix(hash, (uint64_t)found.st_mtim.tv_nsec);
}

static uint64_t
fingerprint_of(const struct tls_options *options)
{
    uint64_t hash =
        fingerprint_add(fingerprint_add(0, options->certificate_file), options->key_file);
    const char *const *file = options->authority_files;
    for (; file != NULL && *file != NULL; file++)
        hash = fingerprint_add(hash, *file);
    return hash;
}

static struct error *
make_context(const struct tls_options *options, struct arena *arena, SSL_CTX **result)
{
    SSL_CTX *context = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());
    check_that(context != NULL, "OpenSSL: %s", tls_reason("no context"));
    set_rules(context, options);
    struct error *err = load_own_certificate(context, options, arena);
    if (err == NULL && (!options->is_server || options->require_peer_certificate))
        err = load_authorities(context, options, arena);
    if (err != NULL)
        SSL_CTX_free(context);
    else
        *result = context;
    return err;
}

/* ---- life ---- */

static const char *
keep(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_text(arena, text);
}

static struct tls_options
keep_options(const struct tls_options *options, struct arena *arena)
{
    struct tls_options kept = *options;
    kept.certificate_file = keep(arena, options->certificate_file);
    kept.key_file = keep(arena, options->key_file);
    size_t count = 0;
    while (options->authority_files != NULL && options->authority_files[count] != NULL)
        count++;
    const char **files = arena_zalloc(arena, count + 1, sizeof *files);
    for (size_t i = 0; i < count; i++)
        files[i] = keep(arena, options->authority_files[i]);
    if (options->authority_files != NULL)
        kept.authority_files = files;
    return kept;
}

struct error *
tls_new(const struct tls_options *options, struct arena *arena, struct tls **result)
{
    *result = NULL;
    SSL_CTX *context = NULL;
    uint64_t fingerprint =
        fingerprint_of(options); /* before they are read: a change meanwhile is seen */
    struct error *err = make_context(options, arena, &context);
    if (err != NULL)
        return err;
    struct tls *tls = memory_zalloc(1, sizeof *tls);
    tls->arena = arena_new(0);
    tls->options = keep_options(options, tls->arena);
    tls->context = context;
    tls->fingerprint_of_used = tls->fingerprint_before = fingerprint;
    pthread_mutex_init(&tls->mutex, NULL);
    *result = tls;
    return NULL;
}

void
tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    pthread_mutex_destroy(&tls->mutex);
    arena_free(tls->arena);
    memory_free(tls);
}

SSL *
tls_begin(struct tls *tls)
{
    pthread_mutex_lock(&tls->mutex);
    SSL *ssl = SSL_new(tls->context); /* which keeps the context */
    pthread_mutex_unlock(&tls->mutex);
    check(ssl != NULL);
    return ssl;
}

/* ---- renewal ---- */

struct renewal {
    struct tls *tls;
    struct arena *arena;
    struct error *err;
    bool is_renewed;
};

/* On a thread of the pool. */
static void
renew(void *argument)
{
    struct renewal *renewal = argument;
    struct tls *tls = renewal->tls;
    uint64_t fingerprint = fingerprint_of(&tls->options);
    bool is_stable = fingerprint == tls->fingerprint_before;
    tls->fingerprint_before = fingerprint;
    if (!is_stable || fingerprint == tls->fingerprint_of_used)
        return;
    tls->fingerprint_of_used = fingerprint; /* good or not: each change is judged once */
    SSL_CTX *context = NULL;
    renewal->err = make_context(&tls->options, renewal->arena, &context);
    if (renewal->err != NULL)
        return;
    pthread_mutex_lock(&tls->mutex);
    SSL_CTX *old = tls->context;
    tls->context = context;
    pthread_mutex_unlock(&tls->mutex);
    SSL_CTX_free(old);
    renewal->is_renewed = true;
}

struct error *
tls_renew(struct tls *tls, struct arena *arena, bool *is_renewed)
{
    struct renewal renewal = {.tls = tls, .arena = arena};
    struct error *err = pool_run(renew, &renewal, arena);
    *is_renewed = renewal.is_renewed;
    if (err != NULL)
        return err->kind == ERR_BUSY ? NULL : err; /* the next check will do */
    return renewal.err;
}
