/* dlq.c - dead letters, for operators: count, read, purge, merge. Those about runs: runs_dlq.c.
 *
 * A message is shown with the id that it has in the queue here, not at its source: that is the
 * number to give to purge and merge. A page token is the last id of the page before. */
#include "base/check.h"
#include "base/text.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "replication/inside.h"
#include "route/ask.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_SIZE_MAX 1000

/* --- questions to the owner of the domains ---- */

static struct error *
serve_count(void *domains, struct owner owner, const void *request, struct arena *arena,
            void *result)
{
    INTERNAL(DomainLettersCount) *answer = result;
    return domains_count_dead_letters(domains, arena, &answer->count);
}

/* These two read. Lost: an operator asks again. */
static const struct route_question count_question = {
    .name = "domain_letters.count",
    .request = INTERNAL_TYPE(domain_letters_query),
    .answer = INTERNAL_TYPE(domain_letters_count),
    .serve = serve_count,
    .may_come_twice = true,
};

static struct error *
serve_read(void *domains, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    const INTERNAL(DomainLettersQuery) *query = argument;
    INTERNAL(DomainLettersPage) *page = result;
    struct domain_dead_letters letters;
    struct error *err = domains_read_dead_letters(domains, query->after, query->to,
                                                  query->count_max, arena, &letters);
    if (err != NULL)
        return err;
    page->n_ids = page->n_letters = letters.count;
    page->ids = letters.id;
    page->letters = (STORED(DomainDeadLetter) **)letters.letter;
    page->has_more = letters.has_more;
    return NULL;
}

static const struct route_question read_question = {
    .name = "domain_letters.read",
    .request = INTERNAL_TYPE(domain_letters_query),
    .answer = INTERNAL_TYPE(domain_letters_page),
    .serve = serve_read,
    .may_come_twice = true,
};

static struct error *
serve_purge(void *domains, struct owner owner, const void *argument, struct arena *arena,
            void *answer)
{
    const INTERNAL(DomainLettersQuery) *query = argument;
    return domains_purge_dead_letters(domains, query->to, arena);
}

/* Lost: an operator asks again, and finds fewer. Not twice: where no end is given, a letter that
 * came in between would go, too. */
static const struct route_question purge_question = {
    .name = "domain_letters.purge",
    .request = INTERNAL_TYPE(domain_letters_query),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_purge,
};

static struct error *
serve_merge(void *domains, struct owner owner, const void *argument, struct arena *arena,
            void *result)
{
    const INTERNAL(DomainLettersQuery) *query = argument;
    INTERNAL(DomainLettersMerged) *answer = result;
    struct domain_merged merged;
    struct error *err = domains_merge_dead_letters(domains, query->to, arena, &merged);
    if (err != NULL)
        return err;
    answer->applied = merged.applied;
    answer->left = merged.left;
    answer->reasons = (char *)merged.reasons;
    return NULL;
}

/* Lost: an operator asks again. Not twice: the second time fewer would be counted as applied. */
static const struct route_question merge_question = {
    .name = "domain_letters.merge",
    .request = INTERNAL_TYPE(domain_letters_query),
    .answer = INTERNAL_TYPE(domain_letters_merged),
    .serve = serve_merge,
};

static struct error *
dlq_ask(struct rpc_call *call, const struct route_question *question,
        const INTERNAL(DomainLettersQuery) * query, void *answer)
{
    struct domains *domains = replication_of(call)->options.domains;
    return route_ask(owner_of_domains(), domains_service(domains), question, query, call->arena,
                     answer);
}

/* --- the calls ---- */

static INTERNAL(DomainLettersQuery) query_of(const GOOGLE(Int64Value) *inclusive_end)
{
    struct maybe_int64 end = presence_read_int64(inclusive_end);
    INTERNAL(DomainLettersQuery) query = INTERNAL_VALUE(DOMAIN_LETTERS_QUERY__INIT);
    query.to = !end.is_set ? INT64_MAX : end.value < 0 ? 0 : (uint64_t)end.value;
    return query;
}

static struct error *
check_type(int type, struct arena *arena)
{
    if (type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN))
        return NULL;
    if (type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_INVALID))
        return error_new(arena, ERR_BAD_REQUEST, "Queue type is not set.");
    return error_new(arena, ERR_BAD_REQUEST, "The DLQ type is not supported.");
}

