/* authorize_test.c - who may make which call: every method of the wire, by callers of every kind
 * (J-022 to J-025). */
#include "access/access.h"
#include "access/test_samples.h"
#include "api/test/fixture.h"
#include "fiber/file.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/services.h"

#define DESCRIBE_DOMAIN "/uber.cadence.api.v1.DomainAPI/DescribeDomain"
#define OAUTH           "authorization:\n  oauthAuthorizer:\n    enable: true\n"

/* --- a server that asks for tokens ---- */

struct scene {
    struct fixture *fixture;
    struct sample_pair pair;
    struct config *config;
    struct access *access;
    struct call_header header;
};

static struct error *
try_open(struct scene *scene, const char *yaml)
{
    struct fixture *fixture = scene->fixture;
    EXPECT_OK(config_parse(slice_text(yaml), "test.yaml", NULL, fixture->arena, &scene->config));
    return access_open(&(struct access_options){.config = scene->config,
                                                .dynamic = fixture->dynamic,
                                                .domains = fixture->domains,
                                                .log = &fixture->log},
                       fixture->arena, &scene->access);
}

static void
set_groups(struct fixture *fixture)
{
    static const char *const data[][2] = {{"READ_GROUPS", "readers auditors"},
                                          {"WRITE_GROUPS", "writers"},
                                          {"PROCESS_GROUPS", "workers"}};
    API(UpdateDomainRequest) *request = API_NEW(
        fixture->arena, update_domain_request, .name = "orders",
        .update_mask = message_new(fixture->arena, &google__protobuf__field_mask__descriptor));
    static char *paths[] = {"data"};
    request->update_mask->n_paths = 1;
    request->update_mask->paths = paths;
    request->n_data = array_length(data);
    request->data = arena_zalloc(fixture->arena, request->n_data, sizeof *request->data);
    for (size_t i = 0; i < array_length(data); i++) {
        request->data[i] = message_new(fixture->arena, API_TYPE(update_domain_request__data_entry));
        request->data[i]->key = (char *)data[i][0];
        request->data[i]->value = (char *)data[i][1];
    }
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static void
scene_open(struct scene *scene, struct fixture *fixture)
{
    *scene = (struct scene){.fixture = fixture, .pair = sample_pair_make(fixture->arena)};
    set_groups(fixture);
    EXPECT_OK(file_save("public.pem", scene->pair.open, fixture->arena));
    EXPECT_OK(try_open(scene,
                       OAUTH "    maxJwtTTL: 3600\n"
                             "    jwtCredentials: {algorithm: RS256, publicKey: public.pem}\n"));
    rpc_service_guard(fixture->service, access_check, scene->access);
    scene->header.name = slice_text("cadence-authorization");
    fixture->headers = &scene->header;
    fixture->header_count = 1;
    fixture->timeout = 20 * NS_PER_MS;
}

static void
scene_close(struct scene *scene)
{
    rpc_service_guard(scene->fixture->service, NULL, NULL);
    scene->fixture->headers = NULL;
    scene->fixture->header_count = 0;
    access_free(scene->access);
    config_free(scene->config);
}

/* A token of now, as the caller says it: `grants` goes into the JSON. */
static void
show_token(struct scene *scene, const char *grants)
{
    struct arena *arena = scene->fixture->arena;
    const char *times =
        arena_format(arena, ",\"iat\":%lld,\"TTL\":600", (long long)(clock_wall() / NS_PER_S));
    if (strstr(grants, "iat") != NULL)
        times = ""; /* it has its own */
    const char *all = arena_format(arena, "{\"sub\":\"ada\",%s%s}", grants, times);
    scene->header.value = slice_text(sample_token(&scene->pair, all, NULL, arena));
}

/* In whichever field it says what domain it is about, also in a request within. */
static void
name_domain(ProtobufCMessage *request, const char *domain, struct arena *arena)
{
    static const char *const names[] = {"domain", "name", "domain_name", "request",
                                        "start_request"};
    for (size_t i = 0; i < array_length(names); i++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(request->descriptor, names[i]);
        if (field == NULL)
            continue;
        void *place = (char *)request + field->offset;
        if (field->type == PROTOBUF_C_TYPE_STRING) {
            *(const char **)place = domain;
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            *(ProtobufCMessage **)place = message_new(arena, field->descriptor);
            name_domain(*(ProtobufCMessage **)place, domain, arena);
        }
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
            *(uint32_t *)((char *)request + field->quantifier_offset) = field->id;
    }
}

/* How a call ended: any answer but a refusal for lack of a right means that it was let in. */
enum ending { LET_IN, DENIED, NOT_SERVED };

static enum ending
make_call(struct scene *scene, const struct wire_method *method, const char *domain)
{
    struct arena *arena = scene->fixture->arena;
    ProtobufCMessage *request = message_new(arena, method->request);
    name_domain(request, domain, arena);
    struct error *err = fixture_call_method(scene->fixture, method, request, NULL);
    if (err == NULL || err->kind != ERR_ACCESS_DENIED)
        return err != NULL && strstr(err->message, "is not served") != NULL ? NOT_SERVED : LET_IN;
    EXPECT_TEXT(err->message, "Request unauthorized.");
    return DENIED;
}

/* --- the matrix ---- */

enum need { NEED_NOTHING, NEED_TOKEN, NEED_READ, NEED_POLL, NEED_WRITE, NEED_ADMIN };

static bool
begins_with_one_of(const char *name, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* What the catalogue says, by the words that names of methods begin with. */
static enum need
need_of(const struct wire_method *method)
{
    static const char *const open[] = {
        "Respond",     "Record", "Health", "Check", "GetClusterInfo", "GetSearchAttributes",
        "ResetSticky", NULL};
    static const char *const admin[] = {"RegisterDomain", "UpdateDomain", "DeprecateDomain",
                                        "DeleteDomain", NULL};
    static const char *const read[] = {"List", "Describe", "Get",      "Query",
                                       "Scan", "Count",    "Diagnose", NULL};
    const char *service = method->service->name, *name = method->name;
    bool is_admin = strstr(service, ".admin.") != NULL;
    if (strcmp(name, "ListDomains") == 0 || strcmp(name, "DescribeCluster") == 0)
        return NEED_TOKEN;
    if (is_admin || begins_with_one_of(name, admin))
        return NEED_ADMIN;
    if (begins_with_one_of(name, open))
        return NEED_NOTHING;
    if (strncmp(name, "Poll", 4) == 0)
        return NEED_POLL;
    return begins_with_one_of(name, read) ? NEED_READ : NEED_WRITE;
}

static const struct caller_kind {
    const char *grants; /* NULL: shows no token */
    unsigned may;       /* bits by need */
} kinds[] = {
    {NULL, 1 << NEED_NOTHING},
    {"\"Groups\":\"strangers\"", 1 << NEED_NOTHING | 1 << NEED_TOKEN},
    {"\"Groups\":\"x auditors\"", 1 << NEED_NOTHING | 1 << NEED_TOKEN | 1 << NEED_READ},
    {"\"groups\":\"workers\"", 1 << NEED_NOTHING | 1 << NEED_TOKEN | 1 << NEED_POLL},
    {"\"Groups\":\"writers\"",
     1 << NEED_NOTHING | 1 << NEED_TOKEN | 1 << NEED_READ | 1 << NEED_POLL | 1 << NEED_WRITE},
    {"\"Admin\":true", ~0u},
    {"\"Admin\":true,\"TTL\":1,\"iat\":1000", 1 << NEED_NOTHING}, /* long ago */
};

/* Asked by domain id or by a filter: not by a field that the matrix fills. */
static bool
names_no_domain(const struct wire_method *method)
{
    return strcmp(method->name, "ListFailoverHistory") == 0;
}

static void
ask_all(struct scene *scene, const struct caller_kind *kind, size_t *asked, size_t *denied)
{
    struct fixture *fixture = scene->fixture;
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        if (names_no_domain(&method))
            continue;
        if (kind->grants != NULL)
            show_token(scene, kind->grants);
        fixture->header_count = kind->grants != NULL;
        enum ending ending = make_call(scene, &method, "orders");
        bool may = (kind->may & 1u << need_of(&method)) != 0;
        if (ending != NOT_SERVED && (ending == LET_IN) != may)
            TEST_FAIL("%s with %s is %s", method.name, kind->grants, may ? "refused" : "let in");
        *asked += ending != NOT_SERVED;
        *denied += ending == DENIED;
    }
}

static void
matrix(struct fixture *fixture)
{
    struct scene scene;
    scene_open(&scene, fixture);
    size_t asked = 0, denied = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        ask_all(&scene, &kinds[i], &asked, &denied);
    EXPECT(asked > 400 && denied > 100);
    scene_close(&scene);
}

TEST(authorize, every_call_needs_what_the_table_says, "J-023", "J-024")
{
    fixture_run(matrix);
}

/* Filters of settings come in any number: they are no one field that names a domain. */
SERVER_TEST(authorize, what_comes_in_any_number_names_no_domain)
{
    struct scene scene;
    scene_open(&scene, fixture);
    show_token(&scene, "\"groups\":\"writers\"");
    fixture->header_count = 1;
    ADMIN(GetDynamicConfigRequest) *request =
        ADMIN_NEW(fixture->arena, get_dynamic_config_request, .config_name = "x");
    request->n_filters = 1;
    request->filters = arena_zalloc(fixture->arena, 1, sizeof *request->filters);
    request->filters[0] = ADMIN_NEW(fixture->arena, dynamic_config_filter, .name = "domainName");
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT(err != NULL && err->kind == ERR_ACCESS_DENIED);
    scene_close(&scene);
}

/* --- tokens that are not good ---- */

static enum ending
describe_with(struct scene *scene, const char *token)
{
    struct wire_method method;
    bool is_known = wire_method_find(slice_text(DESCRIBE_DOMAIN), &method);
    EXPECT(is_known);
    scene->header.value = slice_text(token);
    scene->fixture->header_count = 1;
    return make_call(scene, &method, "orders");
}

static const char *
grants_at(struct scene *scene, long long issued, long long expires)
{
    long long now = clock_wall() / NS_PER_S;
    return arena_format(scene->fixture->arena,
                        "{\"sub\":\"ada\",\"Admin\":true,\"iat\":%lld,\"exp\":%lld}", now + issued,
                        now + expires);
}

SERVER_TEST(authorize, only_a_token_that_is_signed_and_of_now_counts, "J-022")
{
    struct scene scene;
    scene_open(&scene, fixture);
    struct arena *arena = fixture->arena;
    struct sample_pair other = sample_pair_make(arena);
    const char *good = sample_token(&scene.pair, grants_at(&scene, -10, 100), NULL, arena);
    EXPECT_EQ(describe_with(&scene, good), LET_IN);
    EXPECT_EQ(describe_with(&scene, good), LET_IN); /* it is known now */
    EXPECT_EQ(
        describe_with(&scene, sample_token(&scene.pair, grants_at(&scene, -100, -31), NULL, arena)),
        DENIED);
    EXPECT_EQ(
        describe_with(&scene, sample_token(&scene.pair, grants_at(&scene, -100, -20), NULL, arena)),
        LET_IN); /* clocks differ */
    EXPECT_EQ(
        describe_with(&scene, sample_token(&scene.pair, grants_at(&scene, 60, 100), NULL, arena)),
        DENIED);
    EXPECT_EQ(
        describe_with(&scene, sample_token(&scene.pair, grants_at(&scene, 0, 3700), NULL, arena)),
        DENIED);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, "{\"Admin\":true}", NULL, arena)),
              DENIED);
    EXPECT_EQ(describe_with(&scene, sample_token(&other, grants_at(&scene, 0, 100), NULL, arena)),
              DENIED);
    EXPECT_EQ(
        describe_with(&scene, sample_token(&scene.pair, grants_at(&scene, 0, 100), "k1", arena)),
        DENIED); /* no set of keys is configured */
    EXPECT_EQ(describe_with(&scene, "x.y.z"), DENIED);
    EXPECT_EQ(describe_with(&scene, arena_format(arena, "Bearer %s", good)), DENIED);

    /* The public key is no secret: a token "signed" with it, or not at all, is refused. */
    const char *grants = grants_at(&scene, 0, 100);
    EXPECT_EQ(describe_with(&scene, sample_token_unsigned(grants, arena)), DENIED);
    EXPECT_EQ(describe_with(&scene, sample_token_forged(&scene.pair, grants, arena)), DENIED);

    EXPECT_OK(fiber_sleep(131 * NS_PER_S, arena));
    EXPECT_EQ(describe_with(&scene, good), DENIED); /* known, and expired */
    scene_close(&scene);
}

