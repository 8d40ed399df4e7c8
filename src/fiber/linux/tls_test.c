/* tls_test.c - TLS between two ends: who is trusted, who is not, and bytes in both directions.
 *
 * Certificates are made here, by OpenSSL's API, into a folder that goes away. */
#include "fiber/tls.h"

#include <ftw.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/socket.h"
#include "fiber/sync.h"

#define PATIENCE (30 * NS_PER_S)

/* ---- certificates ---- */

struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

/* `names` is a subjectAltName such as "DNS:localhost,IP:127.0.0.1"; NULL: an authority. */
static struct identity
identity_new(const char *name, const char *names, const struct identity *issuer)
{
    struct identity new = {X509_new(), EVP_EC_gen("P-256")};
    check(new.key != NULL);
    X509_set_version(new.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(new.certificate), issuer == NULL ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(new.certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(new.certificate), 3600);
    X509_set_pubkey(new.certificate, new.key);
    X509_NAME *subject = X509_get_subject_name(new.certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509 *signer = issuer == NULL ? new.certificate : issuer->certificate;
    X509_set_issuer_name(new.certificate, X509_get_subject_name(signer));
    X509V3_CTX context;
    X509V3_set_ctx(&context, signer, new.certificate, NULL, NULL, 0);
    int kind = names == NULL ? NID_basic_constraints : NID_subject_alt_name;
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, &context, kind, names == NULL ? "critical,CA:TRUE" : names);
    check(extension != NULL);
    X509_add_ext(new.certificate, extension, -1);
    X509_EXTENSION_free(extension);
    check(X509_sign(new.certificate, issuer == NULL ? new.key : issuer->key, EVP_sha256()) > 0);
    return new;
}

static void
identity_free(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

struct files {
    char folder[64];
    char authority[128], stranger[128], certificate[128], key[128], other_key[128];
    const char *authorities[2], *strangers[2];
};

static void
save_certificate(const char *path, X509 *certificate)
{
    FILE *file = fopen(path, "w");
    check(file != NULL && PEM_write_X509(file, certificate) == 1);
    fclose(file);
}

static void
save_key(const char *path, EVP_PKEY *key)
{
    FILE *file = fopen(path, "w");
    check(file != NULL && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(file);
}

static void
files_make(struct files *files)
{
    snprintf(files->folder, sizeof files->folder, "/tmp/cadenza-tls-XXXXXX");
    check(mkdtemp(files->folder) != NULL);
    snprintf(files->authority, sizeof files->authority, "%s/authority", files->folder);
    snprintf(files->stranger, sizeof files->stranger, "%s/stranger", files->folder);
    snprintf(files->certificate, sizeof files->certificate, "%s/certificate", files->folder);
    snprintf(files->key, sizeof files->key, "%s/key", files->folder);
    snprintf(files->other_key, sizeof files->other_key, "%s/other-key", files->folder);
    files->authorities[0] = files->authority;
    files->strangers[0] = files->stranger;
    files->authorities[1] = files->strangers[1] = NULL;
    struct identity authority = identity_new("authority", NULL, NULL);
    struct identity stranger = identity_new("stranger", NULL, NULL);
    struct identity leaf = identity_new("leaf", "DNS:cadenza.test,IP:127.0.0.1", &authority);
    save_certificate(files->authority, authority.certificate);
    save_certificate(files->stranger, stranger.certificate);
    save_certificate(files->certificate, leaf.certificate);
    save_key(files->key, leaf.key);
    save_key(files->other_key, stranger.key);
    identity_free(&authority);
    identity_free(&stranger);
    identity_free(&leaf);
}

static int
remove_entry(const char *path, const struct stat *stat, int type, struct FTW *state)
{
    return remove(path);
}

/* ---- two ends ---- */

struct meeting {
    struct files files;
    struct tls_options server, client;
    const char *server_name;
    size_t bytes; /* echoed */

    enum error_kind server_failed, client_failed; /* ERROR_KIND_COUNT: not */
    char client_message[256];
    struct listener *listener;
    struct latch latch;
};

static void
note(struct error *err, enum error_kind *kind)
{
    *kind = err == NULL ? ERROR_KIND_COUNT : err->kind;
}

/* 1: some bytes; otherwise the end or broken. */
static int64_t
read_some(struct socket *socket, void *bytes, size_t room)
{
    int64_t count;
    while ((count = socket_read(socket, bytes, room)) == 0)
        if (socket_wait(socket, SOCKET_READABLE, clock_monotonic() + PATIENCE) == 0)
            return SOCKET_BROKEN;
    return count;
}

static bool
write_all(struct socket *socket, const char *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        int64_t taken = socket_write(socket, bytes + done, count - done);
        if (taken < 0)
            return false;
        done += (size_t)taken;
        if (taken == 0 && socket_wait(socket, SOCKET_WRITABLE, clock_monotonic() + PATIENCE) == 0)
            return false;
    }
    return true;
}

static void
serve(void *argument)
{
    struct meeting *meeting = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tls *tls;
    struct socket *socket;
    EXPECT_OK(tls_new(&meeting->server, arena, &tls));
    EXPECT_OK(listener_accept(meeting->listener, arena, &socket));
    socket_adopt(socket);
    struct error *err = socket_start_tls(socket, tls, NULL, clock_monotonic() + PATIENCE, arena);
    note(err, &meeting->server_failed);
    char bytes[5000];
    int64_t count = 0;
    while (err == NULL && (count = read_some(socket, bytes, sizeof bytes)) > 0)
        if (!write_all(socket, bytes, (size_t)count))
            break;
    socket_close(socket);
    tls_free(tls);
    latch_done(&meeting->latch);
}

/* In portions, so that neither side's buffers fill up while the other writes. */
static void
exchange(struct meeting *meeting, struct socket *socket)
{
    char bytes[7000], back[7000];
    for (size_t place = 0; place < meeting->bytes; place += sizeof bytes) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)((place + i) * 31 >> 3);
        EXPECT(write_all(socket, bytes, sizeof bytes));
        for (size_t got = 0; got < sizeof back;) {
            int64_t count = read_some(socket, back + got, sizeof back - got);
            EXPECT(count > 0);
            got += (size_t)count;
        }
        EXPECT(memcmp(bytes, back, sizeof bytes) == 0);
    }
}

