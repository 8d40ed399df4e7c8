/* rpc_command.c - commands that are one call: a row of the table says which flag goes to which
 * field, what to call, and what to say when it is done. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/check.h"
#include "cli/base/inside.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/services.h"

#define TIMEOUT   (5 * NS_PER_S)
#define HOST_SIZE 256

/* What to do next, where an error leaves no doubt: by its kind and the server's text, which is that
 * of Cadence. The first match counts. */
static const struct {
    enum error_kind kind;
    const char *words, *next;
} advice[] = {
    {ERR_ENTITY_NOT_EXISTS, "Domain ",
     "cadenza domain list shows all domains, cadenza domain register creates one"},
    {ERR_ENTITY_NOT_EXISTS, "already completed",
     "cadenza workflow show shows how it ended, cadenza workflow restart runs it again"},
    {ERR_ALREADY_COMPLETED, "",
     "cadenza workflow show shows how it ended, cadenza workflow restart runs it again"},
    {ERR_ENTITY_NOT_EXISTS, "", "cadenza workflow listall shows all workflows"},
    {ERR_ALREADY_STARTED, "",
     "give another --workflow_id, or --workflowidreusepolicy TerminateIfRunning to replace it"},
    {ERR_QUERY_FAILED, "", "cadenza workflow query-types lists the queries that it answers"},
    {ERR_FEATURE_NOT_ENABLED, "", "ask the operators of the server"},
    {ERR_ACCESS_DENIED, "", "give --jwt TOKEN, or ask the operators of the server"},
    {ERR_SERVICE_BUSY, "", "try again in a moment; cadenza admin hot-workflows shows who is busy"},
    {ERR_UNIMPLEMENTED, "", "the server at --address does not have this call"},
};

struct error *
cli_advise(struct cli_call *call, struct error *err)
{
    for (size_t i = 0; i < array_length(advice); i++) {
        if (err->kind == advice[i].kind && strstr(err->message, advice[i].words) != NULL)
            return error_new(call->arena, err->kind, "%s (%s)", err->message, advice[i].next);
    }
    return err;
}

const char *
cli_identity(struct arena *arena)
{
    char host[HOST_SIZE] = "";
    const char *user = getenv("USER");
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    return arena_format(arena, "%s@%s", user != NULL && user[0] != '\0' ? user : "cadenza-cli",
                        host);
}

/* One "path=flag" or "path=flag!". */
static struct error *
set_field(struct cli_call *call, const struct request_context *context, ProtobufCMessage *request,
          const char *field, size_t length)
{
    size_t path_length = strcspn(field, "=");
    check(path_length > 0 && path_length < length - 1); /* the tables are ours */
    const char *path = arena_text_of(call->arena, slice_of(field, path_length));
    bool is_needed = field[length - 1] == '!';
    const char *key = arena_text_of(
        call->arena, slice_of(field + path_length + 1, length - path_length - 1 - is_needed));
    const char *value = NULL;
    if (is_needed) {
        struct error *err = cli_need(call, key, &value);
        if (err != NULL)
            return err;
    } else if (cli_flag_is_switch(key)) {
        value = cli_is_on(call, key) ? "true" : NULL;
    } else {
        value = cli_text(call, key);
    }
    if (value == NULL)
        return NULL;
    return cli_wrong(call, request_set(context, request, path, cli_flag_name(key), value));
}

/* Who asks and a fresh id, where a request has room for them. */
static struct error *
set_usual(struct cli_call *call, const struct request_context *context, ProtobufCMessage *request)
{
    struct error *err = NULL;
    const char *identity = request_text(request, "identity");
    const char *request_id = request_text(request, "request_id");
    if (identity != NULL && identity[0] == '\0')
        err = request_set(context, request, "identity", "identity", cli_identity(call->arena));
    if (err == NULL && request_id != NULL)
        err = request_set(context, request, "request_id", "request_id", uuid_new_text(call->arena));
    return err;
}

struct error *
cli_make_request(struct cli_call *call, const struct cli_rpc *rpc, ProtobufCMessage **request)
{
    const struct request_context context = {.arena = call->arena, .now = clock_wall()};
    struct error *err = NULL;
    *request = message_new(call->arena, rpc->request);
    for (const char *at = rpc->fields; *at != '\0' && err == NULL; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        err = set_field(call, &context, *request, at, length);
        at += length;
    }
    if (err == NULL)
        err = set_usual(call, &context, *request);
    if (err == NULL && rpc->complete != NULL)
        err = rpc->complete(call, *request);
    return err;
}

/* The text with each {field} replaced. */
static const char *
fill_in(const char *text, const ProtobufCMessage *request, const ProtobufCMessage *response,
        struct arena *arena)
{
    struct buffer out = {0};
    while (*text != '\0') {
        size_t plain = strcspn(text, "{");
        buffer_append(&out, slice_of(text, plain));
        text += plain;
        if (*text == '\0')
            break;
        size_t length = strcspn(text, "}");
        check(text[length] == '}');
        const char *path = arena_text_of(arena, slice_of(text + 1, length - 1));
        const char *value = request_text(response, path);
        value = value != NULL ? value : request_text(request, path);
        check_that(value != NULL, "no field %s", path);
        buffer_append_text(&out, value);
        text += length + 1;
    }
    const char *kept = arena_text_of(arena, buffer_slice(&out));
    buffer_free(&out);
    return kept;
}

struct error *
cli_call_rpc(struct cli_call *call, const struct cli_rpc *rpc, const ProtobufCMessage *request,
             ProtobufCMessage **response)
{
    struct wire_method method;
    char path[WIRE_PATH_SIZE];
    check(wire_method_find_request(rpc->request, &method)); /* the tables are ours */
    wire_method_path(&method, path, sizeof path);
    return cli_ask(call, path, request, rpc->timeout != 0 ? rpc->timeout : TIMEOUT, method.response,
                   response);
}

struct error *
cli_run_rpc(struct cli_call *call)
{
    const struct cli_rpc *rpc = call->command->rpc;
    ProtobufCMessage *request = NULL, *response = NULL;
    struct error *err = cli_make_request(call, rpc, &request);
    if (err != NULL)
        return err;
    err = cli_call_rpc(call, rpc, request, &response);
    if (err != NULL)
        return cli_advise(call, err);
    if (rpc->show != NULL)
        return rpc->show(call, response);
    if (rpc->done != NULL && !call->as_json)
        cli_print("%s\n", fill_in(rpc->done, request, response, call->arena));
    else
        cli_print_json(render_message(response, RENDER_READABLE, call->arena));
    return NULL;
}