/* --- a set of keys, and members of the token's own ---- */

SERVER_TEST(authorize, tokens_of_a_provider_are_checked_with_its_keys)
{
    struct arena *arena = fixture->arena;
    struct scene scene;
    scene_open(&scene, fixture);
    scene_close(&scene);
    const char *set = sample_key_set(&scene.pair, "k1", arena);
    EXPECT_OK(file_save("keys.json", slice_text(set), arena));
    EXPECT_OK(try_open(&scene, OAUTH "    provider:\n"
                                     "      jwksURL: file://keys.json\n"
                                     "      groupsAttributePath: realm.roles\n"
                                     "      adminAttributePath: realm.boss\n"));
    rpc_service_guard(fixture->service, access_check, scene.access);
    fixture->headers = &scene.header;
    long long now = clock_wall() / NS_PER_S;
    const char *reader = arena_format(
        arena, "{\"iss\":\"idp\",\"exp\":%lld,\"realm\":{\"roles\":[\"a\",\"readers\"]}}",
        now + 60);
    const char *boss =
        arena_format(arena, "{\"iss\":\"idp\",\"exp\":%lld,\"realm\":{\"boss\":true}}", now + 60);
    const char *liar =
        arena_format(arena, "{\"iss\":\"idp\",\"exp\":%lld,\"admin\":true}", now + 60);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, reader, "k1", arena)), LET_IN);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, boss, "k1", arena)), LET_IN);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, liar, "k1", arena)), DENIED);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, boss, "k2", arena)), DENIED);
    EXPECT_EQ(describe_with(&scene, sample_token(&scene.pair, boss, NULL, arena)), DENIED);
    scene_close(&scene);
}

