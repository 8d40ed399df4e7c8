/* main.c - one binary: picks server or client by its first word. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "server/process.h"

int
main(int count, char **arguments)
{
    if (count >= 2 && strcmp(arguments[1], "server") == 0)
        return process_serve(count - 2, arguments + 2);
    return cli_run(count - 1, arguments + 1);
}