static void
meet_fiber(void *argument)
{
    struct meeting *meeting = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tls *tls;
    struct socket *socket;
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &meeting->listener));
    latch_init(&meeting->latch, 1);
    fiber_start("serve", serve, meeting);
    EXPECT_OK(tls_new(&meeting->client, arena, &tls));
    EXPECT_OK(socket_connect(listener_address(meeting->listener), clock_monotonic() + PATIENCE,
                             arena, &socket));
    struct error *err =
        socket_start_tls(socket, tls, meeting->server_name, clock_monotonic() + PATIENCE, arena);
    note(err, &meeting->client_failed);
    if (err != NULL)
        snprintf(meeting->client_message, sizeof meeting->client_message, "%s", err->message);
    else
        exchange(meeting, socket);
    socket_close(socket);
    latch_wait(&meeting->latch);
    listener_free(meeting->listener);
    tls_free(tls);
}

static void
meeting_prepare(struct meeting *meeting)
{
    *meeting = (struct meeting){.server_name = "cadenza.test"};
    files_make(&meeting->files);
    struct files *files = &meeting->files;
    meeting->server = (struct tls_options){
        .certificate_file = files->certificate, .key_file = files->key, .is_server = true};
    meeting->client =
        (struct tls_options){.authority_files = files->authorities, .verify_host = true};
}

