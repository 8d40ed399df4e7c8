/* cli_doc.c - prints docs/cli.md. */
#include "cli/base/inside.h"

int
main(void)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    cli_print("%s", cli_help_document(arena));
    return 0;
}
