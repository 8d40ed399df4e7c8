/* credentials.c - see credentials.h. */
#include "server/credentials.h"

#include "access/signer.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/sync.h"

#define RPC            "services.frontend.rpc."
#define CHECK_INTERVAL (2 * NS_PER_S)

struct credentials {
    const struct cluster_group *group;
    const struct log *log;
    struct arena *arena;
    struct tls *door;               /* NULL: plain */
    struct tls **peers;             /* by cluster; NULL: plain */
    struct access_signer **signers; /* by cluster; NULL: none */
    const struct grpc_live_header **tokens;
    bool *is_stale;        /* by cluster: the key's file cannot be used, which was logged */
    struct fiber *watcher; /* NULL: there are no files */
    struct latch watching;
    bool is_closing;
};

/* Nothing is shown to this cluster itself, and a token needs a key to sign it. */
static void
credentials_check(const struct credentials *credentials)
{
    const struct cluster_group *group = credentials->group;
    for (size_t i = 0; CHECK_DEEPLY && i < group->count; i++) {
        bool is_self = &group->clusters[i] == group->current;
        check(!is_self || (credentials->peers[i] == NULL && credentials->signers[i] == NULL));
        check((credentials->tokens[i] == NULL) == (credentials->signers[i] == NULL));
    }
    check(credentials->watcher != NULL || !credentials->is_closing);
}

static struct error *
open_door(struct credentials *credentials, const struct config *config, struct arena *arena)
{
    if (!config_flag(config, RPC "tls.enabled"))
        return NULL;
    const char *const *authorities = config_list(config, RPC "tls.caFiles", arena);
    struct tls_options options = {
        .certificate_file = config_text(config, RPC "tls.certFile"),
        .key_file = config_text(config, RPC "tls.keyFile"),
        .authority_files = authorities[0] == NULL ? NULL : authorities,
        .is_server = true,
        .require_peer_certificate = config_flag(config, RPC "tls.requireClientAuth"),
    };
    return tls_new(&options, arena, &credentials->door);
}

static const char *
file_or_none(const char *file)
{
    return file[0] == '\0' ? NULL : file;
}

static struct error *
open_peer_tls(struct credentials *credentials, size_t index, struct arena *arena)
{
    const struct cluster *cluster = &credentials->group->clusters[index];
    const struct cluster_tls *tls = &cluster->tls;
    struct tls_options options = {
        .certificate_file = file_or_none(tls->certificate_file),
        .key_file = file_or_none(tls->key_file),
        .authority_files = tls->authority_files[0] == NULL ? NULL : tls->authority_files,
        .verify_host = tls->verifies_host,
    };
    if (!tls->is_enabled)
        return NULL;
    struct error *err = tls_new(&options, arena, &credentials->peers[index]);
    return err == NULL ? NULL : error_wrap(err, "TLS towards cluster %s", cluster->name);
}

static struct error *
open_signer(struct credentials *credentials, size_t index, struct arena *arena)
{
    const struct cluster *cluster = &credentials->group->clusters[index];
    if (cluster->signing_key_file[0] == '\0')
        return NULL;
    struct error *err =
        access_signer_open(cluster->signing_key_file, arena, &credentials->signers[index]);
    if (err != NULL)
        return error_wrap(err, "clusterGroup.%s.authorizationProvider.privateKey", cluster->name);
    credentials->tokens[index] = access_signer_header(credentials->signers[index]);
    return NULL;
}

static struct error *
open_all(struct credentials *credentials, const struct config *config, struct arena *arena)
{
    const struct cluster_group *group = credentials->group;
    struct error *err = open_door(credentials, config, arena);
    for (size_t i = 0; i < group->count && err == NULL; i++) {
        if (!group->clusters[i].is_enabled || &group->clusters[i] == group->current)
            continue;
        err = open_peer_tls(credentials, i, arena);
        if (err == NULL)
            err = open_signer(credentials, i, arena);
    }
    return err;
}

/* --- renewal ---- */