/* A key is replaced while the server runs; what its file says in between does not count. */
SERVER_TEST(authorize, keys_are_read_again_when_their_file_changes, "J-022")
{
    struct arena *arena = fixture->arena;
    struct scene scene;
    scene_open(&scene, fixture);
    struct sample_pair before = scene.pair, after = sample_pair_make(arena);
    const char *grants =
        arena_format(arena, "{\"sub\":\"ada\",\"Admin\":true,\"iat\":%lld,\"TTL\":600}",
                     (long long)(clock_wall() / NS_PER_S));
    const char *tokens[] = {sample_token(&before, grants, NULL, arena),
                            sample_token(&after, grants, NULL, arena)};
    EXPECT_EQ(describe_with(&scene, tokens[0]), LET_IN);
    EXPECT_EQ(describe_with(&scene, tokens[1]), DENIED);
    EXPECT_OK(file_save("public.pem", slice_text("half of a key"), arena));
    EXPECT_OK(fiber_sleep(5 * NS_PER_S, arena));
    EXPECT(strstr(fixture->logged, "the old ones stay") != NULL);
    EXPECT_EQ(describe_with(&scene, tokens[0]), LET_IN);
    EXPECT_OK(file_save("public.pem", after.open, arena));
    EXPECT_OK(fiber_sleep(5 * NS_PER_S, arena));
    EXPECT_EQ(describe_with(&scene, tokens[0]), DENIED); /* though it was remembered */
    EXPECT_EQ(describe_with(&scene, tokens[1]), LET_IN);
    scene_close(&scene);
}

