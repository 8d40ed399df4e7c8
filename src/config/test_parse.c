/* test_parse.c - see test_parse.h. */
#include "config/test_parse.h"

#include "base/test.h"

/* An environment of pairs, NULL-terminated. */
static const char *
get_variable(void *context, const char *name)
{
    for (const char *const *pair = context; pair != NULL && pair[0] != NULL; pair += 2) {
        if (strcmp(pair[0], name) == 0)
            return pair[1];
    }
    return NULL;
}

struct error *
parse(const char *yaml, const char *const *variables, struct arena *arena, struct config **config)
{
    struct config_environment environment = {.get = get_variable, .context = (void *)variables};
    return config_parse(slice_text(yaml), "test.yaml", &environment, arena, config);
}

struct config *
config_of(const char *yaml, struct arena *arena)
{
    struct config *config = NULL;
    EXPECT_OK(parse(yaml, NULL, arena, &config));
    return config;
}
