/* visibility.c - the front of every engine: checks callers, asks the engine. */
#include "visibility/visibility.h"

#include "base/check.h"
#include "visibility/engine.h"

void
visibility_close(struct visibility *visibility)
{
    check(visibility != NULL);
    visibility->engine->close(visibility);
}

struct error *
visibility_feed(struct visibility *visibility, const struct visibility_change *changes,
                size_t count, const struct attribute_set *attributes, struct arena *arena)
{
    check(attributes != NULL && (count == 0 || changes != NULL));
    for (size_t i = 0; i < count; i++) {
        const struct visibility_change *change = &changes[i];
        check(change->row > 0 && change->domain_id[0] != '\0' && change->run_id[0] != '\0');
    }
    return visibility->engine->feed(visibility, changes, count, attributes, arena);
}

struct error *
visibility_level(struct visibility *visibility, uint32_t shard, struct arena *arena, uint64_t *row)
{
    return visibility->engine->level(visibility, shard, arena, row);
}

struct error *
visibility_sync(struct visibility *visibility, struct arena *arena)
{
    return visibility->engine->sync(visibility, arena);
}

struct error *
visibility_forget(struct visibility *visibility, uint32_t shard, uint64_t level,
                  struct arena *arena)
{
    return visibility->engine->forget(visibility, shard, level, arena);
}

struct error *
visibility_list(struct visibility *visibility, const struct visibility_question *question,
                struct arena *arena, struct visibility_page *page)
{
    check(question->domain_id != NULL && question->query != NULL && question->page_size > 0);
    struct error *err = visibility->engine->list(visibility, question, arena, page);
    if (err != NULL)
        return err;
    check(page->count <= question->page_size); /* a full page has a token, any other page none */
    check((page->count == question->page_size) == (page->token.length > 0));
    return NULL;
}

struct error *
visibility_count(struct visibility *visibility, const char *domain_id, const struct query *query,
                 struct arena *arena, int64_t *count)
{
    check(domain_id != NULL && query != NULL);
    struct error *err = visibility->engine->count(visibility, domain_id, query, arena, count);
    check(err != NULL || *count >= 0);
    return err;
}