/* --- lists, log only, faults ---- */

static size_t
count_listed(struct scene *scene)
{
    API(ListDomainsResponse) *response = API_OK(scene->fixture, list_domains);
    return response->n_domains;
}

static void
lists(struct fixture *fixture)
{
    struct scene scene;
    API(RegisterDomainRequest) *request = API_NEW(
        fixture->arena, register_domain_request, .name = "secret",
        .workflow_execution_retention_period = presence_make_duration(fixture->arena, 86400));
    EXPECT_OK(fixture_call(fixture, request, NULL));
    scene_open(&scene, fixture);
    api_set_access(fixture->api, scene.access);
    show_token(&scene, "\"Groups\":\"readers\"");
    EXPECT_EQ(count_listed(&scene), 1);
    show_token(&scene, "\"Groups\":\"strangers\"");
    EXPECT_EQ(count_listed(&scene), 0);
    show_token(&scene, "\"Admin\":true");
    EXPECT_EQ(count_listed(&scene), 2);
    api_set_access(fixture->api, NULL);
    scene_close(&scene);
}

TEST(authorize, a_domain_that_one_may_not_read_is_not_listed)
{
    fixture_run(lists);
}

/* cadence-web asks for its list without a token, and goes to a domain with the user's. */
SERVER_TEST(authorize, names_of_domains_are_shown_to_everybody_where_the_config_says_so)
{
    struct scene scene;
    API(ListDomainsRequest) *request = API_NEW(fixture->arena, list_domains_request);
    API(ListDomainsResponse) *response;
    scene_open(&scene, fixture);
    access_free(scene.access);
    config_free(scene.config);
    EXPECT_OK(try_open(&scene, OAUTH "    showDomainNames: true\n"
                                     "    jwtCredentials: {publicKey: public.pem}\n"));
    rpc_service_guard(fixture->service, access_check, scene.access);
    api_set_access(fixture->api, scene.access);
    for (int i = 0; i < 3; i++) { /* without a token, with one of a stranger, of a reader */
        fixture->header_count = i == 0 ? 0 : 1;
        show_token(&scene, i == 2 ? "\"Groups\":\"readers\"" : "\"Groups\":\"strangers\"");
        response = fixture_ok(fixture, request);
        EXPECT_EQ(response->n_domains, 1);
        const API(Domain) *shown = response->domains[0];
        EXPECT_TEXT(shown->name, "orders");
        EXPECT_EQ(shown->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED));
        EXPECT(shown->id[0] != '\0' && shown->active_cluster_name[0] != '\0');
        EXPECT(shown->n_clusters > 0);
        EXPECT_EQ(shown->n_data, i == 2 ? 3 : 0);
        EXPECT_EQ(shown->workflow_execution_retention_period != NULL, i == 2);
    }
    fixture->header_count = 0;
    struct wire_method method;
    EXPECT(wire_method_find(slice_text(DESCRIBE_DOMAIN), &method));
    EXPECT_EQ(make_call(&scene, &method, "orders"), DENIED);
    api_set_access(fixture->api, NULL);
    scene_close(&scene);
}

