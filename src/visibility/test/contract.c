/* contract.c - what the files of the suite share. See contract.h. */
#include "visibility/test/contract.h"

#include "base/test.h"
#include "wire/message.h"

void
visibility_contract_run(const struct visibility_subject *subject,
                        void (*test)(struct visibility_contract *contract))
{
    struct visibility_contract contract = {.subject = subject, .arena = arena_new(0)};
    contract.attributes = attribute_set_new(contract.arena);
    contract.visibility = subject->open(subject->context);
    test(&contract);
    subject->close(subject->context, contract.visibility);
    arena_free(contract.arena);
}

void
visibility_contract_feed(struct visibility_contract *contract, const struct sample_run *run)
{
    struct visibility_change change = sample_change(contract->arena, run);
    EXPECT_OK(
        visibility_feed(contract->visibility, &change, 1, contract->attributes, contract->arena));
}

void
visibility_contract_feed_gone(struct visibility_contract *contract, const struct sample_run *run)
{
    struct visibility_change change = sample_change(contract->arena, run);
    change.info = (struct slice){0};
    EXPECT_OK(
        visibility_feed(contract->visibility, &change, 1, contract->attributes, contract->arena));
}

struct query
visibility_contract_parse(struct visibility_contract *contract, const char *text)
{
    struct query query;
    EXPECT_OK(query_parse_active(text, contract->attributes, contract->clusters, contract->arena,
                                 &query));
    return query;
}

struct visibility_page
visibility_contract_page(struct visibility_contract *contract,
                         const struct visibility_question *question)
{
    struct visibility_page page;
    EXPECT_OK(visibility_list(contract->visibility, question, contract->arena, &page));
    EXPECT(page.count <= question->page_size);
    return page;
}

static const char *
run_id_of(struct visibility_contract *contract, struct slice bytes)
{
    API(WorkflowExecutionInfo) *info;
    EXPECT_OK(message_decode(contract->arena, API_TYPE(workflow_execution_info), bytes, &info));
    return info->workflow_execution->run_id;
}

const char *
visibility_contract_list(struct visibility_contract *contract, const char *text, size_t page_size)
{
    struct query query = visibility_contract_parse(contract, text);
    struct visibility_question question = {
        .domain_id = "domain", .query = &query, .page_size = page_size};
    const char *list = "";
    do {
        struct visibility_page page = visibility_contract_page(contract, &question);
        for (size_t i = 0; i < page.count; i++)
            list = arena_format(contract->arena, "%s%s%s", list, list[0] == '\0' ? "" : " ",
                                run_id_of(contract, page.info[i]));
        question.token = page.token;
    } while (question.token.length > 0);
    return list;
}

int64_t
visibility_contract_count(struct visibility_contract *contract, const char *text)
{
    struct query query = visibility_contract_parse(contract, text);
    int64_t count = -1;
    EXPECT_OK(visibility_count(contract->visibility, "domain", &query, contract->arena, &count));
    return count;
}
