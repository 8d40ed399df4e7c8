/* variables.h - ${NAME:default} in a text, replaced from the environment.
 *
 * ${NAME} without a default must be set. A default may hold variables itself and ends at its own
 * brace; "" (two quotes) as a default is the empty text. $${ stands for ${. */
#ifndef CADENZA_CONFIG_VARIABLES_H
#define CADENZA_CONFIG_VARIABLES_H

#include "base/arena.h"
#include "config/config.h"

#define VARIABLES_TEXT_MAX 65536 /* of a text when all is replaced */

/* `text` with its variables replaced, in the arena (or itself when it has none). NULL: *fault is a
 * sentence that says what is wrong. */
const char *variables_replace(const char *text, const struct config_environment *environment,
                              struct arena *arena, const char **config_error);

#endif