struct error *
replication_count_dlq(struct rpc_call *call)
{
    ADMIN(CountDLQMessagesResponse) *response = (ADMIN(CountDLQMessagesResponse) *)call->response;
    INTERNAL(DomainLettersQuery) query = query_of(NULL);
    INTERNAL(DomainLettersCount) answer = INTERNAL_VALUE(DOMAIN_LETTERS_COUNT__INIT);
    struct error *err = dlq_ask(call, &count_question, &query, &answer);
    response->domain = (int64_t)answer.count;
    return err != NULL ? err : runs_dlq_count(call);
}

/* The message with the id that it has here. */
static ADMIN(ReplicationTask) *
show_letter(const STORED(DomainDeadLetter) *letter, uint64_t id, struct arena *arena)
{
    ADMIN(ReplicationTask) *task = arena_make(arena, ADMIN(ReplicationTask));
    *task = *letter->task;
    task->source_task_id = (int64_t)id;
    return task;
}

struct error *
replication_read_dlq(struct rpc_call *call)
{
    const ADMIN(ReadDLQMessagesRequest) *request =
        (const ADMIN(ReadDLQMessagesRequest) *)call->request;
    ADMIN(ReadDLQMessagesResponse) *response = (ADMIN(ReadDLQMessagesResponse) *)call->response;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_read(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    INTERNAL(DomainLettersQuery) query = query_of(request->inclusive_end_message_id);
    INTERNAL(DomainLettersPage) page = INTERNAL_VALUE(DOMAIN_LETTERS_PAGE__INIT);
    struct slice token = presence_read_bytes(request->next_page_token);
    if (token.length > 0 && !text_parse_uint64(token, 1, INT64_MAX, &query.after))
        return error_new(call->arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    bool is_given = request->page_size > 0 && request->page_size < PAGE_SIZE_MAX;
    query.count_max = is_given ? (size_t)request->page_size : PAGE_SIZE_MAX;
    err = dlq_ask(call, &read_question, &query, &page);
    if (err != NULL)
        return err;
    check(page.n_letters <= query.count_max && page.n_ids == page.n_letters);
    response->type = request->type;
    response->n_replication_tasks = page.n_letters;
    response->replication_tasks =
        arena_zalloc(call->arena, page.n_letters, sizeof *response->replication_tasks);
    for (size_t i = 0; i < page.n_letters; i++) {
        check(page.ids[i] > (i == 0 ? query.after : page.ids[i - 1]));
        response->replication_tasks[i] = show_letter(page.letters[i], page.ids[i], call->arena);
    }
    if (page.has_more) {
        check(page.n_letters > 0);
        uint64_t last = page.ids[page.n_letters - 1];
        response->next_page_token = presence_make_bytes(
            slice_text(arena_format(call->arena, "%llu", (unsigned long long)last)));
    }
    return NULL;
}

struct error *
replication_purge_dlq(struct rpc_call *call)
{
    const ADMIN(PurgeDLQMessagesRequest) *request =
        (const ADMIN(PurgeDLQMessagesRequest) *)call->request;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_purge(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    INTERNAL(DomainLettersQuery) query = query_of(request->inclusive_end_message_id);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return dlq_ask(call, &purge_question, &query, &answer);
}

/* If some could not be applied, the call fails, and says how many and why. */
static struct error *
report_merged(const INTERNAL(DomainLettersMerged) * merged,
              ADMIN(MergeDLQMessagesResponse) *response, struct arena *arena)
{
    response->applied =
        presence_make_int64(arena, (struct maybe_int64){true, (int64_t)merged->applied});
    if (merged->left == 0)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "%llu messages were applied; %llu still cannot be applied and stay in the "
                     "queue: %s",
                     (unsigned long long)merged->applied, (unsigned long long)merged->left,
                     merged->reasons);
}

struct error *
replication_merge_dlq(struct rpc_call *call)
{
    const ADMIN(MergeDLQMessagesRequest) *request =
        (const ADMIN(MergeDLQMessagesRequest) *)call->request;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_merge(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    INTERNAL(DomainLettersQuery) query = query_of(request->inclusive_end_message_id);
    INTERNAL(DomainLettersMerged) merged = INTERNAL_VALUE(DOMAIN_LETTERS_MERGED__INIT);
    err = dlq_ask(call, &merge_question, &query, &merged);
    if (err != NULL)
        return err;
    return report_merged(&merged, (ADMIN(MergeDLQMessagesResponse) *)call->response, call->arena);
}