static void
meeting_clean(struct meeting *meeting)
{
    nftw(meeting->files.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void
meet(struct meeting *meeting)
{
    linux_run(&(struct linux_options){.loops = 1}, meet_fiber, meeting);
    meeting_clean(meeting);
}

/* ---- the tests ---- */

TEST(tls, bytes_go_through_in_both_directions)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    meeting.bytes = 700000;
    meet(&meeting);
    EXPECT_EQ(meeting.server_failed, ERROR_KIND_COUNT);
    EXPECT_EQ(meeting.client_failed, ERROR_KIND_COUNT);
}

TEST(tls, a_server_of_an_unknown_authority_is_refused)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    meeting.client.authority_files = meeting.files.strangers;
    meet(&meeting);
    EXPECT_EQ(meeting.client_failed, ERR_UNAVAILABLE);
    EXPECT(strstr(meeting.client_message, "certificate") != NULL);
    EXPECT_EQ(meeting.server_failed, ERR_UNAVAILABLE);
}

TEST(tls, a_server_with_another_name_is_refused_when_names_are_verified)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    meeting.server_name = "other.test";
    meet(&meeting);
    EXPECT_EQ(meeting.client_failed, ERR_UNAVAILABLE);
    EXPECT(strstr(meeting.client_message, "hostname") != NULL);

    meeting_prepare(&meeting);
    meeting.server_name = "other.test";
    meeting.client.verify_host = false;
    meet(&meeting);
    EXPECT_EQ(meeting.client_failed, ERROR_KIND_COUNT);
}

TEST(tls, an_address_is_verified_as_an_address)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    meeting.server_name = "127.0.0.1";
    meet(&meeting);
    EXPECT_EQ(meeting.client_failed, ERROR_KIND_COUNT);
    meeting_prepare(&meeting);
    meeting.server_name = "127.0.0.2";
    meet(&meeting);
    EXPECT_EQ(meeting.client_failed, ERR_UNAVAILABLE);
}

TEST(tls, mutual_tls_takes_clients_with_a_certificate_only)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    meeting.server.require_peer_certificate = true;
    meeting.server.authority_files = meeting.files.authorities;
    meeting.client.certificate_file = meeting.files.certificate;
    meeting.client.key_file = meeting.files.key;
    meeting.bytes = 7000;
    meet(&meeting);
    EXPECT_EQ(meeting.server_failed, ERROR_KIND_COUNT);

    meeting_prepare(&meeting);
    meeting.server.require_peer_certificate = true;
    meeting.server.authority_files = meeting.files.authorities;
    meet(&meeting);
    EXPECT_EQ(meeting.server_failed, ERR_UNAVAILABLE);
}

/* The error that a server gets about these two files. */
static void
expect_refusal(const char *certificate, const char *key, const char *wanted, struct arena *arena)
{
    struct tls *tls;
    struct tls_options options = {
        .is_server = true, .certificate_file = certificate, .key_file = key};
    struct error *err = tls_new(&options, arena, &tls);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, wanted);
}

/* The reason is one that can be acted upon, not OpenSSL's "system lib" or "no start line". */
static void
read_reasons(void *argument)
{
    struct meeting *meeting = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *certificate = meeting->files.certificate, *key = meeting->files.key;
    const char *other = meeting->files.other_key, *folder = meeting->files.folder;
    expect_refusal("/nope.pem", key, "certificate /nope.pem: No such file or directory", arena);
    expect_refusal(certificate, "/nope.pem", "key /nope.pem: No such file or directory", arena);
    expect_refusal(folder, key, arena_format(arena, "certificate %s: Is a directory", folder),
                   arena);
    expect_refusal(key, key,
                   arena_format(arena, "certificate %s: has no certificate in PEM form", key),
                   arena);
    expect_refusal(certificate, certificate,
                   arena_format(arena, "key %s: has no private key in PEM form", certificate),
                   arena);
    expect_refusal(
        certificate, other,
        arena_format(arena, "key %s: is not the key of certificate %s", other, certificate), arena);
    if (geteuid() == 0) /* reads everything */
        return;
    chmod(certificate, 0);
    expect_refusal(certificate, key,
                   arena_format(arena, "certificate %s: Permission denied", certificate), arena);
}