static void
renew_tls(struct credentials *credentials, struct tls *tls, const char *whose)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bool is_renewed = false;
    struct error *err = tls == NULL ? NULL : tls_renew(tls, arena, &is_renewed);
    if (err != NULL)
        log_warn(credentials->log, "New certificates cannot be used; the old ones stay.",
                 log_text("towards", whose), log_error(err));
    if (is_renewed)
        log_info(credentials->log, "Certificates were read again; new connections use them.",
                 log_text("towards", whose));
}

static void
renew_signer(struct credentials *credentials, size_t index)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *whose = credentials->group->clusters[index].name;
    struct access_signer *signer = credentials->signers[index];
    bool is_renewed = false;
    struct error *err = signer == NULL ? NULL : access_signer_renew(signer, arena, &is_renewed);
    if (err != NULL && !credentials->is_stale[index] && !credentials->is_closing)
        log_warn(credentials->log, "A new key for tokens cannot be used; the old one stays.",
                 log_text("towards", whose), log_error(err));
    credentials->is_stale[index] = err != NULL;
    if (is_renewed)
        log_info(credentials->log, "The key for tokens was read again.",
                 log_text("towards", whose));
}

static void
watch_files(void *argument)
{
    struct credentials *credentials = argument;
    const struct cluster_group *group = credentials->group;
    while (!credentials->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(CHECK_INTERVAL, arena) != NULL)
            break;
        credentials_check(credentials);
        renew_tls(credentials, credentials->door, "clients");
        for (size_t i = 0; i < group->count && !credentials->is_closing; i++) {
            renew_tls(credentials, credentials->peers[i], group->clusters[i].name);
            renew_signer(credentials, i);
        }
    }
    latch_done(&credentials->watching);
}

/* Without files there is nothing to watch, as in simulation, which has no TLS. */
static void
start_watching(struct credentials *credentials)
{
    bool has_files = credentials->door != NULL;
    for (size_t i = 0; i < credentials->group->count; i++)
        has_files |= credentials->peers[i] != NULL || credentials->signers[i] != NULL;
    if (!has_files)
        return;
    latch_init(&credentials->watching, 1);
    credentials->watcher = fiber_start("certificates", watch_files, credentials);
}

static void
stop_watching(struct credentials *credentials)
{
    if (credentials->watcher == NULL)
        return;
    check(!credentials->is_closing);
    credentials->is_closing = true;
    fiber_cancel(credentials->watcher);
    latch_wait(&credentials->watching);
}

/* --- life ---- */

struct error *
credentials_open(const struct config *config, const struct cluster_group *group,
                 const struct log *log, struct arena *arena, struct credentials **credentials)
{
    struct credentials *opened = memory_zalloc(1, sizeof *opened);
    opened->group = group;
    opened->log = log;
    opened->arena = arena_new(0);
    opened->peers = arena_zalloc(opened->arena, group->count, sizeof *opened->peers);
    opened->signers = arena_zalloc(opened->arena, group->count, sizeof *opened->signers);
    opened->tokens = arena_zalloc(opened->arena, group->count, sizeof *opened->tokens);
    opened->is_stale = arena_zalloc(opened->arena, group->count, sizeof *opened->is_stale);
    struct error *err = open_all(opened, config, arena);
    if (err != NULL) {
        credentials_close(opened);
        return err;
    }
    start_watching(opened);
    credentials_check(opened);
    *credentials = opened;
    return NULL;
}

void
credentials_close(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    stop_watching(credentials);
    tls_free(credentials->door);
    for (size_t i = 0; i < credentials->group->count; i++) {
        tls_free(credentials->peers[i]);
        access_signer_free(credentials->signers[i]);
    }
    arena_free(credentials->arena);
    memory_free(credentials);
}

struct tls *
credentials_tls(const struct credentials *credentials)
{
    return credentials->door;
}

struct tls *const *
credentials_peer_tls(const struct credentials *credentials)
{
    return credentials->peers;
}

const struct grpc_live_header *const *
credentials_tokens(const struct credentials *credentials)
{
    return credentials->tokens;
}
