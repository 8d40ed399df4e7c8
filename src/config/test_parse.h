/* test_parse.h - texts read as config files, for the tests of this folder. */
#ifndef CADENZA_CONFIG_TEST_PARSE_H
#define CADENZA_CONFIG_TEST_PARSE_H

#include "config/config.h"

/* Reads `yaml` as the file test.yaml; `variables` are pairs of name and value, NULL-terminated, or
 * NULL. */
must_use struct error *parse(const char *yaml, const char *const *variables, struct arena *arena,
                             struct config **config);
/* The same for a text that must be good. */
struct config *config_of(const char *yaml, struct arena *arena);

#endif