SERVER_TEST(authorize, a_trial_logs_and_lets_in)
{
    struct scene scene;
    scene_open(&scene, fixture);
    EXPECT_EQ(describe_with(&scene, "x"), DENIED);
    fixture_set(fixture, "system.enableServiceAuthorizationLogOnly:\n- value: true\n");
    EXPECT_EQ(describe_with(&scene, "x"), LET_IN);
    EXPECT(strstr(fixture->logged, "A call is not authorized.") != NULL);
    EXPECT(strstr(fixture->logged, "DescribeDomain") != NULL);
    scene_close(&scene);
}

static void
faults(struct fixture *fixture)
{
    static const struct {
        const char *yaml, *fault;
    } cases[] = {
        {OAUTH, "authorization is on and there is no key"},
        {OAUTH "    jwtCredentials: {publicKey: nowhere.pem}\n", "nowhere.pem"},
        {OAUTH "    jwtCredentials: {publicKey: text.pem}\n", "text.pem has no RSA public key"},
        {OAUTH "    provider: {jwksURL: 'https://idp/keys'}\n", "'https://idp/keys' is not read"},
        {OAUTH "    provider: {jwksURL: text.pem}\n", "text.pem has no list 'keys' in JSON"},
    };
    struct scene scene = {.fixture = fixture};
    EXPECT_OK(file_save("text.pem", slice_text("hello"), fixture->arena));
    for (size_t i = 0; i < array_length(cases); i++) {
        struct error *err = try_open(&scene, cases[i].yaml);
        EXPECT(err != NULL && scene.access == NULL);
        EXPECT(strstr(err->message, cases[i].fault) != NULL);
        config_free(scene.config);
    }
}

TEST(authorize, what_is_wrong_with_the_keys_is_told_at_the_start)
{
    fixture_run(faults);
}