TEST(tls, a_file_that_is_not_taken_is_reported_with_a_reason_to_act_upon)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    linux_run(&(struct linux_options){.loops = 1}, read_reasons, &meeting);
    meeting_clean(&meeting);
}

static void
read_bad_files(void *argument)
{
    struct meeting *meeting = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tls *tls;
    struct tls_options options = {.is_server = true};
    EXPECT_KIND(tls_new(&options, arena, &tls), ERR_BAD_REQUEST);
    options.certificate_file = "/nowhere/certificate";
    struct error *err = tls_new(&options, arena, &tls);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "/nowhere/certificate") != NULL);
    options.certificate_file = meeting->files.certificate;
    options.key_file = meeting->files.other_key; /* of another certificate */
    err = tls_new(&options, arena, &tls);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, meeting->files.other_key) != NULL);
    struct tls_options client = {.authority_files = (const char *[]){"/nowhere/a", NULL}};
    EXPECT_KIND(tls_new(&client, arena, &tls), ERR_BAD_REQUEST);
    EXPECT(tls == NULL);
}

TEST(tls, files_that_do_not_fit_are_named)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    linux_run(&(struct linux_options){.loops = 1}, read_bad_files, &meeting);
    meeting_clean(&meeting);
}

/* A peer that says nothing must not hold the handshake for ever. */
static void
shake_hands_with_nobody(void *argument)
{
    struct meeting *meeting = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct listener *listener;
    struct socket *near, *far;
    struct tls *tls;
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &listener));
    EXPECT_OK(socket_connect(listener_address(listener), NEVER, arena, &near));
    EXPECT_OK(listener_accept(listener, arena, &far));
    EXPECT_OK(tls_new(&meeting->client, arena, &tls));
    int64_t due = clock_monotonic() + 5 * NS_PER_MS;
    EXPECT_KIND(socket_start_tls(near, tls, "cadenza.test", due, arena), ERR_DEADLINE);
    EXPECT(clock_monotonic() >= due);
    socket_close(near);
    socket_close(far);
    listener_free(listener);
    tls_free(tls);
}

TEST(tls, a_handshake_ends_at_its_deadline)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    linux_run(&(struct linux_options){.loops = 1}, shake_hands_with_nobody, &meeting);
    meeting_clean(&meeting);
}

/* ---- renewal ---- */

/* True: the files were taken. Two looks: what has just changed is left alone. */
static bool
look_twice(struct tls *tls, enum error_kind *failed)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bool is_renewed = true;
    EXPECT_OK(tls_renew(tls, arena, &is_renewed));
    EXPECT(!is_renewed);
    note(tls_renew(tls, arena, &is_renewed), failed);
    return is_renewed;
}

static void
replace_files(void *argument)
{
    struct meeting *meeting = argument;
    struct files *files = &meeting->files;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tls *tls;
    enum error_kind failed;
    EXPECT_OK(tls_new(&meeting->server, arena, &tls));
    EXPECT(!look_twice(tls, &failed));
    struct identity other = identity_new("other", "DNS:cadenza.test", NULL);
    save_certificate(files->certificate, other.certificate); /* and the old key */
    EXPECT(!look_twice(tls, &failed));
    EXPECT_EQ(failed, ERR_BAD_REQUEST);
    EXPECT(!look_twice(tls, &failed)); /* is said once */
    EXPECT_EQ(failed, ERROR_KIND_COUNT);
    save_key(files->key, other.key);
    EXPECT(look_twice(tls, &failed));
    EXPECT(!look_twice(tls, &failed));
    EXPECT_EQ(remove(files->key), 0);
    EXPECT(!look_twice(tls, &failed));
    EXPECT_EQ(failed, ERR_BAD_REQUEST);
    identity_free(&other);
    tls_free(tls);
}

TEST(tls, files_that_changed_are_taken_if_they_are_good)
{
    struct meeting meeting;
    meeting_prepare(&meeting);
    linux_run(&(struct linux_options){.loops = 1}, replace_files, &meeting);
    meeting_clean(&meeting);
}
